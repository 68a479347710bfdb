// SPDX-License-Identifier: Apache-2.0
// The functions on matrices with a structure: geam, dgmm, syrk, herk, syr2k,
// her2k, symm, hemm, trmm, trsm; and of vectors ger, symv, hemv, trmv, trsv,
// syr, whose vectors are matrices of one row.
#include "src/host/cublas/matrix.h"

typedef struct given {
  const void *at;
  int64_t ld;
  bool is_vector; /* ld is its increment, which may be negative */
  bool repeats;   /* or 0 */
} given_t;

#define MATRIX(at, ld)          ((given_t){at, ld, false, false})
#define VECTOR(at, increment)   ((given_t){at, increment, true, false})
#define DIAGONAL(at, increment) ((given_t){at, increment, true, true})
#define NOTHING                 ((given_t){NULL, 1, false, false})

/* Makes an operand readable; `rows` is what its ld must be at least. */
static cublasStatus_t operand(host_matrix_t *matrix, const given_t *given,
                              cudaDataType type, int64_t rows, int64_t columns,
                              int64_t batch, bool by_address) {
  matrix->type = type;
  matrix->ld = given->ld;
  matrix->by_address = by_address;
  /* Some repeat one number: dgmm, as measured on a GPU. */
  if (given->is_vector ? given->ld == 0 && !given->repeats
                       : given->ld < (rows > 1 ? rows : 1))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (given->ld > 0 || (given->is_vector && given->ld == 0))
    return host_matrix_resolve(matrix, given->at, rows, columns, batch)
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
  /* A vector from its end. */
  int64_t bytes = (int64_t)host_type_bytes(type);
  int64_t back = (columns - 1) * -given->ld;
  char *at = host_memory_resolve(given->at, (size_t)((back + 1) * bytes));
  if (!at)
    return CUBLAS_STATUS_EXECUTION_FAILED;
  matrix->at = at + back * bytes;
  return CUBLAS_STATUS_SUCCESS;
}

static bool known(const host_matrix_job_t *job) {
  return (unsigned)job->op_a <= CUBLAS_OP_CONJG &&
         (unsigned)job->op_b <= CUBLAS_OP_CONJG && job->m >= 0 && job->n >= 0 &&
         job->k >= 0 && job->batch >= 0;
}

/* alpha and beta: NULL where the function has none; `one` is a beta of 1. */
static cublasStatus_t submit(cublasHandle_t handle, host_matrix_job_t job,
                             cudaDataType type, const void *alpha,
                             cudaDataType alpha_type, const void *beta,
                             cudaDataType beta_type, given_t a, given_t b,
                             given_t c, bool by_address) {
  int64_t rows, columns;
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (job.batch == 0)
    job.batch = 1;
  if (!known(&job))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (job.m == 0 || job.n == 0)
    return CUBLAS_STATUS_SUCCESS;
  if (alpha && !host_scalar_read(handle, alpha, alpha_type, &job.alpha))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!alpha)
    job.alpha = (host_scalar_t){.value = 1, .type = type};
  if (beta && !host_scalar_read(handle, beta, beta_type, &job.beta))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!beta)
    job.beta = (host_scalar_t){.value = 1, .type = type};
  host_matrix_shape_a(&job, &rows, &columns);
  cublasStatus_t status =
      operand(&job.a, &a, type, rows, columns, job.batch, by_address);
  if (status == CUBLAS_STATUS_SUCCESS && b.at) {
    host_matrix_shape_b(&job, &rows, &columns);
    status = operand(&job.b, &b, type, rows, columns, job.batch, by_address);
  }
  if (status == CUBLAS_STATUS_SUCCESS)
    status = operand(&job.c, &c, type, job.m, job.n, job.batch, by_address);
  if (status != CUBLAS_STATUS_SUCCESS)
    return status;
  return host_blas_submit(handle, host_matrix_run, &job, sizeof job);
}

