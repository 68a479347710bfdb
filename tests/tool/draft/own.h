/* SPDX-License-Identifier: Apache-2.0 */
/* A library of a program's own whose functions have every kind of argument. */
#ifndef TESTS_TOOL_DRAFT_OWN_H
#define TESTS_TOOL_DRAFT_OWN_H

typedef double own_four_t __attribute__((vector_size(32)));
struct own_six {
  double x[6];
};

extern int own_data;
/* Arguments in all registers, and on the stack. */
double own_ten(const float *a, const float *b, float *c, int rows, int columns,
               float *d, double s, float *e, float *f, int last, double t);
/* The sum of numbers; format: i for an int, d for a double. */
int own_print(float *a, const char *format, ...);
struct own_six own_big(const float *a, double x);
own_four_t own_vector(const float *a, own_four_t x, own_four_t y);
int own_errno(const float *a);
/* Chooses its code as it is loaded. */
int own_chosen(const float *a);
/* Calls `back`. */
int own_nested(const float *a, int (*back)(const float *));
/* Gets no address in device memory. */
int own_host(const int *a);

#endif
