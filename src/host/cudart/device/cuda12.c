// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA 12 runtime that CUDA 13 changed or removed. They
// are named for the linker only, because the headers declare the names
// otherwise.
#include "src/host/cudart/internal.h"

#include <string.h>

// Defines an exported function under a name of CUDA 12.
#define TWELVE(function, exported, parameters)                                 \
  cudaError_t function parameters __asm__(exported);                           \
  cudaError_t function parameters

#define OWN(stream) ((stream) ? (stream) : cudaStreamPerThread)

// ---- structures ----

// The layout in CUDA 12. CUDA 11 has the members before hostRegisterSupported.
typedef struct properties {
  char name[256];
  cudaUUID_t uuid;
  char luid[8];
  unsigned luid_device_node_mask;
  size_t total_global_mem, shared_mem_per_block;
  int regs_per_block, warp_size;
  size_t mem_pitch;
  int max_threads_per_block, max_threads_dim[3], max_grid_size[3], clock_rate;
  size_t total_const_mem;
  int major, minor;
  size_t texture_alignment, texture_pitch_alignment;
  int device_overlap, multi_processor_count, kernel_exec_timeout_enabled,
      integrated, can_map_host_memory, compute_mode;
  int textures_and_surfaces[40]; // maxTexture1D to maxSurfaceCubemapLayered
  size_t surface_alignment;
  int concurrent_kernels, ecc_enabled, pci_bus_id, pci_device_id, pci_domain_id,
      tcc_driver, async_engine_count, unified_addressing, memory_clock_rate,
      memory_bus_width, l2_cache_size, persisting_l2_cache_max_size,
      max_threads_per_multi_processor, stream_priorities_supported,
      global_l1_cache_supported, local_l1_cache_supported;
  size_t shared_mem_per_multiprocessor;
  int regs_per_multiprocessor, managed_memory, is_multi_gpu_board,
      multi_gpu_board_group_id, host_native_atomic_supported,
      single_to_double_precision_perf_ratio, pageable_memory_access,
      concurrent_managed_access, compute_preemption_supported,
      can_use_host_pointer_for_registered_mem, cooperative_launch,
      cooperative_multi_device_launch;
  size_t shared_mem_per_block_optin;
  int pageable_memory_access_uses_host_page_tables,
      direct_managed_mem_access_from_host, max_blocks_per_multi_processor,
      access_policy_max_window_size;
  size_t reserved_shared_mem_per_block;
  int host_register_supported, sparse_cuda_array_supported,
      host_register_read_only_supported, timeline_semaphore_interop_supported,
      memory_pools_supported, gpu_direct_rdma_supported;
  unsigned gpu_direct_rdma_flush_writes_options;
  int gpu_direct_rdma_writes_ordering;
  unsigned memory_pool_supported_handle_types;
  int deferred_mapping_cuda_array_supported, ipc_event_supported,
      cluster_launch, unified_function_pointers, reserved[63];
} properties_t;

_Static_assert(offsetof(properties_t, pci_domain_id) == 592 &&
                   offsetof(properties_t, host_register_supported) == 728 &&
                   offsetof(properties_t, memory_pools_supported) == 744 &&
                   sizeof(properties_t) == 1032,
               "laid out as in CUDA 12.8");

static int attribute(enum cudaDeviceAttr which) {
  int value = 0;
  (void)cudaDeviceGetAttribute(&value, which, 0);
  return value;
}

