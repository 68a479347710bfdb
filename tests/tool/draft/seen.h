/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as a recorded run has them, for tests of what is said about splits. */
#ifndef SDG_TESTS_TOOL_DRAFT_SEEN_H
#define SDG_TESTS_TOOL_DRAFT_SEEN_H

#include "tools/draft/candidate.h"

/* A number from lo to hi, the same ones in each run. */
int64_t seen_random(int64_t lo, int64_t hi);

/* A float tensor of 2 samples. */
void seen_operand(seen_operand_t *operand, const char *role, int64_t c,
                  int64_t h, int64_t w);
/* A windowed call along H; x and y, or dx and dy. */
seen_call_t seen_window_call(sdg_window_t window, int64_t h, bool backward);

/* What is said of an even split over so many ranks in one step. */
candidate_t seen_judged_along(sdg_view_t view, sdg_dim_t dim, seen_call_t *call,
                              int count, int ranks);
/* Of H. */
candidate_t seen_judged(sdg_view_t view, seen_call_t *call, int count,
                        int ranks);

/* The rank whose piece has the index. */
int seen_owner(const sdg_part_t *part, int64_t index);

#endif
