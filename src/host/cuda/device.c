// SPDX-License-Identifier: Apache-2.0
// The one device, as the driver describes it.
#include "src/host/cuda/call.h"

#include <stdatomic.h>
#include <string.h>

static _Atomic bool initialized;

CUresult host_cu_initialized(void) {
  return atomic_load(&initialized) || host_runtime()->used()
             ? CUDA_SUCCESS
             : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult host_cu_device(CUdevice device) {
  CUresult result = host_cu_initialized();
  return result == CUDA_SUCCESS && device != 0 ? CUDA_ERROR_INVALID_DEVICE
                                               : result;
}

CUresult cuInit(unsigned flags) {
  int count;
  RETURN_IF(flags != 0, CUDA_ERROR_INVALID_VALUE);
  CUresult result = RT(cudaGetDeviceCount(&count));
  if (result == CUDA_SUCCESS)
    atomic_store(&initialized, true);
  return result;
}

CUresult cuDriverGetVersion(int *version) {
  RETURN_IF(!version, CUDA_ERROR_INVALID_VALUE);
  return RT(cudaDriverGetVersion(version));
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  RETURN_IF(host_cu_initialized(), CUDA_ERROR_NOT_INITIALIZED);
  RETURN_IF(!device, CUDA_ERROR_INVALID_VALUE);
  RETURN_IF(ordinal != 0, CUDA_ERROR_INVALID_DEVICE);
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
  RETURN_IF(host_cu_initialized(), CUDA_ERROR_NOT_INITIALIZED);
  return RT(cudaGetDeviceCount(count));
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  char all[256], uuid[16];
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  RETURN_IF(!name || length < 1, CUDA_ERROR_INVALID_VALUE);
  host_runtime()->identity(all, uuid);
  size_t count = strnlen(all, (size_t)length - 1);
  memcpy(name, all, count);
  name[count] = '\0';
  return CUDA_SUCCESS;
}

// Defines cuDeviceGetUuid_v2; the older name gives the same here.
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  char name[256];
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  RETURN_IF(!uuid, CUDA_ERROR_INVALID_VALUE);
  host_runtime()->identity(name, uuid->bytes);
  return CUDA_SUCCESS;
}
#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  size_t free;
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  RETURN_IF(!bytes, CUDA_ERROR_INVALID_VALUE);
  return RT(cudaMemGetInfo(&free, bytes));
}

// The attributes have the runtime's numbers.
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                              CUdevice device) {
  CUresult result = host_cu_device(device);
  RETURN_IF(result, result);
  return RT(
      cudaDeviceGetAttribute(value, (enum cudaDeviceAttr)attribute, device));
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
  CUresult result = cuDeviceGetAttribute(
      major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  return result
             ? result
             : cuDeviceGetAttribute(
                   minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
  CUresult result = host_cu_device(device);
  return result ? result : RT(cudaDeviceGetPCIBusId(text, length, device));
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
  CUresult result = host_cu_initialized();
  return result ? result : RT(cudaDeviceGetByPCIBusId(device, text));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  CUresult result = host_cu_device(device);
  return result ? result : RT(cudaDeviceCanAccessPeer(can, device, peer));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  CUresult result = host_cu_device(device);
  return result ? result : RT(cudaDeviceGetDefaultMemPool(pool, device));
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
  CUresult result = host_cu_device(device);
  return result ? result : RT(cudaDeviceGetMemPool(pool, device));
}
