/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a solver, which test_cut.sh declares rightly and wrongly. */
#ifndef TESTS_TOOL_CUT_STENCILS_H
#define TESTS_TOOL_CUT_STENCILS_H

#include <cuda_runtime_api.h>

struct weights {
  float near;
  double far;
};

#ifdef __cplusplus
extern "C" {
#endif

/* w = u + dt laplace(u), in a type of its own; walls at all ends. */
void cut_step(const float *u, float *w, int rows, int columns, double dt);
/* Sees two rows on each side. */
void cut_wide(const double *u, double *w, long rows, long columns);
void cut_decay(float *u, int rows, int columns, float factor);
/* Adds the number of each row in the whole. */
void cut_ramp(double *u, int rows, int columns, int row0);
void cut_total(const float *u, int rows, int columns, double *sum,
               double *most);
double cut_energy(const float *u, int rows, int columns);
/* The rows' ends are neighbours. */
void cut_rotate(const float *u, float *w, int rows, int columns);
/* f has a row more than u has: u is the difference of the faces around it. */
void cut_faces(const double *f, double *u, int rows, int columns);
/* Every row gets the sum of all in its column. */
void cut_mean(const float *u, float *w, int rows, int columns);
void cut_blend(const float *u, float *w, int rows, int columns,
               struct weights by);
/* Rows are `apart` elements apart. */
void cut_padded(const float *u, float *w, int rows, int columns, int apart);
/* Rows 1 to `rows` of rows + 2. */
void cut_heat(const float *u, float *w, int rows, int columns);
/* Sees the corners, too. */
void cut_corners(const float *u, float *w, int rows, int columns);
/* On the device. */
void cut_shift(const float *u, float *w, int rows, int columns,
               cudaStream_t stream);
/* Not pure: what it adds depends on how often it was called. */
void cut_count(const float *u, float *w, int rows, int columns);

/* C++ */
void cut_shear(const double *u, double *w, const int *rows, const int *columns,
               double by);
/* Fortran: u(columns, rows). */
void cut_smooth_(const float *u, float *w, const int *columns, const int *rows,
                 const float *weight);
void cut_fsum_(const double *u, const int *columns, const int *rows,
               double *total);

#ifdef __cplusplus
}
#endif

#endif
