// SPDX-License-Identifier: Apache-2.0
// Rules: which tensors a section matches.
#include "tests/unit/rules_text.h"

START_TEST(dimensions_have_their_names) {
  static const struct {
    sdg_dim_t dim;
    int dims, index;
  } cases[] = {
      {SDG_DIM_N, 4, 0},  {SDG_DIM_C, 4, 1},    {SDG_DIM_D, 4, -1},
      {SDG_DIM_H, 4, 2},  {SDG_DIM_W, 4, 3},    {SDG_DIM_D, 5, 2},
      {SDG_DIM_H, 5, 3},  {SDG_DIM_W, 5, 4},    {SDG_DIM_W, 3, 2},
      {SDG_DIM_H, 3, -1}, {SDG_DIM_C, 2, 1},    {SDG_DIM_W, 2, -1},
      {SDG_DIM_D, 6, 3},  {SDG_DIM_SEQ, 4, -1}, {SDG_DIM_N, 1, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    ck_assert_int_eq(
        sdg_dim_index(SDG_FAMILY_CONV, cases[i].dim, cases[i].dims),
        cases[i].index);
  ck_assert_int_eq(sdg_dim_at(SDG_FAMILY_CONV, 2, 6), SDG_DIM_COUNT);
}
END_TEST

START_TEST(sequences_have_names_of_their_own) {
  const sdg_family_t family = SDG_FAMILY_ATTENTION;
  ck_assert_int_eq(sdg_dim_index(family, SDG_DIM_SEQ, 4), 0);
  ck_assert_int_eq(sdg_dim_index(family, SDG_DIM_BATCH, 4), 1);
  ck_assert_int_eq(sdg_dim_index(family, SDG_DIM_HEAD, 4), 3);
  ck_assert_int_eq(sdg_dim_at(family, 2, 4), SDG_DIM_COUNT); // beams
  // A split of N splits the batch, even if the op calls it otherwise.
  ck_assert_int_eq(sdg_dim_index(family, SDG_DIM_N, 4), 1);
  ck_assert_int_eq(sdg_dim_index(family, SDG_DIM_H, 4), -1);
}
END_TEST

static const struct match {
  const char *keys; // keys of a [shard] section that splits H
  int dims;
  int64_t extent[5];
  const char *entry;
  sdg_family_t family;
  bool matches; // with these as global extents
  bool may;     // with these as local extents
} matches[] = {
    {"", 4, {1, 3, 8, 8}, "e", SDG_FAMILY_CONV, true, true},
    {"", 5, {1, 3, 8, 8, 8}, "e", SDG_FAMILY_CONV, true, true},
    {"", 3, {1, 3, 8}, "e", SDG_FAMILY_CONV, false, false},
    {"", 2, {1, 3}, "e", SDG_FAMILY_NORM, false, false},
    {"", 4, {1, 3, 8, 8}, "e", SDG_FAMILY_MATMUL, false, false},
    {"match = N C H>=8 W>=8",
     4,
     {1, 3, 8, 8},
     "e",
     SDG_FAMILY_CONV,
     true,
     true},
    {"match = N C H>=8 W>=8",
     4,
     {1, 3, 7, 8},
     "e",
     SDG_FAMILY_CONV,
     false,
     true},
    {"match = N C H>=8 W>=8",
     4,
     {1, 3, 8, 7},
     "e",
     SDG_FAMILY_CONV,
     false,
     false},
    {"match = H>8", 5, {1, 3, 1, 9, 7}, "e", SDG_FAMILY_CONV, true, true},
    {"match = H>8", 5, {1, 3, 1, 8, 7}, "e", SDG_FAMILY_CONV, false, true},
    {"match = C<4 W<=8 W>2", 4, {1, 3, 8, 8}, "e", SDG_FAMILY_CONV, true, true},
    {"match = C<4 W<=8 W>2",
     4,
     {1, 3, 8, 2},
     "e",
     SDG_FAMILY_CONV,
     false,
     false},
    {"match = C=3", 4, {1, 3, 8, 2}, "e", SDG_FAMILY_CONV, true, true},
    {"match = C=3", 4, {1, 4, 8, 2}, "e", SDG_FAMILY_CONV, false, false},
    {"match = N C H W", 5, {1, 4, 8, 2, 2}, "e", SDG_FAMILY_CONV, true, true},
    {"match = N C D H W", 4, {1, 4, 8, 2}, "e", SDG_FAMILY_CONV, false, false},
    {"match = N 3 H W", 4, {1, 3, 8, 2}, "e", SDG_FAMILY_CONV, true, true},
    {"match = N 3 H W", 4, {1, 4, 8, 2}, "e", SDG_FAMILY_CONV, false, false},
    {"match = N 3 H W", 5, {1, 3, 8, 2, 2}, "e", SDG_FAMILY_CONV, false, false},
    {"match = N C 8 W", 4, {1, 3, 2, 2}, "e", SDG_FAMILY_CONV, false, true},
    {"op = conv*", 4, {1, 3, 8, 8}, "e", SDG_FAMILY_CONV, true, true},
    {"op = conv*", 4, {1, 3, 8, 8}, "e", SDG_FAMILY_POOL, false, false},
    {"op = pool softmax", 4, {1, 3, 8, 8}, "e", SDG_FAMILY_SOFTMAX, true, true},
    {"op = cudnnPool*",
     4,
     {1, 3, 8, 8},
     "cudnnPoolingForward",
     SDG_FAMILY_POOL,
     true,
     true},
    {"op = cudnnPool*",
     4,
     {1, 3, 8, 8},
     "cudnnAddTensor",
     SDG_FAMILY_POOL,
     false,
     false},
};

START_TEST(sections_match_the_tensors_of_their_patterns) {
  const struct match *match = &matches[_i];
  char text[256];
  sdg_rules_t rules;
  snprintf(text, sizeof text, SHARD "split = H\n%s\n", match->keys);
  ck_assert_int_eq((int)text_load(text, &rules), 0);
  ck_assert_int_eq(sdg_section_match(&rules.section[0], match->family,
                                     match->entry, match->extent, match->dims),
                   match->matches);
  ck_assert_int_eq(sdg_rules_may_match(&rules, match->family, match->entry,
                                       match->extent, match->dims),
                   match->may);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(a_local_section_before_decides_without_exchange) {
  sdg_rules_t rules;
  const int64_t narrow[] = {1, 3, 8, 1}, flat[] = {1, 3, 1, 8},
                wide[] = {1, 3, 8, 8};
  ck_assert_int_eq(
      (int)text_load("[local b]\nmatch = W=1\n" SHARD "split = H\n", &rules),
      0);
  ck_assert(!sdg_rules_may_match(&rules, SDG_FAMILY_CONV, "", narrow, 4));
  ck_assert(sdg_rules_may_match(&rules, SDG_FAMILY_CONV, "", wide, 4));
  sdg_rules_fini(&rules);
  // A rank alone cannot decide about the split dimension.
  ck_assert_int_eq(
      (int)text_load("[local b]\nmatch = H=1\n" SHARD "split = H\n", &rules),
      0);
  ck_assert(sdg_rules_may_match(&rules, SDG_FAMILY_CONV, "", flat, 4));
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(an_op_that_no_section_names_is_recognised) {
  sdg_rules_t rules;
  const int64_t field[] = {1, 3, 8, 8}, head[] = {1, 3, 8, 1};
  ck_assert_int_eq((int)text_load("[local b]\nop = softmax\nmatch = W=1\n" SHARD
                                  "split = H\nop = conv* pool*\n",
                                  &rules),
                   0);
  ck_assert(!sdg_rules_leave_out(&rules, SDG_FAMILY_CONV, "", field, 4));
  ck_assert(sdg_rules_leave_out(&rules, SDG_FAMILY_SOFTMAX, "", field, 4));
  ck_assert(!sdg_rules_leave_out(&rules, SDG_FAMILY_SOFTMAX, "", head, 4));
  ck_assert(sdg_rules_leave_out(&rules, SDG_FAMILY_NORM, "", head, 4));
  ck_assert(!sdg_rules_leave_out(&rules, SDG_FAMILY_NORM, "", field, 2));
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(extents_of_split_dimensions_decide_nothing_without_exchange) {
  sdg_rules_t rules;
  const int64_t extent[] = {1, 3, 8, 8};
  ck_assert_int_eq((int)text_load(SHARD "split = H\nmatch = W>=64\n" SHARD_B
                                        "match = H>=64\n",
                                  &rules),
                   0);
  ck_assert(sdg_rules_may_match(&rules, SDG_FAMILY_CONV, "", extent, 4));
  sdg_rules_fini(&rules);
  ck_assert_int_eq((int)text_load(SHARD "split = H\nmatch = H>=64\n" SHARD_B
                                        "match = H>=64\n",
                                  &rules),
                   0);
  ck_assert(sdg_rules_may_match(&rules, SDG_FAMILY_CONV, "", extent, 4));
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(ops_are_checked_against_the_entries) {
  static const char *const entries[] = {"cudnnPoolingForward",
                                        "cudnnConvolutionForward"};
  sdg_rules_t rules;
  ck_assert_int_eq(
      (int)text_load(SHARD "split = H\nop = conv cudnnPool*\n", &rules), 0);
  ck_assert_int_eq((int)sdg_rules_check_entries(&rules, entries, 2), 0);
  sdg_rules_fini(&rules);
  ck_assert_int_eq(
      (int)text_load(SHARD "split = H\nop = cudnnPolingForward\n", &rules), 0);
  ck_assert_int_eq((int)sdg_rules_check_entries(&rules, entries, 2),
                   SDG_E_RULES_WORD);
  ck_assert_ptr_nonnull(
      strstr(sdg_last_error(), "nearest: cudnnPoolingForward"));
  ck_assert_ptr_nonnull(strstr(sdg_last_error(), ":4: "));
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(products_have_short_names) {
  static const struct {
    const char *op, *entry;
    bool matches;
  } rows[] = {
      {"gemm*", "cublasSgemm_v2", true},
      {"gemm", "cublasGemmStridedBatchedEx", true},
      {"gemm*", "cublasSgemv_v2", false},
      {"gemv conv", "cublasDgemvStridedBatched", true},
      {"gem?", "cublasGemmEx", true},
      {"gemm*", "cublasLtMatmul", false},
      {"matmul", "cublasLtMatmul", true},
      {"matmul", "cublasHgemm", true},
  };
  const int64_t extent[] = {4, 4, 4};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sdg_rules_t rules;
    char text[128];
    snprintf(text, sizeof text, SHARD "op = %s\nsplit = N\n", rows[i].op);
    ck_assert_int_eq((int)text_load(text, &rules), 0);
    ck_assert_int_eq((int)sdg_rules_check_entries(&rules, NULL, 0), 0);
    ck_assert(sdg_rules_multiply(&rules));
    ck_assert_int_eq(sdg_section_match(&rules.section[0], SDG_FAMILY_MATMUL,
                                       rows[i].entry, extent, 3),
                     rows[i].matches);
    sdg_rules_fini(&rules);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rulesmatch");
  TCase *cases = tcase_create("rulesmatch");
  tcase_add_test(cases, dimensions_have_their_names);
  tcase_add_test(cases, sequences_have_names_of_their_own);
  tcase_add_loop_test(cases, sections_match_the_tensors_of_their_patterns, 0,
                      sizeof matches / sizeof *matches);
  tcase_add_test(cases, a_local_section_before_decides_without_exchange);
  tcase_add_test(cases,
                 extents_of_split_dimensions_decide_nothing_without_exchange);
  tcase_add_test(cases, an_op_that_no_section_names_is_recognised);
  tcase_add_test(cases, ops_are_checked_against_the_entries);
  tcase_add_test(cases, products_have_short_names);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
