/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of memory that functions of a library write. Built with
 * LIBRARY: the library.
 *
 * usage: memory again | over | copied
 *
 * again: a function without the dimension that is split updates its memory,
 * three times
 * over: cuBLAS adds up what was copied over a piece that a function wrote
 * copied: cuBLAS adds up a copy of the piece, in device memory */
#ifdef LIBRARY

void column_double(float *column, int rows) {
  for (int i = 0; i < rows; i++)
    column[i] *= 2;
}

void plane_copy(const float *u, float *w, int rows, int columns) {
  for (int i = 0; i < rows * columns; i++)
    w[i] = u[i];
}

#else

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "tests/calls.h"

void column_double(float *column, int rows);
void plane_copy(const float *u, float *w, int rows, int columns);

enum { ROWS = 4, COLUMNS = 3, COUNT = ROWS * COLUMNS };

int main(int argc, char **argv) {
  float *u, *w, sum = 0, ones[COUNT];
  if (argc < 2)
    return 2;
  for (int i = 0; i < COUNT; i++)
    ones[i] = 1;
  CHECK(cudaMallocManaged((void **)&u, sizeof ones, cudaMemAttachGlobal));
  CHECK(cudaMallocManaged((void **)&w, sizeof ones, cudaMemAttachGlobal));
  CHECK(cudaMemcpy(u, ones, sizeof ones, cudaMemcpyHostToDevice));
  if (strcmp(argv[1], "again") == 0) {
    for (int step = 0; step < 3; step++)
      column_double(u, ROWS);
    printf("%g\n", (double)u[0]);
    return 0;
  }
  cublasHandle_t cublas;
  CHECK(cublasCreate(&cublas));
  plane_copy(u, w, ROWS, COLUMNS);
  float *added = w;
  if (strcmp(argv[1], "over") == 0) {
    CHECK(cudaMemcpy(w, ones, sizeof ones, cudaMemcpyHostToDevice));
  } else {
    CHECK(cudaMalloc((void **)&added, sizeof ones));
    CHECK(cudaMemcpy(added, w, sizeof ones, cudaMemcpyDefault));
  }
  CHECK(cublasSasum(cublas, COUNT, added, 1, &sum));
  printf("%g\n", (double)sum);
  return 0;
}

#endif
