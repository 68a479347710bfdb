// SPDX-License-Identifier: Apache-2.0
// A program that ends while its last calls are queued or running.
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/workspace.h"

enum { ROUNDS = 30, CALLS = 30, CHANNELS = 16, EXTENT = 40 };

#define CHECK(call)                                                            \
  do {                                                                         \
    if ((call) != 0)                                                           \
      exit(2);                                                                 \
  } while (0)

// Runs after the handlers of exit(), like destructors of preloaded libraries.
__attribute__((destructor)) static void linger(void) {
  usleep(20000);
}

// Ends by exit() while gradients of filters are queued or run.
static _Noreturn void program(useconds_t pause_us) {
  const float one = 1, zero = 0;
  const size_t bytes = sizeof(float) * CHANNELS * EXTENT * EXTENT;
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t field;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  float *x, *dy, *dw;
  CHECK(cudnnCreate(&cudnn));
  CHECK(cudnnCreateTensorDescriptor(&field));
  CHECK(cudnnSetTensor4dDescriptor(field, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, CHANNELS, EXTENT, EXTENT));
  CHECK(cudnnCreateFilterDescriptor(&filter));
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   CHANNELS, CHANNELS, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudaMalloc((void **)&x, bytes));
  CHECK(cudaMalloc((void **)&dy, bytes));
  CHECK(cudaMalloc((void **)&dw, sizeof(float) * CHANNELS * CHANNELS * 9));
  CHECK(cudaMemset(x, 0, bytes));
  CHECK(cudaMemset(dy, 0, bytes));
  for (int i = 0; i < CALLS; i++)
    CHECK(cudnnConvolutionBackwardFilter(cudnn, &one, field, x, field, dy, conv,
                                         CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                         workspace(), WORKSPACE_BYTES, &zero,
                                         filter, dw));
  usleep(pause_us);
  exit(EXIT_SUCCESS);
}

int main(void) {
  for (int round = 0; round < ROUNDS; round++) {
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
      program((useconds_t)(round * 300));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
      fprintf(stderr, "round %d: status %d\n", round, status);
      return 1;
    }
  }
  return 0;
}
