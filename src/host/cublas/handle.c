// SPDX-License-Identifier: Apache-2.0
// The handle: its stream and modes; scalars.
#include "src/host/cublas/blas.h"

#include <cublasLt.h>

#include <stdlib.h>

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

// The scratch memory of a GPU: accepted, and not used here.
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                     size_t workspaceSizeInBytes) {
  (void)workspace, (void)workspaceSizeInBytes;
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

// Defines a pair of functions that write and read one field of the handle.
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

cublasStatus_t host_blas_submit(cublasHandle_t handle,
                                cudaError_t (*run)(void *job), const void *job,
                                size_t job_bytes) {
  return host_work_submit(handle->stream, run, job, job_bytes);
}