/* What a product with a column vector from the right is for its row. */
static cublasOperation_t for_rows(cublasOperation_t op) {
  return op == CUBLAS_OP_N   ? CUBLAS_OP_T
         : op == CUBLAS_OP_T ? CUBLAS_OP_N
         : op == CUBLAS_OP_C ? CUBLAS_OP_CONJG
                             : (cublasOperation_t)-1;
}

#define LOWER(uplo) ((uplo) == CUBLAS_FILL_MODE_LOWER)
#define RIGHT(side) ((side) == CUBLAS_SIDE_RIGHT)
#define UNIT(diag)  ((diag) == CUBLAS_DIAG_UNIT)
#define JOB(...)    ((host_matrix_job_t){__VA_ARGS__})
/* The status of a call whose scalars are missing. */
#define WANT(...)                                                              \
  if (handle && host_missing((const void *const[]){__VA_ARGS__},               \
                             sizeof((const void *const[]){__VA_ARGS__}) /      \
                                 sizeof(void *)))                              \
  return CUBLAS_STATUS_INVALID_VALUE

static bool host_missing(const void *const list[], size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!list[i])
      return true;
  return false;
}

#define RANK_K(name, real, real_code, type, code, integer, hermitian)          \
  cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t uplo,            \
                      cublasOperation_t trans, integer n, integer k,           \
                      const real *alpha, const type *A, integer lda,           \
                      const real *beta, type *C, integer ldc) {                \
    WANT(alpha, beta);                                                         \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_RANK, .lower = LOWER(uplo), .op_a = trans,  \
                      .m = n, .n = n, .k = k, .conjugate = hermitian),         \
                  code, alpha, real_code, beta, real_code, MATRIX(A, lda),     \
                  NOTHING, MATRIX(C, ldc), false);                             \
  }

#define RANK_2K(name, real, real_code, type, code, integer, hermitian)         \
  cublasStatus_t name(                                                         \
      cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,   \
      integer n, integer k, const type *alpha, const type *A, integer lda,     \
      const type *B, integer ldb, const real *beta, type *C, integer ldc) {    \
    WANT(alpha, beta);                                                         \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_RANK, .lower = LOWER(uplo), .op_a = trans,  \
                      .m = n, .n = n, .k = k, .conjugate = hermitian,          \
                      .two = true),                                            \
                  code, alpha, code, beta, real_code, MATRIX(A, lda),          \
                  MATRIX(B, ldb), MATRIX(C, ldc), false);                      \
  }

#define HALF(name, type, code, integer, hermitian)                             \
  cublasStatus_t name(                                                         \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,     \
      integer m, integer n, const type *alpha, const type *A, integer lda,     \
      const type *B, integer ldb, const type *beta, type *C, integer ldc) {    \
    WANT(alpha, beta);                                                         \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_SYMM, .right = RIGHT(side),                 \
                      .lower = LOWER(uplo), .m = m, .n = n,                    \
                      .conjugate = hermitian),                                 \
                  code, alpha, code, beta, code, MATRIX(A, lda),               \
                  MATRIX(B, ldb), MATRIX(C, ldc), false);                      \
  }

#define HALF_VECTOR(name, type, code, integer, hermitian)                      \
  cublasStatus_t name(cublasHandle_t handle, cublasFillMode_t uplo, integer n, \
                      const type *alpha, const type *A, integer lda,           \
                      const type *x, integer incx, const type *beta, type *y,  \
                      integer incy) {                                          \
    WANT(alpha, beta);                                                         \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_SYMM, .right = true, .lower = LOWER(uplo),  \
                      .m = 1, .n = n, .conjugate = hermitian,                  \
                      .transposed = true),                                     \
                  code, alpha, code, beta, code, MATRIX(A, lda),               \
                  VECTOR(x, incx), VECTOR(y, incy), false);                    \
  }

