// SPDX-License-Identifier: Apache-2.0
// Reads expressions by recursive descent, and evaluates them on a stack.
#include "rules/file/function/expression.h"

#include <ctype.h>
#include <string.h>

typedef struct parser {
  const sdg_location_t *location;
  sdg_word_t text; // what is left
  sdg_word_t all;
  sdg_expression_find_t *find;
  const void *user;
  sdg_expression_t *out;
} parser_t;

static sdg_status_t sum_parse(parser_t *p, int depth);

static void blanks_skip(parser_t *p) {
  while (p->text.length > 0 && isspace((unsigned char)*p->text.at))
    p->text.at++, p->text.length--;
}

// The next character that is no blank, 0 at the end.
static char peek(parser_t *p) {
  blanks_skip(p);
  return p->text.length > 0 ? *p->text.at : '\0';
}

static sdg_word_t take(parser_t *p, int length) {
  sdg_word_t taken = {p->text.at, length};
  p->text.at += length;
  p->text.length -= length;
  return taken;
}

static sdg_status_t syntax_fail(const parser_t *p, const char *what) {
  return sdg_location_fail(p->location, SDG_E_RULES_SYNTAX,
                           "'%.*s': %s; write names of arguments, numbers, + - "
                           "* / and parentheses",
                           p->all.length, p->all.at, what);
}

static sdg_status_t step_add(parser_t *p, char op, int64_t number) {
  if (p->out->steps == SDG_EXPRESSION_STEPS)
    return syntax_fail(p, "it is too long");
  p->out->step[p->out->steps++] = (sdg_expression_step_t){op, number};
  return SDG_OK;
}

static int name_length(const parser_t *p) {
  int n = 0;
  while (n < p->text.length &&
         (isalnum((unsigned char)p->text.at[n]) || p->text.at[n] == '_'))
    n++;
  return n;
}

static sdg_status_t factor_parse(parser_t *p, int depth) {
  char next = peek(p);
  int64_t number;
  if (next == '(') {
    if (depth == 0)
      return syntax_fail(p, "it has too many parentheses");
    take(p, 1);
    SDG_TRY(sum_parse(p, depth - 1));
    if (peek(p) != ')')
      return syntax_fail(p, "a ) is missing");
    take(p, 1);
    return SDG_OK;
  }
  sdg_word_t word = take(p, name_length(p));
  if (word.length == 0)
    return syntax_fail(p, next ? "something is missing in front of a sign"
                               : "it ends too early");
  if (isdigit((unsigned char)*word.at))
    return sdg_word_number(word, &number)
               ? step_add(p, '#', number)
               : syntax_fail(p, "a number may have digits only");
  int index = p->find(p->user, word);
  if (index < 0)
    return sdg_location_fail(p->location, SDG_E_RULES_WORD,
                             "'%.*s' in '%.*s' is not the name of an argument "
                             "that is an integer",
                             word.length, word.at, p->all.length, p->all.at);
  return step_add(p, '@', index);
}

static sdg_status_t product_parse(parser_t *p, int depth) {
  SDG_TRY(factor_parse(p, depth));
  for (char sign = peek(p); sign == '*' || sign == '/'; sign = peek(p)) {
    take(p, 1);
    SDG_TRY(factor_parse(p, depth));
    SDG_TRY(step_add(p, sign, 0));
  }
  return SDG_OK;
}

static sdg_status_t sum_parse(parser_t *p, int depth) {
  SDG_TRY(product_parse(p, depth));
  for (char sign = peek(p); sign == '+' || sign == '-'; sign = peek(p)) {
    take(p, 1);
    SDG_TRY(product_parse(p, depth));
    SDG_TRY(step_add(p, sign, 0));
  }
  return SDG_OK;
}

sdg_status_t sdg_expression_parse(const sdg_location_t *location,
                                  sdg_word_t text, sdg_expression_find_t *find,
                                  const void *user, sdg_expression_t *out) {
  enum { PARENTHESES_MAX = 8 };
  parser_t p = {location, text, text, find, user, out};
  out->steps = 0;
  SDG_TRY(sum_parse(&p, PARENTHESES_MAX));
  return peek(&p) ? syntax_fail(&p, "a sign is missing") : SDG_OK;
}

static bool apply(char op, int64_t a, int64_t b, bool up, int64_t *out) {
  switch (op) {
  case '+':
    return !__builtin_add_overflow(a, b, out);
  case '-':
    return !__builtin_sub_overflow(a, b, out);
  case '*':
    return !__builtin_mul_overflow(a, b, out);
  default:
    if (b == 0 || (a == INT64_MIN && b == -1))
      return false;
    *out = a / b + (up && a % b != 0 && (a < 0) == (b < 0));
    return true;
  }
}

static bool evaluate(const sdg_expression_t *expression,
                     const int64_t *argument, bool up, int64_t *out) {
  int64_t stack[SDG_EXPRESSION_STEPS];
  int top = 0;
  for (int i = 0; i < expression->steps; i++) {
    const sdg_expression_step_t *step = &expression->step[i];
    if (step->op == '#') {
      stack[top++] = step->number;
    } else if (step->op == '@') {
      stack[top++] = argument[step->number];
    } else {
      top--;
      if (!apply(step->op, stack[top - 1], stack[top], up, &stack[top - 1]))
        return false;
    }
  }
  *out = stack[0];
  return top == 1;
}

bool sdg_expression_value(const sdg_expression_t *expression,
                          const int64_t *argument, int64_t *out) {
  return evaluate(expression, argument, false, out);
}

bool sdg_expression_ceiling(const sdg_expression_t *expression,
                            const int64_t *argument, int64_t *out) {
  return evaluate(expression, argument, true, out);
}

int sdg_expression_argument(const sdg_expression_t *expression) {
  int found = -1;
  for (int i = 0; i < expression->steps; i++) {
    const sdg_expression_step_t *step = &expression->step[i];
    if (step->op != '@')
      continue;
    if (found >= 0 && found != step->number)
      return -2;
    found = (int)step->number;
  }
  return found;
}

bool sdg_expression_names(const sdg_expression_t *expression, int argument) {
  for (int i = 0; i < expression->steps; i++)
    if (expression->step[i].op == '@' && expression->step[i].number == argument)
      return true;
  return false;
}

// Linear functions of integers that rounding does not touch are exact between
// any two of their points; the result is checked by its value.
bool sdg_expression_solve(const sdg_expression_t *expression, int64_t value,
                          int index, int64_t *argument) {
  int64_t was = argument[index], now, next, slope, missing, step;
  if (!sdg_expression_value(expression, argument, &now))
    return false;
  argument[index] = was + 1;
  bool known = sdg_expression_value(expression, argument, &next);
  argument[index] = was;
  if (now == value)
    return true;
  if (!known || __builtin_sub_overflow(next, now, &slope) || slope == 0 ||
      __builtin_sub_overflow(value, now, &missing) || missing % slope != 0 ||
      __builtin_add_overflow(was, missing / slope, &step))
    return false;
  argument[index] = step;
  bool solved =
      sdg_expression_value(expression, argument, &now) && now == value;
  if (!solved)
    argument[index] = was;
  return solved;
}
