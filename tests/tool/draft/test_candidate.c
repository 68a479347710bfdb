// SPDX-License-Identifier: Apache-2.0
// What `inspect` says about splits, against counts of single elements.
#include "tools/draft/candidate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"
#include "tools/draft/draft.h"

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

static candidate_t judged_along(sdg_view_t view, sdg_dim_t dim,
                                seen_call_t *call, int count, int ranks) {
  calls_t calls = {.count = count, .call = call};
  candidate_t candidate;
  ck_assert_int_eq(
      (int)candidate_judge(&calls, view, dim, ranks, 1, &candidate), 0);
  return candidate;
}

static candidate_t judged_in(sdg_view_t view, seen_call_t *call, int count,
                             int ranks) {
  return judged_along(view, SDG_DIM_H, call, count, ranks);
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
    // Ranks exchange intervals of rows; strides up to the kernel skip no row.
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
  seen_call_t call[2] = {call_make((sdg_window_t){3, 1, 1, 1}, 64, false),
                         call_make((sdg_window_t){3, 1, 1, 1}, 18, false)};
  candidate_t candidate = judged(call, 2, 4);
  ck_assert_int_eq(candidate.split[0].smallest, 4);
  ck_assert_int_eq(candidate.least[1][0], 18);
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
    call[i] = call_make(window, whole, false);
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
  // Sums over samples may be in it.
  candidate = judged_along(SDG_VIEW_SHARD, SDG_DIM_N, call, 2, 2);
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

START_TEST(the_whole_view_accepts_calls_that_pieces_cannot) {
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
  seen_call_t call[2] = {call_make((sdg_window_t){3, 1, 1, 1}, 64, false)};
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
  call[0] = call_make((sdg_window_t){3, 1, 1, 1}, 64, false);
  for (int i = 0; i < call[0].operands; i++) {
    call[0].operand[i].bytes = 0;
    call[0].operand[i].type = 5; // int8x4
  }
  ck_assert(!drafted(call, 1));
  // Results in managed memory: the shard view takes them, the whole does not.
  call[0] = call_make((sdg_window_t){3, 1, 1, 1}, 64, false);
  for (int i = 0; i < call[0].operands; i++)
    call[0].operand[i].is_managed = call[0].operand[i].is_output = true;
  ck_assert(drafted(call, 1));
  ck_assert_int_ge(judged_in(SDG_VIEW_WHOLE, call, 1, 2).fatal, 1);
  call[1] = (seen_call_t){.is_opaque = true, .count = 1}; // no shard view
  ck_assert(!drafted(call, 2));
}
END_TEST

// Makes an attention with this many tokens, 5 samples and vectors of 3.
static seen_call_t attention_make(int64_t tokens, int64_t left, int64_t right,
                                  bool backward) {
  static const char *const roles[] = {"q", "k", "v", "dk"};
  seen_call_t call = {.family = SDG_FAMILY_ATTENTION,
                      .has_rule = true,
                      .count = 1,
                      .has_windows = true,
                      .left = left,
                      .right = right,
                      .operands = backward ? 4 : 3};
  snprintf(call.entry, sizeof call.entry, "cudnnMultiHeadAttn%s",
           backward ? "BackwardData" : "Forward");
  for (int i = 0; i < call.operands; i++) {
    call.operand[i] = (seen_operand_t){.is_activation = true,
                                       .bytes = 4,
                                       .dims = 4,
                                       .extent = {tokens, 5, 1, 3}};
    snprintf(call.operand[i].role, sizeof call.operand[i].role, "%s", roles[i]);
  }
  return call;
}

static seen_call_t product_make(int64_t m, int64_t n, int64_t k) {
  seen_call_t call = {
      .family = SDG_FAMILY_MATMUL,
      .has_rule = true,
      .count = 1,
      .operands = 2,
      .operand = {{.role = "product",
                   .is_activation = true,
                   .bytes = 1,
                   .dims = 3,
                   .extent = {m, n, k}},
                  {.role = "c", .bytes = 4, .dims = 2, .extent = {n, m}}}};
  snprintf(call.entry, sizeof call.entry, "cublasSgemm_v2");
  return call;
}

static candidate_t sequences_judged(sdg_view_t view, seen_call_t *call,
                                    int count, int ranks) {
  calls_t calls = {.count = count, .call = call};
  candidate_t candidate;
  ck_assert_int_eq(
      (int)candidate_judge(&calls, view, SDG_DIM_SEQ, ranks, 1, &candidate), 0);
  return candidate;
}

static void section_is(const candidate_t *candidate, int index,
                       const char *match, const char *split,
                       const char *window) {
  ck_assert_int_gt(candidate->companions, index);
  ck_assert_str_eq(candidate->companion[index].match, match);
  ck_assert_str_eq(candidate->companion[index].split, split);
  ck_assert_str_eq(candidate->companion[index].window, window);
}

// Counts, one by one, keys that a rank's queries see and that it does not have.
static int64_t keys_counted(int64_t tokens, int64_t left, int64_t right,
                            int ranks) {
  int64_t count = 0;
  sdg_part_t part;
  ck_assert_int_eq((int)sdg_part_divide(tokens, ranks, SDG_PART_EVEN, 1, &part),
                   0);
  for (int rank = 0; rank < ranks; rank++)
    for (int64_t j = 0; j < tokens; j++) {
      bool seen = false;
      for (int64_t t = 0; t < tokens; t++)
        seen |= owner(&part, t) == rank && (left < 0 || j >= t - left) &&
                (right < 0 || j <= t + right);
      count += seen && owner(&part, j) != rank;
    }
  sdg_part_fini(&part);
  return count;
}

START_TEST(keys_and_values_of_attention_are_counted) {
  for (int n = 0; n < RANDOM_CALLS; n++) {
    int64_t tokens = random_from(16, 90), row = 4 * 5 * 3;
    int64_t left = random_from(-1, 20), right = random_from(-1, 20);
    int ranks = (int)random_from(2, 8);
    int64_t keys = keys_counted(tokens, left, right, ranks);
    seen_call_t call = attention_make(tokens, left, right, n % 2);
    // There and, of gradients, back.
    int64_t ways = n % 2 ? 4 : 2;
    candidate_t candidate = sequences_judged(SDG_VIEW_SHARD, &call, 1, ranks);
    ck_assert_int_eq(candidate.run_bytes, ways * row * keys);
    call.one_tensor = true;
    candidate = sequences_judged(SDG_VIEW_SHARD, &call, 1, ranks);
    ck_assert_int_eq(candidate.run_bytes, (ways - 1) * row * keys);
    ck_assert_int_eq(candidate.faults, 0);
  }
}
END_TEST

START_TEST(tensors_with_the_tokens_are_split_with_them) {
  seen_call_t call[5] = {attention_make(60, 7, 0, false),
                         product_make(24, 60, 8), product_make(24, 8, 60)};
  candidate_t candidate = sequences_judged(SDG_VIEW_SHARD, call, 3, 3);
  ck_assert_msg(candidate.faults == 0, "%s", candidate.fault[0]);
  ck_assert_int_eq(candidate.companions, 3);
  section_is(&candidate, 0, "SEQ=60 BATCH", "SEQ", "7,0");
  section_is(&candidate, 1, "M=24 N=60 K=8", "N", "");
  section_is(&candidate, 2, "M=24 N=8 K=60", "K", "");
  ck_assert_int_eq(candidate.split[0].smallest, 20);
  // The sums of the last: scattered and gathered.
  ck_assert_int_eq(candidate.run_bytes - 2 * 4 * 5 * 3 * 7 * 2,
                   2 * 2 * 24 * 8 * 4);
  // In the whole view the program's windows are those that are meant.
  candidate = sequences_judged(SDG_VIEW_WHOLE, call, 3, 3);
  section_is(&candidate, 0, "SEQ=60 BATCH", "SEQ", "");
  // The same once more, and a tensor of tokens.
  call[3] = call[0];
  call[4] = (seen_call_t){.family = SDG_FAMILY_POINTWISE,
                          .has_rule = true,
                          .count = 1,
                          .operands = 1};
  operand_set(&call[4].operand[0], "y", 60, 24, 1);
  candidate = sequences_judged(SDG_VIEW_SHARD, call, 5, 3);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.companions, 4);
  section_is(&candidate, 3, "C=60", "C", "");
}
END_TEST

