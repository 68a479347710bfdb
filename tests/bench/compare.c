// SPDX-License-Identifier: Apache-2.0
// One pointwise op on a tensor of the given megabytes, whose values two ranks
// must compare. The program does not use sundog's functions.
//
// usage: bench_compare MEGABYTES
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"

int main(int count, char **arguments) {
  const float one = 1, zero = 0;
  int rows = count > 1 ? atoi(arguments[1]) : 0;
  size_t bytes = (size_t)rows * 1000000;
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x;
  cudnnActivationDescriptor_t relu;
  void *from, *to, *host = calloc(1, bytes);
  if (rows < 1 || !host)
    return 2;
  CHECK(cudnnCreate(&cudnn));
  CHECK(cudnnCreateTensorDescriptor(&x));
  CHECK(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1,
                                   rows * 25, 10000));
  CHECK(cudnnCreateActivationDescriptor(&relu));
  CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_PROPAGATE_NAN, 0));
  CHECK(cudaMalloc(&from, bytes));
  CHECK(cudaMalloc(&to, bytes));
  CHECK(cudaMemcpy(from, host, bytes, cudaMemcpyHostToDevice));
  CHECK(cudnnActivationForward(cudnn, relu, &one, x, from, &zero, x, to));
  CHECK(cudaDeviceSynchronize());
  return 0;
}
