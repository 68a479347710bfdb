// SPDX-License-Identifier: Apache-2.0
// Host memory that the device may use: pinned, managed, registered.
#include "src/host/cudart/graph/capture.h"

#include <pthread.h>

enum { REGISTERED_MAX = 4096 };

// A registered range; base 0 = none. Written under the lock, bytes first.
typedef struct registered {
  _Atomic uintptr_t base;
  _Atomic size_t bytes;
  unsigned flags;
} registered_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static registered_t registered[REGISTERED_MAX];
static _Atomic int registered_count; // entries ever used

static const unsigned alloc_flags =
    cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
static const unsigned register_flags =
    cudaHostRegisterPortable | cudaHostRegisterMapped |
    cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;

static cudaError_t allocate(host_kind_t kind, void **out_pointer,
                            size_t bytes) {
  host_region_t *region = host_region_own(kind);
  void *pointer = region ? host_region_allocate(region, bytes) : NULL;
  if (!pointer)
    return cudaErrorMemoryAllocation;
  *out_pointer = pointer;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pHost, size_t size, unsigned int flags) {
  cudaError_t error = host_enter_unsafe();
  if (error)
    return error;
  if (!pHost || (flags & ~alloc_flags) != 0)
    return host_result(cudaErrorInvalidValue);
  if (size == 0) {
    *pHost = NULL;
    return cudaSuccess;
  }
  return host_result(allocate(HOST_KIND_PINNED, pHost, size));
}

cudaError_t cudaMallocHost(void **ptr, size_t size) {
  return cudaHostAlloc(ptr, size, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *ptr) {
  cudaError_t error = host_enter_unsafe();
  if (error || !ptr)
    return error;
  host_block_t block;
  host_stream_wait_all();
  if (!host_block_find(ptr, &block) || block.region->kind != HOST_KIND_PINNED ||
      !host_region_free((host_region_t *)block.region, ptr))
    return host_result(cudaErrorInvalidValue);
  return cudaSuccess;
}

cudaError_t cudaMallocManaged(void **devPtr, size_t size, unsigned int flags) {
  cudaError_t error = host_enter_unsafe();
  if (error)
    return error;
  if (!devPtr || size == 0 ||
      (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return host_result(cudaErrorInvalidValue);
  return host_result(allocate(HOST_KIND_MANAGED, devPtr, size));
}

// ---- registered memory ----

bool host_registered_find(const void *pointer, size_t bytes) {
  int count = atomic_load_explicit(&registered_count, memory_order_acquire);
  for (int i = 0; i < count; i++) {
    uintptr_t base =
        atomic_load_explicit(&registered[i].base, memory_order_acquire);
    size_t size =
        atomic_load_explicit(&registered[i].bytes, memory_order_acquire);
    size_t offset = (uintptr_t)pointer - base;
    if (base != 0 && offset < size && bytes <= size - offset)
      return true;
  }
  return false;
}

static registered_t *find_locked(const void *pointer) {
  for (int i = 0; i < registered_count; i++)
    if (registered[i].base == (uintptr_t)pointer)
      return &registered[i];
  return NULL;
}

static cudaError_t register_locked(void *pointer, size_t bytes,
                                   unsigned flags) {
  registered_t *entry = NULL;
  for (int i = 0; i < registered_count; i++) {
    uintptr_t base = registered[i].base;
    if (base == 0)
      entry = &registered[i];
    else if (base < (uintptr_t)pointer + bytes &&
             (uintptr_t)pointer < base + registered[i].bytes)
      return cudaErrorHostMemoryAlreadyRegistered;
  }
  if (!entry) {
    if (registered_count == REGISTERED_MAX)
      return cudaErrorMemoryAllocation;
    entry = &registered[registered_count];
  }
  entry->flags = flags;
  atomic_store(&entry->bytes, bytes);
  atomic_store(&entry->base, (uintptr_t)pointer);
  if (entry == &registered[registered_count])
    atomic_fetch_add(&registered_count, 1);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags) {
  cudaError_t error = host_enter_unsafe();
  if (error)
    return error;
  host_block_t block;
  if (!ptr || size == 0 || (flags & ~register_flags) != 0 ||
      host_address_is_guarded(ptr))
    return host_result(cudaErrorInvalidValue);
  if (host_block_find(ptr, &block))
    return host_result(cudaErrorHostMemoryAlreadyRegistered);
  pthread_mutex_lock(&lock);
  error = register_locked(ptr, size, flags);
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

cudaError_t cudaHostUnregister(void *ptr) {
  cudaError_t error = host_enter_unsafe();
  if (error)
    return error;
  if (!ptr)
    return host_result(cudaErrorInvalidValue);
  host_stream_wait_all();
  pthread_mutex_lock(&lock);
  registered_t *entry = find_locked(ptr);
  if (entry)
    atomic_store(&entry->base, 0);
  pthread_mutex_unlock(&lock);
  return host_result(entry ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

// ---- questions about addresses ----

static bool is_pinned(const void *pointer) {
  host_block_t block;
  if (host_block_find(pointer, &block))
    return block.region->kind == HOST_KIND_PINNED;
  return host_registered_find(pointer, 0);
}

cudaError_t cudaHostGetDevicePointer(void **pDevice, void *pHost,
                                     unsigned int flags) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!pDevice || flags != 0 || !is_pinned(pHost))
    return host_result(cudaErrorInvalidValue);
  *pDevice = pHost;
  return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned int *pFlags, void *pHost) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!pFlags || !is_pinned(pHost))
    return host_result(cudaErrorInvalidValue);
  // Every pinned allocation is mapped and portable.
  *pFlags = cudaHostAllocMapped | cudaHostAllocPortable;
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                     const void *ptr) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!attributes)
    return host_result(cudaErrorInvalidValue);
  host_block_t block;
  struct cudaPointerAttributes found = {.type = cudaMemoryTypeUnregistered,
                                        .device = cudaInvalidDeviceId};
  void *pointer = (void *)ptr;
  if (host_block_find(ptr, &block)) {
    found.device = 0;
    found.devicePointer = pointer;
    switch (block.region->kind) {
    case HOST_KIND_DEVICE:
    case HOST_KIND_IMPORT:
      found.type = cudaMemoryTypeDevice;
      break;
    case HOST_KIND_PINNED:
      found.type = cudaMemoryTypeHost;
      found.hostPointer = pointer;
      break;
    case HOST_KIND_MANAGED:
      found.type = cudaMemoryTypeManaged;
      found.hostPointer = pointer;
      break;
    }
  } else if (host_registered_find(ptr, 0)) {
    found.type = cudaMemoryTypeHost;
    found.device = 0;
    found.devicePointer = found.hostPointer = pointer;
  } else if (!host_address_is_guarded(ptr)) {
    found.hostPointer = pointer;
  }
  *attributes = found;
  return cudaSuccess;
}
