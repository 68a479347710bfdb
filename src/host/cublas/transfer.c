// SPDX-License-Identifier: Apache-2.0
// cublasSet*, cublasGet*: vectors and matrices between host and device.
#include "src/host/cublas/blas.h"

static cublasStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                              : CUBLAS_STATUS_MAPPING_ERROR;
}

// Copies columns of `rows` elements. A vector is a matrix of one row.
static cublasStatus_t transfer(int64_t rows, int64_t columns, int64_t bytes,
                               const void *from, int64_t from_ld, void *to,
                               int64_t to_ld, enum cudaMemcpyKind kind,
                               const cudaStream_t *stream) {
  if (rows < 0 || columns < 0 || bytes <= 0 || from_ld < rows || to_ld < rows ||
      from_ld <= 0 || to_ld <= 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || columns == 0)
    return CUBLAS_STATUS_SUCCESS;
  size_t width = (size_t)(rows * bytes), height = (size_t)columns;
  size_t to_pitch = (size_t)(to_ld * bytes);
  size_t from_pitch = (size_t)(from_ld * bytes);
  return status_of(stream ? cudaMemcpy2DAsync(to, to_pitch, from, from_pitch,
                                              width, height, kind, *stream)
                          : cudaMemcpy2D(to, to_pitch, from, from_pitch, width,
                                         height, kind));
}

cublasStatus_t cublasSetVector(int n, int elemSize, const void *x, int incx,
                               void *devicePtr, int incy) {
  return transfer(1, n, elemSize, x, incx, devicePtr, incy,
                  cudaMemcpyHostToDevice, NULL);
}

cublasStatus_t cublasGetVector(int n, int elemSize, const void *x, int incx,
                               void *y, int incy) {
  return transfer(1, n, elemSize, x, incx, y, incy, cudaMemcpyDeviceToHost,
                  NULL);
}

cublasStatus_t cublasSetMatrix(int rows, int cols, int elemSize, const void *A,
                               int lda, void *B, int ldb) {
  return transfer(rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyHostToDevice,
                  NULL);
}

cublasStatus_t cublasGetMatrix(int rows, int cols, int elemSize, const void *A,
                               int lda, void *B, int ldb) {
  return transfer(rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyDeviceToHost,
                  NULL);
}

cublasStatus_t cublasSetVectorAsync(int n, int elemSize, const void *hostPtr,
                                    int incx, void *devicePtr, int incy,
                                    cudaStream_t stream) {
  return transfer(1, n, elemSize, hostPtr, incx, devicePtr, incy,
                  cudaMemcpyHostToDevice, &stream);
}

cublasStatus_t cublasGetVectorAsync(int n, int elemSize, const void *devicePtr,
                                    int incx, void *hostPtr, int incy,
                                    cudaStream_t stream) {
  return transfer(1, n, elemSize, devicePtr, incx, hostPtr, incy,
                  cudaMemcpyDeviceToHost, &stream);
}

cublasStatus_t cublasSetMatrixAsync(int rows, int cols, int elemSize,
                                    const void *A, int lda, void *B, int ldb,
                                    cudaStream_t stream) {
  return transfer(rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyHostToDevice,
                  &stream);
}

cublasStatus_t cublasGetMatrixAsync(int rows, int cols, int elemSize,
                                    const void *A, int lda, void *B, int ldb,
                                    cudaStream_t stream) {
  return transfer(rows, cols, elemSize, A, lda, B, ldb, cudaMemcpyDeviceToHost,
                  &stream);
}
