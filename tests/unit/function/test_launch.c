// SPDX-License-Identifier: Apache-2.0
// [kernel] sections: how they are read, which kernel they are about, and the
// grid on a piece.
#include "rules/function/launch.h"

#include "tests/unit/rules_text.h"

#define SPLIT "[shard s]\nview = shard\nsplit = H\n"
#define BODY                                                                   \
  "arguments = in u, out w, int rows, int columns, struct {char double} p\n"   \
  "tensor = u w: float [rows columns]\ndims = H W\nreach = H:2 W:0\n"
#define GRID "grid = x: columns / 32, y: rows / 8\n"

START_TEST(a_section_is_read) {
  sdg_rules_t rules;
  ck_assert_int_eq(
      (int)text_load("[kernel *f*]\n" BODY "grid = y : rows/8, loop: columns "
                     "rows\n[function f]\n" BODY "stream = none\n" SPLIT,
                     &rules),
      0);
  ck_assert_int_eq(rules.functions, 2);
  const sdg_function_t *k = &rules.function[0];
  ck_assert(k->is_kernel && !rules.function[1].is_kernel);
  ck_assert_str_eq(k->symbol, "*f*");
  ck_assert_int_eq(k->stream, -1);
  ck_assert(!k->on_host);
  ck_assert(!k->grid.said[0] && k->grid.said[1] && !k->grid.said[2]);
  ck_assert_uint_eq(k->grid.looped, 12);
  ck_assert_uint_eq(sdg_kernel_argument_bytes(k, 0), 8);
  ck_assert_uint_eq(sdg_kernel_argument_bytes(k, 2), 4);
  ck_assert_uint_eq(sdg_kernel_argument_bytes(k, 4), 16);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(a_fault_is_named) {
  static const struct {
    const char *text;
    sdg_status_t status;
  } rows[] = {
      {"[kernel f]\n" BODY GRID, SDG_OK},
      {"[kernel f]\n" BODY "grid = loop: rows\n", SDG_OK},
      {"[kernel f]\n" BODY, SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY "grid = x: columns / 32\n", SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY "grid = loop: columns\n", SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY "grid = rows / 8\n", SDG_E_RULES_SYNTAX},
      {"[kernel f]\n" BODY "grid = w: rows / 8\n", SDG_E_RULES_SYNTAX},
      {"[kernel f]\n" BODY "grid = y: row / 8\n", SDG_E_RULES_WORD},
      {"[kernel f]\n" BODY "grid = y: rows /\n", SDG_E_RULES_SYNTAX},
      {"[kernel f]\n" BODY "grid = loop: u\n", SDG_E_RULES_WORD},
      {"[kernel f]\n" BODY "grid = y: rows, y: rows\n", SDG_E_RULES_TWICE},
      {"[kernel f]\n" BODY GRID "stream = none\n", SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY GRID "symbol = g\n", SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY GRID "result = sum return double\n",
       SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY GRID "library = g\n", SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY GRID "arguments = int *n\n", SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY GRID "arguments = stream\n", SDG_E_RULES_VALUE},
      {"[kernel f]\n" BODY GRID "[kernel f]\n" BODY GRID, SDG_E_RULES_TWICE},
      {"[kernel]\n" BODY GRID, SDG_E_RULES_SYNTAX},
      {"[function f]\n" BODY GRID "stream = none\n", SDG_E_RULES_VALUE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    sdg_rules_t rules;
    snprintf(text, sizeof text, "%s" SPLIT, rows[i].text);
    sdg_status_t status = text_load(text, &rules);
    ck_assert_msg(status == rows[i].status, "'%s': SDG-%d %s", rows[i].text,
                  (int)status, sdg_last_error());
    if (status == SDG_OK)
      sdg_rules_fini(&rules);
  }
}
END_TEST

START_TEST(the_first_pattern_that_matches_counts) {
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load("[kernel solver::f?ux]\n" BODY GRID
                                  "[kernel _Z4waveIf*]\n" BODY GRID
                                  "[function flux]\n" BODY "stream = none\n"
                                  "[kernel *flux*]\n" BODY GRID SPLIT,
                                  &rules),
                   0);
  ck_assert_int_eq(sdg_kernel_find(&rules, "_ZN6solver4fluxIdEEvPT_"), 0);
  ck_assert_int_eq(sdg_kernel_find(&rules, "_Z4waveIfEvPT_"), 1);
  ck_assert_int_eq(sdg_kernel_find(&rules, "_Z4waveIdEvPT_"), -1);
  ck_assert_int_eq(sdg_kernel_find(&rules, "flux"), 3);
  ck_assert_int_eq(sdg_kernel_find(&rules, "_Z7my_fluxPf"), 3);
  ck_assert_int_eq(sdg_kernel_find(&rules, "solver"), -1);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(a_symbol_tells_other_parameters) {
  static const struct {
    const char *symbol;
    bool fits;
  } cases[] = {
      {"f", true},
      {"_Z1fPKfPfii5place", true},
      {"_Z1fPKfS0_ii5place", true},
      {"_Z1fIfEvPKT_PS0_ii5place", true},
      {"_Z1fIdEvPKT_PS0_ii5place", false}, // an instance for double
      {"_Z1fPKfPfii", false},
      {"_Z1fPKfPfii5placei", false},
      {"_Z1fPKfPfid5place", false},
      {"_Z1fPKfPfil5place", false},
      {"_Z1fPKfiiPf5place", false},
      {"_Z1fPKfPdii5place", false},
      {"_Z1fPKfPiii5place", false},
      {"_Z1fPKfPfiij", false},
  };
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load("[kernel f]\n" BODY GRID SPLIT, &rules), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sdg_status_t status =
        sdg_kernel_compare(&rules.function[0], cases[i].symbol);
    ck_assert_msg((status == SDG_OK) == cases[i].fits, "%s: SDG-%d",
                  cases[i].symbol, (int)status);
  }
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(the_grid_follows_the_piece) {
  static const struct {
    const char *grid;
    int rows, of_piece;
    unsigned program, piece; // 0: refused
  } cases[] = {
      {"y: rows / 8", 16, 20, 2, 3},
      {"y: rows / 8", 17, 24, 3, 3},
      {"y: rows / 8", 17, 25, 3, 4},
      {"y: rows / 8", 17, 25, 2, 3},
      {"y: (rows + 7) / 8", 17, 25, 3, 4},
      {"y: (rows + 7) / 8", 20, 24, 3, 3},
      {"y: rows", 5, 9, 5, 9},
      {"y: rows / 8", 17, 25, 4, 0},
      {"y: rows / 8", 17, 25, 1, 0},
      {"y: 1 / (rows - 5)", 5, 9, 1, 0},
      {"loop: rows", 5, 9, 7, 7},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    sdg_rules_t rules;
    snprintf(text, sizeof text, "[kernel f]\n" BODY "grid = %s\n" SPLIT,
             cases[i].grid);
    ck_assert_int_eq((int)text_load(text, &rules), 0);
    int64_t own[SDG_ARGUMENTS_MAX] = {[2] = cases[i].rows, [3] = 9};
    int64_t piece[SDG_ARGUMENTS_MAX] = {[2] = cases[i].of_piece, [3] = 9};
    unsigned grid[] = {11, cases[i].program, 13};
    sdg_status_t status = sdg_kernel_grid(&rules.function[0], own, piece, grid);
    ck_assert_msg((status == SDG_OK) == (cases[i].piece > 0), "%d: SDG-%d",
                  (int)i, (int)status);
    if (status == SDG_OK)
      ck_assert_uint_eq(grid[1], cases[i].piece);
    else
      ck_assert_int_eq((int)status, SDG_E_KERNEL_GRID);
    ck_assert(grid[0] == 11 && grid[2] == 13);
    sdg_rules_fini(&rules);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("launch");
  TCase *cases = tcase_create("launch");
  tcase_add_test(cases, a_section_is_read);
  tcase_add_test(cases, a_fault_is_named);
  tcase_add_test(cases, the_first_pattern_that_matches_counts);
  tcase_add_test(cases, a_symbol_tells_other_parameters);
  tcase_add_test(cases, the_grid_follows_the_piece);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
