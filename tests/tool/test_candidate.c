// SPDX-License-Identifier: Apache-2.0
// What `inspect` says about splits, against counting one element at a time.
#include "tools/candidate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

enum { RANDOM_CALLS = 400 };

static uint64_t state = 1;

static int64_t random_from(int64_t lo, int64_t hi) {
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return lo + (int64_t)((state >> 33) % (uint64_t)(hi - lo + 1));
}

static void operand_set(seen_operand_t *operand, const char *role, int64_t c,
                        int64_t h, int64_t w) {
  *operand = (seen_operand_t){
      .is_activation = true, .bytes = 4, .dims = 4, .extent = {2, c, h, w}};
  snprintf(operand->role, sizeof operand->role, "%s", role);
}

// A windowed call along H; x and y, or dx and dy.
static seen_call_t call_make(sdg_window_t window, int64_t h, bool backward) {
  seen_call_t call = {.family = SDG_FAMILY_CONV,
                      .has_rule = true,
                      .count = 1,
                      .spatial = 2,
                      .window = {window, {1, 1, 1, 0}},
                      .operands = 2};
  snprintf(call.entry, sizeof call.entry, "%s",
           backward ? "cudnnConvolutionBackwardData"
                    : "cudnnConvolutionForward");
  operand_set(&call.operand[0], backward ? "dx" : "x", 3, h, 5);
  operand_set(&call.operand[1], backward ? "dy" : "y", 4,
              sdg_window_outputs(&window, h), 5);
  return call;
}

static candidate_t judged_in(sdg_view_t view, seen_call_t *call, int count,
                             int ranks) {
  calls_t calls = {.count = count, .call = call};
  candidate_t candidate;
  ck_assert_int_eq(
      (int)candidate_judge(&calls, view, SDG_DIM_H, ranks, 1, &candidate), 0);
  return candidate;
}

static candidate_t judged(seen_call_t *call, int count, int ranks) {
  return judged_in(SDG_VIEW_SHARD, call, count, ranks);
}

static int owner(const sdg_part_t *part, int64_t index) {
  int rank = 0;
  while (index >= part->offset[rank + 1])
    rank++;
  return rank;
}

// Rows of one side between the first and the last that a rank sees, less those
// it owns, all ranks together.
static int64_t rows_counted(const sdg_window_t *window, int64_t x_extent,
                            int64_t y_extent, const sdg_part_t *x,
                            const sdg_part_t *y, bool backward) {
  int64_t rows = 0;
  for (int rank = 0; rank < x->pieces; rank++) {
    int64_t first = INT64_MAX, last = -1;
    for (int64_t o = 0; o < y_extent; o++)
      for (int64_t j = 0; j < window->kernel; j++) {
        int64_t i = o * window->stride - window->pad + j * window->dilation;
        if (i < 0 || i >= x_extent ||
            rank != (backward ? owner(x, i) : owner(y, o)))
          continue;
        int64_t seen = backward ? o : i;
        first = seen < first ? seen : first;
        last = seen > last ? seen : last;
      }
    for (int64_t i = first; i <= last; i++)
      rows += owner(backward ? y : x, i) != rank;
  }
  return rows;
}

static void halo_check(bool backward) {
  for (int n = 0; n < RANDOM_CALLS; n++) {
    // What is exchanged is an interval; strides up to the kernel leave none
    // out.
    sdg_window_t window = {.kernel = random_from(1, 7), .dilation = 1};
    if (!backward)
      window.dilation = random_from(1, 3);
    window.stride = backward ? random_from(1, window.kernel) : 1;
    window.pad = random_from(0, window.kernel - 1);
    int ranks = (int)random_from(2, 8);
    int64_t h = random_from(40, 200);
    seen_call_t call = call_make(window, h, backward);
    int64_t outputs = call.operand[1].extent[2];
    if (outputs < ranks)
      continue;
    candidate_t candidate = judged(&call, 1, ranks);
    if (candidate.align > 1) // other parts than those counted below
      continue;
    sdg_part_t x, y;
    ck_assert_int_eq((int)sdg_part_divide(h, ranks, SDG_PART_EVEN, 1, &x), 0);
    ck_assert_int_eq((int)sdg_window_part(&window, &x, outputs, &y), 0);
    int64_t row = 4 * 2 * 5 * (backward ? 4 : 3);
    ck_assert_int_eq(candidate.run_bytes,
                     row * rows_counted(&window, h, outputs, &x, &y, backward));
    sdg_part_fini(&x);
    sdg_part_fini(&y);
  }
}

START_TEST(halos_of_forward_calls_are_counted) {
  halo_check(false);
}
END_TEST

START_TEST(halos_of_data_gradients_are_counted) {
  halo_check(true);
}
END_TEST

START_TEST(least_rows_are_those_of_the_smallest_tensor) {
  seen_call_t call[2] = {call_make((sdg_window_t){3, 1, 1, 1}, 64, false),
                         call_make((sdg_window_t){3, 1, 1, 1}, 18, false)};
  candidate_t candidate = judged(call, 2, 4);
  ck_assert_int_eq(candidate.smallest, 4);
  ck_assert_int_eq(candidate.least, 18);
  ck_assert_int_eq(candidate.faults, 0);
}
END_TEST

