/* SPDX-License-Identifier: Apache-2.0 */
/* Calls each function of libtried.so twice; as many rows on every rank. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>

#include "tests/calls.h"
#include "tests/tool/draft/tried.h"

enum { PLANES = 3, ROWS = 10, COLUMNS = 4, COUNT = PLANES * ROWS * COLUMNS };

static void *managed(size_t bytes) {
  void *memory;
  CHECK(cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal));
  return memory;
}

int main(void) {
  double *deep = managed(COUNT * sizeof *deep),
         *deeper = managed(COUNT * sizeof *deep);
  unsigned short *half = managed(COUNT * sizeof *half),
                 *other = managed(COUNT * sizeof *half);
  float *u = managed(COUNT * sizeof *u), *w = managed(COUNT * sizeof *w);
  float *none = managed(COUNT * sizeof *none), *there, *here;
  int *mask = managed(COUNT * sizeof *mask);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc((void **)&there, COUNT * sizeof *there));
  CHECK(cudaMalloc((void **)&here, COUNT * sizeof *here));
  for (int i = 0; i < COUNT; i++) {
    deep[i] = 0.5 * i;
    deeper[i] = 0;
    half[i] = (unsigned short)(0x3c00 + i); /* from 1 on */
    other[i] = 0;
    u[i] = (float)(i % 7 - 3);
    w[i] = 0;
    none[i] = NAN;
    mask[i] = i % 2;
  }
  CHECK(cudaMemcpy(there, u, COUNT * sizeof *u, cudaMemcpyDefault));
  CHECK(cudaMemset(here, 0, COUNT * sizeof *here));
  for (int i = 0; i < 2; i++) {
    tried_deep(deep, deeper, PLANES, ROWS, COLUMNS);
    tried_half(half, other, ROWS, COLUMNS);
    tried_double(w, ROWS, COLUMNS);
    tried_sum(w, ROWS, COLUMNS);
    tried_count(u, w, ROWS, COLUMNS);
    tried_branch(u, w, ROWS, COLUMNS);
    tried_stream(there, here, ROWS, COLUMNS, stream);
    CHECK(cudaStreamSynchronize(stream));
    tried_mask(u, mask, w, ROWS, COLUMNS);
    tried_padded(u, w, ROWS, COLUMNS);
  }
  /* Where nothing is a number nothing can be seen. */
  tried_branch(none, none + COUNT / 2, ROWS, COLUMNS);
  double sum = 0;
  for (int i = 0; i < COUNT; i++)
    sum += (double)w[i] + deeper[i] + other[i];
  printf("%g\n", sum);
  return 0;
}