#define OUTER(name, type, code, integer, conjugated)                           \
  cublasStatus_t name(cublasHandle_t handle, integer m, integer n,             \
                      const type *alpha, const type *x, integer incx,          \
                      const type *y, integer incy, type *A, integer lda) {     \
    WANT(alpha);                                                               \
    return submit(                                                             \
        handle,                                                                \
        JOB(.kind = HOST_GER, .m = m, .n = n, .conjugate = conjugated), code,  \
        alpha, code, NULL, code, VECTOR(x, incx), VECTOR(y, incy),             \
        MATRIX(A, lda), false);                                                \
  }

#define TYPE(L, type, code, suffix, integer)                                   \
  RANK_K(cublas##L##syrk_v2##suffix, type, code, type, code, integer, false)   \
  RANK_2K(cublas##L##syr2k_v2##suffix, type, code, type, code, integer, false) \
  HALF(cublas##L##symm_v2##suffix, type, code, integer, false)                 \
  HALF_VECTOR(cublas##L##symv_v2##suffix, type, code, integer, false)          \
  cublasStatus_t cublas##L##geam##suffix(                                      \
      cublasHandle_t handle, cublasOperation_t transa,                         \
      cublasOperation_t transb, integer m, integer n, const type *alpha,       \
      const type *A, integer lda, const type *beta, const type *B,             \
      integer ldb, type *C, integer ldc) {                                     \
    WANT(alpha, beta);                                                         \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_GEAM, .op_a = transa, .op_b = transb,       \
                      .m = m, .n = n),                                         \
                  code, alpha, code, beta, code, MATRIX(A, lda),               \
                  MATRIX(B, ldb), MATRIX(C, ldc), false);                      \
  }                                                                            \
  cublasStatus_t cublas##L##dgmm##suffix(                                      \
      cublasHandle_t handle, cublasSideMode_t mode, integer m, integer n,      \
      const type *A, integer lda, const type *x, integer incx, type *C,        \
      integer ldc) {                                                           \
    return submit(                                                             \
        handle, JOB(.kind = HOST_DGMM, .right = RIGHT(mode), .m = m, .n = n),  \
        code, NULL, code, NULL, code, MATRIX(A, lda), DIAGONAL(x, incx),       \
        MATRIX(C, ldc), false);                                                \
  }                                                                            \
  cublasStatus_t cublas##L##trmm_v2##suffix(                                   \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,     \
      cublasOperation_t trans, cublasDiagType_t diag, integer m, integer n,    \
      const type *alpha, const type *A, integer lda, const type *B,            \
      integer ldb, type *C, integer ldc) {                                     \
    WANT(alpha);                                                               \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_TRMM, .right = RIGHT(side),                 \
                      .lower = LOWER(uplo), .op_a = trans, .unit = UNIT(diag), \
                      .m = m, .n = n),                                         \
                  code, alpha, code, NULL, code, MATRIX(A, lda),               \
                  MATRIX(B, ldb), MATRIX(C, ldc), false);                      \
  }                                                                            \
  cublasStatus_t cublas##L##trsm_v2##suffix(                                   \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,     \
      cublasOperation_t trans, cublasDiagType_t diag, integer m, integer n,    \
      const type *alpha, const type *A, integer lda, type *B, integer ldb) {   \
    WANT(alpha);                                                               \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_TRSM, .right = RIGHT(side),                 \
                      .lower = LOWER(uplo), .op_a = trans, .unit = UNIT(diag), \
                      .m = m, .n = n),                                         \
                  code, alpha, code, NULL, code, MATRIX(A, lda), NOTHING,      \
                  MATRIX(B, ldb), false);                                      \
  }                                                                            \
  cublasStatus_t cublas##L##trsmBatched##suffix(                               \
      cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,     \
      cublasOperation_t trans, cublasDiagType_t diag, integer m, integer n,    \
      const type *alpha, const type *const A[], integer lda, type *const B[],  \
      integer ldb, integer batchCount) {                                       \
    WANT(alpha);                                                               \
    if (handle && batchCount == 0)                                             \
      return CUBLAS_STATUS_SUCCESS;                                            \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_TRSM, .right = RIGHT(side),                 \
                      .lower = LOWER(uplo), .op_a = trans, .unit = UNIT(diag), \
                      .m = m, .n = n, .batch = batchCount),                    \
                  code, alpha, code, NULL, code, MATRIX(A, lda), NOTHING,      \
                  MATRIX(B, ldb), true);                                       \
  }                                                                            \
  cublasStatus_t cublas##L##trmv_v2##suffix(                                   \
      cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,   \
      cublasDiagType_t diag, integer n, const type *A, integer lda, type *x,   \
      integer incx) {                                                          \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_TRMM, .right = true, .lower = LOWER(uplo),  \
                      .op_a = for_rows(trans), .unit = UNIT(diag), .m = 1,     \
                      .n = n),                                                 \
                  code, NULL, code, NULL, code, MATRIX(A, lda),                \
                  VECTOR(x, incx), VECTOR(x, incx), false);                    \
  }                                                                            \
  cublasStatus_t cublas##L##trsv_v2##suffix(                                   \
      cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans,   \
      cublasDiagType_t diag, integer n, const type *A, integer lda, type *x,   \
      integer incx) {                                                          \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_TRSM, .right = true, .lower = LOWER(uplo),  \
                      .op_a = for_rows(trans), .unit = UNIT(diag), .m = 1,     \
                      .n = n),                                                 \
                  code, NULL, code, NULL, code, MATRIX(A, lda), NOTHING,       \
                  VECTOR(x, incx), false);                                     \
  }                                                                            \
  cublasStatus_t cublas##L##syr_v2##suffix(                                    \
      cublasHandle_t handle, cublasFillMode_t uplo, integer n,                 \
      const type *alpha, const type *x, integer incx, type *A, integer lda) {  \
    WANT(alpha);                                                               \
    return submit(handle,                                                      \
                  JOB(.kind = HOST_RANK, .lower = LOWER(uplo),                 \
                      .op_a = CUBLAS_OP_T, .m = n, .n = n, .k = 1),            \
                  code, alpha, code, NULL, code, VECTOR(x, incx), NOTHING,     \
                  MATRIX(A, lda), false);                                      \
  }

