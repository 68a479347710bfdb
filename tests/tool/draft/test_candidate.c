// SPDX-License-Identifier: Apache-2.0
// What `inspect` says about splits, against counts of single elements.
#include "tools/draft/candidate.h"

#include <stdio.h>
#include <string.h>

#include "tests/tool/draft/seen.h"
#include "tests/unit/harness.h"
#include "tools/draft/draft.h"

enum { RANDOM_CALLS = 400 };

static candidate_t judged(seen_call_t *call, int count, int ranks) {
  return seen_judged(SDG_VIEW_SHARD, call, count, ranks);
}

// Counts the rows of one side from the first to the last that a rank sees,
// without those it owns, over all ranks.
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
            rank != (backward ? seen_owner(x, i) : seen_owner(y, o)))
          continue;
        int64_t seen = backward ? o : i;
        first = seen < first ? seen : first;
        last = seen > last ? seen : last;
      }
    for (int64_t i = first; i <= last; i++)
      rows += seen_owner(backward ? y : x, i) != rank;
  }
  return rows;
}

static void halo_check(bool backward) {
  for (int n = 0; n < RANDOM_CALLS; n++) {
    // Ranks exchange intervals of rows; strides up to the kernel skip no row.
    sdg_window_t window = {.kernel = seen_random(1, 7), .dilation = 1};
    if (!backward)
      window.dilation = seen_random(1, 3);
    window.stride = backward ? seen_random(1, window.kernel) : 1;
    window.pad = seen_random(0, window.kernel - 1);
    int ranks = (int)seen_random(2, 8);
    int64_t h = seen_random(40, 200);
    seen_call_t call = seen_window_call(window, h, backward);
    int64_t outputs = call.operand[1].extent[2];
    if (outputs < ranks)
      continue;
    candidate_t candidate = judged(&call, 1, ranks);
    if (candidate.split[0].align > 1) // other parts than those counted below
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
  seen_call_t call[2] = {
      seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false),
      seen_window_call((sdg_window_t){3, 1, 1, 1}, 18, false)};
  candidate_t candidate = judged(call, 2, 4);
  ck_assert_int_eq(candidate.split[0].smallest, 4);
  ck_assert_int_eq(candidate.least[1][0], 18);
  ck_assert_int_eq(candidate.faults, 0);
}
END_TEST

START_TEST(calls_are_weighed_by_steps) {
  seen_call_t call = seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false);
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
  seen_call_t call[2] = {
      seen_window_call((sdg_window_t){3, 2, 1, 1}, 100, false),
      seen_window_call((sdg_window_t){3, 2, 1, 1}, 50, false)};
  candidate_t candidate = judged(call, 2, 8);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.split[0].align, 4); // 2 of the 50, which is halved
}
END_TEST

// Checks that the sizes that a program computes from each piece, call after
// call, add up to those of the whole.
static void chain_check(const int64_t *stride, int count, int64_t h, int ranks,
                        int64_t align) {
  seen_call_t call[4];
  sdg_part_t part;
  int64_t size[16], whole = h;
  for (int i = 0; i < count; i++) {
    sdg_window_t window = {2 * stride[i] - 1, stride[i], 1, stride[i] - 1};
    call[i] = seen_window_call(window, whole, false);
    whole = call[i].operand[1].extent[2];
  }
  candidate_t candidate = judged(call, count, ranks);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.split[0].align, align);
  ck_assert_int_eq((int)sdg_part_divide(h, ranks, SDG_PART_EVEN,
                                        candidate.split[0].align, &part),
                   0);
  for (int r = 0; r < ranks; r++)
    size[r] = sdg_part_size(&part, r);
  for (int i = 0; i < count; i++) {
    int64_t sum = 0;
    for (int r = 0; r < ranks; r++)
      sum += size[r] = sdg_window_outputs(&call[i].window[0], size[r]);
    ck_assert_int_eq(sum, call[i].operand[1].extent[2]);
  }
  sdg_part_fini(&part);
}

START_TEST(strides_multiply_down_the_network) {
  chain_check((const int64_t[]){2, 2, 2}, 3, 1040, 4, 8);
  chain_check((const int64_t[]){2, 2, 2}, 3, 1039, 4, 8); // halved: 520, 260
  chain_check((const int64_t[]){3, 2}, 2, 100, 4, 6);
  chain_check((const int64_t[]){3, 3}, 2, 200, 5, 9);
}
END_TEST

