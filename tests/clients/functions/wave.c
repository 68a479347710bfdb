/* SPDX-License-Identifier: Apache-2.0 */
/* A library of a legacy solver: stencils on the host, on managed memory. */
#include "tests/clients/functions/wave.h"

#include <math.h>

long wave_rows;

#define AT(p, i, j) p[(size_t)(i) * (size_t)columns + (size_t)(j)]

int wave_step(const float *u, const float *v, float *w, int rows, int columns,
              double dt) {
  for (int i = 1; i < rows - 1; i++)
    for (int j = 1; j < columns - 1; j++) {
      float around = AT(u, i - 1, j) + AT(u, i + 1, j) + AT(u, i, j - 1) +
                     AT(u, i, j + 1) - 4 * AT(u, i, j);
      AT(w, i, j) = 2 * AT(u, i, j) - AT(v, i, j) + (float)dt * around;
    }
  for (int j = 0; j < columns; j++) { /* the first and last rows are walls */
    AT(w, 0, j) = 0;
    AT(w, rows - 1, j) = 0;
  }
  return rows * columns > 0 ? 7 : 0;
}

void wave_force(float *w, int row0, const int *column0, const int *rows,
                const int *columns_at, float strength) {
  int columns = *columns_at;
  for (int i = 0; i < *rows; i++)
    for (int j = 0; j < columns; j++)
      AT(w, i, j) +=
          strength * (float)sin(0.1 * (row0 + i) + 0.3 * (*column0 + j));
}

void wave_energy(const float *u, int rows, int columns, double *total,
                 double *largest) {
  *total = *largest = 0;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++) {
      double x = (double)AT(u, i, j);
      *total += x * x;
      *largest = x * x > *largest ? x * x : *largest;
    }
}

double wave_total(const float *u, int rows, int columns) {
  double total = 0;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      total += (double)AT(u, i, j);
  return total;
}

void wave_rotate(const double *f, const float *u, float *w, long rows,
                 long columns) {
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++) { /* periodic in both directions */
      long up = (i + 2) % rows, left = (j + columns - 1) % columns;
      AT(w, i, j) = (float)f[i] * AT(u, up, j) + 0.5f * AT(u, i, left);
    }
}

void wave_shift(const float *u, float *w, const size_t *rows, int columns,
                struct wave_shift by, cudaStream_t stream) {
  wave_rows += (long)*rows;
  size_t bytes = (size_t)columns * sizeof *u, kept = *rows - (size_t)by.rows;
  cudaMemcpyAsync(w, u + by.rows * columns, kept * bytes, cudaMemcpyDefault,
                  stream);
  cudaMemsetAsync(w + kept * (size_t)columns, by.fill, (size_t)by.rows * bytes,
                  stream);
}
