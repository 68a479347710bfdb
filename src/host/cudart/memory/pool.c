// SPDX-License-Identifier: Apache-2.0
// cudaMemPool*: accounts of stream-ordered allocations.
//
// All device memory is one stock (region.c). A pool only counts: the bytes
// allocated from it, and those that it would hold in reserve. The reserve is
// the memory freed, up to the release threshold, until it is trimmed.
#include "src/host/cudart/memory/pool.h"

#include <pthread.h>
#include <stdlib.h>

// If memory is short, uthash leaves the element out instead of exiting.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

static const uint64_t grain_bytes = (uint64_t)2 << 20;

struct CUmemPoolHandle_st {
  struct CUmemPoolHandle_st *next;
  bool alive; // has a handle; allocations may outlive it
  uint64_t limit, threshold;
  uint64_t used, used_high, reserved, reserved_high;
  int reuse[3]; // by attribute - cudaMemPoolReuseFollowEventDependencies
};

typedef struct entry {
  const void *pointer;
  uint64_t bytes;
  cudaMemPool_t pool;
  UT_hash_handle hh;
} entry_t;

// Guards all of it; taken before the lock of the regions.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUmemPoolHandle_st standard = {.alive = true, .reuse = {1, 1, 1}};
static cudaMemPool_t pools = &standard, current = &standard;
static entry_t *entries;
static _Atomic bool in_use; // something was allocated from a pool

static bool known(cudaMemPool_t pool) {
  cudaMemPool_t p = pools;
  while (p && p != pool)
    p = p->next;
  return p && p->alive;
}

static uint64_t grains(uint64_t bytes) {
  return (bytes + grain_bytes - 1) / grain_bytes * grain_bytes;
}

// Lowers the reserved bytes to `keep`, or to the bytes in use if these are
// more.
static void trim(cudaMemPool_t pool, uint64_t keep) {
  uint64_t least = grains(pool->used);
  if (least < keep)
    least = keep;
  if (pool->reserved > least)
    pool->reserved = least;
}

static void pool_free(cudaMemPool_t pool) {
  cudaMemPool_t *at = &pools;
  if (pool->alive || pool->used > 0)
    return;
  while (*at != pool)
    at = &(*at)->next;
  *at = pool->next;
  free(pool);
}

// ---- allocations ----

static cudaError_t account_locked(cudaMemPool_t pool, void **out_pointer,
                                  size_t bytes) {
  if (bytes > pool->limit - pool->used && pool->limit > 0)
    return cudaErrorMemoryAllocation;
  entry_t *entry = malloc(sizeof *entry);
  if (!entry)
    return cudaErrorMemoryAllocation;
  cudaError_t error = host_device_allocate(out_pointer, bytes);
  if (error || bytes == 0) {
    free(entry);
    return error;
  }
  *entry = (entry_t){.pointer = *out_pointer, .bytes = bytes, .pool = pool};
  HASH_ADD_PTR(entries, pointer, entry);
  if (!entry->hh.tbl) { // not counted for any pool
    free(entry);
    return cudaSuccess;
  }
  atomic_store_explicit(&in_use, true, memory_order_relaxed);
  pool->used += bytes;
  if (pool->used > pool->used_high)
    pool->used_high = pool->used;
  if (grains(pool->used) > pool->reserved)
    pool->reserved = grains(pool->used);
  if (pool->reserved > pool->reserved_high)
    pool->reserved_high = pool->reserved;
  return cudaSuccess;
}

cudaError_t host_pool_allocate(cudaMemPool_t pool, void **out_pointer,
                               size_t bytes) {
  pthread_mutex_lock(&lock);
  cudaError_t error =
      pool && !known(pool)
          ? cudaErrorInvalidValue
          : account_locked(pool ? pool : current, out_pointer, bytes);
  pthread_mutex_unlock(&lock);
  return error;
}

void host_pool_forget(const void *pointer) {
  entry_t *entry;
  if (!atomic_load_explicit(&in_use, memory_order_relaxed))
    return;
  pthread_mutex_lock(&lock);
  HASH_FIND_PTR(entries, &pointer, entry);
  if (entry) {
    HASH_DEL(entries, entry);
    entry->pool->used -= entry->bytes;
    pool_free(entry->pool);
    free(entry);
  }
  pthread_mutex_unlock(&lock);
}

void host_pool_settle(void) {
  if (!atomic_load_explicit(&in_use, memory_order_relaxed))
    return;
  pthread_mutex_lock(&lock);
  for (cudaMemPool_t pool = pools; pool; pool = pool->next)
    trim(pool, pool->threshold);
  pthread_mutex_unlock(&lock);
}

void host_pool_close_all(void) {
  entry_t *entry, *next;
  pthread_mutex_lock(&lock);
  HASH_ITER(hh, entries, entry, next) {
    HASH_DEL(entries, entry);
    free(entry);
  }
  for (cudaMemPool_t pool = pools, after; pool; pool = after) {
    after = pool->next;
    if (pool != &standard)
      free(pool);
  }
  standard = (struct CUmemPoolHandle_st){.alive = true, .reuse = {1, 1, 1}};
  pools = current = &standard;
  pthread_mutex_unlock(&lock);
}

// ---- pools ----

