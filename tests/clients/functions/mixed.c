/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of cuDNN, and between them a function of a library of its own,
 * on device memory and a stream.
 *
 * usage: mixed ROWS FIRST [sum]
 *
 * ROWS, FIRST: rows here, and where they begin. Writes its values, each with
 * its place; to the standard error on how many rows wave_shift has worked.
 * sum: cuBLAS adds up what the function has written, too. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"
#include "tests/clients/functions/wave.h"

enum { COLUMNS = 9, WORK_BYTES = 1 << 20 };

static struct {
  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t field;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  float *w;
  void *work;
} g;

static void setup(int rows, cudaStream_t stream) {
  const float weights[9] = {0.1f, -0.2f, 0.3f,  0.4f, 0.5f,
                            0.2f, 0.1f,  -0.1f, 0.2f};
  CHECK(cudnnCreate(&g.cudnn));
  CHECK(cudnnSetStream(g.cudnn, stream));
  CHECK(cudnnCreateTensorDescriptor(&g.field));
  CHECK(cudnnSetTensor4dDescriptor(g.field, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, rows, COLUMNS));
  CHECK(cudnnCreateFilterDescriptor(&g.filter));
  CHECK(cudnnSetFilter4dDescriptor(g.filter, CUDNN_DATA_FLOAT,
                                   CUDNN_TENSOR_NCHW, 1, 1, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&g.conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      g.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  CHECK(cudaMalloc(&g.work, WORK_BYTES));
  CHECK(cudaMalloc((void **)&g.w, sizeof weights));
  CHECK(cudaMemcpy(g.w, weights, sizeof weights, cudaMemcpyHostToDevice));
}

static void convolve(const float *x, float *y) {
  const float one = 1, zero = 0;
  CHECK(cudnnConvolutionForward(g.cudnn, &one, g.field, x, g.filter, g.w,
                                g.conv,
                                CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                g.work, WORK_BYTES, &zero, g.field, y));
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  int rows = atoi(argv[1]), first = atoi(argv[2]);
  size_t count = (size_t)rows * COLUMNS, many = (size_t)rows;
  size_t bytes = count * sizeof(float);
  const struct wave_shift by = {2, 0};
  float *host = malloc(bytes), *x, *y;
  cudaStream_t stream;
  CHECK(host == NULL);
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc((void **)&x, bytes));
  CHECK(cudaMalloc((void **)&y, bytes));
  setup(rows, stream);
  for (size_t i = 0; i < count; i++)
    host[i] = (float)(((size_t)first * COLUMNS + i) * 7 % 11);
  CHECK(cudaMemcpy(x, host, bytes, cudaMemcpyHostToDevice));
  for (int step = 0; step < 3; step++) {
    convolve(x, y);
    wave_shift(y, x, &many, COLUMNS, by, stream);
  }
  if (argc > 3) {
    cublasHandle_t cublas;
    float sum;
    CHECK(cublasCreate(&cublas));
    CHECK(cublasSasum(cublas, (int)count, x, 1, &sum));
  }
  convolve(x, y);
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy(host, y, bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < COLUMNS; j++)
      printf("%d %d %a\n", first + i, j, (double)host[i * COLUMNS + j]);
  fprintf(stderr, "rows %ld\n", wave_rows);
  return 0;
}
