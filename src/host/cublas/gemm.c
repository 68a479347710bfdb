// SPDX-License-Identifier: Apache-2.0
// cublas*gemm*, cublas*gemv*: products of matrices and of a matrix and a
// vector, one or many.
#include "src/host/cublas/blas.h"

// One operand as the program describes it.
typedef struct given {
  const void *at;
  cudaDataType type;
  int64_t ld, stride;
} given_t;

static int64_t max_of(int64_t a, int64_t b) {
  return a > b ? a : b;
}

// The type of alpha and beta, by the type of the sums and of the result; -1:
// not supported.
static int scalar_type(cublasComputeType_t compute, cudaDataType result) {
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
    return host_type_is_complex(result) ? CUDA_C_32F : CUDA_R_32F;
  case CUBLAS_COMPUTE_64F:
  case CUBLAS_COMPUTE_64F_PEDANTIC:
  case CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT:
    return host_type_is_complex(result) ? CUDA_C_64F : CUDA_R_64F;
  case CUBLAS_COMPUTE_32I:
  case CUBLAS_COMPUTE_32I_PEDANTIC:
    return CUDA_R_32I;
  }
  return -1;
}

// Whether these element types can be combined with this type of the sums.
static bool types_fit(cudaDataType a, cudaDataType b, cudaDataType c,
                      int scalar) {
  if (a != b)
    return false;
  switch (scalar) {
  case CUDA_R_32F:
    return (a == CUDA_R_32F && c == a) ||
           ((a == CUDA_R_16F || a == CUDA_R_16BF) &&
            (c == a || c == CUDA_R_32F)) ||
           (a == CUDA_R_8I && c == CUDA_R_32F);
  case CUDA_R_32I:
    return a == CUDA_R_8I && c == CUDA_R_32I;
  case CUDA_R_16F:
  case CUDA_R_64F:
  case CUDA_C_32F:
  case CUDA_C_64F:
    return a == (cudaDataType)scalar && c == a;
  default:
    return false;
  }
}

static cublasStatus_t gemm_submit(cublasHandle_t handle, cublasOperation_t opa,
                                  cublasOperation_t opb, int64_t m, int64_t n,
                                  int64_t k, const void *alpha, given_t a,
                                  given_t b, const void *beta, given_t c,
                                  int64_t batch, int scalar, bool by_address) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  bool ta = host_op_turns(opa), tb = host_op_turns(opb);
  if ((unsigned)opa > CUBLAS_OP_CONJG || (unsigned)opb > CUBLAS_OP_CONJG ||
      m < 0 || n < 0 || k < 0 || batch < 0 || a.ld < max_of(1, ta ? k : m) ||
      b.ld < max_of(1, tb ? n : k) || c.ld < max_of(1, m) || a.stride < 0 ||
      b.stride < 0 || c.stride < 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (scalar < 0 || !types_fit(a.type, b.type, c.type, scalar))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0 || n == 0 || batch == 0)
    return CUBLAS_STATUS_SUCCESS;
  host_gemm_t gemm = {
      .op_a = opa,
      .op_b = opb,
      .m = m,
      .n = n,
      .k = k,
      .batch = batch,
      .a = {.type = a.type, .ld = a.ld, .stride = a.stride},
      .b = {.type = b.type, .ld = b.ld, .stride = b.stride},
      .c = {.type = c.type, .ld = c.ld, .stride = c.stride},
  };
  gemm.a.by_address = gemm.b.by_address = gemm.c.by_address = by_address;
  if (!alpha || !beta)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!host_scalar_read(handle, alpha, (cudaDataType)scalar, &gemm.alpha) ||
      !host_scalar_read(handle, beta, (cudaDataType)scalar, &gemm.beta) ||
      !host_matrix_resolve(&gemm.a, a.at, ta ? k : m, ta ? m : k, batch) ||
      !host_matrix_resolve(&gemm.b, b.at, tb ? n : k, tb ? k : n, batch) ||
      !host_matrix_resolve(&gemm.c, c.at, m, n, batch))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return host_blas_submit(handle, host_gemm_run, &gemm, sizeof gemm);
}

// y := alpha op(A) x + beta y. This is a product with x as a matrix of one row,
// so that increments become leading dimensions.
static cublasStatus_t gemv_submit(cublasHandle_t handle,
                                  cublasOperation_t trans, int64_t m, int64_t n,
                                  const void *alpha, given_t a, given_t x,
                                  const void *beta, given_t y, int64_t batch,
                                  int scalar, bool by_address) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (x.ld < 0 || y.ld < 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m < 0 || n < 0 || x.ld == 0 || y.ld == 0 || a.ld < max_of(1, m) ||
      (unsigned)trans > CUBLAS_OP_C)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool flip = trans != CUBLAS_OP_N;
  cublasOperation_t op = trans == CUBLAS_OP_N   ? CUBLAS_OP_T
                         : trans == CUBLAS_OP_T ? CUBLAS_OP_N
                                                : CUBLAS_OP_CONJG;
  return gemm_submit(handle, CUBLAS_OP_N, op, 1, flip ? n : m, flip ? m : n,
                     alpha, x, a, beta, y, batch, scalar, by_address);
}

