// SPDX-License-Identifier: Apache-2.0
// Rules for products of matrices, and tags of products.
#include "tests/unit/rules_text.h"

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
  products_load("[shard a]\nmatch = K=24\nsplit = N\nview = whole\n", &rules);
  ck_assert(about(&rules, gemm, 32, 60, 24, 3));
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
  const sdg_rules_matrix_t *matrix = rules.section[0].matrix;
  ck_assert(matrix[SDG_MATRIX_A].said && matrix[SDG_MATRIX_A].splits == 1);
  ck_assert_int_eq(matrix[SDG_MATRIX_A].split[0].dim, SDG_DIM_M);
  ck_assert_str_eq(matrix[SDG_MATRIX_A].split[0].parts, "agree");
  ck_assert(matrix[SDG_MATRIX_B].said && matrix[SDG_MATRIX_B].splits == 0);
  ck_assert_str_eq(matrix[SDG_MATRIX_C].split[0].parts, "even/2");
  ck_assert_str_eq(rules.section[0].split[0].parts, "1,2,3,4");
  sdg_rules_fini(&rules);
}
END_TEST

static void sizes_are(const char *text, const sdg_sizes_t *right) {
  sdg_rules_t rules;
  products_load(text, &rules);
  for (int d = 0; d < SDG_SIZES_DIMS; d++)
    ck_assert_int_eq(rules.section[0].sizes[d], right[d]);
  sdg_rules_fini(&rules);
}

START_TEST(sizes_take_one_word_or_one_for_each_dimension) {
  const sdg_sizes_t piece = SDG_SIZES_PIECE, whole = SDG_SIZES_WHOLE,
                    unsaid = SDG_SIZES_UNSAID;
  sizes_are("[shard a]\nsplit = M\nview = shard\n",
            (sdg_sizes_t[]){unsaid, unsaid, unsaid, unsaid});
  sizes_are("[shard a]\nsplit = M\nsizes = piece\nview = shard\n",
            (sdg_sizes_t[]){piece, piece, piece, piece});
  sizes_are("[shard a]\nsplit = M\nsizes = whole\nview = whole\n",
            (sdg_sizes_t[]){whole, whole, whole, whole});
  sizes_are("[shard a]\nsplit = M\nb = N\nsizes = M:piece N:whole\n"
            "view = shard\n",
            (sdg_sizes_t[]){piece, whole, unsaid, unsaid});
}
END_TEST

