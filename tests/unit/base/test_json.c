// SPDX-License-Identifier: Apache-2.0
// Texts that are JSON, and texts that are nearly JSON.
#include "src/base/json.h"

#include <string.h>

#include "tests/unit/harness.h"

static sdg_json_t *read_text(const char *text) {
  return sdg_json_read(text, strlen(text));
}

START_TEST(values_of_every_kind_are_read) {
  sdg_json_t *json = read_text(
      " {\"a\": [1, -20, 2.5e1, true, false, null], \"b c\": {\"d\": \"x\"},"
      "\"e\": [], \"f\": {}} ");
  ck_assert_ptr_nonnull(json);
  ck_assert_uint_eq(json->count, 4);
  const sdg_json_t *a = sdg_json_get(json, "a");
  ck_assert(sdg_json_is(a, SDG_JSON_ARRAY));
  ck_assert_uint_eq(a->count, 6);
  ck_assert_int_eq(sdg_json_integer(a->first), 1);
  ck_assert_int_eq(sdg_json_integer(a->first->next), -20);
  const sdg_json_t *real = a->first->next->next;
  ck_assert(sdg_json_is(real, SDG_JSON_REAL));
  ck_assert_double_eq(real->real, 25);
  ck_assert(sdg_json_is_true(real->next));
  ck_assert(!sdg_json_is_true(real->next->next));
  ck_assert(sdg_json_is(real->next->next->next, SDG_JSON_NULL));
  ck_assert_str_eq(
      sdg_json_string(sdg_json_get(sdg_json_get(json, "b c"), "d")), "x");
  ck_assert_ptr_null(sdg_json_get(json, "missing"));
  ck_assert_ptr_null(sdg_json_get(NULL, "a"));
  sdg_json_free(json);
}
END_TEST

START_TEST(escapes_are_characters) {
  sdg_json_t *json = read_text("\"a\\\"\\\\\\/\\n\\u0041\\u00e4\\u20ac\"");
  ck_assert_str_eq(sdg_json_string(json), "a\"\\/\nA\u00e4\u20ac");
  sdg_json_free(json);
}
END_TEST

START_TEST(integers_are_exact_and_do_not_overflow) {
  sdg_json_t *json = read_text("9223372036854775807");
  ck_assert_int_eq(sdg_json_integer(json), INT64_MAX);
  sdg_json_free(json);
  ck_assert_ptr_null(read_text("9223372036854775808"));
}
END_TEST

START_TEST(what_is_nearly_json_is_refused) {
  static const char *const texts[] = {
      "",
      " ",
      "{",
      "}",
      "[1,]",
      "[1 2]",
      "{\"a\"}",
      "{\"a\":}",
      "{a:1}",
      "{\"a\":1,}",
      "\"a",
      "\"\\x\"",
      "\"\\u12g4\"",
      "\"\\u0000\"",
      "\"a\nb\"",
      "01",
      "1.",
      ".5",
      "+1",
      "1e",
      "0x10",
      "nul",
      "truee",
      "1 1",
      "[1]]",
      "{\"a\":1,\"a\":2}",
      "NaN",
      "Infinity",
      "\"\\",
      "-",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    ck_assert_msg(read_text(texts[i]) == NULL, "%s", texts[i]);
}
END_TEST

START_TEST(nesting_has_an_end) {
  char text[400];
  memset(text, '[', 200);
  memset(text + 200, ']', 200);
  ck_assert_ptr_null(sdg_json_read(text, sizeof text));
  sdg_json_t *json = sdg_json_read(text + 150, 100);
  ck_assert_ptr_nonnull(json);
  sdg_json_free(json);
}
END_TEST

START_TEST(every_beginning_of_a_text_is_refused) {
  static const char text[] = "{\"a\": [1, \"b\\n\", {\"c\": true}]}";
  for (size_t bytes = 0; bytes + 1 < sizeof text - 1; bytes++)
    ck_assert_ptr_null(sdg_json_read(text, bytes));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("json");
  TCase *cases = tcase_create("json");
  tcase_add_test(cases, values_of_every_kind_are_read);
  tcase_add_test(cases, escapes_are_characters);
  tcase_add_test(cases, integers_are_exact_and_do_not_overflow);
  tcase_add_test(cases, what_is_nearly_json_is_refused);
  tcase_add_test(cases, nesting_has_an_end);
  tcase_add_test(cases, every_beginning_of_a_text_is_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
