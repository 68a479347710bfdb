// SPDX-License-Identifier: Apache-2.0
// Device memory: cudaMalloc and its relatives.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/graph/memory.h"
#include "src/host/cudart/memory/advice.h"
#include "src/host/cudart/memory/pool.h"

#include <string.h>

enum {
  PITCH_BYTES = 512,
  POISON = 0xff, // NaN in every floating-point type
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

// Frees the allocation that starts at `pointer`, device or managed. The caller
// has waited for the work that may use it.
static cudaError_t release(void *pointer) {
  host_block_t block;
  cudaError_t error;
  if (host_graph_memory_free(pointer, &error)) {
    host_graph_memory_release(pointer);
    return error;
  }
  if (!host_block_find(pointer, &block) ||
      (block.region->kind != HOST_KIND_DEVICE &&
       block.region->kind != HOST_KIND_MANAGED) ||
      block.base != pointer)
    return cudaErrorInvalidValue;
  // Done before the address can be allocated again.
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

// Allocates memory that belongs to a graph.
static cudaError_t allocate_captured(void **out_pointer, size_t bytes,
                                     host_stream_t *stream) {
  struct cudaMemAllocNodeParams params = {
      .poolProps = {.allocType = cudaMemAllocationTypePinned,
                    .location = {.type = cudaMemLocationTypeDevice}},
      .bytesize = bytes};
  host_graph_memory_t *memory;
  if (bytes == 0) {
    *out_pointer = NULL;
    return cudaSuccess;
  }
  cudaError_t error = host_graph_memory_create(&params, &memory);
  if (error)
    return host_capture_spoil(stream, error);
  void *pointer = memory->params.dptr;
  error =
      host_capture_add(stream, (host_deed_t){.type = cudaGraphNodeTypeMemAlloc,
                                             .memory = memory});
  if (!error)
    *out_pointer = pointer;
  return error;
}

static cudaError_t free_captured(void *pointer, host_stream_t *stream) {
  host_graph_memory_t *memory = host_graph_memory_find(pointer);
  if (!memory) // no graph allocated it
    return host_capture_spoil(stream, cudaErrorInvalidValue);
  return host_capture_add(
      stream,
      (host_deed_t){.type = cudaGraphNodeTypeMemFree, .memory = memory});
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
  if (host_captured(stream))
    return host_result(allocate_captured(devPtr, size, stream));
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

// Frees a graph's memory, which may have been allocated again by then.
static cudaError_t release_graphs_run(void *argument) {
  host_graph_memory_release(argument);
  return cudaSuccess;
}

// The address stays valid until the stream reaches the call.
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
  if (host_captured(stream))
    return host_result(free_captured(devPtr, stream));
  bool of_graph = host_graph_memory_free(devPtr, &error);
  if (error)
    return host_result(error);
  return host_result(host_stream_push(
      stream,
      &(host_work_t){.run = of_graph ? release_graphs_run : release_run,
                     .argument = devPtr,
                     .always = true},
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
