// SPDX-License-Identifier: Apache-2.0
// Nanoseconds of the calling thread's CPU time per call of a tiny op: the first
// decile over many batches, so that other work on the machine shows as little
// as can be.
//
// usage: bench_tagged literal|halo
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCHES = 200, LITERALS = 500, HALOS = 20 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int count, char **words) {
  int halo = count > 1 && strcmp(words[1], "halo") == 0, bad = 0;
  int calls = halo ? HALOS : LITERALS;
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  void *from, *to, *filter;
  float one = 1, zero = 0;
  double batch[BATCHES];
  bad |= cudnnCreate(&cudnn) != CUDNN_STATUS_SUCCESS;
  cudnnCreateTensorDescriptor(&x);
  cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 4,
                             4);
  cudnnCreateFilterDescriptor(&w);
  cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 3,
                             3);
  cudnnCreateConvolutionDescriptor(&conv);
  cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1,
                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  bad |= cudaMalloc(&from, 64) || cudaMalloc(&to, 64) ||
         cudaMalloc(&filter, 64) || cudaMemset(from, 0, 64) ||
         cudaMemset(filter, 0, 64);
  for (int b = -5; b < BATCHES; b++) {
    double start = now_ns();
    for (int i = 0; i < calls; i++)
      bad |= halo ? cudnnConvolutionForward(
                        cudnn, &one, x, from, w, filter, conv,
                        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, NULL,
                        0, &zero, x, to)
                  : cudnnAddTensor(cudnn, &one, x, from, &one, x, to);
    if (b >= 0)
      batch[b] = (now_ns() - start) / calls;
    bad |= cudaDeviceSynchronize();
  }
  qsort(batch, BATCHES, sizeof batch[0], compare);
  printf("%.1f\n", batch[BATCHES / 10]);
  return bad != 0;
}
