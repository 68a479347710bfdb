/* SPDX-License-Identifier: Apache-2.0 */
/* Fields are [rows][columns]. */
#ifndef TESTS_CLIENTS_FUNCTIONS_WAVE_H
#define TESTS_CLIENTS_FUNCTIONS_WAVE_H

#include <cuda_runtime_api.h>
#include <stddef.h>

/* w = 2 u - v + dt laplace(u); columns at the sides stay, the first and last
 * rows become 0. Returns 7. */
int wave_step(const float *u, const float *v, float *w, int rows, int columns,
              double dt);
/* Adds a force that depends on the place; row0, column0: where the first row
 * and column lie. */
void wave_force(float *w, int row0, const int *column0, const int *rows,
                const int *columns, float strength);
/* The sum and the largest of squares. */
void wave_energy(const float *u, int rows, int columns, double *total,
                 double *largest);
/* Returns the sum of all values, and writes nothing. */
double wave_total(const float *u, int rows, int columns);
/* w[i] = f[i] u[i + 2] + u[.., j - 1] / 2, periodic. f: [rows] */
void wave_rotate(const double *f, const float *u, float *w, long rows,
                 long columns);

/* The rows on which wave_shift has worked so far. */
extern long wave_rows;
struct wave_shift {
  int rows;
  signed char fill;
};
/* w[i] = u[i + by.rows]; of the last rows every byte is by.fill. */
void wave_shift(const float *u, float *w, const size_t *rows, int columns,
                struct wave_shift by, cudaStream_t stream);

#endif
