/* SPDX-License-Identifier: Apache-2.0 */
/* Heat in a plate: solves -laplace(u) = f by Jacobi's method, with u = 0 around
 * the plate. The stencil is a cuDNN convolution; its zero padding is the
 * border.
 *
 *   jacobi --sample F.npy        writes a right-hand side with two heaters
 *   jacobi F.npy U.npy [STEPS]   solves, writes u, and prints one line:
 *   "1000 steps, residual 1.1577e-01"
 *
 * One process:          sundog run -n 1 -- ./jacobi f.npy u.npy
 * Four, whole input:    sundog run -n 4 --view whole --rules jacobi.rules -- \
 *                         ./jacobi f.npy u.npy
 * Four, each its rows:  sundog split -n 4 f.npy
 *                       sundog run -n 4 --view shard --rules jacobi.rules -- \
 *                         ./jacobi f.{rank}.npy u.{rank}.npy
 *                       sundog join u.npy u.[0-3].npy */
#include <string.h>

#include "common.h"

static const float one = 1, zero = 0, minus = -1;

static int sample_write(const char *path) {
  enum { ROWS = 70, COLUMNS = 90 };
  static float f[ROWS][COLUMNS];
  for (int r = 10; r < 16; r++)
    for (int c = 20; c < 30; c++)
      f[r][c] = 1, f[r + 40][c + 45] = 0.5f;
  field_write(path, f[0], ROWS, COLUMNS);
  return EXIT_SUCCESS;
}

/* The Euclidean norm of a field, by cuDNN. */
static float norm(cudnnHandle_t cudnn, cudnnTensorDescriptor_t desc,
                  const float *at) {
  cudnnReduceTensorDescriptor_t reduce;
  cudnnTensorDescriptor_t number = describe(CUDNN_TENSOR_NCHW, 1, 1, 1, 1);
  size_t bytes;
  float *sum = device_floats(1, NULL), result;
  void *work = NULL;
  CHECK(cudnnCreateReduceTensorDescriptor(&reduce));
  CHECK(cudnnSetReduceTensorDescriptor(
      reduce, CUDNN_REDUCE_TENSOR_NORM2, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN,
      CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
  CHECK(cudnnGetReductionWorkspaceSize(cudnn, reduce, desc, number, &bytes));
  if (bytes)
    CHECK(cudaMalloc(&work, bytes));
  CHECK(cudnnReduceTensor(cudnn, reduce, NULL, 0, work, bytes, &one, desc, at,
                          &zero, number, sum));
  CHECK(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
  return result;
}

int main(int argc, char **argv) {
  int rows, columns, steps = argc > 3 ? atoi(argv[3]) : 1000;
  if (argc == 3 && strcmp(argv[1], "--sample") == 0)
    return sample_write(argv[2]);
  require(argc > 2 && steps > 0, "usage", "jacobi F.npy U.npy [STEPS]");
  float *host = field_read(argv[1], &rows, &columns);
  size_t count = (size_t)rows * (size_t)columns;
  const float mean[9] = {0, 0.25f, 0, 0.25f, 0, 0.25f, 0, 0.25f, 0};
  const float quarter = 0.25f;
  float *f = device_floats(count, host), *u = device_floats(count, NULL),
        *next = device_floats(count, NULL), *stencil = device_floats(9, mean);

  cudnnHandle_t cudnn;
  cudnnTensorDescriptor_t field;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  CHECK(cudnnCreate(&cudnn));
  field = describe(CUDNN_TENSOR_NCHW, 1, 1, rows, columns);
  CHECK(cudnnCreateFilterDescriptor(&filter));
  CHECK(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW,
                                   1, 1, 3, 3));
  CHECK(cudnnCreateConvolutionDescriptor(&conv));
  CHECK(cudnnSetConvolution2dDescriptor(
      conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  size_t bytes;
  void *work = NULL;
  CHECK(cudnnGetConvolutionForwardWorkspaceSize(
      cudnn, field, filter, conv, field,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
  if (bytes)
    CHECK(cudaMalloc(&work, bytes));
  for (int i = 0; i < steps; i++) { /* next = mean of neighbours + f / 4 */
    CHECK(cudnnConvolutionForward(cudnn, &one, field, u, filter, stencil, conv,
                                  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                                  work, bytes, &zero, field, next));
    CHECK(cudnnAddTensor(cudnn, &quarter, field, f, &one, field, next));
    float *old = u;
    u = next;
    next = old;
  }
  CHECK(cudnnAddTensor(cudnn, &minus, field, u, &one, field, next));
  printf("%d steps, residual %.4e\n", steps, (double)norm(cudnn, field, next));
  CHECK(cudaMemcpy(host, u, count * sizeof *host, cudaMemcpyDeviceToHost));
  field_write(argv[2], host, rows, columns);
  free(host);
  return EXIT_SUCCESS;
}
