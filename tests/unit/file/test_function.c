// SPDX-License-Identifier: Apache-2.0
// [function] sections: expressions, arguments, tensors, and what must fit.
#include "rules/file/function/function.h"

#include "tests/unit/random.h"
#include "tests/unit/rules_text.h"

// ---- expressions -----------------------------------------------------------

static const char *const names[] = {"n", "m", "rows_1"};
static const int64_t values[] = {7, 3, 100};

static int find(const void *user, sdg_word_t name) {
  (void)user;
  for (int i = 0; i < 3; i++)
    if (sdg_word_is(name, names[i]))
      return i;
  return -1;
}

static sdg_status_t parse(const char *text, sdg_expression_t *out) {
  const sdg_location_t location = {"test", 1};
  return sdg_expression_parse(&location, (sdg_word_t){text, (int)strlen(text)},
                              find, NULL, out);
}

START_TEST(an_expression_has_the_value_that_c_gives_it) {
  static const struct {
    const char *text;
    int64_t value;
  } rows[] = {
      {"7", 7},
      {"n", 7},
      {"n + 2", 9},
      {"n+2*m", 13},
      {"(n + 2) * m", 27},
      {"n - m - 1", 3},
      {"n / m * m", 6},
      {"2 * (n + (m - 1)) / 3", 6},
      {"rows_1 - 100", 0},
      {" n ", 7},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sdg_expression_t e;
    int64_t value;
    ck_assert_int_eq((int)parse(rows[i].text, &e), 0);
    ck_assert_msg(sdg_expression_value(&e, values, &value), "%s", rows[i].text);
    ck_assert_msg(value == rows[i].value, "%s", rows[i].text);
  }
}
END_TEST

START_TEST(what_is_no_expression_is_refused) {
  static const char *const rows[] = {
      "",   "n +", "* n",   "(n", "n)", "n m", "x",
      "2n", "n++", "n % m", "-n", "()", "1 2", "n + 9999999999999999999"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sdg_expression_t e;
    sdg_status_t status = parse(rows[i], &e);
    ck_assert_msg(status == SDG_E_RULES_SYNTAX || status == SDG_E_RULES_WORD,
                  "'%s': %d", rows[i], (int)status);
  }
}
END_TEST

START_TEST(a_quotient_by_zero_and_an_overflow_have_no_value) {
  const int64_t zero[] = {0, INT64_MAX, 1};
  static const char *const rows[] = {"m / n", "m + 1", "m * 2"};
  for (int i = 0; i < 3; i++) {
    sdg_expression_t e;
    int64_t value;
    ck_assert_int_eq((int)parse(rows[i], &e), 0);
    ck_assert(!sdg_expression_value(&e, zero, &value));
  }
}
END_TEST

START_TEST(an_extent_is_solved_for_the_argument_that_it_names) {
  static const struct {
    const char *text;
    int64_t wanted, solution; // -1: none
  } rows[] = {
      {"n", 12, 12},      {"n + 2", 12, 10},
      {"3 * n", 12, 4},   {"3 * n", 13, -1},
      {"n + n", 12, 6},   {"100 - n", 12, 88},
      {"n * n", 144, -1}, {"n / 2", 12, -1},
      {"7", 12, -1},      {"2 * (n + 1) - 4", 12, 7},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sdg_expression_t e;
    int64_t argument[] = {7, 3, 100};
    ck_assert_int_eq((int)parse(rows[i].text, &e), 0);
    bool solved = sdg_expression_solve(&e, rows[i].wanted, 0, argument);
    ck_assert_msg(solved == (rows[i].solution >= 0), "%s", rows[i].text);
    ck_assert_int_eq(argument[0], solved ? rows[i].solution : 7);
  }
}
END_TEST