static properties_t describe(const struct cudaDeviceProp *p) {
  properties_t q = {
      .uuid = p->uuid,
      .total_global_mem = p->totalGlobalMem,
      .shared_mem_per_block = p->sharedMemPerBlock,
      .regs_per_block = p->regsPerBlock,
      .warp_size = p->warpSize,
      .mem_pitch = p->memPitch,
      .max_threads_per_block = p->maxThreadsPerBlock,
      .clock_rate = attribute(cudaDevAttrClockRate),
      .total_const_mem = p->totalConstMem,
      .major = p->major,
      .minor = p->minor,
      .texture_alignment = p->textureAlignment,
      .texture_pitch_alignment = p->texturePitchAlignment,
      .device_overlap = attribute(cudaDevAttrGpuOverlap),
      .multi_processor_count = p->multiProcessorCount,
      .integrated = p->integrated,
      .can_map_host_memory = p->canMapHostMemory,
      .compute_mode = attribute(cudaDevAttrComputeMode),
      .surface_alignment = p->surfaceAlignment,
      .concurrent_kernels = p->concurrentKernels,
      .pci_bus_id = p->pciBusID,
      .pci_device_id = p->pciDeviceID,
      .pci_domain_id = p->pciDomainID,
      .async_engine_count = p->asyncEngineCount,
      .unified_addressing = p->unifiedAddressing,
      .memory_clock_rate = attribute(cudaDevAttrMemoryClockRate),
      .memory_bus_width = p->memoryBusWidth,
      .l2_cache_size = p->l2CacheSize,
      .max_threads_per_multi_processor = p->maxThreadsPerMultiProcessor,
      .stream_priorities_supported = p->streamPrioritiesSupported,
      .global_l1_cache_supported = p->globalL1CacheSupported,
      .local_l1_cache_supported = p->localL1CacheSupported,
      .shared_mem_per_multiprocessor = p->sharedMemPerMultiprocessor,
      .regs_per_multiprocessor = p->regsPerMultiprocessor,
      .managed_memory = p->managedMemory,
      .single_to_double_precision_perf_ratio =
          attribute(cudaDevAttrSingleToDoublePrecisionPerfRatio),
      .concurrent_managed_access = p->concurrentManagedAccess,
      .can_use_host_pointer_for_registered_mem =
          p->canUseHostPointerForRegisteredMem,
      .shared_mem_per_block_optin = p->sharedMemPerBlockOptin,
      .max_blocks_per_multi_processor = p->maxBlocksPerMultiProcessor,
      .reserved_shared_mem_per_block = p->reservedSharedMemPerBlock,
      .host_register_supported = p->hostRegisterSupported,
      .host_register_read_only_supported = p->hostRegisterReadOnlySupported,
      .memory_pools_supported = p->memoryPoolsSupported,
  };
  memcpy(q.name, p->name, sizeof q.name);
  memcpy(q.max_threads_dim, p->maxThreadsDim, sizeof q.max_threads_dim);
  memcpy(q.max_grid_size, p->maxGridSize, sizeof q.max_grid_size);
  return q;
}

static cudaError_t properties_give(void *out, size_t bytes, int device) {
  struct cudaDeviceProp ours;
  if (!out)
    return host_result(cudaErrorInvalidValue);
  cudaError_t error = cudaGetDeviceProperties(&ours, device);
  if (error)
    return error;
  properties_t theirs = describe(&ours);
  memcpy(out, &theirs, bytes);
  return cudaSuccess;
}

TWELVE(properties_get_v2, "cudaGetDeviceProperties_v2",
       (properties_t * out, int device)) {
  return properties_give(out, sizeof *out, device);
}

TWELVE(properties_get, "cudaGetDeviceProperties", (void *out, int device)) {
  return properties_give(out, offsetof(properties_t, host_register_supported),
                         device);
}

typedef struct pointer_attributes {
  enum cudaMemoryType type;
  int device;
  void *device_pointer, *host_pointer;
} pointer_attributes_t;

TWELVE(pointer_attributes, "cudaPointerGetAttributes",
       (pointer_attributes_t * out, const void *pointer)) {
  struct cudaPointerAttributes ours;
  if (!out)
    return host_result(cudaErrorInvalidValue);
  cudaError_t error = cudaPointerGetAttributes(&ours, pointer);
  if (error == cudaSuccess)
    *out = (pointer_attributes_t){ours.type, ours.device, ours.devicePointer,
                                  ours.hostPointer};
  return error;
}

// ---- graphs without data of edges ----

TWELVE(add_dependencies, "cudaGraphAddDependencies",
       (cudaGraph_t graph, const cudaGraphNode_t *from,
        const cudaGraphNode_t *to, size_t count)) {
  return cudaGraphAddDependencies(graph, from, to, NULL, count);
}

TWELVE(remove_dependencies, "cudaGraphRemoveDependencies",
       (cudaGraph_t graph, const cudaGraphNode_t *from,
        const cudaGraphNode_t *to, size_t count)) {
  return cudaGraphRemoveDependencies(graph, from, to, NULL, count);
}

TWELVE(get_edges, "cudaGraphGetEdges",
       (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
        size_t *count)) {
  return cudaGraphGetEdges(graph, from, to, NULL, count);
}

