// SPDX-License-Identifier: Apache-2.0
// The tests of a table of rules.
#include "tests/host/cudnn/plan/judge.h"

#include <string.h>

static judge_t *judge;

void judge_refused(int row, const char *rule, const char *text) {
  ck_assert_msg(text && strncmp(text, rule, strlen(rule)) == 0,
                "row %d (%s): %s", row, rule, text ? text : "taken");
}

START_TEST(a_graph_within_a_rule_is_taken) {
  const char *rule, *text = judge(_i, false, &rule);
  ck_assert_msg(!text, "row %d (%s): %s", _i, rule, text);
}
END_TEST

START_TEST(a_graph_beyond_a_rule_is_refused_for_it) {
  const char *rule, *text = judge(_i, true, &rule);
  judge_refused(_i, rule, text);
}
END_TEST

Suite *judge_suite(const char *name, judge_t *of, int rows) {
  judge = of;
  Suite *suite = suite_create(name);
  TCase *tests = tcase_create("rules");
  tcase_add_loop_test(tests, a_graph_within_a_rule_is_taken, 0, rows);
  tcase_add_loop_test(tests, a_graph_beyond_a_rule_is_refused_for_it, 0, rows);
  suite_add_tcase(suite, tests);
  return suite;
}