static void fault_has(const candidate_t *candidate, const char *text) {
  for (int i = 0; i < candidate->faults; i++)
    if (strstr(candidate->fault[i], text))
      return;
  ck_abort_msg("no conflict says %s", text);
}

START_TEST(an_ambiguous_tensor_is_a_conflict) {
  seen_call_t call[2] = {attention_make(60, 7, 0, false),
                         attention_make(60, 6, 0, false)};
  candidate_t candidate = sequences_judged(SDG_VIEW_SHARD, call, 2, 3);
  fault_has(&candidate, "sections must distinguish them");
  call[1] = product_make(60, 60, 8);
  candidate = sequences_judged(SDG_VIEW_SHARD, call, 2, 3);
  fault_has(&candidate, "several dimensions of product 60x60x8");
  call[1] = product_make(5, 6, 8);
  candidate = sequences_judged(SDG_VIEW_SHARD, call, 2, 3);
  fault_has(&candidate, "none of its dimensions");
  candidate = sequences_judged(SDG_VIEW_WHOLE, call, 2, 3);
  ck_assert_int_eq(candidate.faults, 0);
  call[0].is_ragged = true;
  candidate = sequences_judged(SDG_VIEW_SHARD, call, 1, 3);
  fault_has(&candidate, "SDG-631");
  // Without a split of the tokens both are every rank's.
  candidate = judged_in(SDG_VIEW_WHOLE, call, 2, 3);
  ck_assert_int_eq(candidate.aside, 2);
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
  tcase_add_test(cases, strides_multiply_down_the_network);
  tcase_add_test(cases,
                 sizes_that_never_add_up_are_a_fault_unless_they_are_asked_for);
  tcase_add_test(cases, calls_that_cannot_be_split_are_faults);
  tcase_add_test(cases, the_whole_view_accepts_calls_that_pieces_cannot);
  tcase_add_test(cases, candidates_that_split_nothing_or_fail_are_not_drafted);
  tcase_add_test(cases, keys_and_values_of_attention_are_counted);
  tcase_add_test(cases, tensors_with_the_tokens_are_split_with_them);
  tcase_add_test(cases, an_ambiguous_tensor_is_a_conflict);
  tcase_add_test(cases, steps_are_what_the_windowed_calls_repeat);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
