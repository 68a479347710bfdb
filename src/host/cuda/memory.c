// SPDX-License-Identifier: Apache-2.0
// Memory: allocated, registered, shared with other processes.
#include "src/host/cuda/call.h"

#include <string.h>

CUresult cuMemGetInfo(size_t *free, size_t *total) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaMemGetInfo(free, total));
}

// `at` is a pointer because arguments are evaluated in any order.
static CUresult allocated(CUresult result, void *const *at, CUdeviceptr *out) {
  if (result == CUDA_SUCCESS)
    *out = (CUdeviceptr)(uintptr_t)*at;
  return result;
}

CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes) {
  void *at = NULL;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!out || bytes == 0, CUDA_ERROR_INVALID_VALUE);
  return allocated(RT(cudaMalloc(&at, bytes)), &at, out);
}

CUresult cuMemAllocPitch(CUdeviceptr *out, size_t *pitch, size_t width,
                         size_t height, unsigned element_bytes) {
  void *at = NULL;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(
      !out || !pitch || width == 0 || height == 0 ||
          (element_bytes != 4 && element_bytes != 8 && element_bytes != 16),
      CUDA_ERROR_INVALID_VALUE);
  return allocated(RT(cudaMallocPitch(&at, pitch, width, height)), &at, out);
}

CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
  void *at = NULL;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!out || bytes == 0, CUDA_ERROR_INVALID_VALUE);
  return allocated(RT(cudaMallocManaged(&at, bytes, flags)), &at, out);
}

CUresult cuMemFree(CUdeviceptr at) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaFree((void *)(uintptr_t)at));
}

CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream) {
  void *at = NULL;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!out || bytes == 0, CUDA_ERROR_INVALID_VALUE);
  return allocated(RT(cudaMallocAsync(&at, bytes, stream)), &at, out);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes,
                                 CUmemoryPool pool, CUstream stream) {
  void *at = NULL;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!out || bytes == 0, CUDA_ERROR_INVALID_VALUE);
  return allocated(RT(cudaMallocFromPoolAsync(&at, bytes, pool, stream)), &at,
                   out);
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaFreeAsync((void *)(uintptr_t)at, stream));
}

// ---- of the host ----

CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!out || bytes == 0, CUDA_ERROR_INVALID_VALUE);
  return RT(cudaHostAlloc(out, bytes, flags));
}

CUresult cuMemAllocHost(void **out, size_t bytes) {
  return cuMemHostAlloc(out, bytes, 0);
}

CUresult cuMemFreeHost(void *at) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaFreeHost(at));
}

CUresult cuMemHostRegister(void *at, size_t bytes, unsigned flags) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaHostRegister(at, bytes, flags));
}

CUresult cuMemHostUnregister(void *at) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaHostUnregister(at));
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *at, unsigned flags) {
  void *device = NULL;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!out, CUDA_ERROR_INVALID_VALUE);
  return allocated(RT(cudaHostGetDevicePointer(&device, at, flags)), &device,
                   out);
}

CUresult cuMemHostGetFlags(unsigned *flags, void *at) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaHostGetFlags(flags, at));
}

// ---- of other processes ----

_Static_assert(sizeof(CUipcMemHandle) == sizeof(cudaIpcMemHandle_t),
               "one handle, two names");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at) {
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!handle, CUDA_ERROR_INVALID_VALUE);
  cudaIpcMemHandle_t own;
  result = RT(cudaIpcGetMemHandle(&own, (void *)(uintptr_t)at));
  if (result == CUDA_SUCCESS)
    memcpy(handle, &own, sizeof own);
  return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle,
                            unsigned flags) {
  void *at = NULL;
  cudaIpcMemHandle_t own;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!out, CUDA_ERROR_INVALID_VALUE);
  memcpy(&own, &handle, sizeof own);
  return allocated(RT(cudaIpcOpenMemHandle(&at, own, flags)), &at, out);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaIpcCloseMemHandle((void *)(uintptr_t)at));
}
