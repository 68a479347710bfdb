// SPDX-License-Identifier: Apache-2.0
// Prints the nanoseconds of the calling thread's CPU time per call of a tiny
// op: the first decile over many batches, so that other work on the machine
// matters little. With "own" also sundog's part of the mean, and the number of
// samples.
//
// usage: bench_tagged literal|halo|data|filter|bias|pool|norm [own]
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/bench/sample.h"

enum { BATCHES = 200, LITERALS = 500, HALOS = 20, SAMPLED = 30 };

typedef struct bench {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t x, one;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  cudnnPoolingDescriptor_t pool;
  void *from, *to, *few; // 4 x 4 numbers each
} bench_t;

static const float one = 1, zero = 0;

static int literal(const bench_t *b) {
  return (int)cudnnAddTensor(b->cudnn, &one, b->x, b->from, &one, b->x, b->to);
}

static int halo(const bench_t *b) {
  return (int)cudnnConvolutionForward(
      b->cudnn, &one, b->x, b->from, b->filter, b->few, b->conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, NULL, 0, &zero, b->x,
      b->to);
}

static int data(const bench_t *b) {
  return (int)cudnnConvolutionBackwardData(
      b->cudnn, &one, b->filter, b->few, b->x, b->from, b->conv,
      CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0, &zero, b->x, b->to);
}

static int filter(const bench_t *b) {
  return (int)cudnnConvolutionBackwardFilter(
      b->cudnn, &one, b->x, b->from, b->x, b->to, b->conv,
      CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, NULL, 0, &zero, b->filter, b->few);
}

static int bias(const bench_t *b) {
  return (int)cudnnConvolutionBackwardBias(b->cudnn, &one, b->x, b->from, &zero,
                                           b->one, b->few);
}

static int pool(const bench_t *b) {
  return (int)cudnnPoolingForward(b->cudnn, b->pool, &one, b->x, b->from, &zero,
                                  b->x, b->to);
}

static int norm(const bench_t *b) {
  return (int)cudnnBatchNormalizationForwardTraining(
      b->cudnn, CUDNN_BATCHNORM_SPATIAL, &one, &zero, b->x, b->from, b->x,
      b->to, b->one, b->few, b->few, 1, NULL, NULL, 1e-4, NULL, NULL);
}

static const struct {
  const char *name;
  int (*call)(const bench_t *bench);
  int calls; // calls in a batch
} ops[] = {{"literal", literal, LITERALS}, {"halo", halo, HALOS},
           {"data", data, HALOS},          {"filter", filter, HALOS},
           {"bias", bias, HALOS},          {"pool", pool, HALOS},
           {"norm", norm, HALOS}};

static int bench_init(bench_t *b) {
  int bad = cudnnCreate(&b->cudnn) != CUDNN_STATUS_SUCCESS;
  cudnnCreateTensorDescriptor(&b->x);
  cudnnSetTensor4dDescriptor(b->x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 4,
                             4);
  cudnnCreateTensorDescriptor(&b->one);
  cudnnSetTensor4dDescriptor(b->one, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1,
                             1, 1);
  cudnnCreateFilterDescriptor(&b->filter);
  cudnnSetFilter4dDescriptor(b->filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1,
                             1, 3, 3);
  cudnnCreateConvolutionDescriptor(&b->conv);
  cudnnSetConvolution2dDescriptor(b->conv, 1, 1, 1, 1, 1, 1,
                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
  cudnnCreatePoolingDescriptor(&b->pool);
  cudnnSetPooling2dDescriptor(b->pool, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN,
                              3, 3, 1, 1, 1, 1);
  return bad || cudaMalloc(&b->from, 64) || cudaMalloc(&b->to, 64) ||
         cudaMalloc(&b->few, 64) || cudaMemset(b->from, 0, 64) ||
         cudaMemset(b->to, 0, 64) || cudaMemset(b->few, 0, 64);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int batch_run(const bench_t *bench, int op, double *out_ns) {
  int bad = 0;
  double start = now_ns();
  for (int i = 0; i < ops[op].calls; i++)
    bad |= ops[op].call(bench);
  *out_ns = (now_ns() - start) / ops[op].calls;
  return bad | (int)cudaDeviceSynchronize();
}

int main(int count, char **words) {
  int op = 0, bad = 0, known = sizeof ops / sizeof ops[0];
  while (count > 1 && op < known && strcmp(words[1], ops[op].name) != 0)
    op++;
  if (op == known)
    return 2;
  bench_t bench;
  double batch[BATCHES], ns, mean = 0;
  bad |= bench_init(&bench);
  for (int b = -5; b < BATCHES; b++) {
    bad |= batch_run(&bench, op, &ns);
    if (b >= 0)
      batch[b] = ns;
  }
  qsort(batch, BATCHES, sizeof batch[0], compare);
  printf("%.1f", batch[BATCHES / 10]);
  if (count > 2) {
    int samples;
    bad |= sample_start();
    for (int b = 0; b < SAMPLED * BATCHES; b++) {
      bad |= batch_run(&bench, op, &ns);
      mean += ns / (SAMPLED * BATCHES);
    }
    double share = sample_stop(&samples);
    printf(" %.1f %d", share * mean, samples);
  }
  printf("\n");
  return bad != 0;
}