TWELVE(get_dependencies, "cudaGraphNodeGetDependencies",
       (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)) {
  return cudaGraphNodeGetDependencies(node, nodes, NULL, count);
}

TWELVE(get_dependents, "cudaGraphNodeGetDependentNodes",
       (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count)) {
  return cudaGraphNodeGetDependentNodes(node, nodes, NULL, count);
}

TWELVE(add_node, "cudaGraphAddNode",
       (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *needs,
        size_t count, struct cudaGraphNodeParams *params)) {
  return cudaGraphAddNode(node, graph, needs, NULL, count, params);
}

TWELVE(capture_info, "cudaStreamGetCaptureInfo",
       (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
        unsigned long long *id)) {
  return cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL);
}

TWELVE(capture_info_ptsz, "cudaStreamGetCaptureInfo_ptsz",
       (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
        unsigned long long *id)) {
  return capture_info(OWN(stream), status, id);
}

TWELVE(capture_info_v2, "cudaStreamGetCaptureInfo_v2",
       (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
        unsigned long long *id, cudaGraph_t *graph,
        const cudaGraphNode_t **nodes, size_t *count)) {
  return cudaStreamGetCaptureInfo(stream, status, id, graph, nodes, NULL,
                                  count);
}

TWELVE(capture_info_v2_ptsz, "cudaStreamGetCaptureInfo_v2_ptsz",
       (cudaStream_t stream, enum cudaStreamCaptureStatus *status,
        unsigned long long *id, cudaGraph_t *graph,
        const cudaGraphNode_t **nodes, size_t *count)) {
  return capture_info_v2(OWN(stream), status, id, graph, nodes, count);
}

TWELVE(capture_update, "cudaStreamUpdateCaptureDependencies",
       (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count,
        unsigned flags)) {
  return cudaStreamUpdateCaptureDependencies(stream, nodes, NULL, count, flags);
}

TWELVE(capture_update_ptsz, "cudaStreamUpdateCaptureDependencies_ptsz",
       (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count,
        unsigned flags)) {
  return capture_update(OWN(stream), nodes, count, flags);
}

// ---- places by number ----

static struct cudaMemLocation place(int device) {
  return (struct cudaMemLocation){.type = device == cudaCpuDeviceId
                                              ? cudaMemLocationTypeHost
                                              : cudaMemLocationTypeDevice,
                                  .id = device == cudaCpuDeviceId ? 0 : device};
}

TWELVE(mem_advise, "cudaMemAdvise",
       (const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
        int device)) {
  return cudaMemAdvise(pointer, bytes, advice, place(device));
}

TWELVE(mem_prefetch, "cudaMemPrefetchAsync",
       (const void *pointer, size_t bytes, int device, cudaStream_t stream)) {
  return cudaMemPrefetchAsync(pointer, bytes, place(device), 0, stream);
}

TWELVE(mem_prefetch_ptsz, "cudaMemPrefetchAsync_ptsz",
       (const void *pointer, size_t bytes, int device, cudaStream_t stream)) {
  return mem_prefetch(pointer, bytes, device, OWN(stream));
}

// ---- second names ----

TWELVE(elapsed_time_v2, "cudaEventElapsedTime_v2",
       (float *ms, cudaEvent_t start, cudaEvent_t end)) {
  return cudaEventElapsedTime(ms, start, end);
}

TWELVE(thread_exit, "cudaThreadExit", (void)) {
  return cudaDeviceReset();
}

TWELVE(thread_synchronize, "cudaThreadSynchronize", (void)) {
  return cudaDeviceSynchronize();
}

TWELVE(thread_set_limit, "cudaThreadSetLimit",
       (enum cudaLimit limit, size_t value)) {
  return cudaDeviceSetLimit(limit, value);
}

TWELVE(thread_get_limit, "cudaThreadGetLimit",
       (size_t * value, enum cudaLimit limit)) {
  return cudaDeviceGetLimit(value, limit);
}

TWELVE(thread_set_cache, "cudaThreadSetCacheConfig",
       (enum cudaFuncCache config)) {
  return cudaDeviceSetCacheConfig(config);
}

TWELVE(thread_get_cache, "cudaThreadGetCacheConfig",
       (enum cudaFuncCache * config)) {
  return cudaDeviceGetCacheConfig(config);
}
