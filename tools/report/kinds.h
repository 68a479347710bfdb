/* SPDX-License-Identifier: Apache-2.0 */
/* The report's kinds of calls: counts, times, and bytes by cause. */
#ifndef SDG_TOOLS_REPORT_KINDS_H
#define SDG_TOOLS_REPORT_KINDS_H

#include "tools/record/recorded.h"

/* Of one rank, or of all. */
typedef struct kind_sums {
  int64_t calls, received_bytes, sum_bytes, wait_ns, copied_bytes;
} kind_sums_t;

/* Returns what `rank` counted for kind `kind`, -1: for all kinds. It is what
 * the rank counted at its end, or if it left no totals, what its recorded calls
 * add up to. */
kind_sums_t kinds_rank(const recorded_t *run, const recorded_rank_t *rank,
                       int kind);

/* Returns a new list of objects; NULL if memory runs out. */
json_t *kinds_make(const recorded_t *run);

/* Returns a new object: bytes received by all ranks, by cause. */
json_t *kinds_causes(const recorded_t *run);

#endif
