/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on device memory that read and write by way of the host. Their
 * fields have planes, rows and columns; what they do is drawn. */
#ifndef TESTS_CLIENTS_FUNCTIONS_RANDOM_H
#define TESTS_CLIENTS_FUNCTIONS_RANDOM_H

#include <cuda_runtime_api.h>

enum { RANDOM_FUNCTIONS = 4, RANDOM_DIMS = 3, RANDOM_ALL = -1 };
enum { RANDOM_OWN, RANDOM_WRAP, RANDOM_ZERO };

/* What function k does: its library has one for each k. */
struct random_how {
  int reach[RANDOM_DIMS]; /* or RANDOM_ALL */
  int border[RANDOM_DIMS];
  int order;     /* 0: columns are contiguous; 1: planes; 2: rows `ld` apart */
  int leaves;    /* it leaves every so manyth element as it is; 0: none */
  int staggered; /* its sizes are said as one more than they are */
};
extern struct random_how random_how[RANDOM_FUNCTIONS];
extern long random_work; /* elements of results so far */

void random_0(const float *a, const double *f, float *w, int planes, int rows,
              int columns, int ld, int row0, int column0, cudaStream_t stream);
/* In place. scale: one element of another field. */
void random_1(float *w, const int *planes, const long *rows,
              const unsigned *columns, const float *a, const long *row0,
              short column0, double factor, int ld, const float *scale);
/* The sum, the largest and the least of integers. */
void random_2(double *total, float *most, int *least, const float *a,
              long planes, long rows, long columns, long ld);
/* g[rows] = 2 f[rows] beside w. */
void random_3(int ld, int columns, int rows, int planes, float *w, double *g,
              const float *a, const float *b, const double *f,
              cudaStream_t stream);

#endif
