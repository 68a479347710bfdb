// SPDX-License-Identifier: Apache-2.0
// The device's properties and attributes.
#include "src/host/cudart/internal.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int positive(long value, int otherwise) {
  return value > 0 && value < INT_MAX ? (int)value : otherwise;
}

static struct cudaDeviceProp describe(void) {
  // Programs compute launches from these limits; no kernel runs.
  struct cudaDeviceProp p = {
      .name = "sundog host device",
      .totalGlobalMem = host_memory_limit(),
      .sharedMemPerBlock = 48 << 10,
      .regsPerBlock = 1 << 16,
      .warpSize = 32,
      .memPitch = INT_MAX,
      .maxThreadsPerBlock = 1024,
      .maxThreadsDim = {1024, 1024, 64},
      .maxGridSize = {INT_MAX, 65535, 65535},
      .totalConstMem = 64 << 10,
      .major = 9,
      .minor = 0,
      .textureAlignment = 512,
      .texturePitchAlignment = 32,
      .multiProcessorCount = positive(sysconf(_SC_NPROCESSORS_ONLN), 1),
      .integrated = 0,
      .canMapHostMemory = 1,
      .surfaceAlignment = 512,
      .concurrentKernels = 1,
      .asyncEngineCount = 1,
      .unifiedAddressing = 1,
      .memoryBusWidth = 64,
      .l2CacheSize = positive(sysconf(_SC_LEVEL3_CACHE_SIZE), 1 << 20),
      .maxThreadsPerMultiProcessor = 2048,
      .streamPrioritiesSupported = 1,
      .globalL1CacheSupported = 1,
      .localL1CacheSupported = 1,
      .sharedMemPerMultiprocessor = 228 << 10,
      .regsPerMultiprocessor = 1 << 16,
      .managedMemory = 1,
      .concurrentManagedAccess = 1,
      .canUseHostPointerForRegisteredMem = 1,
      .sharedMemPerBlockOptin = 227 << 10,
      .maxBlocksPerMultiProcessor = 32,
      .reservedSharedMemPerBlock = 1 << 10,
      .hostRegisterSupported = 1,
      .hostRegisterReadOnlySupported = 1,
      .memoryPoolsSupported = 1,
      .deviceNumaConfig = cudaDeviceNumaConfigNone,
      .deviceNumaId = -1,
      .hostNumaId = -1,
  };
  // Each process has a device of its own that nobody shares, so the identifiers
  // differ between processes.
  int pid = getpid();
  memcpy(p.uuid.bytes, "sundog host", 12);
  memcpy(p.uuid.bytes + 12, &pid, sizeof pid);
  p.pciDomainID = pid;
  return p;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!prop)
    return host_result(cudaErrorInvalidValue);
  if (device != 0)
    return host_result(cudaErrorInvalidDevice);
  *prop = describe();
  return cudaSuccess;
}

