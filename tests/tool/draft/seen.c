// SPDX-License-Identifier: Apache-2.0
// Calls as a recorded run has them, for tests of what is said about splits.
#include "tests/tool/draft/seen.h"

#include <stdio.h>

#include "tests/unit/harness.h"

static uint64_t state = 1;

int64_t seen_random(int64_t lo, int64_t hi) {
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return lo + (int64_t)((state >> 33) % (uint64_t)(hi - lo + 1));
}

void seen_operand(seen_operand_t *operand, const char *role, int64_t c,
                  int64_t h, int64_t w) {
  *operand = (seen_operand_t){
      .is_activation = true, .bytes = 4, .dims = 4, .extent = {2, c, h, w}};
  snprintf(operand->role, sizeof operand->role, "%s", role);
}

// A windowed call along H; x and y, or dx and dy.
seen_call_t seen_window_call(sdg_window_t window, int64_t h, bool backward) {
  seen_call_t call = {.family = SDG_FAMILY_CONV,
                      .has_rule = true,
                      .count = 1,
                      .spatial = 2,
                      .window = {window, {1, 1, 1, 0}},
                      .operands = 2};
  snprintf(call.entry, sizeof call.entry, "%s",
           backward ? "cudnnConvolutionBackwardData"
                    : "cudnnConvolutionForward");
  seen_operand(&call.operand[0], backward ? "dx" : "x", 3, h, 5);
  seen_operand(&call.operand[1], backward ? "dy" : "y", 4,
               sdg_window_outputs(&window, h), 5);
  return call;
}

candidate_t seen_judged_along(sdg_view_t view, sdg_dim_t dim, seen_call_t *call,
                              int count, int ranks) {
  calls_t calls = {.count = count, .call = call};
  candidate_t candidate;
  ck_assert_int_eq(
      (int)candidate_judge(&calls, view, dim, ranks, 1, &candidate), 0);
  return candidate;
}

candidate_t seen_judged(sdg_view_t view, seen_call_t *call, int count,
                        int ranks) {
  return seen_judged_along(view, SDG_DIM_H, call, count, ranks);
}

int seen_owner(const sdg_part_t *part, int64_t index) {
  int rank = 0;
  while (index >= part->offset[rank + 1])
    rank++;
  return rank;
}