START_TEST(an_expression_tells_the_argument_that_it_names) {
  sdg_expression_t e;
  ck_assert_int_eq((int)parse("2 * m + m", &e), 0);
  ck_assert_int_eq(sdg_expression_argument(&e), 1);
  ck_assert(sdg_expression_names(&e, 1) && !sdg_expression_names(&e, 0));
  ck_assert_int_eq((int)parse("n + m", &e), 0);
  ck_assert_int_eq(sdg_expression_argument(&e), -2);
  ck_assert_int_eq((int)parse("8", &e), 0);
  ck_assert_int_eq(sdg_expression_argument(&e), -1);
}
END_TEST

// ---- sections --------------------------------------------------------------

#define SPLIT "[shard s]\nview = shard\nsplit = H\n"
#define ARGUMENTS                                                              \
  "arguments = in u, inout w, out t, int rows, size_t *columns\n"              \
  "arguments = struct {double int} p, unsigned  long row0, stream\n"
#define TENSORS                                                                \
  "tensor = u: float [rows columns]\n"                                         \
  "tensor = w: double [W=columns H=rows + 2] strides [rows + 4  1] "           \
  "ghosts [0 2:0]\n"                                                           \
  "tensor = t: int [3]\n"
#define BODY ARGUMENTS TENSORS "dims = H W\nreach = H:0 W:2\n"

START_TEST(a_section_is_read) {
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load("[function f]\n" BODY
                                  "border = H:wrap W:zero\n"
                                  "offset = row0 H\nresult = max t\n"
                                  "library = lib?.so\nsymbol = f_\n" SPLIT,
                                  &rules),
                   0);
  ck_assert_int_eq(rules.functions, 1);
  const sdg_function_t *f = &rules.function[0];
  ck_assert_str_eq(f->name, "f");
  ck_assert_str_eq(f->symbol, "f_");
  ck_assert_str_eq(f->library, "lib?.so");
  ck_assert_int_eq(f->arguments, 8);
  ck_assert_int_eq((int)f->argument[0].use, SDG_ARGUMENT_IN);
  ck_assert_int_eq((int)f->argument[1].use, SDG_ARGUMENT_INOUT);
  ck_assert(f->argument[3].is_size && !f->argument[3].by_reference);
  ck_assert(f->argument[4].is_size && f->argument[4].by_reference);
  ck_assert_int_eq(f->argument[4].number[0].bytes, 8);
  ck_assert_int_eq(f->argument[5].members, 2);
  ck_assert_int_eq(f->argument[5].number[1].kind, 'i');
  ck_assert_int_eq(f->argument[6].number[0].kind, 'u');
  ck_assert(!f->argument[6].is_size);
  ck_assert_int_eq(f->stream, 7);
  ck_assert_int_eq(f->tensors, 3);
  ck_assert_int_eq((int)f->tensor[1].dim[0], SDG_DIM_W);
  ck_assert(f->tensor[1].strided && !f->tensor[0].strided);
  ck_assert(f->tensor[1].has_ghosts && !f->tensor[0].ghosts_said);
  ck_assert_int_eq(f->tensor[1].ghost[1].before, 2);
  ck_assert_int_eq(f->tensor[1].ghost[1].behind, 0);
  ck_assert_int_eq(sdg_function_ghosts(f, SDG_DIM_H), 2);
  ck_assert_int_eq(f->tensor[2].dims, 0);
  ck_assert_int_eq(f->tensor[2].count, 3);
  ck_assert_int_eq(f->reach[SDG_DIM_W], 2);
  ck_assert_int_eq(f->reach[SDG_DIM_D], SDG_REACH_UNSAID);
  ck_assert_int_eq((int)f->border[SDG_DIM_H], SDG_BORDER_WRAP);
  ck_assert_int_eq((int)f->border[SDG_DIM_W], SDG_BORDER_ZERO);
  ck_assert_int_eq(f->offset[0].argument, 6);
  ck_assert_int_eq((int)f->result[0].combine, SDG_FUNCTION_MAX);
  int64_t argument[SDG_ARGUMENTS_MAX] = {[3] = 10, [4] = 20}, value;
  ck_assert(sdg_expression_value(&f->tensor[1].extent[1], argument, &value));
  ck_assert_int_eq(value, 12);
  ck_assert(sdg_expression_value(&f->tensor[1].stride[0], argument, &value));
  ck_assert_int_eq(value, 14);
  sdg_rules_fini(&rules);
}
END_TEST