START_TEST(even_parts_are_those_of_matrices_too) {
  sdg_rules_t rules;
  products_load("[shard a]\nsplit = M\nb = N\nparts = even\n"
                "sizes = whole\nview = shard\n",
                &rules);
  ck_assert_str_eq(rules.section[0].matrix[SDG_MATRIX_B].split[0].parts,
                   "even");
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
      {"split = M:x\nsizes = piece\nview = whole\n", SDG_E_VIEW_WHOLE},
      {"split = H:x\nsizes = piece\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = M:x\nsizes = pieces\nview = shard\n", SDG_E_RULES_WORD},
      {"split = M:x\nsizes = M:all\nview = shard\n", SDG_E_RULES_WORD},
      {"split = M:x\nsizes = H:piece\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = M:x\nsizes = K:piece\nview = shard\n", SDG_E_RULES_VALUE},
      {"split = M:x\nsizes = piece M:piece\nview = shard\n", SDG_E_RULES_TWICE},
      {"split = M:x,K:y\na = M:x\nb = N:x\nc = N:y\nsizes = piece\n"
       "view = shard\n",
       SDG_E_RULES_VALUE},
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

// Parses a program's tag of memory, on a mesh of y=2,x=2.
static sdg_status_t product_load(const char *text, sdg_section_t *out) {
  sdg_rules_t rules;
  products_load("[mesh]\ny = 2\nx = 2\n" SHARD "split = H:y\n", &rules);
  sdg_status_t status = sdg_rules_product(&rules, sdg_options_get(), text, out);
  sdg_rules_fini(&rules);
  return status;
}

START_TEST(tags_of_memory_mean_the_same_as_sections) {
  sdg_section_t section;
  REQUIRE(!product_load("K:y; a = K:y ; c = N:y", &section));
  REQUIRE(section.splits == 1 && section.split[0].dim == SDG_DIM_K);
  REQUIRE(section.matrix[SDG_MATRIX_A].splits == 1);
  REQUIRE(!section.matrix[SDG_MATRIX_B].said);
  REQUIRE(section.matrix[SDG_MATRIX_C].split[0].dim == SDG_DIM_N);
  REQUIRE(section.sum_axes == 1);
  sdg_section_fini(&section);
  REQUIRE(!product_load("K:x;sum = no", &section) && section.sum_axes == 0);
  sdg_section_fini(&section);
  REQUIRE(!product_load("K:x; sum = yes", &section) && section.sum_axes == 2);
  sdg_section_fini(&section);
  REQUIRE(!product_load("K:y; c = N:y; sizes = K:piece N:whole; a = K:y; "
                        "b = K:y; parts = N:5,6",
                        &section));
  REQUIRE(section.sizes[1] == SDG_SIZES_WHOLE);
  REQUIRE(section.sizes[2] == SDG_SIZES_PIECE);
  ck_assert_str_eq(section.matrix[SDG_MATRIX_C].split[0].parts, "5,6");
  sdg_section_fini(&section);
  REQUIRE(!product_load("local", &section) && section.is_local);
}
END_TEST

START_TEST(impossible_tags_of_memory_are_refused) {
  static const struct {
    const char *text;
    sdg_status_t status;
  } rows[] = {
      {"", SDG_E_RULES_EMPTY},
      {"H:y", SDG_E_RULES_VALUE},
      {"M:y; N:x", SDG_E_RULES_SYNTAX},
      {"M:y; d = N:y", SDG_E_RULES_WORD},
      {"M:y; b = M:y", SDG_E_RULES_VALUE},
      {"M:y; b = N:y = N:x", SDG_E_RULES_WORD},
      {"K:y; c = N:y; sum = no", SDG_E_RULES_VALUE},
      {"K:y; sum = on", SDG_E_RULES_WORD},
      {"K:y; sum = no = no", SDG_E_RULES_WORD},
      {"K:y; sum = no; sum = yes", SDG_E_RULES_TWICE},
      {"K:y; c = N:y; c = M:y", SDG_E_RULES_TWICE},
      {"K:y; sizes = all", SDG_E_RULES_WORD},
      {"K:y; sizes = piece; sizes = piece", SDG_E_RULES_TWICE},
      {"K:y; parts = M:even", SDG_E_RULES_VALUE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sdg_section_t section;
    sdg_status_t status = product_load(rows[i].text, &section);
    sdg_section_fini(&section);
    ck_assert_msg(status == rows[i].status, "'%s': %d, %s", rows[i].text,
                  (int)status, sdg_last_error());
  }
}
END_TEST

START_TEST(a_tag_of_memory_may_give_values_of_products) {
  static const struct {
    const char *text;
    sdg_piece_values_t values;
  } rows[] = {
      {"M:y; sizes = piece", SDG_PIECE_VALUES_ERROR},
      {"M:y; sizes = piece; values = local", SDG_PIECE_VALUES_LOCAL},
      {"M:y; values = global; sizes = piece", SDG_PIECE_VALUES_GLOBAL},
      {"M:y; values = error; sizes = piece", SDG_PIECE_VALUES_ERROR},
  };
  sdg_section_t section;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    REQUIRE(product_load(rows[i].text, &section) == SDG_OK);
    REQUIRE(section.values == rows[i].values);
    sdg_section_fini(&section);
  }
  REQUIRE(product_load("M:y; values = all", &section) == SDG_E_RULES_WORD);
  sdg_section_fini(&section);
  REQUIRE(product_load("M:y; values = local; values = local", &section) ==
          SDG_E_RULES_TWICE);
  sdg_section_fini(&section);
  // Otherwise the options decide.
  sdg_rules_t rules;
  products_load("[mesh]\ny = 2\nx = 2\n" SHARD "split = H:y\n", &rules);
  sdg_options_t options = *sdg_options_get();
  options.piece_values = SDG_PIECE_VALUES_LOCAL;
  REQUIRE(sdg_rules_product(&rules, &options, "M:y; sizes = piece", &section) ==
          SDG_OK);
  REQUIRE(section.values == SDG_PIECE_VALUES_LOCAL);
  sdg_section_fini(&section);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(tags_are_refused_in_the_whole_view) {
  sdg_rules_t rules;
  sdg_section_t section;
  products_load("[shard a]\nsplit = H\nview = whole\n", &rules);
  const sdg_options_t *options = sdg_options_get();
  for (int local = 0; local < 2; local++) {
    const char *memory = local ? "local" : "M", *tensor = local ? "local" : "H";
    REQUIRE(sdg_rules_product(&rules, options, memory, &section) ==
            SDG_E_VIEW_WHOLE);
    sdg_section_fini(&section);
    REQUIRE(sdg_rules_label(&rules, options, tensor, &section) ==
            SDG_E_VIEW_WHOLE);
    sdg_section_fini(&section);
  }
  sdg_rules_fini(&rules);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("rulesmatrix");
  TCase *cases = tcase_create("rulesmatrix");
  tcase_add_test(cases, sections_about_products_name_m_or_k_or_matmul);
  tcase_add_test(cases, matrices_may_be_elsewhere_than_the_product);
  tcase_add_test(cases, sizes_take_one_word_or_one_for_each_dimension);
  tcase_add_test(cases, even_parts_are_those_of_matrices_too);
  tcase_add_test(cases, a_tag_of_memory_may_give_values_of_products);
  tcase_add_test(cases, matrices_that_cannot_be_there_are_refused);
  tcase_add_test(cases, tags_of_memory_mean_the_same_as_sections);
  tcase_add_test(cases, impossible_tags_of_memory_are_refused);
  tcase_add_test(cases, tags_are_refused_in_the_whole_view);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
