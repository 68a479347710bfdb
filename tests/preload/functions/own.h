/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PRELOAD_FUNCTIONS_OWN_H
#define TESTS_PRELOAD_FUNCTIONS_OWN_H

struct own_pair {
  double x, y;
};
/* Arguments in registers of both kinds, and on the stack. */
double own_many(int a, double b, long c, float d, int e, double f, long g,
                int h, double i, short j, struct own_pair k, double l);
int own_twice(int a);
/* Calls own_twice, inside the library. */
int own_through(int a);

#endif
