// SPDX-License-Identifier: Apache-2.0
// Steps of a solver that uses cuBLAS for its vectors: a convolution, then
// copies, sums, multiples and a swap of its results; or, like conjugate
// gradients, also dot products and norms.
//
// usage: bench_vectors moves|values STEPS EXTENT EXTENT
#include <cublas_v2.h>
#include <stdbool.h>
#include <string.h>

#include "tests/clients/nets/net.h"

static void blas(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  fprintf(stderr, "bench_vectors: cuBLAS: %d\n", (int)status);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: bench_vectors moves|values STEPS EXTENT EXTENT\n");
    return 2;
  }
  const int h = atoi(argv[3]), w = atoi(argv[4]), count = h * w;
  const int steps = atoi(argv[2]);
  const bool values = strcmp(argv[1], "values") == 0;
  const float one = 1, zero = 0, less = -0.25f, half = 0.5f;
  const size_t bytes = (size_t)count * sizeof(float);
  float *x, *y, *r, *weights, host[9] = {0, 1, 0, 1, -4, 1, 0, 1, 0};
  cudnnHandle_t cudnn;
  cublasHandle_t cublas;
  cudnnTensorDescriptor_t tensor;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  CUDNN(cudnnCreate(&cudnn));
  blas(cublasCreate(&cublas));
  CUDA(cudaMalloc((void **)&x, bytes));
  CUDA(cudaMalloc((void **)&y, bytes));
  CUDA(cudaMalloc((void **)&r, bytes));
  CUDA(cudaMalloc((void **)&weights, sizeof host));
  CUDA(cudaMemset(x, 0, bytes));
  CUDA(cudaMemset(r, 0, bytes));
  CUDA(cudaMemcpy(weights, host, sizeof host, cudaMemcpyHostToDevice));
  CUDNN(cudnnCreateTensorDescriptor(&tensor));
  CUDNN(cudnnCreateFilterDescriptor(&filter));
  CUDNN(cudnnCreateConvolutionDescriptor(&conv));
  CUDNN(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, h, w));
  CUDNN(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   1, 1, 3, 3));
  CUDNN(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  size_t space_bytes;
  void *space = NULL;
  CUDNN(cudnnGetConvolutionForwardWorkspaceSize(
      cudnn, tensor, filter, conv, tensor,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, &space_bytes));
  if (space_bytes)
    CUDA(cudaMalloc(&space, space_bytes));
  for (int step = 0; step < steps; step++) {
    float product = 0, norm = 0;
    CUDNN(cudnnConvolutionForward(
        cudnn, &one, tensor, x, filter, weights, conv,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, space, space_bytes,
        &zero, tensor, y));
    if (values) {
      blas(cublasSdot(cublas, count, y, 1, y, 1, &product));
      blas(cublasSnrm2(cublas, count, y, 1, &norm));
    }
    blas(cublasScopy(cublas, count, y, 1, r, 1));
    blas(cublasSscal(cublas, count, &half, r, 1));
    blas(cublasSaxpy(cublas, count, &less, y, 1, r, 1));
    blas(cublasSswap(cublas, count, r, 1, x, 1));
  }
  CUDA(cudaDeviceSynchronize());
  return 0;
}
