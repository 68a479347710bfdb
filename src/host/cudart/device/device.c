// SPDX-License-Identifier: Apache-2.0
// The one device: choosing it, waiting for it, resetting it.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/graph/memory.h"
#include "src/host/cudart/memory/advice.h"
#include "src/host/cudart/memory/pool.h"
#include "src/host/exports/unsupported.h"

#include <cuda_profiler_api.h>

static const unsigned known_flags = cudaDeviceScheduleMask | cudaDeviceMapHost |
                                    cudaDeviceLmemResizeToMax |
                                    cudaDeviceSyncMemops;
static _Atomic unsigned device_flags;

cudaError_t cudaRuntimeGetVersion(int *runtimeVersion) {
  if (!runtimeVersion)
    return host_result(cudaErrorInvalidValue);
  *runtimeVersion = HOST_CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *driverVersion) {
  return cudaRuntimeGetVersion(driverVersion);
}

cudaError_t cudaGetDeviceCount(int *count) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!count)
    return host_result(cudaErrorInvalidValue);
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!device)
    return host_result(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

static cudaError_t device_check(int device) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  return host_result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int device) {
  return device_check(device);
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags,
                           unsigned int flags) {
  (void)deviceFlags, (void)flags;
  return device_check(device);
}

cudaError_t cudaSetValidDevices(int *device_arr, int len) {
  if (len < 0 || (len > 0 && !device_arr))
    return host_result(cudaErrorInvalidValue);
  for (int i = 0; i < len; i++)
    if (device_arr[i] != 0)
      return host_result(cudaErrorInvalidDevice);
  return host_enter_query();
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop) {
  if (!prop)
    return host_result(cudaErrorInvalidValue);
  return cudaGetDevice(device);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  unsigned schedule = flags & cudaDeviceScheduleMask;
  if ((flags & ~known_flags) != 0 || (schedule & (schedule - 1)) != 0)
    return host_result(cudaErrorInvalidValue);
  atomic_store(&device_flags, flags);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned int *flags) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!flags)
    return host_result(cudaErrorInvalidValue);
  *flags = atomic_load(&device_flags) | cudaDeviceMapHost;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t error = host_enter();
  if (error == cudaSuccess)
    error = host_result(host_capture_everything());
  if (error)
    return error;
  host_stream_wait_all();
  host_pool_settle();
  return host_result(host_sticky());
}

// Frees all allocations, streams and events of the program.
cudaError_t cudaDeviceReset(void) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  host_stream_wait_all();
  host_stream_close_all();
  host_event_close_all();
  host_ipc_forget_all();
  host_pool_close_all();
  host_graph_memory_close_all();
  host_hint_forget(NULL, SIZE_MAX);
  host_region_free_all();
  host_sticky_clear();
  (void)cudaGetLastError();
  atomic_store(&device_flags, 0);
  return cudaSuccess;
}

// ---- peers: no other device exists ----

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device,
                                    int peerDevice) {
  if (!canAccessPeer)
    return host_result(cudaErrorInvalidValue);
  cudaError_t error = device_check(device);
  if (error == cudaSuccess)
    error = device_check(peerDevice);
  if (error == cudaSuccess)
    *canAccessPeer = 0;
  return error;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags) {
  (void)peerDevice, (void)flags;
  return host_result(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceDisablePeerAccess(int peerDevice) {
  (void)peerDevice;
  return host_result(cudaErrorInvalidDevice);
}

// ---- settings without an effect here ----

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache cacheConfig) {
  (void)cacheConfig;
  return host_enter_query();
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *pCacheConfig) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!pCacheConfig)
    return host_result(cudaErrorInvalidValue);
  *pCacheConfig = cudaFuncCachePreferNone;
  return cudaSuccess;
}

// A limit can be read back. It limits nothing, because no kernel runs.
static _Atomic size_t limits[cudaLimitPersistingL2CacheSize + 1] = {
    [cudaLimitStackSize] = 1 << 10,
    [cudaLimitPrintfFifoSize] = 1 << 20,
    [cudaLimitMallocHeapSize] = 8 << 20,
    [cudaLimitDevRuntimeSyncDepth] = 2,
    [cudaLimitDevRuntimePendingLaunchCount] = 2048,
    [cudaLimitMaxL2FetchGranularity] = 64,
};

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if ((unsigned)limit > cudaLimitPersistingL2CacheSize)
    return host_result(cudaErrorUnsupportedLimit);
  atomic_store(&limits[limit], value);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *pValue, enum cudaLimit limit) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!pValue)
    return host_result(cudaErrorInvalidValue);
  if ((unsigned)limit > cudaLimitPersistingL2CacheSize)
    return host_result(cudaErrorUnsupportedLimit);
  *pValue = atomic_load(&limits[limit]);
  return cudaSuccess;
}

cudaError_t cudaProfilerStart(void) {
  return host_enter_query();
}

cudaError_t cudaProfilerStop(void) {
  return host_enter_query();
}

// ---- the driver ------------------------------------------------------------

// It has no functions here. A caller that wants a status is told by it, as in
// CUDA; others get an error.

cudaError_t cudaGetDriverEntryPointByVersion(
    const char *symbol, void **funcPtr, unsigned int cudaVersion,
    unsigned long long flags,
    enum cudaDriverEntryPointQueryResult *driverStatus) {
  (void)cudaVersion, (void)flags;
  static _Atomic int said;
  if (!symbol || !funcPtr)
    return host_result(cudaErrorInvalidValue);
  *funcPtr = NULL;
  if (driverStatus) {
    *driverStatus = cudaDriverEntryPointSymbolNotFound;
    return host_result(cudaSuccess);
  }
  host_unsupported("cudaGetDriverEntryPoint", &said);
  return host_result(cudaErrorNotSupported);
}

cudaError_t
cudaGetDriverEntryPoint(const char *symbol, void **funcPtr,
                        unsigned long long flags,
                        enum cudaDriverEntryPointQueryResult *driverStatus) {
  return cudaGetDriverEntryPointByVersion(symbol, funcPtr, HOST_CUDART_VERSION,
                                          flags, driverStatus);
}
