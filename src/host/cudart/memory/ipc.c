// SPDX-License-Identifier: Apache-2.0
// Device memory of another process: handles are exported, opened and closed.
//
// A handle names the exporter's memfd as /proc/PID/fd/FD. Only a process that
// may trace the exporter, of the same user, can open it. The inode
// distinguishes a process from a later one with the same number.
#include "src/host/cudart/internal.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/fd.h"

enum { HANDLE_MAGIC = 0x53444731, EXPORTERS_MAX = 120, OPENED_MAX = 4096 };

typedef struct handle {
  uint32_t magic;
  int32_t pid, fd;
  uint32_t padding;
  uint64_t device, inode; // of the memfd
  uint64_t reserved_bytes;
  uint64_t offset, bytes; // of the allocation
} handle_t;

_Static_assert(sizeof(handle_t) <= sizeof(cudaIpcMemHandle_t),
               "fits in a handle");

typedef struct exporter {
  uint64_t device, inode;
  host_region_t *region;
} exporter_t;

typedef struct opened {
  host_region_t *region; // NULL: free
  uint64_t offset, bytes;
  int count; // opens minus closes
} opened_t;

// Guards both tables; taken before the lock of the regions.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static exporter_t exporters[EXPORTERS_MAX];
static int exporter_count;
static opened_t opened[OPENED_MAX];

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_block_t block;
  struct stat status;
  if (!handle || !host_block_find(devPtr, &block) ||
      block.region->kind != HOST_KIND_DEVICE)
    return host_result(cudaErrorInvalidValue);
  if (fstat(block.region->fd, &status) != 0)
    return host_result(cudaErrorOperatingSystem);
  handle_t mine = {
      .magic = HANDLE_MAGIC,
      .pid = getpid(),
      .fd = block.region->fd,
      .device = status.st_dev,
      .inode = status.st_ino,
      .reserved_bytes = block.region->reserved_bytes,
      .offset = (uint64_t)(block.base - block.region->base),
      .bytes = block.bytes,
  };
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &mine, sizeof mine);
  return cudaSuccess;
}

// The exporter's memory, mapped when its first handle is opened.
static cudaError_t region_for(const handle_t *handle,
                              host_region_t **out_region) {
  for (int i = 0; i < exporter_count; i++)
    if (exporters[i].device == handle->device &&
        exporters[i].inode == handle->inode) {
      *out_region = exporters[i].region;
      return cudaSuccess;
    }
  if (exporter_count == EXPORTERS_MAX)
    return cudaErrorTooManyPeers;
  char path[64];
  struct stat status;
  snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->pid, handle->fd);
  int fd = sdg_fd_raise(open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (fd < 0)
    return cudaErrorMapBufferObjectFailed;
  if (fstat(fd, &status) != 0 || status.st_dev != handle->device ||
      status.st_ino != handle->inode ||
      (uint64_t)status.st_size != handle->reserved_bytes) {
    close(fd);
    return cudaErrorMapBufferObjectFailed;
  }
  host_region_t *region = host_region_import(fd, handle->reserved_bytes);
  if (!region)
    return cudaErrorMapBufferObjectFailed;
  exporters[exporter_count++] =
      (exporter_t){handle->device, handle->inode, region};
  *out_region = region;
  return cudaSuccess;
}

static cudaError_t open_locked(const handle_t *handle, void **out_pointer) {
  host_region_t *region;
  cudaError_t error = region_for(handle, &region);
  if (error)
    return error;
  opened_t *free_entry = NULL;
  for (int i = 0; i < OPENED_MAX; i++) {
    opened_t *entry = &opened[i];
    if (!entry->region) {
      if (!free_entry)
        free_entry = entry;
    } else if (entry->region == region && entry->offset == handle->offset &&
               entry->bytes == handle->bytes) {
      entry->count++;
      *out_pointer = region->base + handle->offset;
      return cudaSuccess;
    }
  }
  if (!free_entry)
    return cudaErrorMemoryAllocation;
  if (!host_region_mark(region, handle->offset, handle->bytes))
    return cudaErrorInvalidResourceHandle;
  *free_entry = (opened_t){region, handle->offset, handle->bytes, 1};
  *out_pointer = region->base + handle->offset;
  return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle,
                                 unsigned int flags) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  handle_t theirs;
  memcpy(&theirs, &handle, sizeof theirs);
  if (!devPtr || flags != cudaIpcMemLazyEnablePeerAccess ||
      theirs.magic != HANDLE_MAGIC)
    return host_result(cudaErrorInvalidValue);
  if (theirs.pid == getpid())
    return host_result(cudaErrorDeviceUninitialized);
  pthread_mutex_lock(&lock);
  error = open_locked(&theirs, devPtr);
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_stream_wait_all();
  error = cudaErrorInvalidValue;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < OPENED_MAX; i++) {
    opened_t *entry = &opened[i];
    if (!entry->region || entry->region->base + entry->offset != devPtr)
      continue;
    if (--entry->count == 0) {
      host_region_unmark(entry->region, entry->offset);
      entry->region = NULL;
    }
    error = cudaSuccess;
    break;
  }
  pthread_mutex_unlock(&lock);
  return host_result(error);
}

// Open handles are unmarked with the rest of their region.
void host_ipc_forget_all(void) {
  pthread_mutex_lock(&lock);
  memset(opened, 0, sizeof opened);
  pthread_mutex_unlock(&lock);
}