// ---- any types ----

// The vendor's functions, with int and with int64_t.
#define ANY(suffix, integer)                                                   \
  cublasStatus_t cublasGemmStridedBatchedEx##suffix(                           \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, integer k,               \
      const void *alpha, const void *A, cudaDataType Atype, integer lda,       \
      long long int strideA, const void *B, cudaDataType Btype, integer ldb,   \
      long long int strideB, const void *beta, void *C, cudaDataType Ctype,    \
      integer ldc, long long int strideC, integer batchCount,                  \
      cublasComputeType_t computeType, cublasGemmAlgo_t algo) {                \
    (void)algo;                                                                \
    return gemm_submit(handle, transa, transb, m, n, k, alpha,                 \
                       (given_t){A, Atype, lda, strideA},                      \
                       (given_t){B, Btype, ldb, strideB}, beta,                \
                       (given_t){C, Ctype, ldc, strideC}, batchCount,          \
                       scalar_type(computeType, Ctype), false);                \
  }                                                                            \
  cublasStatus_t cublasGemmBatchedEx##suffix(                                  \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, integer k,               \
      const void *alpha, const void *const Aarray[], cudaDataType Atype,       \
      integer lda, const void *const Barray[], cudaDataType Btype,             \
      integer ldb, const void *beta, void *const Carray[], cudaDataType Ctype, \
      integer ldc, integer batchCount, cublasComputeType_t computeType,        \
      cublasGemmAlgo_t algo) {                                                 \
    (void)algo;                                                                \
    return gemm_submit(handle, transa, transb, m, n, k, alpha,                 \
                       (given_t){Aarray, Atype, lda, 0},                       \
                       (given_t){Barray, Btype, ldb, 0}, beta,                 \
                       (given_t){Carray, Ctype, ldc, 0}, batchCount,           \
                       scalar_type(computeType, Ctype), true);                 \
  }                                                                            \
  cublasStatus_t cublasGemmEx##suffix(                                         \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, integer k,               \
      const void *alpha, const void *A, cudaDataType Atype, integer lda,       \
      const void *B, cudaDataType Btype, integer ldb, const void *beta,        \
      void *C, cudaDataType Ctype, integer ldc,                                \
      cublasComputeType_t computeType, cublasGemmAlgo_t algo) {                \
    (void)algo;                                                                \
    return gemm_submit(                                                        \
        handle, transa, transb, m, n, k, alpha, (given_t){A, Atype, lda, 0},   \
        (given_t){B, Btype, ldb, 0}, beta, (given_t){C, Ctype, ldc, 0}, 1,     \
        scalar_type(computeType, Ctype), false);                               \
  }                                                                            \
  cublasStatus_t cublasSgemmEx##suffix(                                        \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, integer k,               \
      const float *alpha, const void *A, cudaDataType Atype, integer lda,      \
      const void *B, cudaDataType Btype, integer ldb, const float *beta,       \
      void *C, cudaDataType Ctype, integer ldc) {                              \
    return gemm_submit(handle, transa, transb, m, n, k, alpha,                 \
                       (given_t){A, Atype, lda, 0},                            \
                       (given_t){B, Btype, ldb, 0}, beta,                      \
                       (given_t){C, Ctype, ldc, 0}, 1, CUDA_R_32F, false);     \
  }                                                                            \
  cublasStatus_t cublasCgemmEx##suffix(                                        \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, integer k,               \
      const cuComplex *alpha, const void *A, cudaDataType Atype, integer lda,  \
      const void *B, cudaDataType Btype, integer ldb, const cuComplex *beta,   \
      void *C, cudaDataType Ctype, integer ldc) {                              \
    return gemm_submit(handle, transa, transb, m, n, k, alpha,                 \
                       (given_t){A, Atype, lda, 0},                            \
                       (given_t){B, Btype, ldb, 0}, beta,                      \
                       (given_t){C, Ctype, ldc, 0}, 1, CUDA_C_32F, false);     \
  }

ANY(, int)
ANY(_64, int64_t)

// ---- one type ----

#define GEMM(name, real, code, integer)                                        \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t transa,         \
                      cublasOperation_t transb, integer m, integer n,          \
                      integer k, const real *alpha, const real *A,             \
                      integer lda, const real *B, integer ldb,                 \
                      const real *beta, real *C, integer ldc) {                \
    return gemm_submit(handle, transa, transb, m, n, k, alpha,                 \
                       (given_t){A, code, lda, 0}, (given_t){B, code, ldb, 0}, \
                       beta, (given_t){C, code, ldc, 0}, 1, code, false);      \
  }

