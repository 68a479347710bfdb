/* SPDX-License-Identifier: Apache-2.0 */
/* The library of define.c: a stencil, and a function that calls it. */
#include "tests/clients/define/spread.h"

/* w is the mean of a row and its neighbours; the first and last have one. */
int spread(const float *u, float *w, int rows, int columns) {
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      int up = i > 0 ? i - 1 : i, down = i + 1 < rows ? i + 1 : i;
      w[i * columns + j] = 0.25f * u[up * columns + j] +
                           0.5f * u[i * columns + j] +
                           0.25f * u[down * columns + j];
    }
  return rows;
}

int spread_by_library(const float *u, float *w, int rows, int columns) {
  return spread(u, w, rows, columns);
}
