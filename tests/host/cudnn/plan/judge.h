/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the planner's rules share: a table with, for each rule, a
 * graph within it and a graph beyond it. */
#ifndef SDG_TESTS_HOST_CUDNN_PLAN_JUDGE_H
#define SDG_TESTS_HOST_CUDNN_PLAN_JUDGE_H

#include <check.h>
#include <stdbool.h>

/* What the planner says of the graph of a row: the text of its refusal; NULL:
 * it takes the graph. *out_rule: how the text about the graph beyond the rule
 * begins. */
typedef const char *judge_t(int row, bool beyond, const char **out_rule);

/* Fails unless the text begins as the rule does. */
void judge_refused(int row, const char *rule, const char *text);

/* The tests of all rows; once in a program. */
Suite *judge_suite(const char *name, judge_t *judge, int rows);

#endif
