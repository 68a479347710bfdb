// SPDX-License-Identifier: Apache-2.0
// Asks for workspaces a different number of times on each rank, and then makes
// the call. The program does not use sundog's functions.
//
// usage: workspace_queries RANK
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/calls.h"

int main(int count, char **arguments) {
  int rank = count > 1 ? atoi(arguments[1]) : 0;
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, y;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  CHECK(cudnnCreate(&cudnn));
  CHECK(cudnnCreateTensorDescriptor(&x));
  CHECK(cudnnCreateTensorDescriptor(&y));
  CHECK(cudnnCreateFilterDescriptor(&w));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1,
                                   3, 3));
  CHECK(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  for (int step = 0; step < 3; step++) {
    CHECK(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                     1, 8, 4));
    CHECK(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                     1, 8, 4));
    for (int ask = rank == step % 2 ? 4 : 1; ask > 0; ask--) {
      size_t bytes;
      CHECK(cudnnGetConvolutionForwardWorkspaceSize(
          cudnn, x, w, conv, y, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
          &bytes));
    }
    // The other rank waits at the next step and checks which rank is late.
    if (rank == step % 2)
      usleep(300000);
  }
  return 0;
}
