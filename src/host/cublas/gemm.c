// SPDX-License-Identifier: Apache-2.0
// cublas*gemm*, cublas*gemv: products of matrices and of a matrix and a vector.
#include "src/host/cublas/blas.h"

/* One operand as the program describes it. */
typedef struct given {
  const void *at;
  cudaDataType type;
  int64_t ld, stride;
} given_t;

static int64_t max_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

/* Translates the address of `batch` matrices of rows x columns. */
static bool resolve(const given_t *given, int64_t rows, int64_t columns,
                    int64_t batch, host_matrix_t *out_matrix) {
  int64_t last = (batch - 1) * given->stride + (columns - 1) * given->ld + rows;
  size_t bytes = (size_t)last * host_type_bytes(given->type);
  bool empty = rows == 0 || columns == 0 || batch == 0;
  *out_matrix = (host_matrix_t){
      .at = empty ? NULL : host_memory_resolve(given->at, bytes),
      .type = given->type,
      .ld = given->ld,
      .stride = given->stride};
  return empty || out_matrix->at;
}

/* The type of alpha and beta, by the type of the sums; -1: not supported. */
static int scalar_type(cublasComputeType_t compute) {
  switch (compute) {
  case CUBLAS_COMPUTE_16F:
  case CUBLAS_COMPUTE_16F_PEDANTIC:
    return CUDA_R_16F;
  case CUBLAS_COMPUTE_32F:
  case CUBLAS_COMPUTE_32F_PEDANTIC:
  case CUBLAS_COMPUTE_32F_FAST_16F:
  case CUBLAS_COMPUTE_32F_FAST_16BF:
  case CUBLAS_COMPUTE_32F_FAST_TF32:
  case CUBLAS_COMPUTE_32F_EMULATED_16BFX9:
    return CUDA_R_32F;
  case CUBLAS_COMPUTE_64F:
  case CUBLAS_COMPUTE_64F_PEDANTIC:
  case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
    return CUDA_R_64F;
  case CUBLAS_COMPUTE_32I:
  case CUBLAS_COMPUTE_32I_PEDANTIC:
    return CUDA_R_32I;
  }
  return -1;
}

/* Which element types go with which sums. */
static bool types_fit(cudaDataType a, cudaDataType b, cudaDataType c,
                      int scalar) {
  switch (scalar) {
  case CUDA_R_16F:
    return a == CUDA_R_16F && b == a && c == a;
  case CUDA_R_32F:
    return a == b && ((a == CUDA_R_32F && c == a) ||
                      ((a == CUDA_R_16F || a == CUDA_R_16BF) &&
                       (c == a || c == CUDA_R_32F)) ||
                      (a == CUDA_R_8I && c == CUDA_R_32F));
  case CUDA_R_64F:
    return a == CUDA_R_64F && b == a && c == a;
  case CUDA_R_32I:
    return a == CUDA_R_8I && b == a && c == CUDA_R_32I;
  default:
    return false;
  }
}

static cublasStatus_t gemm_submit(cublasHandle_t handle, cublasOperation_t opa,
                                  cublasOperation_t opb, int64_t m, int64_t n,
                                  int64_t k, const void *alpha, given_t a,
                                  given_t b, const void *beta, given_t c,
                                  int64_t batch, int scalar) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  bool ta = opa != CUBLAS_OP_N, tb = opb != CUBLAS_OP_N;
  if ((unsigned)opa > CUBLAS_OP_C || (unsigned)opb > CUBLAS_OP_C || m < 0 ||
      n < 0 || k < 0 || batch < 0 || a.ld < max_of(1, ta ? k : m) ||
      b.ld < max_of(1, tb ? n : k) || c.ld < max_of(1, m) || a.stride < 0 ||
      b.stride < 0 || c.stride < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (scalar < 0 || !types_fit(a.type, b.type, c.type, scalar))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0 || batch == 0)
    return CUBLAS_STATUS_SUCCESS;
  host_gemm_t gemm = {.transpose_a = ta,
                      .transpose_b = tb,
                      .m = m,
                      .n = n,
                      .k = k,
                      .batch = batch};
  if (!alpha || !beta)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!host_scalar_read(handle, alpha, (cudaDataType)scalar, &gemm.alpha) ||
      !host_scalar_read(handle, beta, (cudaDataType)scalar, &gemm.beta) ||
      !resolve(&a, ta ? k : m, ta ? m : k, batch, &gemm.a) ||
      !resolve(&b, tb ? n : k, tb ? k : n, batch, &gemm.b) ||
      !resolve(&c, m, n, batch, &gemm.c))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return host_blas_submit(handle, host_gemm_run, &gemm, sizeof gemm);
}

