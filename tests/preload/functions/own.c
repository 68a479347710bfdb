/* SPDX-License-Identifier: Apache-2.0 */
/* A library of the program's own. */
#include "tests/preload/functions/own.h"

double own_many(int a, double b, long c, float d, int e, double f, long g,
                int h, double i, short j, struct own_pair k, double l) {
  return a + 2 * b + 3 * (double)c + 4 * (double)d + 5 * e + 6 * f +
         7 * (double)g + 8 * h + 9 * i + 10 * j + 11 * k.x + 12 * k.y + 13 * l;
}

/* Clang inlines functions that another library may replace. */
__attribute__((noinline)) int own_twice(int a) {
  return 2 * a;
}

int own_through(int a) {
  return own_twice(a) + 1;
}
