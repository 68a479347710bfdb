/* SPDX-License-Identifier: Apache-2.0 */
/* The report's time line and critical path. */
#ifndef SDG_TOOLS_REPORT_TIMELINE_H
#define SDG_TOOLS_REPORT_TIMELINE_H

#include <stdio.h>

#include "tools/record/recorded.h"

/* Kinds of events: those of the device (sdg_phase_t), then those of the host.
 */
typedef enum event_kind {
  EVENT_HOST = SDG_PHASE_COUNT, /* a call on the host */
  EVENT_AGREEMENT,              /* the part of it that waits for other ranks */
  EVENT_UPDATE,                 /* a transfer caused by a call without a rule */
  EVENT_COUNT,
} event_kind_t;
const char *event_name(event_kind_t kind);

typedef struct event {
  int64_t at_ns, took_ns; /* at: since the run's begin */
  int64_t call;           /* number; 0: none */
  int kind;               /* event_kind_t */
  int type;               /* index of recorded_t.kind; -1: unknown */
  int thread;
} event_t;

/* Makes the events of a rank, in the order of their begins. The caller frees
 * them. SDG_E_NO_MEMORY. */
sdg_status_t timeline_events(const recorded_t *run, const recorded_rank_t *rank,
                             event_t **out, int *out_count) SDG_MUST_CHECK;

/* Writes the members "timeline" and "critical", each after a comma. If there
 * are more than `most` events (0: any number), those shorter than `grain_ns`
 * that begin in the same grain become one; the grain is written, too. */
sdg_status_t timeline_write(const recorded_t *run, int64_t most,
                            FILE *to) SDG_MUST_CHECK;

#endif
