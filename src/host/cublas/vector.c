// SPDX-License-Identifier: Apache-2.0
// Functions of vectors: scal, axpy, copy, swap, rot, and the numbers that
// vectors give: dot, nrm2, asum, iamax, iamin.
#include "src/host/cublas/blas.h"

#include <math.h>

typedef enum function {
  SCAL, /* x := alpha x */
  AXPY, /* y := alpha x + y */
  COPY, /* y := x */
  SWAP,
  ROT, /* x := c x + s y, y := c y - conj(s) x */
  DOT,
  DOTC, /* of the conjugate of x */
  NRM2,
  ASUM,
  AMAX, /* the first element with the largest |re| + |im|, from 1 */
  AMIN,
} function_t;

typedef struct job {
  function_t function;
  int64_t n;
  host_scalar_t alpha, beta; /* of a rotation c and s */
  host_vector_t x, y;
  void *result;    /* of a function that gives a number */
  int result_type; /* or an index of so many bytes, negative */
} job_t;

static host_number_t load(const host_vector_t *v, int64_t i) {
  return host_number_load(v->at, v->type, i * v->increment);
}

static void store(const host_vector_t *v, int64_t i, host_number_t to) {
  host_number_store(v->at, v->type, i * v->increment, to);
}

static double size_of(host_number_t x) {
  return fabs(creal(x)) + fabs(cimag(x));
}

static double norm_of(const job_t *job) {
  double sum = 0, scale = 0;
  for (int64_t i = 0; i < job->n; i++) { /* so that squares stay in range */
    host_number_t x = load(&job->x, i);
    scale = fmax(scale, fmax(fabs(creal(x)), fabs(cimag(x))));
  }
  if (scale == 0 || !isfinite(scale))
    scale = 1;
  for (int64_t i = 0; i < job->n; i++) {
    host_number_t x = load(&job->x, i) / scale;
    sum += creal(x) * creal(x) + cimag(x) * cimag(x);
  }
  return scale * sqrt(sum);
}

static host_number_t sum_of(const job_t *job) {
  host_number_t sum = 0;
  if (job->function == NRM2)
    return norm_of(job);
  for (int64_t i = 0; i < job->n; i++) {
    host_number_t x = load(&job->x, i);
    if (job->function == ASUM)
      sum += size_of(x);
    else
      sum += (job->function == DOTC ? conj(x) : x) * load(&job->y, i);
  }
  return sum;
}

static int64_t extreme_of(const job_t *job) {
  int64_t found = 0;
  double best = 0;
  for (int64_t i = 0; i < job->n; i++) {
    double size = size_of(load(&job->x, i));
    if (found == 0 || (job->function == AMAX ? size > best : size < best)) {
      found = i + 1;
      best = size;
    }
  }
  return found;
}

static void result_store(const job_t *job) {
  if (job->function != AMAX && job->function != AMIN)
    host_number_store(job->result, (cudaDataType)job->result_type, 0,
                      sum_of(job));
  else if (job->result_type == -(int)sizeof(int))
    *(int *)job->result = (int)extreme_of(job);
  else
    *(int64_t *)job->result = extreme_of(job);
}

static cudaError_t vector_run(void *argument) {
  const job_t *job = argument;
  const host_vector_t *x = &job->x, *y = &job->y;
  if (job->result) {
    result_store(job);
    return cudaSuccess;
  }
  host_number_t alpha = host_scalar_get(&job->alpha);
  host_number_t beta = host_scalar_get(&job->beta);
  for (int64_t i = 0; i < job->n; i++) {
    host_number_t from = load(x, i);
    switch (job->function) {
    case SCAL:
      store(x, i, alpha * from);
      break;
    case AXPY:
      store(y, i, alpha * from + load(y, i));
      break;
    case ROT: {
      host_number_t other = load(y, i);
      store(x, i, alpha * from + beta * other);
      store(y, i, alpha * other - conj(beta) * from);
      break;
    }
    case SWAP:
      store(x, i, load(y, i));
      store(y, i, from);
      break;
    default:
      store(y, i, from);
    }
  }
  return cudaSuccess;
}