/* ---- any types ---- */

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
    int m, int n, int k, const void *alpha, const void *A, cudaDataType Atype,
    int lda, long long int strideA, const void *B, cudaDataType Btype, int ldb,
    long long int strideB, const void *beta, void *C, cudaDataType Ctype,
    int ldc, long long int strideC, int batchCount,
    cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
  (void)algo;
  return gemm_submit(
      handle, transa, transb, m, n, k, alpha, (given_t){A, Atype, lda, strideA},
      (given_t){B, Btype, ldb, strideB}, beta,
      (given_t){C, Ctype, ldc, strideC}, batchCount, scalar_type(computeType));
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa,
                            cublasOperation_t transb, int m, int n, int k,
                            const void *alpha, const void *A,
                            cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta,
                            void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType,
                            cublasGemmAlgo_t algo) {
  return cublasGemmStridedBatchedEx(handle, transa, transb, m, n, k, alpha, A,
                                    Atype, lda, 0, B, Btype, ldb, 0, beta, C,
                                    Ctype, ldc, 0, 1, computeType, algo);
}

cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t transa,
                             cublasOperation_t transb, int m, int n, int k,
                             const float *alpha, const void *A,
                             cudaDataType Atype, int lda, const void *B,
                             cudaDataType Btype, int ldb, const float *beta,
                             void *C, cudaDataType Ctype, int ldc) {
  return cublasGemmEx(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B,
                      Btype, ldb, beta, C, Ctype, ldc, CUBLAS_COMPUTE_32F,
                      CUBLAS_GEMM_DEFAULT);
}

/* ---- float and double ---- */

/* Defines the functions of one element type. */
#define GEMM(letter, real, code)                                               \
  cublasStatus_t cublas##letter##gemmStridedBatched(                           \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, int m, int n, int k, const real *alpha,        \
      const real *A, int lda, long long int strideA, const real *B, int ldb,   \
      long long int strideB, const real *beta, real *C, int ldc,               \
      long long int strideC, int batchCount) {                                 \
    return gemm_submit(handle, transa, transb, m, n, k, alpha,                 \
                       (given_t){A, code, lda, strideA},                       \
                       (given_t){B, code, ldb, strideB}, beta,                 \
                       (given_t){C, code, ldc, strideC}, batchCount, code);    \
  }                                                                            \
  cublasStatus_t cublas##letter##gemm_v2(                                      \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, int m, int n, int k, const real *alpha,        \
      const real *A, int lda, const real *B, int ldb, const real *beta,        \
      real *C, int ldc) {                                                      \
    return gemm_submit(handle, transa, transb, m, n, k, alpha,                 \
                       (given_t){A, code, lda, 0}, (given_t){B, code, ldb, 0}, \
                       beta, (given_t){C, code, ldc, 0}, 1, code);             \
  }                                                                            \
  /* y := alpha op(A) x + beta y: a product with op(x) of one row, so that     \
   * the increments are leading dimensions. */                                 \
  cublasStatus_t cublas##letter##gemv_v2(                                      \
      cublasHandle_t handle, cublasOperation_t trans, int m, int n,            \
      const real *alpha, const real *A, int lda, const real *x, int incx,      \
      const real *beta, real *y, int incy) {                                   \
    if (handle && (incx < 0 || incy < 0))                                      \
      return CUBLAS_STATUS_NOT_SUPPORTED;                                      \
    if (handle && (m < 0 || n < 0 || incx == 0 || incy == 0 ||                 \
                   lda < max_of(1, m) || (unsigned)trans > CUBLAS_OP_C))       \
      return CUBLAS_STATUS_INVALID_VALUE;                                      \
    bool flip = trans != CUBLAS_OP_N;                                          \
    return gemm_submit(handle, CUBLAS_OP_N, flip ? CUBLAS_OP_N : CUBLAS_OP_T,  \
                       1, flip ? n : m, flip ? m : n, alpha,                   \
                       (given_t){x, code, incx, 0},                            \
                       (given_t){A, code, lda, 0}, beta,                       \
                       (given_t){y, code, incy, 0}, 1, code);                  \
  }

GEMM(S, float, CUDA_R_32F)
GEMM(D, double, CUDA_R_64F)
