// SPDX-License-Identifier: Apache-2.0
// What is known of an address.
#include "src/host/cuda/call.h"

#include <string.h>

CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *bytes,
                              CUdeviceptr at) {
  void *start;
  size_t size;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!host_runtime()->allocation((void *)(uintptr_t)at, &start, &size),
            CUDA_ERROR_NOT_FOUND);
  if (base)
    *base = (CUdeviceptr)(uintptr_t)start;
  if (bytes)
    *bytes = size;
  return CUDA_SUCCESS;
}

static CUmemorytype kind_of(const struct cudaPointerAttributes *found) {
  return found->type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST
                                           : CU_MEMORYTYPE_DEVICE;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                               CUdeviceptr at) {
  struct cudaPointerAttributes found;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!data, CUDA_ERROR_INVALID_VALUE);
  result = RT(cudaPointerGetAttributes(&found, (void *)(uintptr_t)at));
  RETURN_IF(result, result);
  RETURN_IF(found.type == cudaMemoryTypeUnregistered, CUDA_ERROR_INVALID_VALUE);
  void *base = NULL;
  size_t bytes = 0;
  bool own = host_runtime()->allocation((void *)(uintptr_t)at, &base, &bytes);
  switch ((int)attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    return cuCtxGetCurrent(data);
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)data = kind_of(&found);
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *)data = (CUdeviceptr)(uintptr_t)found.devicePointer;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    RETURN_IF(!found.hostPointer, CUDA_ERROR_INVALID_VALUE);
    *(void **)data = found.hostPointer;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    *(unsigned *)data = found.type == cudaMemoryTypeManaged;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)data = 0;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MAPPED:
    *(int *)data = 1;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    RETURN_IF(!own, CUDA_ERROR_NOT_SUPPORTED);
    *(CUdeviceptr *)data = (CUdeviceptr)(uintptr_t)base;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    RETURN_IF(!own, CUDA_ERROR_NOT_SUPPORTED);
    *(size_t *)data = bytes;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}