#define HERMITIAN(L, real, real_code, type, code, suffix, integer)             \
  RANK_K(cublas##L##herk_v2##suffix, real, real_code, type, code, integer,     \
         true)                                                                 \
  RANK_2K(cublas##L##her2k_v2##suffix, real, real_code, type, code, integer,   \
          true)                                                                \
  HALF(cublas##L##hemm_v2##suffix, type, code, integer, true)                  \
  HALF_VECTOR(cublas##L##hemv_v2##suffix, type, code, integer, true)           \
  OUTER(cublas##L##geru_v2##suffix, type, code, integer, false)                \
  OUTER(cublas##L##gerc_v2##suffix, type, code, integer, true)

#define SIZES(suffix, integer)                                                 \
  TYPE(S, float, CUDA_R_32F, suffix, integer)                                  \
  TYPE(D, double, CUDA_R_64F, suffix, integer)                                 \
  TYPE(C, cuComplex, CUDA_C_32F, suffix, integer)                              \
  TYPE(Z, cuDoubleComplex, CUDA_C_64F, suffix, integer)                        \
  OUTER(cublasSger_v2##suffix, float, CUDA_R_32F, integer, false)              \
  OUTER(cublasDger_v2##suffix, double, CUDA_R_64F, integer, false)             \
  HERMITIAN(C, float, CUDA_R_32F, cuComplex, CUDA_C_32F, suffix, integer)      \
  HERMITIAN(Z, double, CUDA_R_64F, cuDoubleComplex, CUDA_C_64F, suffix, integer)

SIZES(, int)
SIZES(_64, int64_t)
