/* SPDX-License-Identifier: Apache-2.0 */
/* The report's ranks: what each received, and what its time went into. */
#ifndef SDG_TOOLS_REPORT_RANKS_H
#define SDG_TOOLS_REPORT_RANKS_H

#include "tools/record/recorded.h"

/* Times of a rank in nanoseconds, by purpose. */
typedef struct rank_times {
  int64_t host_ns, agreed_ns; /* in calls; the part that waits for ranks */
  int64_t phase_ns[SDG_PHASE_COUNT];
} rank_times_t;
rank_times_t ranks_times(const recorded_rank_t *rank);

/* Returns a new list of objects, one for each rank; NULL if memory runs out. */
json_t *ranks_make(const recorded_t *run);

/* Returns {"rank", "why", "share"} for the rank that the others wait for; null
 * if waiting takes less than a twentieth of the run, no rank stands out, or
 * some ranks have no times of their streams. NULL if memory runs out. */
json_t *ranks_slowest(const recorded_t *run);

#endif
