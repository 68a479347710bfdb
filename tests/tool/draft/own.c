/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tool/draft/own.h"

#include <errno.h>
#include <stdarg.h>

int own_data = 7;

double own_ten(const float *a, const float *b, float *c, int rows, int columns,
               float *d, double s, float *e, float *f, int last, double t) {
  int apart = (d - c) != 0 && (f - e) != 0 && (b - a) != 0;
  return rows * 1000.0 + columns + s + t + last + apart;
}

int own_print(float *a, const char *format, ...) {
  va_list list;
  int n = a != 0;
  double sum = 0;
  va_start(list, format);
  for (; *format; format++)
    if (*format == 'i')
      n += va_arg(list, int);
    else
      sum += va_arg(list, double);
  va_end(list);
  return n + (int)sum;
}

struct own_six own_big(const float *a, double x) {
  struct own_six all;
  for (int i = 0; i < 6; i++)
    all.x[i] = x + i + (a == 0);
  return all;
}

own_four_t own_vector(const float *a, own_four_t x, own_four_t y) {
  return a ? x + y * 2 : x;
}

int own_errno(const float *a) {
  return a ? errno : 0;
}

static int chosen(const float *a) {
  return a ? 5 : 0;
}
static int (*choose(void))(const float *) {
  return chosen;
}
int own_chosen(const float *a) __attribute__((ifunc("choose")));

int own_nested(const float *a, int (*back)(const float *)) {
  return 1 + back(a);
}

int own_host(const int *a) {
  return *a;
}
