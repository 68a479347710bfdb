// SPDX-License-Identifier: Apache-2.0
// What `inspect` says about splits of tokens, heads and samples: attention, and
// products and tensors that have the tokens, too.
#include "tools/draft/companion.h"

#include <stdio.h>
#include <string.h>

#include "tests/tool/draft/seen.h"
#include "tests/unit/harness.h"

enum { RANDOM_CALLS = 400 };

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

// Makes attention in a graph: 2 samples, 8 heads of 16 numbers, and as many
// heads of keys and values as that.
static seen_call_t graph_make(int64_t tokens, int64_t k_heads, int64_t left,
                              int64_t right, bool backward) {
  seen_call_t call = attention_make(tokens, left, right, backward);
  call.family = SDG_FAMILY_ATTENTION_GRAPH;
  snprintf(call.entry, sizeof call.entry, "attention");
  for (int i = 0; i < call.operands; i++) {
    const int64_t extent[] = {2, i == 0 ? 8 : k_heads, tokens, 16};
    call.operand[i].bytes = 2;
    memcpy(call.operand[i].extent, extent, sizeof extent);
  }
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
        seen |= seen_owner(&part, t) == rank && (left < 0 || j >= t - left) &&
                (right < 0 || j <= t + right);
      count += seen && seen_owner(&part, j) != rank;
    }
  sdg_part_fini(&part);
  return count;
}

START_TEST(keys_and_values_of_attention_are_counted) {
  for (int n = 0; n < RANDOM_CALLS; n++) {
    int64_t tokens = seen_random(16, 90), row = 4 * 5 * 3;
    int64_t left = seen_random(-1, 20), right = seen_random(-1, 20);
    int ranks = (int)seen_random(2, 8);
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
  seen_operand(&call[4].operand[0], "y", 60, 24, 1);
  candidate = sequences_judged(SDG_VIEW_SHARD, call, 5, 3);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.companions, 4);
  section_is(&candidate, 3, "C=60", "C", "");
}
END_TEST

START_TEST(tokens_of_attention_in_graphs_are_split) {
  for (int n = 0; n < RANDOM_CALLS; n++) {
    int64_t tokens = seen_random(16, 90), k_heads = seen_random(0, 3);
    int64_t left = seen_random(-1, 20), right = seen_random(-1, 20);
    int ranks = (int)seen_random(2, 8);
    char match[64];
    seen_call_t call =
        graph_make(tokens, INT64_C(1) << k_heads, left, right, n % 2);
    candidate_t candidate = sequences_judged(SDG_VIEW_SHARD, &call, 1, ranks);
    ck_assert_int_eq(candidate.faults, 0);
    ck_assert_int_eq(candidate.run_bytes,
                     keys_counted(tokens, left, right, ranks) * 2 * 2 *
                         (16 << k_heads) * (n % 2 ? 4 : 2));
    snprintf(match, sizeof match, "BATCH HEADS SEQ=%d HEAD", (int)tokens);
    section_is(&candidate, 0, match, "SEQ", "");
  }
}
END_TEST

START_TEST(attention_in_graphs_is_split_by_heads_and_samples) {
  seen_call_t call = graph_make(60, 4, -1, 0, false);
  candidate_t candidate =
      seen_judged_along(SDG_VIEW_SHARD, SDG_DIM_HEADS, &call, 1, 4);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert_int_eq(candidate.run_bytes, 0);
  ck_assert_int_eq(candidate.split[0].smallest, 1);
  ck_assert(candidate_is_useful(&candidate));
  // Fewer heads of keys than ranks.
  candidate = seen_judged_along(SDG_VIEW_SHARD, SDG_DIM_HEADS, &call, 1, 8);
  ck_assert_int_eq(candidate.faults, 1);
  ck_assert_ptr_nonnull(strstr(candidate.fault[0], "SDG-402"));
  candidate = seen_judged_along(SDG_VIEW_SHARD, SDG_DIM_N, &call, 1, 2);
  ck_assert(candidate_is_useful(&candidate) && candidate.faults == 0);
  // An image has none: that is not a gain.
  call = seen_window_call((sdg_window_t){3, 1, 1, 1}, 64, false);
  candidate = seen_judged_along(SDG_VIEW_SHARD, SDG_DIM_HEADS, &call, 1, 2);
  ck_assert(!candidate_is_useful(&candidate));
}
END_TEST

