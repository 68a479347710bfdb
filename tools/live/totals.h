/* SPDX-License-Identifier: Apache-2.0 */
/* The memory in which the ranks count while they run (src/job/live.h), and
 * what it says at one time. */
#ifndef SDG_TOOLS_LIVE_TOTALS_H
#define SDG_TOOLS_LIVE_TOTALS_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/job/live.h"

/* Makes the memory for `size` ranks and sets SUNDOG_LIVE for them. It has no
 * name but that of the descriptor in this process, and lasts until the last
 * process that has mapped it ends. SDG_E_START, SDG_E_NO_MEMORY. */
sdg_status_t totals_create(int size, sdg_live_t **out) SDG_MUST_CHECK;

/* Totals of a rank at one time. */
typedef struct rank_now {
  sdg_live_state_t state;
  int32_t pid;
  int64_t calls, received_bytes;
  /* Of each thread, by its channel; a wait in progress included. */
  int64_t host_wait_ns[SDG_CHANNEL_THREADS];
  int64_t stream_wait_ns[SDG_CHANNEL_THREADS];
  bool waits;      /* for other ranks or their data, at this moment */
  uint64_t number; /* of the call that a thread of it has reached; 0: none */
  char name[SDG_LIVE_NAME_BYTES]; /* of its entry */
} rank_now_t;

/* `now_ns`: CLOCK_MONOTONIC. */
void totals_read(const sdg_live_t *live, int rank, int64_t now_ns,
                 rank_now_t *out);

#endif
