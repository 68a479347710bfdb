/* SPDX-License-Identifier: Apache-2.0 */
/* Heat in a ring: a solver with a stencil of its own and without cuDNN, changed
 * in two places for sundog. Each rank has rows of the ring, and one more at
 * either end, which sundog_halo() gets from the neighbours. sundog_combine()
 * finds the warmest place of all ranks.
 *
 *   heat ROWS COLUMNS STEPS RANK SIZE U.npy
 *
 * solves on the rows of one rank, writes them, and prints one line:
 *   "400 steps, warmest 1.1187e-01"
 *
 * One process:  ./heat 90 70 400 0 1 u.npy
 * Four:         sundog run -n 4 --view shard --split tags -- \
 *                 ./heat 90 70 400 {rank} {size} u.{rank}.npy
 *               sundog join u.npy u.[0-3].npy
 *
 * Its memory is managed, so that the host computes; kernels on a stream would
 * be used alike. */
#include <dlfcn.h>
#include <sundog.h>

#include "common.h"

static __typeof__(&sundog_halo) halo;
static __typeof__(&sundog_combine) combine;

/* A program need not be linked to sundog. Without it there is one rank. */
static void sundog_find(void) {
  halo = (__typeof__(halo))dlsym(RTLD_DEFAULT, "sundog_halo");
  combine = (__typeof__(combine))dlsym(RTLD_DEFAULT, "sundog_combine");
}

/* Rows -1 and `rows` of u: those of the neighbours, around the ring. */
static void rows_around(float *u, int rows, int columns) {
  const sundog_tensor_t piece = {SUNDOG_FLOAT, "H W", {rows, columns},
                                 {0},          "H",   0};
  const sundog_widths_t one = {{1}, {1}, {SUNDOG_WRAP}, {0}};
  size_t row = (size_t)columns * sizeof *u;
  if (halo) {
    CHECK(halo(NULL, &piece, u, &one, u - columns));
  } else {
    CHECK(cudaMemcpyAsync(u - columns, u + (rows - 1) * columns, row,
                          cudaMemcpyDefault, NULL));
    CHECK(cudaMemcpyAsync(u + rows * columns, u, row, cudaMemcpyDefault, NULL));
  }
  CHECK(cudaStreamSynchronize(NULL)); /* the host reads them */
}

static void step(const float *u, float *next, int rows, int columns) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      const float *at = u + r * columns + c;
      float left = c > 0 ? at[-1] : 0, right = c + 1 < columns ? at[1] : 0;
      next[r * columns + c] =
          *at + 0.2f * (at[-columns] + at[columns] + left + right - 4 * *at);
    }
}

static float *field_make(int rows, int columns) {
  size_t bytes = (size_t)(rows + 2) * (size_t)columns * sizeof(float);
  float *at;
  CHECK(cudaMallocManaged((void **)&at, bytes, cudaMemAttachGlobal));
  CHECK(cudaMemset(at, 0, bytes));
  CHECK(cudaDeviceSynchronize());
  return at + columns; /* row -1 is before it */
}

int main(int argc, char **argv) {
  require(argc == 7, "usage", "heat ROWS COLUMNS STEPS RANK SIZE U.npy");
  int whole = atoi(argv[1]), columns = atoi(argv[2]), steps = atoi(argv[3]);
  int rank = atoi(argv[4]), size = atoi(argv[5]);
  require(size > 0 && whole >= size && columns > 0, "usage", "too few rows");
  int first = whole * rank / size, rows = whole * (rank + 1) / size - first;
  float *u = field_make(rows, columns), *next = field_make(rows, columns),
        *most;
  CHECK(cudaMallocManaged((void **)&most, sizeof *most, cudaMemAttachGlobal));
  sundog_find();
  for (int r = 0; r < rows; r++) /* a warm spot where the ring closes */
    for (int c = 20; c < 30 && c < columns; c++)
      u[r * columns + c] = first + r < 6 || first + r >= whole - 6;
  for (int i = 0; i < steps; i++) {
    rows_around(u, rows, columns);
    step(u, next, rows, columns);
    float *old = u;
    u = next;
    next = old;
  }
  *most = 0;
  for (int i = 0; i < rows * columns; i++)
    *most = u[i] > *most ? u[i] : *most;
  if (combine)
    CHECK(combine(NULL, most, 1, SUNDOG_FLOAT, SUNDOG_MAX, NULL));
  CHECK(cudaStreamSynchronize(NULL));
  printf("%d steps, warmest %.4e\n", steps, (double)*most);
  field_write(argv[6], u, rows, columns);
  return EXIT_SUCCESS;
}
