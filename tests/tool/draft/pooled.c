// SPDX-License-Identifier: Apache-2.0
// A small network that does not use sundog's functions: convolution, ReLU,
// pooling, and a head with one value per channel.
//
// usage: pooled STEPS exit|_exit|abort
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/calls.h"
#include "tests/workspace.h"

/* A device may not support pooling; only the call counts. */
static void pool(cudnnStatus_t status) {
  if (status != CUDNN_STATUS_NOT_SUPPORTED)
    CHECK(status);
}

enum { SIZE = 32, CHANNELS = 4 };

static cudnnTensorDescriptor_t tensor(int channels, int size) {
  cudnnTensorDescriptor_t desc;
  CHECK(cudnnCreateTensorDescriptor(&desc));
  CHECK(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                   channels, size, size));
  return desc;
}

static cudnnPoolingDescriptor_t pooling(int size) {
  cudnnPoolingDescriptor_t desc;
  CHECK(cudnnCreatePoolingDescriptor(&desc));
  CHECK(cudnnSetPooling2dDescriptor(desc, CUDNN_POOLING_MAX,
                                    CUDNN_NOT_PROPAGATE_NAN, size, size, 0, 0,
                                    size, size));
  return desc;
}

static void *device(size_t floats) {
  void *memory;
  CHECK(cudaMalloc(&memory, floats * sizeof(float)));
  CHECK(cudaMemset(memory, 0, floats * sizeof(float)));
  return memory;
}

int main(int argc, char **argv) {
  if (argc != 3)
    return EXIT_FAILURE;
  const float one = 1, zero = 0;
  cudnnHandle_t cudnn;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t relu;
  CHECK(cudnnCreate(&cudnn));
  cudnnTensorDescriptor_t x = tensor(1, SIZE), y = tensor(CHANNELS, SIZE),
                          half = tensor(CHANNELS, SIZE / 2),
                          head = tensor(CHANNELS, 1);
  CHECK(cudnnCreateFilterDescriptor(&filter));
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   CHANNELS, 1, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudnnCreateActivationDescriptor(&relu));
  CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
  void *a = device(SIZE * SIZE), *b = device(CHANNELS * SIZE * SIZE),
       *c = device(CHANNELS * SIZE * SIZE), *w = device(CHANNELS * 9);
  cudnnPoolingDescriptor_t small = pooling(2), whole = pooling(SIZE / 2);
  for (int step = 0; step < atoi(argv[1]); step++) {
    CHECK(cudnnConvolutionForward(cudnn, &one, x, a, filter, w, conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                  workspace(), WORKSPACE_BYTES, &zero, y, b));
    CHECK(cudnnActivationForward(cudnn, relu, &one, y, b, &zero, y, b));
    pool(cudnnPoolingForward(cudnn, small, &one, y, b, &zero, half, c));
    pool(cudnnPoolingForward(cudnn, whole, &one, half, c, &zero, head, b));
  }
  float result[CHANNELS];
  CHECK(cudaMemcpy(result, b, sizeof result, cudaMemcpyDeviceToHost));
  printf("%g %g %g %g\n", result[0], result[1], result[2], result[3]);
  fflush(stdout);
  if (strcmp(argv[2], "_exit") == 0)
    _exit(EXIT_SUCCESS);
  if (strcmp(argv[2], "abort") == 0)
    abort();
  return EXIT_SUCCESS;
}