// Replaces the first `old` in the body by `new`.
static sdg_status_t changed_load(const char *old, const char *new) {
  static const char body[] = "[function f]\n" BODY "result = sum t\n" SPLIT;
  char text[1024];
  sdg_rules_t rules;
  const char *at = strstr(body, old);
  ck_assert_ptr_nonnull(at);
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - body), body, new,
           at + strlen(old));
  sdg_status_t status = text_load(text, &rules);
  if (status == SDG_OK)
    sdg_rules_fini(&rules);
  return status;
}

// Those of C++ have the types of all arguments.
START_TEST(a_long_symbol_is_kept_whole) {
  char symbol[601], text[2048];
  sdg_rules_t rules;
  sdg_function_t function;
  memset(symbol, 's', sizeof symbol);
  symbol[180] = '\0';
  snprintf(text, sizeof text,
           "[function f]\n" BODY "result = max t\nsymbol = %s\n" SPLIT, symbol);
  ck_assert_int_eq((int)text_load(text, &rules), 0);
  ck_assert_str_eq(rules.function[0].symbol, symbol);
  symbol[180] = 's';
  symbol[600] = '\0';
  snprintf(text, sizeof text, BODY "result = max t\nsymbol = %s\n", symbol);
  ck_assert_int_eq((int)sdg_rules_define(&rules, "g", text, &function),
                   SDG_E_RULES_SYNTAX);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(a_fault_is_named) {
  static const struct {
    const char *old, *new;
    sdg_status_t status;
  } rows[] = {
      {"in u", "inn u", SDG_E_RULES_WORD},
      {"in u", "in", SDG_E_RULES_SYNTAX},
      {"in u", "in w", SDG_E_RULES_TWICE},
      {"in u", "double u", SDG_E_RULES_WORD},
      {"int rows", "float rows", SDG_E_RULES_WORD},
      {"int rows", "long  double rows", SDG_E_RULES_WORD},
      {", stream", "", SDG_E_RULES_SYNTAX},
      {", stream", ", stream, stream s", SDG_E_RULES_TWICE},
      {"u: float", "x: float", SDG_E_RULES_WORD},
      {"u: float", "u: flaot", SDG_E_RULES_WORD},
      {"u: float", "u w: float", SDG_E_RULES_TWICE},
      {"[rows columns]", "[rows]", SDG_E_RULES_VALUE},
      {"[rows columns]", "[rows column]", SDG_E_RULES_WORD},
      {"[rows columns]", "[rows columns", SDG_E_RULES_SYNTAX},
      {"[W=columns H", "[H=columns H", SDG_E_RULES_TWICE},
      {"[W=columns H", "[M=columns H", SDG_E_RULES_VALUE},
      {"strides [rows + 4  1]", "strides [1]", SDG_E_RULES_VALUE},
      {"strides", "stride", SDG_E_RULES_SYNTAX},
      {"ghosts [0 2:0]", "ghosts [2]", SDG_E_RULES_VALUE},
      {"ghosts [0 2:0]", "ghosts [0 2:]", SDG_E_RULES_VALUE},
      {"ghosts [0 2:0]", "ghosts [0 -1]", SDG_E_RULES_VALUE},
      {"ghosts [0 2:0]", "strides [1 1]", SDG_E_RULES_TWICE},
      {" ghosts [0 2:0]", "", SDG_E_RULES_VALUE}, // rows + 2, and H is split
      {"t: int [3]", "t: short [3]", SDG_E_RULES_VALUE},
      {"t: int [3]", "t: int [0]", SDG_E_RULES_VALUE},
      {"t: int [3]", "t: int [rows columns]", SDG_E_RULES_VALUE},
      {"\ntensor = t: int [3]", "", SDG_E_RULES_WORD},
      {"reach = H:0", "reach = H:-1", SDG_E_RULES_VALUE},
      {"reach = H:0", "reach = H:2", SDG_E_RULES_VALUE},
      {"reach = H:0 W:2", "reach = W:2", SDG_E_RULES_VALUE},
      {"reach = H:0 W:2", "", SDG_E_RULES_SYNTAX},
      {"reach = H:0 W:2", "reach = H:0:1:1", SDG_E_RULES_VALUE},
      {"reach = H:0 W:2", "reach = H:0:", SDG_E_RULES_VALUE},
      {"sum t", "total t", SDG_E_RULES_WORD},
      {"sum t", "mean t", SDG_E_RULES_VALUE},
      {"sum t", "sum t max t", SDG_E_RULES_SYNTAX},
      {"sum t", "sum t, max t", SDG_E_RULES_TWICE},
      {"sum t", "sum return", SDG_E_RULES_WORD},
      {"sum t", "sum return void", SDG_E_RULES_WORD},
      {"sum t", "sum return short", SDG_E_RULES_VALUE},
      {"sum t", "max return unsigned", SDG_E_RULES_VALUE},
      {"sum t", "mean return long", SDG_E_RULES_VALUE},
      {"sum t", "sum return int, max return int", SDG_E_RULES_TWICE},
      {"sum t", "sum u", SDG_E_RULES_WORD},
      {"result = sum t", "border = round", SDG_E_RULES_WORD},
      {"result = sum t", "pure = often", SDG_E_RULES_WORD},
      {"result = sum t", "pure = yes\npure = no", SDG_E_RULES_TWICE},
      {"result = sum t", "offset = u H", SDG_E_RULES_WORD},
      {"result = sum t", "offset = row0", SDG_E_RULES_SYNTAX},
      {"result = sum t", "stream = none", SDG_E_RULES_TWICE},
      {"result = sum t", "rach = 1", SDG_E_RULES_WORD},
      {"[function f]", "[function]", SDG_E_RULES_SYNTAX},
      {"[function f]", "[function f]\n" BODY "[function f]", SDG_E_RULES_TWICE},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sdg_status_t status = changed_load(rows[i].old, rows[i].new);
    ck_assert_msg(status == rows[i].status, "'%s' for '%s': SDG-%d %s",
                  rows[i].new, rows[i].old, (int)status, sdg_last_error());
  }
  ck_assert_int_eq((int)changed_load("in u", "in u"), 0);
}
END_TEST

// A section with these lines, and `split = H`.
static int section_load(const char *arguments, const char *tensor,
                        const char *rest) {
  char text[1024];
  sdg_rules_t rules;
  snprintf(text, sizeof text,
           "[function f]\narguments = %s, int rows, int columns\ntensor = %s\n"
           "%s\n%s\nstream = none\n" SPLIT,
           arguments, tensor, strchr(tensor, '=') ? "" : "dims = H", rest);
  sdg_status_t status = text_load(text, &rules);
  if (status == SDG_OK)
    sdg_rules_fini(&rules);
  return (int)status;
}

START_TEST(what_is_updated_in_place_needs_a_copy) {
  ck_assert_int_eq(section_load("inout u", "u: float [rows]", "reach = 0"), 0);
  ck_assert_int_eq(section_load("inout u", "u: float [rows]", "reach = H:1"),
                   SDG_E_RULES_VALUE);
  ck_assert_int_eq(
      section_load("inout u", "u: float [rows]", "reach = H:1\ncopy = yes"), 0);
}
END_TEST

START_TEST(a_result_by_its_value_has_a_type) {
  sdg_rules_t rules;
  ck_assert_int_eq((int)text_load("[function f]\narguments = in u, int rows, "
                                  "out w\ntensor = u w: float [rows]\n"
                                  "dims = H\nreach = 0\nstream = none\n"
                                  "result = mean return double\n" SPLIT,
                                  &rules),
                   0);
  ck_assert_int_eq(rules.function[0].returned.number.bytes, 8);
  ck_assert_int_eq((int)rules.function[0].returned.combine, SDG_FUNCTION_MEAN);
  sdg_rules_fini(&rules);
}
END_TEST

START_TEST(a_function_writes_or_returns_something) {
  static const char body[] =
      "[function f]\narguments = in u, int rows\ntensor = u: float [rows]\n"
      "dims = H\nreach = 0\nstream = none\n%s" SPLIT;
  sdg_rules_t rules;
  char text[256];
  snprintf(text, sizeof text, body, "");
  ck_assert_int_eq((int)text_load(text, &rules), SDG_E_RULES_VALUE);
  snprintf(text, sizeof text, body, "result = sum return double\n");
  ck_assert_int_eq((int)text_load(text, &rules), 0);
  sdg_rules_fini(&rules);
}
END_TEST

// Ghosts need room for what the function sees, on the sides that it sees.
START_TEST(ghosts_have_room_for_the_reach) {
  static const struct {
    const char *arguments, *tensor, *reach;
    sdg_status_t status;
  } rows[] = {
      {"in u, out w", "u w: float [rows + 2] ghosts [1]", "reach = H:1", 0},
      {"in u, out w", "u w: float [rows + 2] ghosts [1]", "reach = H:2",
       SDG_E_RULES_VALUE},
      {"in u, out w", "u w: float [rows + 2] ghosts [1]", "reach = H:all",
       SDG_E_RULES_VALUE},
      {"in u, out w", "u w: float [rows + 2]", "reach = H:1",
       SDG_E_RULES_VALUE},
      {"in u, out w", "u w: float [rows + 2] ghosts [0]", "reach = H:0", 0},
      // Faces of cells: one more than there are cells.
      {"in u, out w", "u: float [rows + 1] ghosts [0:1]; w: float [rows]",
       "reach = H:0:1", 0},
      {"in u, out w", "u: float [rows + 1] ghosts [0:1]; w: float [rows]",
       "reach = H:1", SDG_E_RULES_VALUE},
      {"in u, out w", "w: float [rows + 1] ghosts [0:1]; u: float [rows]",
       "reach = H:1", SDG_E_RULES_VALUE},
      {"in u, out w",
       "w: float [rows + 1] ghosts [0:1]; u: float [rows] ghosts [0]",
       "reach = H:1", 0},
      {"inout u", "u: float [rows + 2] ghosts [1]", "reach = H:1",
       SDG_E_RULES_VALUE},
      {"inout u", "u: float [rows + 2] ghosts [1]", "reach = H:1\ncopy = yes",
       0},
      {"in u, out w", "u w: float [W=columns + 2 H=rows] ghosts [1 0]",
       "reach = 1", SDG_E_RULES_VALUE},
      {"in u, out w, out t", "u w: float [rows + 2] ghosts [1]; t: float []",
       "reach = H:1\nresult = sum t", 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    ck_assert_msg(section_load(rows[i].arguments, rows[i].tensor,
                               rows[i].reach) == (int)rows[i].status,
                  "%s, %s: not SDG-%d; %s", rows[i].tensor, rows[i].reach,
                  (int)rows[i].status, sdg_last_error());
}
END_TEST

// Each rank would write what its piece gives.
START_TEST(what_lacks_a_split_dimension_is_written_by_who_sees_all) {
  static const char tensor[] = "u: float [H=rows W=columns]; w: float "
                               "[W=columns]";
  ck_assert_int_eq(section_load("in u, out w", tensor, "reach = 0"),
                   SDG_E_RULES_VALUE);
  ck_assert_int_eq(section_load("in u, out w", tensor, "reach = H:all"), 0);
  ck_assert_int_eq((int)changed_load("result = sum t", ""), SDG_E_RULES_VALUE);
}
END_TEST

// A piece of a dimension that wraps begins in front of 0.
START_TEST(an_offset_that_wraps_is_signed) {
  ck_assert_int_eq(section_load("in u, out w, unsigned row0",
                                "u w: float [rows]",
                                "reach = 1\nborder = wrap\noffset = row0 H"),
                   SDG_E_RULES_VALUE);
  ck_assert_int_eq(section_load("in u, out w, long row0", "u w: float [rows]",
                                "reach = 1\nborder = wrap\noffset = row0 H"),
                   0);
}
END_TEST

// Right values with some words left out, doubled or replaced end in a status,
// not in a crash.
START_TEST(changed_values_end_in_a_status) {
  static const char *const bits[] = {"in ",      "u ",       ", ",    "int ",
                                     "[",        "]",        "H=",    "rows ",
                                     "+ ",       "* ",       ": ",    "(",
                                     "float ",   "2 ",       ")",     "} ",
                                     "strides ", "&",        "W:",    ";",
                                     "=",        "struct {", "all ",  "- ",
                                     "sum ",     "columns ", "out w "};
  static const char *const right[2][10] = {
      {"u ", "w ", ": ", "float ", "[", "2 ", "* ", "rows ", "columns ", "]"},
      {"in ", "u ", ", ", "out w ", ", ", "int ", "rows ", ", ", "int ",
       "columns "}};
  int taken = 0;
  sdg_probe_begin(); // faults are not printed
  for (int n = 0; n < 4000; n++) {
    const char *word[10];
    char text[768];
    memcpy(word, right[n % 2], sizeof word);
    for (int64_t k = random_in(0, 3); k > 0; k--)
      word[random_in(0, 9)] =
          random_in(0, 2) ? bits[random_in(0, sizeof bits / sizeof *bits - 1)]
                          : "";
    size_t used = (size_t)snprintf(text, sizeof text,
                                   "[function f]\ndims = H W\nreach = 1\n"
                                   "stream = none\n%s = ",
                                   n % 2 ? "arguments" : "tensor");
    for (int i = 0; i < 10; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s", word[i]);
    snprintf(text + used, sizeof text - used, "\n%s" SPLIT,
             n % 2 ? "tensor = u w: float [rows columns]\n"
                   : "arguments = in u, out w, int rows, int columns\n");
    sdg_rules_t rules;
    if (text_load(text, &rules) != SDG_OK)
      continue;
    sdg_rules_fini(&rules);
    taken++;
  }
  sdg_probe_end();
  ck_assert_int_gt(taken, 500);
  ck_assert_int_lt(taken, 3000);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("function");
  TCase *cases = tcase_create("function");
  tcase_add_test(cases, an_expression_has_the_value_that_c_gives_it);
  tcase_add_test(cases, what_is_no_expression_is_refused);
  tcase_add_test(cases, a_quotient_by_zero_and_an_overflow_have_no_value);
  tcase_add_test(cases, an_extent_is_solved_for_the_argument_that_it_names);
  tcase_add_test(cases, an_expression_tells_the_argument_that_it_names);
  tcase_add_test(cases, a_section_is_read);
  tcase_add_test(cases, a_long_symbol_is_kept_whole);
  tcase_add_test(cases, a_fault_is_named);
  tcase_add_test(cases, what_is_updated_in_place_needs_a_copy);
  tcase_add_test(cases, a_result_by_its_value_has_a_type);
  tcase_add_test(cases, a_function_writes_or_returns_something);
  tcase_add_test(cases, ghosts_have_room_for_the_reach);
  tcase_add_test(cases,
                 what_lacks_a_split_dimension_is_written_by_who_sees_all);
  tcase_add_test(cases, an_offset_that_wraps_is_signed);
  tcase_add_test(cases, changed_values_end_in_a_status);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