static bool is_device(const struct cudaMemLocation *location) {
  return location && location->type == cudaMemLocationTypeDevice &&
         location->id == 0;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *memPool,
                              const struct cudaMemPoolProps *poolProps) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!memPool || !poolProps ||
      poolProps->allocType != cudaMemAllocationTypePinned)
    return host_result(cudaErrorInvalidValue);
  if (poolProps->location.type == cudaMemLocationTypeDevice &&
      !is_device(&poolProps->location))
    return host_result(cudaErrorInvalidDevice);
  // Pools in host memory, and pools shared with other processes, are refused.
  if (!is_device(&poolProps->location) ||
      poolProps->handleTypes != cudaMemHandleTypeNone)
    return host_result(cudaErrorNotSupported);
  cudaMemPool_t made = malloc(sizeof *made);
  if (!made)
    return host_result(cudaErrorMemoryAllocation);
  pthread_mutex_lock(&lock);
  *made = (struct CUmemPoolHandle_st){.next = pools,
                                      .alive = true,
                                      .limit = poolProps->maxSize,
                                      .reuse = {1, 1, 1}};
  pools = made;
  pthread_mutex_unlock(&lock);
  *memPool = made;
  return cudaSuccess;
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t memPool) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  pthread_mutex_lock(&lock);
  if (memPool == &standard || !known(memPool)) {
    error = cudaErrorInvalidValue;
  } else {
    if (current == memPool)
      current = &standard;
    memPool->alive = false;
    pool_free(memPool);
  }
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

static cudaError_t give(cudaMemPool_t pool, cudaMemPool_t *out_pool,
                        int device) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!out_pool || device != 0)
    return host_result(out_pool ? cudaErrorInvalidDevice
                                : cudaErrorInvalidValue);
  *out_pool = pool;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *memPool, int device) {
  return give(&standard, memPool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *memPool, int device) {
  pthread_mutex_lock(&lock);
  cudaMemPool_t pool = current;
  pthread_mutex_unlock(&lock);
  return give(pool, memPool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t memPool) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (device != 0)
    return host_result(cudaErrorInvalidDevice);
  pthread_mutex_lock(&lock);
  if (known(memPool))
    current = memPool;
  else
    error = cudaErrorInvalidValue;
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t memPool, size_t minBytesToKeep) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  pthread_mutex_lock(&lock);
  if (known(memPool))
    trim(memPool, minBytesToKeep);
  else
    error = cudaErrorInvalidValue;
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

// ---- attributes ----

// The number that the attribute reads; NULL for the switches.
static uint64_t *number_of(cudaMemPool_t pool, enum cudaMemPoolAttr attribute) {
  switch (attribute) {
  case cudaMemPoolAttrReleaseThreshold:
    return &pool->threshold;
  case cudaMemPoolAttrReservedMemCurrent:
    return &pool->reserved;
  case cudaMemPoolAttrReservedMemHigh:
    return &pool->reserved_high;
  case cudaMemPoolAttrUsedMemCurrent:
    return &pool->used;
  case cudaMemPoolAttrUsedMemHigh:
    return &pool->used_high;
  default:
    return NULL;
  }
}

static int *switch_of(cudaMemPool_t pool, enum cudaMemPoolAttr attribute) {
  int at = (int)attribute - cudaMemPoolReuseFollowEventDependencies;
  return at >= 0 && at < 3 ? &pool->reuse[at] : NULL;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t memPool,
                                    enum cudaMemPoolAttr attr, void *value) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  pthread_mutex_lock(&lock);
  if (!value || !known(memPool))
    error = cudaErrorInvalidValue;
  else if (number_of(memPool, attr))
    *(uint64_t *)value = *number_of(memPool, attr);
  else if (switch_of(memPool, attr))
    *(int *)value = *switch_of(memPool, attr);
  else
    error = cudaErrorInvalidValue;
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

static cudaError_t set_locked(cudaMemPool_t pool, enum cudaMemPoolAttr attr,
                              const void *value) {
  if (switch_of(pool, attr)) {
    *switch_of(pool, attr) = *(const int *)value;
    return cudaSuccess;
  }
  uint64_t number = *(const uint64_t *)value;
  switch (attr) {
  case cudaMemPoolAttrReleaseThreshold:
    pool->threshold = number;
    return cudaSuccess;
  case cudaMemPoolAttrReservedMemHigh: // lowered to the present value
    pool->reserved_high = pool->reserved;
    return number ? cudaErrorInvalidValue : cudaSuccess;
  case cudaMemPoolAttrUsedMemHigh:
    pool->used_high = pool->used;
    return number ? cudaErrorInvalidValue : cudaSuccess;
  default:
    return cudaErrorInvalidValue;
  }
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t memPool,
                                    enum cudaMemPoolAttr attr, void *value) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  pthread_mutex_lock(&lock);
  error = value && known(memPool) ? set_locked(memPool, attr, value)
                                  : cudaErrorInvalidValue;
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

// ---- access: the one device always has it ----

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t memPool,
                                 const struct cudaMemAccessDesc *descList,
                                 size_t count) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  pthread_mutex_lock(&lock);
  bool good = known(memPool) && (count == 0 || descList);
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; good && i < count; i++)
    good = is_device(&descList[i].location) &&
           descList[i].flags == cudaMemAccessFlagsProtReadWrite;
  return host_result(good ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags,
                                 cudaMemPool_t memPool,
                                 struct cudaMemLocation *location) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  pthread_mutex_lock(&lock);
  bool good = flags && known(memPool) && is_device(location);
  pthread_mutex_unlock(&lock);
  if (!good)
    return host_result(cudaErrorInvalidValue);
  *flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}
