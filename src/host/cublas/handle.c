// SPDX-License-Identifier: Apache-2.0
// The handle: its stream and modes; scalars; work in its stream.
#include "src/host/cublas/blas.h"

#include <cublasLt.h>

#include <stdlib.h>
#include <string.h>

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
  int count;
  if (!handle)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (cudaGetDeviceCount(&count) != cudaSuccess)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  cublasHandle_t made = calloc(1, sizeof *made);
  if (!made)
    return CUBLAS_STATUS_ALLOC_FAILED;
  *handle = made;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (!handle)
    return CUBLAS_STATUS_NOT_INITIALIZED;
  free(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version) {
  (void)handle;
  if (!version)
    return CUBLAS_STATUS_INVALID_VALUE;
  *version = (int)cublasLtGetVersion();
  return CUBLAS_STATUS_SUCCESS;
}

/* The scratch memory of a GPU: taken and not needed. */
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                     size_t workspaceSizeInBytes) {
  (void)workspace, (void)workspaceSizeInBytes;
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

/* Defines a pair of functions that write and read one field of the handle. */
#define FIELD(set, get, type, field)                                           \
  cublasStatus_t set(cublasHandle_t handle, type value) {                      \
    if (!handle)                                                               \
      return CUBLAS_STATUS_NOT_INITIALIZED;                                    \
    handle->field = value;                                                     \
    return CUBLAS_STATUS_SUCCESS;                                              \
  }                                                                            \
  cublasStatus_t get(cublasHandle_t handle, type *value) {                     \
    if (!handle)                                                               \
      return CUBLAS_STATUS_NOT_INITIALIZED;                                    \
    if (!value)                                                                \
      return CUBLAS_STATUS_INVALID_VALUE;                                      \
    *value = handle->field;                                                    \
    return CUBLAS_STATUS_SUCCESS;                                              \
  }

FIELD(cublasSetStream_v2, cublasGetStream_v2, cudaStream_t, stream)
FIELD(cublasSetPointerMode_v2, cublasGetPointerMode_v2, cublasPointerMode_t,
      pointer_mode)
FIELD(cublasSetAtomicsMode, cublasGetAtomicsMode, cublasAtomicsMode_t,
      atomics_mode)
FIELD(cublasSetMathMode, cublasGetMathMode, cublasMath_t, math_mode)
FIELD(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_count_target)

bool host_scalar_read(cublasHandle_t handle, const void *pointer,
                      cudaDataType type, host_scalar_t *out_scalar) {
  *out_scalar = (host_scalar_t){.type = type};
  if (!pointer)
    return false;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    out_scalar->device = host_memory_resolve(pointer, host_type_bytes(type));
    return out_scalar->device != NULL;
  }
  out_scalar->value = host_number_load(pointer, type, 0);
  return true;
}

host_number_t host_scalar_get(const host_scalar_t *scalar) {
  return scalar->device ? host_number_load(scalar->device, scalar->type, 0)
                        : scalar->value;
}

bool host_matrix_resolve(host_matrix_t *matrix, const void *at, int64_t rows,
                         int64_t columns, int64_t batch) {
  int64_t bytes = (int64_t)host_type_bytes(matrix->type);
  int64_t last =
      matrix->by_address
          ? batch * (int64_t)sizeof(void *)
          : ((batch - 1) * matrix->stride + (columns - 1) * matrix->ld + rows) *
                bytes;
  bool empty = rows == 0 || columns == 0 || batch == 0;
  matrix->at = empty ? NULL : host_memory_resolve(at, (size_t)last);
  return empty || matrix->at;
}

void *host_matrix_at(const host_matrix_t *matrix, int64_t index, int64_t rows,
                     int64_t columns) {
  int64_t bytes = (int64_t)host_type_bytes(matrix->type);
  if (!matrix->by_address)
    return (char *)matrix->at + index * matrix->stride * bytes;
  return host_memory_resolve(
      ((void *const *)matrix->at)[index],
      (size_t)(((columns - 1) * matrix->ld + rows) * bytes));
}

typedef struct work {
  cudaError_t (*run)(void *job);
  size_t bytes; /* of the job */
  _Alignas(max_align_t) char job[];
} work_t;

static cudaError_t work_run(void *argument) {
  work_t *work = argument;
  return work->run(work->job);
}

/* For another launch of a graph; a job is plain data. */
static void *work_again(const void *argument) {
  const work_t *work = argument;
  work_t *copy = malloc(sizeof *work + work->bytes);
  if (copy)
    memcpy(copy, work, sizeof *work + work->bytes);
  return copy;
}

cublasStatus_t host_blas_submit(cublasHandle_t handle,
                                cudaError_t (*run)(void *job), const void *job,
                                size_t job_bytes) {
  work_t *work = malloc(sizeof *work + job_bytes);
  if (!work)
    return CUBLAS_STATUS_ALLOC_FAILED;
  work->run = run;
  work->bytes = job_bytes;
  memcpy(work->job, job, job_bytes);
  return host_stream_submit_again(handle->stream, work_run, work, free,
                                  work_again) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