START_TEST(calls_are_weighed_by_steps) {
  seen_call_t call = call_make((sdg_window_t){3, 1, 1, 1}, 64, false);
  calls_t calls = {.count = 1, .call = &call};
  candidate_t candidate;
  call.count = 21;
  ck_assert_int_eq((int)candidate_judge(&calls, SDG_VIEW_SHARD, SDG_DIM_H, 2,
                                        10, &candidate),
                   0);
  ck_assert_int_eq(candidate.step_bytes, 2 * (2 * 4 * 2 * 3 * 5));
  ck_assert_int_eq(candidate.run_bytes, 21 * (2 * 4 * 2 * 3 * 5));
}
END_TEST

START_TEST(strides_ask_for_aligned_parts) {
  // 100 over 8 is 13,13,13,13,12...: odd pieces make one output too many.
  seen_call_t call[2] = {call_make((sdg_window_t){3, 2, 1, 1}, 100, false),
                         call_make((sdg_window_t){3, 2, 1, 1}, 50, false)};
  candidate_t candidate = judged(call, 2, 8);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.align, 4); // 2 of the 50, which is halved
}
END_TEST

START_TEST(sizes_that_never_add_up_are_a_fault_unless_they_are_asked_for) {
  seen_call_t call[2] = {call_make((sdg_window_t){3, 1, 1, 0}, 64, false)};
  candidate_t candidate = judged(call, 1, 2);
  ck_assert_int_eq(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-401"));
  call[1] = call[0];
  call[1].is_query = true;
  call[1].operands = 1;
  snprintf(call[1].entry, sizeof call[1].entry,
           "cudnnGetConvolution2dForwardOutputDim");
  candidate = judged(call, 2, 2);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert(candidate.asks_sizes);
}
END_TEST

START_TEST(calls_that_cannot_be_split_are_faults) {
  seen_call_t call[2] = {call_make((sdg_window_t){3, 1, 1, 1}, 64, false)};
  call[0].has_rule = false;
  candidate_t candidate = judged(call, 1, 2);
  ck_assert_int_eq(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-600"));
  call[0].has_rule = true;
  call[1] = (seen_call_t){.is_opaque = true, .count = 1};
  snprintf(call[1].entry, sizeof call[1].entry, "cudnnBackendExecute");
  candidate = judged(call, 2, 2);
  ck_assert_int_eq(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-607"));
  candidate = judged(call, 1, 8);
  ck_assert_int_eq(candidate.faults, 0);
  call[0] = call_make((sdg_window_t){3, 1, 1, 1}, 7, false);
  candidate = judged(call, 1, 8);
  ck_assert_int_ge(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-402"));
}
END_TEST

START_TEST(the_whole_view_takes_what_pieces_cannot) {
  // No rule: both ranks need the half of the input that they have not.
  seen_call_t call[2] = {call_make((sdg_window_t){3, 1, 1, 1}, 64, false)};
  call[0].has_rule = false;
  call[0].operand[1].is_output = true;
  candidate_t candidate = judged_in(SDG_VIEW_WHOLE, call, 1, 2);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.in_full, 1);
  ck_assert_int_eq(candidate.run_bytes, 4 * 2 * 3 * 64 * 5);
  // With one: the halo is that of the shard view.
  call[0].has_rule = true;
  ck_assert_int_eq(judged_in(SDG_VIEW_WHOLE, call, 1, 4).run_bytes,
                   judged(call, 1, 4).run_bytes);
  // Sizes that do not add up, and fewer rows than ranks.
  call[0] = call_make((sdg_window_t){3, 1, 1, 0}, 7, false);
  ck_assert_int_ge(judged(call, 1, 8).faults, 1);
  candidate = judged_in(SDG_VIEW_WHOLE, call, 1, 8);
  ck_assert_msg(candidate.faults == 0, "%s", candidate.fault[0]);
  call[1] = (seen_call_t){.is_opaque = true, .count = 1};
  candidate = judged_in(SDG_VIEW_WHOLE, call, 2, 2);
  ck_assert_int_eq(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-607"));
}
END_TEST

START_TEST(steps_are_what_the_windowed_calls_repeat) {
  static const struct {
    int64_t count[4], steps;
  } runs[] = {{{10, 10, 2, 0}, 10},    {{30, 10, 10, 0}, 10},
              {{100, 100, 1, 1}, 100}, {{1, 1, 1, 0}, 1},
              {{12, 10, 0, 0}, 12},    {{7, 0, 0, 0}, 7}};
  for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
    seen_call_t call[4];
    calls_t calls = {.call = call};
    for (int i = 0; i < 4 && runs[r].count[i]; i++) {
      call[i] = call_make((sdg_window_t){3, 1, 1, 1}, 64, false);
      call[i].count = runs[r].count[i];
      calls.count++;
    }
    ck_assert_int_eq(calls_steps(&calls), runs[r].steps);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("candidate");
  TCase *cases = tcase_create("candidate");
  tcase_add_test(cases, halos_of_forward_calls_are_counted);
  tcase_add_test(cases, halos_of_data_gradients_are_counted);
  tcase_add_test(cases, least_rows_are_those_of_the_smallest_tensor);
  tcase_add_test(cases, calls_are_weighed_by_steps);
  tcase_add_test(cases, strides_ask_for_aligned_parts);
  tcase_add_test(cases,
                 sizes_that_never_add_up_are_a_fault_unless_they_are_asked_for);
  tcase_add_test(cases, calls_that_cannot_be_split_are_faults);
  tcase_add_test(cases, the_whole_view_takes_what_pieces_cannot);
  tcase_add_test(cases, steps_are_what_the_windowed_calls_repeat);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
