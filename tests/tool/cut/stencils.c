// SPDX-License-Identifier: Apache-2.0
// Functions of a solver in C.
#include "tests/tool/cut/stencils.h"

#include <math.h>

static int inside(long i, long n) {
  return i < 0 ? 0 : i >= n ? (int)n - 1 : (int)i;
}

void cut_step(const float *u, float *w, int rows, int columns, double dt) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      const float *at = u + r * columns + c;
      int wall = r == 0 || r == rows - 1 || c == 0 || c == columns - 1;
      double laplace = wall ? 0
                            : (double)at[columns] + at[-columns] + at[1] +
                                  at[-1] - 4 * (double)*at;
      w[r * columns + c] = (float)(*at + dt * laplace);
    }
}

void cut_wide(const double *u, double *w, long rows, long columns) {
  for (long r = 0; r < rows; r++)
    for (long c = 0; c < columns; c++)
      w[r * columns + c] = u[inside(r - 2, rows) * columns + c] -
                           2 * u[r * columns + c] +
                           u[inside(r + 2, rows) * columns + c];
}

void cut_decay(float *u, int rows, int columns, float factor) {
  for (int i = 0; i < rows * columns; i++)
    u[i] *= factor;
}

void cut_ramp(double *u, int rows, int columns, int row0) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      u[r * columns + c] += row0 + r;
}

void cut_total(const float *u, int rows, int columns, double *sum,
               double *most) {
  *sum = 0;
  *most = -INFINITY;
  for (int i = 0; i < rows * columns; i++) {
    *sum += (double)u[i];
    *most = fmax(*most, (double)u[i]);
  }
}

double cut_energy(const float *u, int rows, int columns) {
  double sum = 0;
  for (int i = 0; i < rows * columns; i++)
    sum += (double)u[i] * (double)u[i] / 3;
  return sum;
}

void cut_rotate(const float *u, float *w, int rows, int columns) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      w[r * columns + c] = u[(r + 1) % rows * columns + c];
}

void cut_faces(const double *f, double *u, int rows, int columns) {
  for (int i = 0; i < rows * columns; i++)
    u[i] = f[i + columns] - f[i];
}

void cut_mean(const float *u, float *w, int rows, int columns) {
  for (int c = 0; c < columns; c++) {
    double sum = 0;
    for (int r = 0; r < rows; r++)
      sum += (double)u[r * columns + c];
    for (int r = 0; r < rows; r++)
      w[r * columns + c] = (float)(sum / rows);
  }
}

void cut_blend(const float *u, float *w, int rows, int columns,
               struct weights by) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      w[r * columns + c] =
          (float)((double)by.near * u[r * columns + c] +
                  by.far * u[r * columns + inside(c + 1, columns)]);
}

void cut_padded(const float *u, float *w, int rows, int columns, int apart) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      w[r * apart + c] = u[inside(r + 1, rows) * apart + c] - u[r * apart + c];
}

void cut_heat(const float *u, float *w, int rows, int columns) {
  for (int r = 1; r <= rows; r++)
    for (int c = 0; c < columns; c++)
      w[r * columns + c] =
          (u[(r - 1) * columns + c] + u[(r + 1) * columns + c]) / 2;
}

void cut_corners(const float *u, float *w, int rows, int columns) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++)
      w[r * columns + c] =
          u[inside(r - 1, rows) * columns + inside(c + 1, columns)] -
          u[inside(r + 1, rows) * columns + inside(c - 1, columns)];
}

void cut_shift(const float *u, float *w, int rows, int columns,
               cudaStream_t stream) {
  size_t row = (size_t)columns * sizeof *u;
  if (rows > 1)
    cudaMemcpyAsync(w + columns, u, (size_t)(rows - 1) * row, cudaMemcpyDefault,
                    stream);
  cudaMemcpyAsync(w, u, row, cudaMemcpyDefault, stream);
}

// Keeps a number from one call to the next.
void cut_count(const float *u, float *w, int rows, int columns) {
  static int calls;
  calls++;
  for (int i = 0; i < rows * columns; i++)
    w[i] = u[i] + (float)calls;
}
