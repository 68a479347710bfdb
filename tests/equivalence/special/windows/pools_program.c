// SPDX-License-Identifier: Apache-2.0
// Pools all of its rows with one window.
//
// usage: pools_program RANK ROWS,... WINDOW,... MAXIMUM,...|CUDNN-STATUS
//        each list has an entry for each rank; rows count from 0 over all ranks
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/sundog.h"
#include "tests/calls.h"

enum { W = 2, ROWS_MAX = 64 };

#define DEMAND(condition) CHECK(!(condition))

static int entry_of(const char *list, int index) {
  while (index-- > 0) {
    list = strchr(list, ',');
    DEMAND(list);
    list++;
  }
  return atoi(list);
}

// Checks that all ranks have the same row, not one row each.
static void placement_check(cudnnTensorDescriptor_t y, int rank, int whole) {
  __typeof__(&sundog_placement) placement =
      (__typeof__(&sundog_placement))dlsym(RTLD_DEFAULT, "sundog_placement");
  int64_t first[4], extent[4];
  DEMAND(placement && placement(y, 4, first, extent) == 4);
  DEMAND(first[2] == (whole ? 0 : rank) && (extent[2] == 1) == whole);
}

int main(int count, char **arg) {
  const float one = 1, zero = 0;
  if (count != 5)
    return 2;
  int rank = atoi(arg[1]), first = 0, shape[4];
  for (int r = 0; r < rank; r++)
    first += entry_of(arg[2], r);
  int rows = entry_of(arg[2], rank), window = entry_of(arg[3], rank);
  float x[ROWS_MAX * W], y = -1;
  for (int i = 0; i < rows * W; i++)
    x[i] = (float)(first + i / W);
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x_desc, y_desc;
  cudnnPoolingDescriptor_t pool;
  void *from, *to;
  CHECK(cudnnCreate(&cudnn));
  CHECK(cudnnCreateTensorDescriptor(&x_desc));
  CHECK(cudnnCreateTensorDescriptor(&y_desc));
  CHECK(cudnnCreatePoolingDescriptor(&pool));
  CHECK(cudnnSetTensor4dDescriptor(x_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, rows, W));
  CHECK(cudnnSetTensor4dDescriptor(y_desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, 1, 1));
  CHECK(cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_MAX,
                                    CUDNN_NOT_PROPAGATE_NAN, window, W, 0, 0,
                                    window, W));
  CHECK(cudaMalloc(&from, sizeof x));
  CHECK(cudaMalloc(&to, sizeof y));
  CHECK(cudaMemcpy(from, x, sizeof x, cudaMemcpyHostToDevice));
  cudnnStatus_t got = cudnnGetPooling2dForwardOutputDim(
      pool, x_desc, shape, shape + 1, shape + 2, shape + 3);
  if (!strchr(arg[4], ',')) {
    DEMAND((int)got == atoi(arg[4]));
    return 0;
  }
  CHECK(got);
  DEMAND(shape[0] == 1 && shape[1] == 1 && shape[2] == 1 && shape[3] == 1);
  CHECK(
      cudnnPoolingForward(cudnn, pool, &one, x_desc, from, &zero, y_desc, to));
  CHECK(cudaMemcpy(&y, to, sizeof y, cudaMemcpyDeviceToHost));
  DEMAND(y == (float)entry_of(arg[4], rank));
  placement_check(y_desc, rank, entry_of(arg[4], 0) == entry_of(arg[4], 1));
  return 0;
}
