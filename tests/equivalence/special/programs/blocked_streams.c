// SPDX-License-Identifier: Apache-2.0
// Makes calls while its stream is blocked: each call must return nevertheless.
// Also captures a call, which must be refused. The program does not use
// sundog's functions.
//
// usage: blocked_streams RANK RANKS
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/calls.h"
#include "tests/workspace.h"

enum { H = 6, W = 5, KINDS = 4, CALLS = 12 };

static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  void *from, *to, *filter, *filter_gradient;
} g;
static atomic_int gate;

static void stand_still(void *unused) {
  (void)unused;
  while (!atomic_load(&gate))
    usleep(100);
}

static cudnnStatus_t convolve(void) {
  static const float one = 1, zero = 0;
  return cudnnConvolutionForward(
      g.cudnn, &one, g.x, g.from, g.w, g.filter, g.conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace(),
      WORKSPACE_BYTES, &zero, g.x, g.to);
}

// A sum over all ranks; the gradient of the output is the input.
static cudnnStatus_t differentiate(void) {
  static const float one = 1, zero = 0;
  return cudnnConvolutionBackwardFilter(
      g.cudnn, &one, g.x, g.from, g.x, g.from, g.conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace(), WORKSPACE_BYTES, &zero,
      g.w, g.filter_gradient);
}

static void describe(void) {
  CHECK(cudnnSetTensor4dDescriptor(g.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                                   1, H, W));
}

static void set_up(int rank) {
  float x[H * W], w[9];
  for (int i = 0; i < H * W; i++)
    x[i] = (float)(rank * H * W + i);
  for (int i = 0; i < 9; i++)
    w[i] = 1;
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudnnCreateTensorDescriptor(&g.x));
  CHECK(cudnnCreateFilterDescriptor(&g.w));
  CHECK(cudnnCreateConvolutionDescriptor(&g.conv));
  describe();
  CHECK(cudnnSetFilter4dDescriptor(g.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1,
                                   1, 3, 3));
  CHECK(cudnnSetConvolution2dDescriptor(
      g.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudaMalloc(&g.from, sizeof x));
  CHECK(cudaMalloc(&g.to, sizeof x));
  CHECK(cudaMalloc(&g.filter, sizeof w));
  CHECK(cudaMalloc(&g.filter_gradient, sizeof w));
  CHECK(cudaMemcpy(g.from, x, sizeof x, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(g.filter, w, sizeof w, cudaMemcpyHostToDevice));
}

// Each result is a sum of nine elements of an image that continues on the other
// ranks.
static void result_check(int rank, int ranks) {
  float y[H * W];
  CHECK(cudaMemcpy(y, g.to, sizeof y, cudaMemcpyDeviceToHost));
  for (int i = 0; i < H; i++)
    for (int j = 0; j < W; j++) {
      float sum = 0;
      for (int a = i - 1; a <= i + 1; a++)
        for (int b = j - 1; b <= j + 1; b++) {
          int row = rank * H + a;
          if (row >= 0 && row < ranks * H && b >= 0 && b < W)
            sum += (float)(row * W + b);
        }
      if (y[i * W + j] != sum) {
        fprintf(stderr, "blocked_streams: %d,%d is %g, not %g\n", i, j,
                (double)y[i * W + j], (double)sum);
        exit(1);
      }
    }
}

static float x_at(int row, int column, int ranks) {
  bool inside = row >= 0 && row < ranks * H && column >= 0 && column < W;
  return inside ? (float)(row * W + column) : 0;
}

// Whole numbers that a float holds.
static void gradient_check(int ranks) {
  float dw[9];
  CHECK(cudaMemcpy(dw, g.filter_gradient, sizeof dw, cudaMemcpyDeviceToHost));
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) {
      float sum = 0;
      for (int i = 0; i < ranks * H; i++)
        for (int j = 0; j < W; j++)
          sum += x_at(i + a - 1, j + b - 1, ranks) * x_at(i, j, ranks);
      if (dw[a * 3 + b] != sum) {
        fprintf(stderr, "blocked_streams: gradient %d,%d is %g, not %g\n", a, b,
                (double)dw[a * 3 + b], (double)sum);
        exit(1);
      }
    }
}

static void stream_try(cudaStream_t stream, int rank, int ranks) {
  CHECK(cudnnSetStream(g.cudnn, stream));
  CHECK(convolve());
  CHECK(differentiate());
  CHECK(cudaDeviceSynchronize()); // later calls are in no stream's order
  CHECK(cudaMemset(g.to, 0, sizeof(float) * H * W));
  CHECK(cudaMemset(g.filter_gradient, 0, sizeof(float) * 9));
  CHECK(cudaDeviceSynchronize());
  atomic_store(&gate, 0);
  CHECK(cudaLaunchHostFunc(stream, stand_still, NULL));
  for (int i = 0; i < CALLS; i++) {
    if (i % 5 == 4)
      describe(); // needs an agreement
    CHECK(convolve());
    CHECK(differentiate());
  }
  if (cudaStreamQuery(stream) != cudaErrorNotReady) {
    fprintf(stderr, "blocked_streams: the stream did not stand still\n");
    exit(1);
  }
  (void)cudaGetLastError();
  atomic_store(&gate, 1);
  CHECK(cudaStreamSynchronize(stream));
  result_check(rank, ranks);
  gradient_check(ranks);
}

int main(int count, char **arguments) {
  int rank = count > 2 ? atoi(arguments[1]) : 0;
  int ranks = count > 2 ? atoi(arguments[2]) : 1;
  cudaStream_t stream[KINDS] = {NULL, cudaStreamPerThread};
  alarm(60); // a call that waits for its stream would never return
  set_up(rank);
  CHECK(cudaStreamCreate(&stream[2]));
  CHECK(cudaStreamCreateWithFlags(&stream[3], cudaStreamNonBlocking));
  for (int i = 0; i < KINDS; i++)
    stream_try(stream[i], rank, ranks);
  return 0;
}