START_TEST(the_whole_view_computes_attention_in_graphs_in_full) {
  static const sdg_dim_t dims[] = {SDG_DIM_N, SDG_DIM_HEADS, SDG_DIM_SEQ};
  seen_call_t call = graph_make(60, 4, -1, 0, false);
  for (int i = 0; i < 3; i++) {
    candidate_t candidate =
        seen_judged_along(SDG_VIEW_WHOLE, dims[i], &call, 1, 2);
    ck_assert(!candidate_is_useful(&candidate));
    ck_assert_int_eq(candidate.aside, 1);
    ck_assert_int_eq(candidate.run_bytes, 0);
  }
}
END_TEST

START_TEST(products_in_graphs_are_split_with_the_tokens) {
  // The product stands behind its matrices.
  seen_call_t call[2] = {graph_make(60, 8, -1, 0, false),
                         product_make(60, 24, 8)};
  seen_operand_t product = call[1].operand[0];
  call[1].family = SDG_FAMILY_MATMUL_GRAPH;
  call[1].operand[0] = (seen_operand_t){
      .role = "a", .bytes = 2, .dims = 3, .extent = {1, 60, 8}};
  call[1].operand[2] = product;
  call[1].operands = 3;
  candidate_t candidate = sequences_judged(SDG_VIEW_SHARD, call, 2, 3);
  ck_assert_msg(candidate.faults == 0, "%s", candidate.fault[0]);
  section_is(&candidate, 1, "M=60 N=24 K=8", "M", "");
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
  call[1] = graph_make(60, 8, 0, 0, false);
  call[1].is_ragged = true;
  candidate = sequences_judged(SDG_VIEW_SHARD, &call[1], 1, 3);
  fault_has(&candidate, "SDG-630");
  // What lengths are about is for the user to say.
  call[1] = graph_make(60, 8, 0, 0, false);
  call[1].operand[call[1].operands++] = (seen_operand_t){
      .role = "lengths", .bytes = 4, .dims = 4, .extent = {2, 1, 1, 1}};
  candidate = sequences_judged(SDG_VIEW_SHARD, &call[1], 1, 3);
  fault_has(&candidate, "lengths = piece");
  ck_assert_int_eq(candidate.fatal, 0);
  call[1] = product_make(5, 6, 8);
  // Without a split of the tokens both are every rank's.
  candidate = seen_judged(SDG_VIEW_WHOLE, call, 2, 3);
  ck_assert_int_eq(candidate.aside, 2);
}
END_TEST

START_TEST(an_image_of_tokens_is_a_conflict) {
  seen_call_t call[2] = {attention_make(60, 7, 0, false),
                         {.family = SDG_FAMILY_CONV_GRAPH,
                          .has_rule = true,
                          .count = 1,
                          .spatial = 2,
                          .operands = 1}};
  snprintf(call[1].entry, sizeof call[1].entry, "conv");
  seen_operand(&call[1].operand[0], "y", 24, 12, 5);
  candidate_t candidate = sequences_judged(SDG_VIEW_SHARD, call, 2, 3);
  fault_has(&candidate, "has as many places as there are tokens");
  ck_assert(!candidate.has_local);
  candidate = sequences_judged(SDG_VIEW_WHOLE, call, 2, 3);
  ck_assert_int_eq(candidate.faults, 0);
  seen_operand(&call[1].operand[0], "y", 24, 12, 7);
  candidate = sequences_judged(SDG_VIEW_SHARD, call, 2, 3);
  ck_assert_int_eq(candidate.faults, 0);
  ck_assert(candidate.has_local);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("companion");
  TCase *cases = tcase_create("companion");
  tcase_add_test(cases, keys_and_values_of_attention_are_counted);
  tcase_add_test(cases, tensors_with_the_tokens_are_split_with_them);
  tcase_add_test(cases, tokens_of_attention_in_graphs_are_split);
  tcase_add_test(cases, attention_in_graphs_is_split_by_heads_and_samples);
  tcase_add_test(cases, the_whole_view_computes_attention_in_graphs_in_full);
  tcase_add_test(cases, products_in_graphs_are_split_with_the_tokens);
  tcase_add_test(cases, an_ambiguous_tensor_is_a_conflict);
  tcase_add_test(cases, an_image_of_tokens_is_a_conflict);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
