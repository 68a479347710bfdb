/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and bytes of a rank's calls, by kind. */
#ifndef SDG_TOOLS_REPORT_ADVICE_SUMS_H
#define SDG_TOOLS_REPORT_ADVICE_SUMS_H

#include "tools/record/recorded.h"

/* Of one rank, or of all. */
typedef struct kind_sums {
  int64_t calls, received_bytes, sum_bytes, copied_bytes;
} kind_sums_t;

/* Whether a row of a rank's totals is of this kind. */
bool sums_is_of(const json_t *row, const recorded_kind_t *kind);

/* Returns what `rank` counted for kind `kind`, -1: for all kinds. It is what
 * the rank counted at its end, or if it left no totals, what its recorded calls
 * add up to. */
kind_sums_t sums_rank(const recorded_t *run, const recorded_rank_t *rank,
                      int kind);

/* The same for all kinds: `out_sums` has room for recorded_t.kinds. */
void sums_kinds(const recorded_t *run, const recorded_rank_t *rank,
                kind_sums_t *out_sums);

#endif
