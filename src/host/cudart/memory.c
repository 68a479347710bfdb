// SPDX-License-Identifier: Apache-2.0
// Device memory: cudaMalloc and its relatives.
#include "src/host/cudart/capture.h"
#include "src/host/cudart/hint.h"
#include "src/host/cudart/pool.h"

#include <string.h>

enum {
  PITCH_BYTES = 512,
  POISON = 0xff, /* NaN in every floating-point type */
};

cudaError_t host_device_allocate(void **out_pointer, size_t bytes) {
  if (bytes == 0) {
    *out_pointer = NULL;
    return cudaSuccess;
  }
  host_region_t *region = host_region_own(HOST_KIND_DEVICE);
  void *pointer = region ? host_region_allocate(region, bytes) : NULL;
  if (!pointer)
    return cudaErrorMemoryAllocation;
  if (host_memory_poisoned())
    memset((char *)pointer + region->distance, POISON, bytes);
  *out_pointer = pointer;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **devPtr, size_t size) {
  cudaError_t error = host_enter_unsafe();
  if (error)
    return error;
  if (!devPtr)
    return host_result(cudaErrorInvalidValue);
  return host_result(host_device_allocate(devPtr, size));
}

cudaError_t cudaMallocPitch(void **devPtr, size_t *pitch, size_t width,
                            size_t height) {
  cudaError_t error = host_enter_unsafe();
  if (error)
    return error;
  size_t row, bytes;
  if (!devPtr || !pitch || __builtin_add_overflow(width, PITCH_BYTES - 1, &row))
    return host_result(cudaErrorInvalidValue);
  row = row / PITCH_BYTES * PITCH_BYTES;
  if (__builtin_mul_overflow(row, height, &bytes))
    return host_result(cudaErrorMemoryAllocation);
  error = host_device_allocate(devPtr, bytes);
  if (error == cudaSuccess)
    *pitch = row;
  return host_result(error);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitchedDevPtr,
                         struct cudaExtent extent) {
  size_t rows, pitch;
  void *pointer;
  if (!pitchedDevPtr)
    return host_result(cudaErrorInvalidValue);
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
    return host_result(cudaErrorMemoryAllocation);
  cudaError_t error = cudaMallocPitch(&pointer, &pitch, extent.width, rows);
  if (error == cudaSuccess)
    *pitchedDevPtr =
        (struct cudaPitchedPtr){pointer, pitch, extent.width, extent.height};
  return error;
}

/* Frees what starts at `pointer`, device or managed. The caller has waited for
 * the work that may use it. */
static cudaError_t release(void *pointer) {
  host_block_t block;
  if (!host_block_find(pointer, &block) ||
      (block.region->kind != HOST_KIND_DEVICE &&
       block.region->kind != HOST_KIND_MANAGED) ||
      block.base != pointer)
    return cudaErrorInvalidValue;
  /* Before somebody else gets the address. */
  if (block.region->kind == HOST_KIND_MANAGED)
    host_hint_forget(pointer, block.bytes);
  else
    host_pool_forget(pointer);
  return host_region_free((host_region_t *)block.region, pointer)
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

cudaError_t cudaFree(void *devPtr) {
  cudaError_t error = host_enter_unsafe();
  if (error || !devPtr)
    return error;
  host_stream_wait_all();
  error = release(devPtr);
  return host_result(error ? error : host_sticky());
}

static cudaError_t allocate_async(void **devPtr, size_t size,
                                  cudaMemPool_t pool, cudaStream_t hStream) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!devPtr)
    return host_result(cudaErrorInvalidValue);
  host_stream_t *stream = host_stream_get(hStream);
  if (!stream)
    return host_result(cudaErrorInvalidResourceHandle);
  if (host_captured(stream)) /* memory that belongs to a graph */
    return host_result(
        host_capture_spoil(stream, cudaErrorStreamCaptureUnsupported));
  return host_result(host_pool_allocate(pool, devPtr, size));
}

cudaError_t cudaMallocAsync(void **devPtr, size_t size, cudaStream_t hStream) {
  return allocate_async(devPtr, size, NULL, hStream);
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t size,
                                    cudaMemPool_t memPool,
                                    cudaStream_t stream) {
  if (!memPool)
    return host_result(cudaErrorInvalidValue);
  return allocate_async(ptr, size, memPool, stream);
}

static cudaError_t release_run(void *argument) {
  return release(argument);
}

/* The address stays known until the stream comes to it. */
cudaError_t cudaFreeAsync(void *devPtr, cudaStream_t hStream) {
  cudaError_t error = host_enter();
  if (error || !devPtr)
    return error;
  host_block_t block;
  host_stream_t *stream = host_stream_get(hStream);
  if (!stream)
    return host_result(cudaErrorInvalidResourceHandle);
  if (!host_block_find(devPtr, &block) || block.base != devPtr ||
      block.region->kind != HOST_KIND_DEVICE)
    return host_result(cudaErrorInvalidValue);
  return host_result(host_stream_push(
      stream,
      &(host_work_t){.run = release_run, .argument = devPtr, .always = true},
      NULL));
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!free || !total)
    return host_result(cudaErrorInvalidValue);
  size_t used_bytes, limit_bytes = host_memory_limit();
  host_region_usage(&used_bytes);
  *total = limit_bytes;
  *free = limit_bytes - used_bytes;
  return cudaSuccess;
}
