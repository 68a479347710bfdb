// SPDX-License-Identifier: Apache-2.0
// The rules: sections about products of matrices.
#include "tests/unit/rulestext.h"

static bool about(const sdg_rules_t *rules, const char *entry, int64_t m,
                  int64_t n, int64_t k, int dims) {
  const int64_t extent[] = {m, n, k, 4};
  return sdg_section_match(&rules->section[0], SDG_FAMILY_MATMUL, entry, extent,
                           dims);
}

static void products_load(const char *text, sdg_rules_t *out) {
  ck_assert_int_eq((int)text_load(text, out), 0);
}

START_TEST(sections_about_products_name_m_or_k_or_matmul) {
  sdg_rules_t rules;
  const char *gemm = "cublasSgemm_v2";
  products_load("[shard a]\nmatch = M=32 N K\nsplit = M\nview = whole\n",
                &rules);
  ck_assert(sdg_rules_multiply(&rules));
  ck_assert(about(&rules, gemm, 32, 60, 24, 3));
  ck_assert(about(&rules, gemm, 32, 60, 24, 4));
  ck_assert(!about(&rules, gemm, 31, 60, 24, 3));
  sdg_rules_fini(&rules);
  products_load("[shard a]\nmatch = 32 60 24\nsplit = K\nview = whole\n",
                &rules);
  ck_assert(about(&rules, gemm, 32, 60, 24, 3));
  ck_assert(!about(&rules, gemm, 32, 60, 24, 4));
  sdg_rules_fini(&rules);
  products_load("[shard a]\nop = cublasS*\nsplit = BATCH\nview = whole\n",
                &rules);
  ck_assert(about(&rules, gemm, 1, 2, 3, 4));
  ck_assert(!about(&rules, gemm, 1, 2, 3, 3));
  ck_assert(!about(&rules, "cublasDgemm_v2", 1, 2, 3, 4));
  sdg_rules_fini(&rules);
  // Tensors have an N, too.
  products_load("[shard a]\nmatch = N\nsplit = N\nview = whole\n", &rules);
  ck_assert(!sdg_rules_multiply(&rules));
  ck_assert(!about(&rules, gemm, 32, 60, 24, 3));
  sdg_rules_fini(&rules);
  products_load("[shard a]\nop = matmul\nsplit = N\nview = whole\n", &rules);
  ck_assert(about(&rules, gemm, 32, 60, 24, 3));
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(matrices_may_be_elsewhere_than_the_product) {
  sdg_rules_t rules;
  products_load("[mesh]\ny = 4\n[shard a]\nsplit = K:y\na = M:y\nc = N:y\n"
                "b = replicated\nparts = K:1,2,3,4 N:even/2\nview = shard\n",
                &rules);
  const sdg_rule_matrix_t *matrix = rules.section[0].matrix;
  ck_assert(matrix[SDG_MATRIX_A].said && matrix[SDG_MATRIX_A].splits == 1);
  ck_assert_int_eq(matrix[SDG_MATRIX_A].split[0].dim, SDG_DIM_M);
  ck_assert_str_eq(matrix[SDG_MATRIX_A].split[0].parts, "agree");
  ck_assert(matrix[SDG_MATRIX_B].said && matrix[SDG_MATRIX_B].splits == 0);
  ck_assert_str_eq(matrix[SDG_MATRIX_C].split[0].parts, "even/2");
  ck_assert_str_eq(rules.section[0].split[0].parts, "1,2,3,4");
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(matrices_that_cannot_be_there_are_refused) {
  static const struct {
    const char *text;
    sdg_status_t status;
  } rows[] = {
      {"split = H\na = M\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = M\na = N\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = M\nc = N\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = M:y,K:x\nc = M:x\nview = shard\n", SDG_E_RULES_TWICE},
      {"split = K:x\nc = M:y\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = K:x\na = M:y\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = M:x\na = K:x\nview = whole\n", SDG_E_VIEW_WHOLE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[256];
    sdg_rules_t rules;
    snprintf(text, sizeof text, "[mesh]\n%s[shard a]\n%s",
             strchr(rows[i].text, ':') ? "x = 2\ny = 2\n" : "y = 4\n",
             rows[i].text);
    ck_assert_msg(text_load(text, &rules) == rows[i].status, "%s: %s", text,
                  sdg_last_error());
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rulesmatrix");
  TCase *cases = tcase_create("rulesmatrix");
  tcase_add_test(cases, sections_about_products_name_m_or_k_or_matmul);
  tcase_add_test(cases, matrices_may_be_elsewhere_than_the_product);
  tcase_add_test(cases, matrices_that_cannot_be_there_are_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
