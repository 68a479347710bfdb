// SPDX-License-Identifier: Apache-2.0
// Functions of vectors: scal, axpy, copy, swap, and the sums dot, nrm2, asum.
#include "src/host/cublas/blas.h"

#include <math.h>

typedef enum function {
  SCAL, /* x := alpha x */
  AXPY, /* y := alpha x + y */
  COPY, /* y := x */
  SWAP,
  DOT,
  NRM2,
  ASUM,
} function_t;

typedef struct vector {
  void *at;
  int64_t increment;
} vector_t;

typedef struct job {
  function_t function;
  cudaDataType type;
  int64_t n;
  host_scalar_t alpha;
  vector_t x, y;
  void *result; /* of a sum */
} job_t;

static double load(const job_t *job, const vector_t *v, int64_t i) {
  return host_element_load(v->at, job->type, i * v->increment);
}

static void store(const job_t *job, const vector_t *v, int64_t i, double to) {
  host_element_store(v->at, job->type, i * v->increment, to);
}

static double sum_of(const job_t *job) {
  double sum = 0, scale = 0;
  if (job->function == NRM2) /* so that squares stay in range */
    for (int64_t i = 0; i < job->n; i++)
      scale = fmax(scale, fabs(load(job, &job->x, i)));
  if (scale == 0 || !isfinite(scale))
    scale = 1;
  for (int64_t i = 0; i < job->n; i++) {
    double x = load(job, &job->x, i);
    if (job->function == DOT)
      sum += x * load(job, &job->y, i);
    else
      sum += job->function == ASUM ? fabs(x) : x / scale * (x / scale);
  }
  return job->function == NRM2 ? scale * sqrt(sum) : sum;
}

static cudaError_t vector_run(void *argument) {
  const job_t *job = argument;
  const vector_t *x = &job->x, *y = &job->y;
  double alpha = host_scalar_get(&job->alpha);
  if (job->result) {
    host_element_store(job->result, job->type, 0, sum_of(job));
    return cudaSuccess;
  }
  for (int64_t i = 0; i < job->n; i++) {
    double from = load(job, x, i);
    if (job->function == SCAL) {
      store(job, x, i, alpha * from);
    } else if (job->function == AXPY) {
      store(job, y, i, alpha * from + load(job, y, i));
    } else {
      if (job->function == SWAP)
        store(job, x, i, load(job, y, i));
      store(job, y, i, from);
    }
  }
  return cudaSuccess;
}

/* Translates a vector; with a negative increment it starts at its end. */
static bool resolve(const job_t *job, const void *at, int increment,
                    vector_t *out_vector) {
  int64_t step = increment < 0 ? -(int64_t)increment : increment;
  int64_t bytes = (int64_t)host_type_bytes(job->type);
  int64_t span = ((job->n - 1) * step + 1) * bytes;
  char *base = host_memory_resolve(at, (size_t)span);
  if (!base)
    return false;
  *out_vector = (vector_t){
      base + (increment < 0 ? (job->n - 1) * step * bytes : 0), increment};
  return true;
}

static cublasStatus_t elementwise(cublasHandle_t handle, function_t function,
                                  cudaDataType type, int n, const void *alpha,
                                  const void *x, int incx, void *y, int incy) {
  job_t job = {.function = function, .type = type, .n = n};
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0)
    return CUBLAS_STATUS_SUCCESS;
  if ((function == SCAL || function == AXPY) &&
      !host_scalar_read(handle, alpha, type, &job.alpha))
    return alpha ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_INVALID_VALUE;
  if (function == SCAL && incx <= 0)
    return CUBLAS_STATUS_SUCCESS;
  if (!resolve(&job, x, incx, &job.x) ||
      (function != SCAL && !resolve(&job, y, incy, &job.y)))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  return host_blas_submit(handle, vector_run, &job, sizeof job);
}

/* A result in host memory is there when the call returns. */
static cublasStatus_t reduction(cublasHandle_t handle, function_t function,
                                cudaDataType type, int n, const void *x,
                                int incx, const void *y, int incy,
                                void *result) {
  job_t job = {.function = function, .type = type, .n = n, .result = result};
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!result)
    return CUBLAS_STATUS_INVALID_VALUE;
  bool on_device = handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
  if (on_device)
    job.result = host_memory_resolve(result, host_type_bytes(type));
  if (n <= 0 || (function != DOT && incx <= 0))
    job.n = 0;
  if (!job.result ||
      (job.n > 0 && (!resolve(&job, x, incx, &job.x) ||
                     (function == DOT && !resolve(&job, y, incy, &job.y)))))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  cublasStatus_t status =
      host_blas_submit(handle, vector_run, &job, sizeof job);
  if (status == CUBLAS_STATUS_SUCCESS && !on_device &&
      cudaStreamSynchronize(handle->stream) != cudaSuccess)
    status = CUBLAS_STATUS_EXECUTION_FAILED;
  return status;
}

/* Defines the functions of one element type. */
#define VECTOR(letter, real, code)                                             \
  cublasStatus_t cublas##letter##scal_v2(                                      \
      cublasHandle_t handle, int n, const real *alpha, real *x, int incx) {    \
    return elementwise(handle, SCAL, code, n, alpha, x, incx, NULL, 0);        \
  }                                                                            \
  cublasStatus_t cublas##letter##axpy_v2(cublasHandle_t handle, int n,         \
                                         const real *alpha, const real *x,     \
                                         int incx, real *y, int incy) {        \
    return elementwise(handle, AXPY, code, n, alpha, x, incx, y, incy);        \
  }                                                                            \
  cublasStatus_t cublas##letter##copy_v2(cublasHandle_t handle, int n,         \
                                         const real *x, int incx, real *y,     \
                                         int incy) {                           \
    return elementwise(handle, COPY, code, n, NULL, x, incx, y, incy);         \
  }                                                                            \
  cublasStatus_t cublas##letter##swap_v2(                                      \
      cublasHandle_t handle, int n, real *x, int incx, real *y, int incy) {    \
    return elementwise(handle, SWAP, code, n, NULL, x, incx, y, incy);         \
  }                                                                            \
  cublasStatus_t cublas##letter##dot_v2(                                       \
      cublasHandle_t handle, int n, const real *x, int incx, const real *y,    \
      int incy, real *result) {                                                \
    return reduction(handle, DOT, code, n, x, incx, y, incy, result);          \
  }                                                                            \
  cublasStatus_t cublas##letter##nrm2_v2(                                      \
      cublasHandle_t handle, int n, const real *x, int incx, real *result) {   \
    return reduction(handle, NRM2, code, n, x, incx, NULL, 0, result);         \
  }                                                                            \
  cublasStatus_t cublas##letter##asum_v2(                                      \
      cublasHandle_t handle, int n, const real *x, int incx, real *result) {   \
    return reduction(handle, ASUM, code, n, x, incx, NULL, 0, result);         \
  }

VECTOR(S, float, CUDA_R_32F)
VECTOR(D, double, CUDA_R_64F)