/* A vector as the program gives it; with a negative increment it starts at its
 * end. */
typedef struct given {
  const void *at;
  cudaDataType type;
  int64_t increment;
} given_t;

bool host_vector_resolve(int64_t n, const void *at, cudaDataType type,
                         int64_t increment, host_vector_t *out_vector) {
  int64_t step = increment < 0 ? -increment : increment;
  int64_t bytes = (int64_t)host_type_bytes(type);
  char *base = host_memory_resolve(at, (size_t)(((n - 1) * step + 1) * bytes));
  if (!base || bytes == 0)
    return false;
  *out_vector = (host_vector_t){
      base + (increment < 0 ? (n - 1) * step * bytes : 0), type, increment};
  return true;
}

static bool resolve(int64_t n, given_t given, host_vector_t *out_vector) {
  return host_vector_resolve(n, given.at, given.type, given.increment,
                             out_vector);
}

/* alpha and beta are of the given types; NULL where the function has none. */
static cublasStatus_t elementwise(cublasHandle_t handle, function_t function,
                                  int64_t n, const void *alpha,
                                  cudaDataType alpha_type, const void *beta,
                                  cudaDataType beta_type, given_t x,
                                  given_t y) {
  job_t job = {.function = function, .n = n};
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0)
    return CUBLAS_STATUS_SUCCESS;
  bool wants_alpha = function != COPY && function != SWAP;
  if ((wants_alpha && !alpha) || (function == ROT && !beta))
    return CUBLAS_STATUS_INVALID_VALUE;
  if ((wants_alpha &&
       !host_scalar_read(handle, alpha, alpha_type, &job.alpha)) ||
      (function == ROT &&
       !host_scalar_read(handle, beta, beta_type, &job.beta)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (function == SCAL && x.increment <= 0)
    return CUBLAS_STATUS_SUCCESS;
  if (!resolve(n, x, &job.x) || (function != SCAL && !resolve(n, y, &job.y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return host_blas_submit(handle, vector_run, &job, sizeof job);
}

/* A result in host memory is there when the call returns. */
static cublasStatus_t reduction(cublasHandle_t handle, function_t function,
                                int64_t n, given_t x, given_t y, void *result,
                                int result_type) {
  job_t job = {.function = function,
               .n = n,
               .result = result,
               .result_type = result_type};
  bool two = function == DOT || function == DOTC;
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!result)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool on_device = handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  if (on_device)
    job.result = host_memory_resolve(
        result, result_type < 0 ? (size_t)-result_type
                                : host_type_bytes((cudaDataType)result_type));
  if (n <= 0 || (!two && x.increment <= 0))
    job.n = 0;
  if (!job.result || (job.n > 0 && (!resolve(n, x, &job.x) ||
                                    (two && !resolve(n, y, &job.y)))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  cublasStatus_t status =
      host_blas_submit(handle, vector_run, &job, sizeof job);
  if (status == CUBLAS_STATUS_SUCCESS && !on_device &&
      cudaStreamSynchronize(handle->stream) != cudaSuccess)
    status = CUBLAS_STATUS_EXECUTION_FAILED;
  return status;
}

#define NONE ((given_t){NULL, CUDA_R_32F, 0})

/* ---- functions of vectors alone ---- */

#define PAIR(name, function, type, code, integer, constant)                    \
  cublasStatus_t name(cublasHandle_t handle, integer n, constant type *x,      \
                      integer incx, type *y, integer incy) {                   \
    return elementwise(handle, function, n, NULL, code, NULL, code,            \
                       (given_t){x, code, incx}, (given_t){y, code, incy});    \
  }
#define SCALE(name, number, number_code, type, code, integer)                  \
  cublasStatus_t name(cublasHandle_t handle, integer n, const number *alpha,   \
                      type *x, integer incx) {                                 \
    return elementwise(handle, SCAL, n, alpha, number_code, NULL, code,        \
                       (given_t){x, code, incx}, NONE);                        \
  }
#define ADD(name, type, code, integer)                                         \
  cublasStatus_t name(cublasHandle_t handle, integer n, const type *alpha,     \
                      const type *x, integer incx, type *y, integer incy) {    \
    return elementwise(handle, AXPY, n, alpha, code, NULL, code,               \
                       (given_t){x, code, incx}, (given_t){y, code, incy});    \
  }
#define ROTATE(name, real, real_code, number, number_code, type, code,         \
               integer)                                                        \
  cublasStatus_t name(cublasHandle_t handle, integer n, type *x, integer incx, \
                      type *y, integer incy, const real *c, const number *s) { \
    return elementwise(handle, ROT, n, c, real_code, s, number_code,           \
                       (given_t){x, code, incx}, (given_t){y, code, incy});    \
  }

/* ---- functions that give a number ---- */

#define PRODUCT(name, function, type, code, integer)                           \
  cublasStatus_t name(cublasHandle_t handle, integer n, const type *x,         \
                      integer incx, const type *y, integer incy,               \
                      type *result) {                                          \
    return reduction(handle, function, n, (given_t){x, code, incx},            \
                     (given_t){y, code, incy}, result, code);                  \
  }
#define NUMBER(name, function, type, code, integer, real, real_code)           \
  cublasStatus_t name(cublasHandle_t handle, integer n, const type *x,         \
                      integer incx, real *result) {                            \
    return reduction(handle, function, n, (given_t){x, code, incx}, NONE,      \
                     result, real_code);                                       \
  }

/* Everything that all four types have: L and l are letters of the type, R of
 * its real one. */
#define TYPE(L, l, R, type, code, real, real_code, suffix, integer)            \
  PAIR(cublas##L##copy_v2##suffix, COPY, type, code, integer, const)           \
  PAIR(cublas##L##swap_v2##suffix, SWAP, type, code, integer, )                \
  SCALE(cublas##L##scal_v2##suffix, type, code, type, code, integer)           \
  ADD(cublas##L##axpy_v2##suffix, type, code, integer)                         \
  ROTATE(cublas##L##rot_v2##suffix, real, real_code, type, code, type, code,   \
         integer)                                                              \
  NUMBER(cublas##R##nrm2_v2##suffix, NRM2, type, code, integer, real,          \
         real_code)                                                            \
  NUMBER(cublas##R##asum_v2##suffix, ASUM, type, code, integer, real,          \
         real_code)                                                            \
  NUMBER(cublasI##l##amax_v2##suffix, AMAX, type, code, integer, integer,      \
         -(int)sizeof(integer))                                                \
  NUMBER(cublasI##l##amin_v2##suffix, AMIN, type, code, integer, integer,      \
         -(int)sizeof(integer))

#define SIZES(suffix, integer)                                                 \
  TYPE(S, s, S, float, CUDA_R_32F, float, CUDA_R_32F, suffix, integer)         \
  TYPE(D, d, D, double, CUDA_R_64F, double, CUDA_R_64F, suffix, integer)       \
  TYPE(C, c, Sc, cuComplex, CUDA_C_32F, float, CUDA_R_32F, suffix, integer)    \
  TYPE(Z, z, Dz, cuDoubleComplex, CUDA_C_64F, double, CUDA_R_64F, suffix,      \
       integer)                                                                \
  PRODUCT(cublasSdot_v2##suffix, DOT, float, CUDA_R_32F, integer)              \
  PRODUCT(cublasDdot_v2##suffix, DOT, double, CUDA_R_64F, integer)             \
  PRODUCT(cublasCdotu_v2##suffix, DOT, cuComplex, CUDA_C_32F, integer)         \
  PRODUCT(cublasCdotc_v2##suffix, DOTC, cuComplex, CUDA_C_32F, integer)        \
  PRODUCT(cublasZdotu_v2##suffix, DOT, cuDoubleComplex, CUDA_C_64F, integer)   \
  PRODUCT(cublasZdotc_v2##suffix, DOTC, cuDoubleComplex, CUDA_C_64F, integer)  \
  SCALE(cublasCsscal_v2##suffix, float, CUDA_R_32F, cuComplex, CUDA_C_32F,     \
        integer)                                                               \
  SCALE(cublasZdscal_v2##suffix, double, CUDA_R_64F, cuDoubleComplex,          \
        CUDA_C_64F, integer)                                                   \
  ROTATE(cublasCsrot_v2##suffix, float, CUDA_R_32F, float, CUDA_R_32F,         \
         cuComplex, CUDA_C_32F, integer)                                       \
  ROTATE(cublasZdrot_v2##suffix, double, CUDA_R_64F, double, CUDA_R_64F,       \
         cuDoubleComplex, CUDA_C_64F, integer)

SIZES(, int)
SIZES(_64, int64_t)

/* ---- any types ---- */

static bool is_sum_type(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_C_32F ||
         type == CUDA_C_64F;
}

#define ANY(suffix, integer)                                                   \
  cublasStatus_t cublasScalEx##suffix(                                         \
      cublasHandle_t handle, integer n, const void *alpha,                     \
      cudaDataType alphaType, void *x, cudaDataType xType, integer incx,       \
      cudaDataType executionType) {                                            \
    if (handle && !is_sum_type(executionType))                                 \
      return CUBLAS_STATUS_NOT_SUPPORTED;                                      \
    return elementwise(handle, SCAL, n, alpha, alphaType, NULL, alphaType,     \
                       (given_t){x, xType, incx}, NONE);                       \
  }                                                                            \
  cublasStatus_t cublasAxpyEx##suffix(                                         \
      cublasHandle_t handle, integer n, const void *alpha,                     \
      cudaDataType alphaType, const void *x, cudaDataType xType, integer incx, \
      void *y, cudaDataType yType, integer incy, cudaDataType executiontype) { \
    if (handle && !is_sum_type(executiontype))                                 \
      return CUBLAS_STATUS_NOT_SUPPORTED;                                      \
    return elementwise(handle, AXPY, n, alpha, alphaType, NULL, alphaType,     \
                       (given_t){x, xType, incx}, (given_t){y, yType, incy});  \
  }                                                                            \
  cublasStatus_t cublasDotEx##suffix(                                          \
      cublasHandle_t handle, integer n, const void *x, cudaDataType xType,     \
      integer incx, const void *y, cudaDataType yType, integer incy,           \
      void *result, cudaDataType resultType, cudaDataType executionType) {     \
    if (handle && !is_sum_type(executionType))                                 \
      return CUBLAS_STATUS_NOT_SUPPORTED;                                      \
    return reduction(handle, DOT, n, (given_t){x, xType, incx},                \
                     (given_t){y, yType, incy}, result, (int)resultType);      \
  }                                                                            \
  cublasStatus_t cublasDotcEx##suffix(                                         \
      cublasHandle_t handle, integer n, const void *x, cudaDataType xType,     \
      integer incx, const void *y, cudaDataType yType, integer incy,           \
      void *result, cudaDataType resultType, cudaDataType executionType) {     \
    if (handle && !is_sum_type(executionType))                                 \
      return CUBLAS_STATUS_NOT_SUPPORTED;                                      \
    return reduction(handle, DOTC, n, (given_t){x, xType, incx},               \
                     (given_t){y, yType, incy}, result, (int)resultType);      \
  }                                                                            \
  cublasStatus_t cublasNrm2Ex##suffix(                                         \
      cublasHandle_t handle, integer n, const void *x, cudaDataType xType,     \
      integer incx, void *result, cudaDataType resultType,                     \
      cudaDataType executionType) {                                            \
    if (handle && !is_sum_type(executionType))                                 \
      return CUBLAS_STATUS_NOT_SUPPORTED;                                      \
    return reduction(handle, NRM2, n, (given_t){x, xType, incx}, NONE, result, \
                     (int)resultType);                                         \
  }

ANY(, int)
ANY(_64, int64_t)