// Finds the value; false for an attribute that does not exist. An attribute
// that is not listed is 0: the device does not have that feature.
static bool attribute_of(const struct cudaDeviceProp *p,
                         enum cudaDeviceAttr attribute, int *out_value) {
  if ((int)attribute < 1 || attribute >= cudaDevAttrMax)
    return false;
  switch (attribute) {
#define VALUE(name, value)                                                     \
  case cudaDevAttr##name:                                                      \
    *out_value = (int)(value);                                                 \
    break;
    VALUE(MaxThreadsPerBlock, p->maxThreadsPerBlock)
    VALUE(MaxBlockDimX, p->maxThreadsDim[0])
    VALUE(MaxBlockDimY, p->maxThreadsDim[1])
    VALUE(MaxBlockDimZ, p->maxThreadsDim[2])
    VALUE(MaxGridDimX, p->maxGridSize[0])
    VALUE(MaxGridDimY, p->maxGridSize[1])
    VALUE(MaxGridDimZ, p->maxGridSize[2])
    VALUE(MaxSharedMemoryPerBlock, p->sharedMemPerBlock)
    VALUE(TotalConstantMemory, p->totalConstMem)
    VALUE(WarpSize, p->warpSize)
    VALUE(MaxPitch, p->memPitch)
    VALUE(MaxRegistersPerBlock, p->regsPerBlock)
    VALUE(ClockRate, 1000000)
    VALUE(TextureAlignment, p->textureAlignment)
    VALUE(GpuOverlap, 1)
    VALUE(MultiProcessorCount, p->multiProcessorCount)
    VALUE(CanMapHostMemory, p->canMapHostMemory)
    VALUE(ComputeMode, cudaComputeModeDefault)
    VALUE(SurfaceAlignment, p->surfaceAlignment)
    VALUE(ConcurrentKernels, p->concurrentKernels)
    VALUE(PciDomainId, p->pciDomainID)
    VALUE(TexturePitchAlignment, p->texturePitchAlignment)
    VALUE(MemoryClockRate, 1000000)
    VALUE(GlobalMemoryBusWidth, p->memoryBusWidth)
    VALUE(L2CacheSize, p->l2CacheSize)
    VALUE(MaxThreadsPerMultiProcessor, p->maxThreadsPerMultiProcessor)
    VALUE(AsyncEngineCount, p->asyncEngineCount)
    VALUE(UnifiedAddressing, p->unifiedAddressing)
    VALUE(ComputeCapabilityMajor, p->major)
    VALUE(ComputeCapabilityMinor, p->minor)
    VALUE(StreamPrioritiesSupported, p->streamPrioritiesSupported)
    VALUE(GlobalL1CacheSupported, p->globalL1CacheSupported)
    VALUE(LocalL1CacheSupported, p->localL1CacheSupported)
    VALUE(MaxSharedMemoryPerMultiprocessor, p->sharedMemPerMultiprocessor)
    VALUE(MaxRegistersPerMultiprocessor, p->regsPerMultiprocessor)
    VALUE(ManagedMemory, p->managedMemory)
    VALUE(SingleToDoublePrecisionPerfRatio, 2)
    VALUE(ConcurrentManagedAccess, p->concurrentManagedAccess)
    VALUE(CanUseHostPointerForRegisteredMem,
          p->canUseHostPointerForRegisteredMem)
    VALUE(MaxSharedMemoryPerBlockOptin, p->sharedMemPerBlockOptin)
    VALUE(HostRegisterSupported, p->hostRegisterSupported)
    VALUE(MaxBlocksPerMultiprocessor, p->maxBlocksPerMultiProcessor)
    VALUE(ReservedSharedMemoryPerBlock, p->reservedSharedMemPerBlock)
    VALUE(HostRegisterReadOnlySupported, p->hostRegisterReadOnlySupported)
    VALUE(MemoryPoolsSupported, p->memoryPoolsSupported)
    VALUE(NumaId, p->deviceNumaId)
    VALUE(HostNumaId, p->hostNumaId)
#undef VALUE
  default:
    *out_value = 0;
  }
  return true;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr,
                                   int device) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!value)
    return host_result(cudaErrorInvalidValue);
  if (device != 0)
    return host_result(cudaErrorInvalidDevice);
  struct cudaDeviceProp properties = describe();
  return host_result(attribute_of(&properties, attr, value)
                         ? cudaSuccess
                         : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  char text[32];
  if (!pciBusId || device != 0)
    return host_result(device != 0 ? cudaErrorInvalidDevice
                                   : cudaErrorInvalidValue);
  int length = snprintf(text, sizeof text, "%04X:00:00.0", (unsigned)getpid());
  if (len <= length)
    return host_result(cudaErrorInvalidValue);
  memcpy(pciBusId, text, (size_t)length + 1);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  unsigned domain, bus, slot;
  if (!device || !pciBusId)
    return host_result(cudaErrorInvalidValue);
  if (sscanf(pciBusId, "%x:%x:%x", &domain, &bus, &slot) != 3 ||
      domain != (unsigned)getpid() || bus != 0 || slot != 0)
    return host_result(cudaErrorInvalidDevice);
  *device = 0;
  return cudaSuccess;
}
