// SPDX-License-Identifier: Apache-2.0
// Copies. The runtime finds the direction from the addresses.
#include "src/host/cuda/call.h"

static void *to(CUdeviceptr at) {
  return (void *)(uintptr_t)at;
}

static CUresult copy(void *dst, const void *src, size_t bytes,
                     enum cudaMemcpyKind kind) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaMemcpy(dst, src, bytes, kind));
}

static CUresult copy_async(void *dst, const void *src, size_t bytes,
                           enum cudaMemcpyKind kind, CUstream stream) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaMemcpyAsync(dst, src, bytes, kind, stream));
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return copy(to(dst), to(src), bytes, cudaMemcpyDefault);
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t bytes) {
  return copy(to(dst), src, bytes, cudaMemcpyHostToDevice);
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t bytes) {
  return copy(dst, to(src), bytes, cudaMemcpyDeviceToHost);
}

CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return copy(to(dst), to(src), bytes, cudaMemcpyDeviceToDevice);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                       CUstream stream) {
  return copy_async(to(dst), to(src), bytes, cudaMemcpyDefault, stream);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes,
                           CUstream stream) {
  return copy_async(to(dst), src, bytes, cudaMemcpyHostToDevice, stream);
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes,
                           CUstream stream) {
  return copy_async(dst, to(src), bytes, cudaMemcpyDeviceToHost, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                           CUstream stream) {
  return copy_async(to(dst), to(src), bytes, cudaMemcpyDeviceToDevice, stream);
}

// Where one side of a rectangle begins. NULL for arrays, which do not exist
// here.
static char *side(CUmemorytype type, const void *host, CUdeviceptr device,
                  size_t x, size_t y, size_t pitch) {
  const char *at = type == CU_MEMORYTYPE_HOST ? host : to(device);
  if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE &&
      type != CU_MEMORYTYPE_UNIFIED)
    return NULL;
  return (char *)(uintptr_t)at + y * pitch + x;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, bool async, CUstream stream) {
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!c, CUDA_ERROR_INVALID_VALUE);
  size_t from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
  size_t to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
  char *src = side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes,
                   c->srcY, from_pitch);
  char *dst = side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes,
                   c->dstY, to_pitch);
  RETURN_IF(!src || !dst, CUDA_ERROR_INVALID_VALUE);
  return async
             ? RT(cudaMemcpy2DAsync(dst, to_pitch, src, from_pitch,
                                    c->WidthInBytes, c->Height,
                                    cudaMemcpyDefault, stream))
             : RT(cudaMemcpy2D(dst, to_pitch, src, from_pitch, c->WidthInBytes,
                               c->Height, cudaMemcpyDefault));
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *copy) {
  return copy_2d(copy, false, NULL);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *copy) {
  return copy_2d(copy, false, NULL);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream) {
  return copy_2d(copy, true, stream);
}
