/* SPDX-License-Identifier: Apache-2.0 */
/* Integer expressions over the arguments of a function: the extents and strides
 * of its tensors. Inside rules/ only. */
#ifndef SDG_RULES_FILE_FUNCTION_EXPRESSION_H
#define SDG_RULES_FILE_FUNCTION_EXPRESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/file/word.h"

enum { SDG_EXPRESSION_STEPS = 32 };

/* In postfix order. */
typedef struct sdg_expression_step {
  char op;        /* '#' a number, '@' an argument, + - * / */
  int64_t number; /* of '#' the value, of '@' the argument's index */
} sdg_expression_step_t;

typedef struct sdg_expression {
  int steps;
  sdg_expression_step_t step[SDG_EXPRESSION_STEPS];
} sdg_expression_t;

/* Returns the index of the argument with this name, -1 if there is none. */
typedef int sdg_expression_find_t(const void *user, sdg_word_t name);

/* Reads "2 * rows + 1", with + - * / and parentheses. Fails with
 * SDG_E_RULES_SYNTAX, or SDG_E_RULES_WORD for a name that `find` does not know.
 */
sdg_status_t sdg_expression_parse(const sdg_location_t *location,
                                  sdg_word_t text, sdg_expression_find_t *find,
                                  const void *user,
                                  sdg_expression_t *out) SDG_MUST_CHECK;

/* The value where argument i is argument[i]. A quotient is cut towards zero.
 * False if it divides by zero or overflows. */
bool sdg_expression_value(const sdg_expression_t *expression,
                          const int64_t *argument, int64_t *out);
/* The same with positive quotients rounded up. */
bool sdg_expression_ceiling(const sdg_expression_t *expression,
                            const int64_t *argument, int64_t *out);

/* The one argument that the expression names, whatever how often; -1: none, -2:
 * several. */
int sdg_expression_argument(const sdg_expression_t *expression);

bool sdg_expression_names(const sdg_expression_t *expression, int argument);

/* Changes argument[index], the one that the expression names, so that its value
 * becomes `value`. False if no integer does, or if the expression is not linear
 * there. */
bool sdg_expression_solve(const sdg_expression_t *expression, int64_t value,
                          int index, int64_t *argument);

#endif
