// SPDX-License-Identifier: Apache-2.0
// Reads small tensors to the host after split convolutions, and prints them.
// The program does not use sundog's functions.
//
// usage: host_reads_program WHAT READS
// WHAT: whole       the whole tensor
//       part        one element of it
//       rows        every second row by cudaMemcpy2D
//       two         two tensors that lie one behind the other, as one copy
//       beyond      the tensor and one float behind it
//       gaps        a tensor whose rows have gaps
//       replicated  values that every rank computes
//       late        the whole tensor, on a stream that stands still for a
//                   moment, while a convolution on another stream reads it, too
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/workspace.h"

enum { H = 9, W = 8, N = H * W, GAP = W + 2, ROOM = 4 * N };

#define TRY(call)                                                              \
  do {                                                                         \
    int status_ = (int)(call);                                                 \
    if (status_ != 0) {                                                        \
      fprintf(stderr, "host_reads: %s: status %d\n", #call, status_);          \
      exit(EXIT_FAILURE);                                                      \
    }                                                                          \
  } while (0)

static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t dense, gaps, twice;
  cudaStream_t copying, computing;
  cudaEvent_t written;
  float *pinned;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  float *x, *y, *w;
} g;

static void begin(void) {
  float values[ROOM];
  for (int i = 0; i < ROOM; i++)
    values[i] = (float)(i % 7);
  TRY(cudnnCreate(&g.cudnn));
  TRY(cudaMalloc((void **)&g.x, sizeof values));
  TRY(cudaMalloc((void **)&g.y, sizeof values));
  TRY(cudaMalloc((void **)&g.w, 9 * sizeof(float)));
  TRY(cudaMemcpy(g.x, values, sizeof values, cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(g.y, values, sizeof values, cudaMemcpyHostToDevice));
  TRY(cudaMemcpy(g.w, values, 9 * sizeof(float), cudaMemcpyHostToDevice));
  TRY(cudnnCreateTensorDescriptor(&g.dense));
  TRY(cudnnSetTensor4dDescriptor(g.dense, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                 1, 1, H, W));
  TRY(cudnnCreateTensorDescriptor(&g.gaps));
  TRY(cudnnSetTensor4dDescriptorEx(g.gaps, CUDNN_DATA_FLOAT, 1, 1, H, W,
                                   H * GAP, H * GAP, GAP, 1));
  TRY(cudnnCreateTensorDescriptor(&g.twice));
  TRY(cudnnSetTensor4dDescriptor(g.twice, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                 1, 1, 2 * H, W));
  TRY(cudaStreamCreateWithFlags(&g.copying, cudaStreamNonBlocking));
  TRY(cudaStreamCreateWithFlags(&g.computing, cudaStreamNonBlocking));
  TRY(cudaEventCreateWithFlags(&g.written, cudaEventDisableTiming));
  TRY(cudaMallocHost((void **)&g.pinned, N * sizeof(float)));
  TRY(cudnnCreateFilterDescriptor(&g.filter));
  TRY(cudnnSetFilter4dDescriptor(g.filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                 1, 1, 3, 3));
  TRY(cudnnCreateConvolutionDescriptor(&g.conv));
  TRY(cudnnSetConvolution2dDescriptor(
      g.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
}

static void convolve_from(cudnnTensorDescriptor_t from_desc, const float *from,
                          cudnnTensorDescriptor_t to_desc, float *to) {
  const float one = 1, zero = 0;
  TRY(cudnnConvolutionForward(g.cudnn, &one, from_desc, from, g.filter, g.w,
                              g.conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                              workspace(), WORKSPACE_BYTES, &zero, to_desc,
                              to));
}

static void convolve(cudnnTensorDescriptor_t to_desc, float *to) {
  convolve_from(g.dense, g.x, to_desc, to);
}

static void show(const float *values, size_t count) {
  for (size_t i = 0; i < count; i++)
    printf("%g%c", (double)values[i], i + 1 < count ? ' ' : '\n');
}

static void copy(const float *from, size_t count) {
  float values[ROOM];
  TRY(cudaMemcpy(values, from, count * sizeof *from, cudaMemcpyDeviceToHost));
  show(values, count);
}

static void stand_still(void *unused) {
  (void)unused;
  usleep(100000);
}

// The copy brings the tensor together; the second convolution also reads values
// behind the tensor, which no call has read before.
static void read_late(void) {
  TRY(cudaDeviceSynchronize());
  TRY(cudnnSetStream(g.cudnn, g.computing));
  convolve(g.dense, g.y);
  TRY(cudaEventRecord(g.written, g.computing));
  TRY(cudaLaunchHostFunc(g.copying, stand_still, NULL));
  TRY(cudaStreamWaitEvent(g.copying, g.written, 0));
  TRY(cudaMemcpyAsync(g.pinned, g.y, N * sizeof(float), cudaMemcpyDeviceToHost,
                      g.copying));
  convolve_from(g.twice, g.y, g.twice, g.x + 2 * N);
  TRY(cudaDeviceSynchronize());
  show(g.pinned, N);
  copy(g.x + 2 * N, 2 * N);
}

static void read_once(const char *what) {
  float rows[H][W];
  if (strcmp(what, "late") == 0) {
    read_late();
    return;
  }
  if (strcmp(what, "gaps") == 0) {
    convolve(g.gaps, g.y);
    copy(g.y, (H - 1) * GAP + W);
    return;
  }
  convolve(g.dense, g.y);
  if (strcmp(what, "whole") == 0) {
    copy(g.y, N);
  } else if (strcmp(what, "part") == 0) {
    copy(g.y + 5 * W + 3, 1);
  } else if (strcmp(what, "rows") == 0) {
    TRY(cudaMemcpy2D(rows, sizeof *rows, g.y, 2 * sizeof *rows, sizeof *rows,
                     H / 2, cudaMemcpyDeviceToHost));
    show(&rows[0][0], (size_t)(H / 2 * W));
  } else if (strcmp(what, "two") == 0) {
    convolve(g.dense, g.y + N);
    copy(g.y, 2 * N);
  } else if (strcmp(what, "beyond") == 0) {
    copy(g.y, N + 1);
  } else if (strcmp(what, "replicated") == 0) {
    copy(g.x, N);
  } else {
    exit(EXIT_FAILURE);
  }
}

int main(int argc, char **argv) {
  if (argc != 3)
    return EXIT_FAILURE;
  begin();
  for (int i = atoi(argv[2]); i > 0; i--)
    read_once(argv[1]);
  return EXIT_SUCCESS;
}