#define BATCHED(letter, real, code, suffix, integer)                           \
  cublasStatus_t cublas##letter##gemmStridedBatched##suffix(                   \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, integer k,               \
      const real *alpha, const real *A, integer lda, long long int strideA,    \
      const real *B, integer ldb, long long int strideB, const real *beta,     \
      real *C, integer ldc, long long int strideC, integer batchCount) {       \
    return gemm_submit(                                                        \
        handle, transa, transb, m, n, k, alpha,                                \
        (given_t){A, code, lda, strideA}, (given_t){B, code, ldb, strideB},    \
        beta, (given_t){C, code, ldc, strideC}, batchCount, code, false);      \
  }                                                                            \
  cublasStatus_t cublas##letter##gemmBatched##suffix(                          \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, integer k,               \
      const real *alpha, const real *const Aarray[], integer lda,              \
      const real *const Barray[], integer ldb, const real *beta,               \
      real *const Carray[], integer ldc, integer batchCount) {                 \
    return gemm_submit(                                                        \
        handle, transa, transb, m, n, k, alpha,                                \
        (given_t){Aarray, code, lda, 0}, (given_t){Barray, code, ldb, 0},      \
        beta, (given_t){Carray, code, ldc, 0}, batchCount, code, true);        \
  }

#define GEMV(letter, real, code, suffix, integer)                              \
  cublasStatus_t cublas##letter##gemv_v2##suffix(                              \
      cublasHandle_t handle, cublasOperation_t trans, integer m, integer n,    \
      const real *alpha, const real *A, integer lda, const real *x,            \
      integer incx, const real *beta, real *y, integer incy) {                 \
    return gemv_submit(handle, trans, m, n, alpha, (given_t){A, code, lda, 0}, \
                       (given_t){x, code, incx, 0}, beta,                      \
                       (given_t){y, code, incy, 0}, 1, code, false);           \
  }                                                                            \
  cublasStatus_t cublas##letter##gemvStridedBatched##suffix(                   \
      cublasHandle_t handle, cublasOperation_t trans, integer m, integer n,    \
      const real *alpha, const real *A, integer lda, long long int strideA,    \
      const real *x, integer incx, long long int stridex, const real *beta,    \
      real *y, integer incy, long long int stridey, integer batchCount) {      \
    return gemv_submit(                                                        \
        handle, trans, m, n, alpha, (given_t){A, code, lda, strideA},          \
        (given_t){x, code, incx, stridex}, beta,                               \
        (given_t){y, code, incy, stridey}, batchCount, code, false);           \
  }                                                                            \
  cublasStatus_t cublas##letter##gemvBatched##suffix(                          \
      cublasHandle_t handle, cublasOperation_t trans, integer m, integer n,    \
      const real *alpha, const real *const Aarray[], integer lda,              \
      const real *const xarray[], integer incx, const real *beta,              \
      real *const yarray[], integer incy, integer batchCount) {                \
    return gemv_submit(                                                        \
        handle, trans, m, n, alpha, (given_t){Aarray, code, lda, 0},           \
        (given_t){xarray, code, incx, 0}, beta,                                \
        (given_t){yarray, code, incy, 0}, batchCount, code, true);             \
  }

#define TYPE(letter, real, code)                                               \
  GEMM(cublas##letter##gemm_v2, real, code, int)                               \
  GEMM(cublas##letter##gemm_v2_64, real, code, int64_t)                        \
  BATCHED(letter, real, code, , int)                                           \
  BATCHED(letter, real, code, _64, int64_t)                                    \
  GEMV(letter, real, code, , int)                                              \
  GEMV(letter, real, code, _64, int64_t)

TYPE(S, float, CUDA_R_32F)
TYPE(D, double, CUDA_R_64F)
TYPE(C, cuComplex, CUDA_C_32F)
TYPE(Z, cuDoubleComplex, CUDA_C_64F)

// The header declares the functions of halves for C++ only.
typedef struct half {
  uint16_t bits;
} half_t;

#define HALF(suffix, integer)                                                  \
  cublasStatus_t cublasHgemm##suffix(                                          \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, integer, integer,  \
      integer, const half_t *, const half_t *, integer, const half_t *,        \
      integer, const half_t *, half_t *, integer);                             \
  cublasStatus_t cublasHgemmStridedBatched##suffix(                            \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, integer, integer,  \
      integer, const half_t *, const half_t *, integer, long long int,         \
      const half_t *, integer, long long int, const half_t *, half_t *,        \
      integer, long long int, integer);                                        \
  cublasStatus_t cublasHgemmBatched##suffix(                                   \
      cublasHandle_t, cublasOperation_t, cublasOperation_t, integer, integer,  \
      integer, const half_t *, const half_t *const[], integer,                 \
      const half_t *const[], integer, const half_t *, half_t *const[],         \
      integer, integer);                                                       \
  GEMM(cublasHgemm##suffix, half_t, CUDA_R_16F, integer)                       \
  BATCHED(H, half_t, CUDA_R_16F, suffix, integer)

HALF(, int)
HALF(_64, int64_t)
GEMM(cublasCgemm3m, cuComplex, CUDA_C_32F, int)
GEMM(cublasCgemm3m_64, cuComplex, CUDA_C_32F, int64_t)
GEMM(cublasZgemm3m, cuDoubleComplex, CUDA_C_64F, int)
GEMM(cublasZgemm3m_64, cuDoubleComplex, CUDA_C_64F, int64_t)
