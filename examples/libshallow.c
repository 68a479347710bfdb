/* SPDX-License-Identifier: Apache-2.0 */
/* The library of the solver shallow.c: its stencils, walls and largest speed,
 * plain loops over fields of `rows` x `columns` floats. */
#include <math.h>
#include <string.h>

#include "libshallow.h"

#define AT(row, column) ((size_t)(row) * (size_t)columns + (size_t)(column))

void momentum(const float *h, float *u, float *v, int rows, int columns,
              float dt) {
  for (int i = 1; i < rows - 1; i++)
    for (int j = 1; j < columns - 1; j++) {
      u[AT(i, j)] -= 0.5f * dt * (h[AT(i, j + 1)] - h[AT(i, j - 1)]);
      v[AT(i, j)] -= 0.5f * dt * (h[AT(i + 1, j)] - h[AT(i - 1, j)]);
    }
}

void continuity(const float *h, const float *u, const float *v, float *next,
                int rows, int columns, float dt) {
  memcpy(next, h, (size_t)rows * (size_t)columns * sizeof *next);
  for (int i = 1; i < rows - 1; i++)
    for (int j = 1; j < columns - 1; j++)
      next[AT(i, j)] -= 0.5f * dt *
                        (u[AT(i, j + 1)] - u[AT(i, j - 1)] + v[AT(i + 1, j)] -
                         v[AT(i - 1, j)]);
}

void walls(float *h, float *u, float *v, int rows, int columns) {
  for (int j = 0; j < columns; j++) {
    h[AT(0, j)] = h[AT(1, j)];
    h[AT(rows - 1, j)] = h[AT(rows - 2, j)];
    v[AT(0, j)] = v[AT(rows - 1, j)] = 0;
  }
  for (int i = 0; i < rows; i++) {
    h[AT(i, 0)] = h[AT(i, 1)];
    h[AT(i, columns - 1)] = h[AT(i, columns - 2)];
    u[AT(i, 0)] = u[AT(i, columns - 1)] = 0;
  }
}

void fastest(const float *u, const float *v, int rows, int columns,
             float *speed) {
  size_t count = (size_t)rows * (size_t)columns;
  *speed = 0;
  for (size_t i = 0; i < count; i++)
    *speed = fmaxf(*speed, sqrtf(u[i] * u[i] + v[i] * v[i]));
}
