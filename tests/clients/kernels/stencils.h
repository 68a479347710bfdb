/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of a solver do for one element. A GPU calls these in
 * kernels, the host device in their twins. */
#ifndef SDG_TESTS_CLIENTS_KERNELS_STENCILS_H
#define SDG_TESTS_CLIENTS_KERNELS_STENCILS_H

#include <cuda_runtime.h>

#ifdef __CUDACC__
#define BOTH __host__ __device__ static inline
#else
#define BOTH static inline
#endif

/* Elements of [rows columns]. */
#define AT(p, i, j) (p)[(size_t)(i) * (size_t)columns + (size_t)(j)]

/* w = 2 u - v + dt laplace(u); the first and last rows and columns are walls.
 */
BOTH void wave_at(const float *u, const float *v, float *w, int rows,
                  int columns, double dt, int i, int j) {
  float around;
  if (i == 0 || j == 0 || i == rows - 1 || j == columns - 1) {
    AT(w, i, j) = 0;
    return;
  }
  around = AT(u, i - 1, j) + AT(u, i + 1, j) + AT(u, i, j - 1) +
           AT(u, i, j + 1) - 4 * AT(u, i, j);
  AT(w, i, j) = 2 * AT(u, i, j) - AT(v, i, j) + (float)dt * around;
}

struct place {
  char used;
  int row, column;
};

BOTH void force_at(float *w, place first, int columns, float strength, int i,
                   int j) {
  AT(w, i, j) +=
      strength * (float)((3 * (first.row + i) + 5 * (first.column + j)) % 7);
}

/* The mean over 2 reach + 1 elements along D and H, which are periodic. */
template <class T, int REACH>
BOTH void diffuse_at(const T *q, T *r, size_t planes, size_t rows,
                     size_t columns, size_t k, size_t i, size_t j) {
  T sum = 0;
  for (int d = -REACH; d <= REACH; d++) {
    size_t up = (i + rows + (size_t)(long)d) % rows;
    size_t in = (k + planes * REACH + (size_t)(long)d) % planes;
    sum += q[(k * rows + up) * columns + j] * (T)(d + 3) +
           q[(in * rows + i) * columns + j];
  }
  r[(k * rows + i) * columns + j] = sum / (T)(8 * REACH + 4);
}

/* Each element sees two rows further down; zeros come from below. */
BOTH void shift_at(const float *u, float *w, int rows, int columns, int i,
                   int j) {
  AT(w, i, j) = 0.5f * (i + 2 < rows ? AT(u, i + 2, j) : 0);
}

/* A 1-D limiter: between its neighbours. */
BOTH void limit_at(const double *f, double *g, long n, long i) {
  double a = i > 0 ? f[i - 1] : f[i], b = i < n - 1 ? f[i + 1] : f[i];
  double low = a < b ? a : b, high = a < b ? b : a;
  g[i] = f[i] < low ? low : f[i] > high ? high : f[i];
}

#endif
