/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes calls that cuDNN refuses: tries algorithms in turn until one works,
 * makes calls that no device accepts and continues, and asks for the fastest
 * algorithm. Prints the statuses, and writes results to a file.
 *
 * usage: refused_calls IN.npy OUT.npy */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "npy.h"

static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t field, bias;
  cudnnActivationDescriptor_t identity;
  float *x, *y, *w, *b;
  size_t count;
} g;

static float *device(size_t count) {
  void *memory;
  CHECK(cudaMalloc(&memory, count * sizeof(float)));
  return memory;
}

static cudnnFilterDescriptor_t filter(int channels, int rows) {
  cudnnFilterDescriptor_t desc;
  CHECK(cudnnCreateFilterDescriptor(&desc));
  CHECK(cudnnSetFilter4dDescriptor(desc, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1,
                                   channels, rows, 3));
  return desc;
}

static cudnnConvolutionDescriptor_t window(int pad, int dilation) {
  cudnnConvolutionDescriptor_t desc;
  CHECK(cudnnCreateConvolutionDescriptor(&desc));
  CHECK(cudnnSetConvolution2dDescriptor(desc, pad, 1, 1, 1, dilation, 1,
                                        CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT));
  return desc;
}

static int convolve(cudnnFilterDescriptor_t w_desc, const float *w,
                    cudnnConvolutionDescriptor_t conv,
                    cudnnConvolutionFwdAlgo_t algo, float beta) {
  float half = 0.5f;
  return (int)cudnnConvolutionForward(g.cudnn, &half, g.field, g.x, w_desc, w,
                                      conv, algo, NULL, 0, &beta, g.field, g.y);
}

static int fused(cudnnFilterDescriptor_t w_desc,
                 cudnnConvolutionDescriptor_t conv,
                 cudnnConvolutionFwdAlgo_t algo) {
  float one = 1, half = 0.5f;
  return (int)cudnnConvolutionBiasActivationForward(
      g.cudnn, &half, g.field, g.x, w_desc, g.w, conv, algo, NULL, 0, &one,
      g.field, g.y, g.bias, g.b, g.identity, g.field, g.y);
}

/* The first algorithm that is taken, of some that may not be. */
static void first_taken(const char *name, cudnnFilterDescriptor_t w_desc,
                        cudnnConvolutionDescriptor_t conv, float beta) {
  static const cudnnConvolutionFwdAlgo_t algos[] = {
      CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
      CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_GEMM};
  int status = -1;
  for (int i = 0; i < 4 && status != 0; i++) {
    status = convolve(w_desc, g.w, conv, algos[i], beta);
    printf("%s: algorithm %d: %d\n", name, (int)algos[i], status);
  }
  CHECK(status);
  float *other = g.x; /* the next one's input */
  g.x = g.y;
  g.y = other;
}

static void refusals(void) {
  cudnnFilterDescriptor_t three = filter(1, 3), two = filter(2, 3);
  cudnnConvolutionDescriptor_t same = window(1, 1);
  printf("no weights: %d\n",
         convolve(three, NULL, same, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 0));
  printf("no such algorithm: %d\n",
         convolve(three, g.w, same, (cudnnConvolutionFwdAlgo_t)77, 0));
  printf("fused: %d\n",
         fused(three, same, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM));
  CHECK(fused(three, same, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM));
  if (getenv("REFUSED_SHAPES")) { /* what only whole tensors are told quietly */
    printf("channels: %d\n",
           convolve(two, g.w, same, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 0));
    printf("no descriptor: %d\n",
           convolve(three, g.w, NULL, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, 0));
  }
}

/* What was measured as the fastest differs from run to run, its result not. */
static void fastest(void) {
  cudnnConvolutionFwdAlgoPerf_t perf[8];
  cudnnFilterDescriptor_t three = filter(1, 3);
  cudnnConvolutionDescriptor_t same = window(1, 1);
  int count;
  size_t bytes;
  void *space = NULL;
  CHECK(cudnnFindConvolutionForwardAlgorithm(g.cudnn, g.field, three, same,
                                             g.field, 8, &count, perf));
  CHECK(perf[0].status);
  if (getenv("REFUSED_TIME"))
    printf("%d algorithms, %a ms\n", count, (double)perf[0].time);
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(g.cudnn, g.field, three, same,
                                                g.field, perf[0].algo, &bytes));
  if (bytes)
    CHECK(cudaMalloc(&space, bytes));
  float half = 0.5f;
  CHECK(cudnnConvolutionForward(g.cudnn, &half, g.field, g.x, three, g.w, same,
                                perf[0].algo, space, bytes, &half, g.field,
                                g.y));
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: refused_calls IN.npy OUT.npy\n");
    return 2;
  }
  npy_field_t field = npy_read(argv[1]);
  float weights[9] = {0.1f, 0.2f, 0, -0.3f, 0.25f, 0.4f, -0.1f, 0.3f, 0.15f};
  float bias = 0.25f;
  g.count = (size_t)field.rows * (size_t)field.columns;
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudnnCreateTensorDescriptor(&g.field));
  CHECK(cudnnSetTensor4dDescriptor(g.field, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, field.rows, field.columns));
  CHECK(cudnnCreateTensorDescriptor(&g.bias));
  CHECK(cudnnSetTensor4dDescriptor(g.bias, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, 1, 1));
  CHECK(cudnnCreateActivationDescriptor(&g.identity));
  CHECK(cudnnSetActivationDescriptor(g.identity, CUDNN_ACTIVATION_IDENTITY,
                                     CUDNN_NOT_PROPAGATE_NAN, 0));
  g.x = device(g.count);
  g.y = device(g.count);
  g.w = device(9);
  g.b = device(1);
  CHECK(
      cudaMemcpy(g.x, field.at, g.count * sizeof *g.x, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(g.y, 0, g.count * sizeof *g.y));
  CHECK(cudaMemcpy(g.w, weights, sizeof weights, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(g.b, &bias, sizeof bias, cudaMemcpyHostToDevice));
  for (int turn = 0; turn < 2; turn++) {
    first_taken("3 rows", filter(1, 3), window(1, 1), 1);
    first_taken("dilated", filter(1, 3), window(2, 2), 0.5f);
    refusals();
    fastest();
  }
  CHECK(
      cudaMemcpy(field.at, g.y, g.count * sizeof *g.y, cudaMemcpyDeviceToHost));
  npy_write(argv[2], field);
  return EXIT_SUCCESS;
}