START_TEST(sizes_that_never_add_up_are_a_fault_unless_they_are_asked_for) {
  seen_call_t call[2] = {
      seen_window_call((sdg_window_t){3, 1, 1, 0}, 64, false)};
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
  seen_call_t call[2] = {
      seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false)};
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
  // Sums over samples may be in it.
  candidate = seen_judged_along(SDG_VIEW_SHARD, SDG_DIM_N, call, 2, 2);
  ck_assert_int_eq(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-607"));
  candidate = judged(call, 1, 8);
  ck_assert_int_eq(candidate.faults, 0);
  call[0] = seen_window_call((sdg_window_t){3, 1, 1, 1}, 7, false);
  candidate = judged(call, 1, 8);
  ck_assert_int_ge(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-402"));
}
END_TEST

START_TEST(the_whole_view_accepts_calls_that_pieces_cannot) {
  // No rule: both ranks need the half of the input that they have not.
  seen_call_t call[2] = {
      seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false)};
  call[0].has_rule = false;
  call[0].operand[1].is_output = true;
  candidate_t candidate = seen_judged(SDG_VIEW_WHOLE, call, 1, 2);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.in_full, 1);
  ck_assert_int_eq(candidate.run_bytes, 4 * 2 * 3 * 64 * 5);
  // With one: the halo is that of the shard view.
  call[0].has_rule = true;
  ck_assert_int_eq(seen_judged(SDG_VIEW_WHOLE, call, 1, 4).run_bytes,
                   judged(call, 1, 4).run_bytes);
  // Sizes that do not add up, and fewer rows than ranks.
  call[0] = seen_window_call((sdg_window_t){3, 1, 1, 0}, 7, false);
  ck_assert_int_ge(judged(call, 1, 8).faults, 1);
  candidate = seen_judged(SDG_VIEW_WHOLE, call, 1, 8);
  ck_assert_msg(candidate.faults == 0, "%s", candidate.fault[0]);
  call[1] = (seen_call_t){.is_opaque = true, .count = 1};
  candidate = seen_judged(SDG_VIEW_WHOLE, call, 2, 2);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.in_full, 1);
  candidate = judged(&call[1], 1, 2);
  ck_assert_int_eq(candidate.fatal, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-607"));
}
END_TEST

// Returns whether a split of these calls over two ranks would be drafted, in
// any view and dimension.
static bool drafted(const seen_call_t *call, int count) {
  static const sdg_dim_t dims[] = {SDG_DIM_N, SDG_DIM_H, SDG_DIM_W};
  candidate_t candidates[6];
  calls_t calls = {.count = count, .call = (seen_call_t *)(uintptr_t)call};
  for (int i = 0; i < 6; i++)
    ck_assert(candidate_judge(&calls, i < 3 ? SDG_VIEW_SHARD : SDG_VIEW_WHOLE,
                              dims[i % 3], 2, 1, &candidates[i]) == SDG_OK);
  return draft_choose(candidates, 6, SDG_DIM_COUNT, SDG_VIEW_UNSAID) != NULL;
}

START_TEST(candidates_that_split_nothing_or_fail_are_not_drafted) {
  seen_call_t call[2] = {
      seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false)};
  ck_assert(drafted(call, 1));
  // A recurrent network: ops without a rule.
  call[0].has_rule = false;
  ck_assert(!drafted(call, 1));
  // An activation alone, also beside products that every rank makes in full.
  call[0].has_rule = true;
  call[0].family = SDG_FAMILY_POINTWISE;
  call[0].spatial = 0;
  ck_assert(!drafted(call, 1));
  // Elements that cannot be split.
  call[0] = seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false);
  for (int i = 0; i < call[0].operands; i++) {
    call[0].operand[i].bytes = 0;
    call[0].operand[i].type = 5; // int8x4
  }
  ck_assert(!drafted(call, 1));
  // Results in managed memory: the shard view takes them, the whole does not.
  call[0] = seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false);
  for (int i = 0; i < call[0].operands; i++)
    call[0].operand[i].is_managed = call[0].operand[i].is_output = true;
  ck_assert(drafted(call, 1));
  ck_assert_int_ge(seen_judged(SDG_VIEW_WHOLE, call, 1, 2).fatal, 1);
  call[1] = (seen_call_t){.is_opaque = true, .count = 1}; // no shard view
  ck_assert(!drafted(call, 2));
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
      call[i] = seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false);
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
  tcase_add_test(cases, strides_multiply_down_the_network);
  tcase_add_test(cases,
                 sizes_that_never_add_up_are_a_fault_unless_they_are_asked_for);
  tcase_add_test(cases, calls_that_cannot_be_split_are_faults);
  tcase_add_test(cases, the_whole_view_accepts_calls_that_pieces_cannot);
  tcase_add_test(cases, candidates_that_split_nothing_or_fail_are_not_drafted);
  tcase_add_test(cases, steps_are_what_the_windowed_calls_repeat);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
