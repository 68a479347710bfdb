// SPDX-License-Identifier: Apache-2.0
// Reserves the addresses of a region and maps memory to them.
//
// Device memory is mapped twice. Programs get addresses in the first half of a
// reservation, which is PROT_NONE unless a kernel's twin runs. The second half,
// at a constant distance, maps the memfd.
#include "src/host/cudart/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/fd.h"

// Limits for the memory that is kept for free chunks: bytes, and the divisor of
// the device's memory.
enum { STOCK_BYTES = 256 << 20, STOCK_PART = 16 };

int host_region_memory(size_t bytes) {
  int fd = sdg_fd_raise(memfd_create("sundog host device", MFD_CLOEXEC));
  if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
    return fd;
  host_log("no device memory: %s", strerror(errno));
  if (fd >= 0)
    close(fd);
  return -1;
}

static void *reserve(size_t bytes) {
  void *at = mmap(NULL, bytes + HOST_CHUNK_BYTES, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return NULL;
  char *start = (char *)(((uintptr_t)at + HOST_CHUNK_BYTES - 1) &
                         ~(HOST_CHUNK_BYTES - 1));
  size_t before = (size_t)(start - (char *)at);
  if (before > 0)
    munmap(at, before);
  munmap(start + bytes, HOST_CHUNK_BYTES - before);
  madvise(start, bytes, MADV_DONTDUMP);
  return start;
}

static bool map_device(host_region_t *region) {
  size_t bytes = region->reserved_bytes;
  char *base = reserve(2 * bytes);
  if (!base)
    return false;
  if (mmap(base + bytes, bytes, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_FIXED | MAP_NORESERVE, region->fd,
           0) == MAP_FAILED) {
    munmap(base, 2 * bytes);
    return false;
  }
  // A forked child cannot use the device and must not write to the parent's
  // memory, so it inherits only the inaccessible half.
  madvise(base + bytes, bytes, MADV_DONTFORK);
  madvise(base + bytes, bytes, MADV_DONTDUMP);
  madvise(base + bytes, bytes, MADV_HUGEPAGE);
  region->base = base;
  region->distance = (ptrdiff_t)bytes;
  return true;
}

static bool map_plain(host_region_t *region) {
  char *base = reserve(region->reserved_bytes);
  if (!base)
    return false;
  if (mprotect(base, region->reserved_bytes, PROT_READ | PROT_WRITE) != 0) {
    munmap(base, region->reserved_bytes);
    return false;
  }
  region->base = base;
  region->distance = 0;
  return true;
}

static void *table(size_t bytes) {
  void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

static bool map_tables(host_region_t *region) {
  size_t chunks = region->reserved_bytes / HOST_CHUNK_BYTES;
  region->chunks = chunks;
  region->chunk = table(chunks * sizeof *region->chunk);
  region->large_bytes = table(chunks * sizeof *region->large_bytes);
  region->kept = table(chunks * sizeof *region->kept);
  return region->chunk && region->large_bytes && region->kept;
}

static void unmap_tables(host_region_t *region) {
  if (region->chunk)
    munmap(region->chunk, region->chunks * sizeof *region->chunk);
  if (region->large_bytes)
    munmap(region->large_bytes, region->chunks * sizeof *region->large_bytes);
  if (region->kept)
    munmap(region->kept, region->chunks * sizeof *region->kept);
}

bool host_region_map(host_region_t *region) {
  if (map_tables(region) &&
      (region->fd >= 0 ? map_device(region) : map_plain(region)))
    return true;
  host_log("cannot reserve %zu MiB of addresses: %s "
           "(SUNDOG_HOST_MEMORY=BYTES asks for less)",
           region->reserved_bytes >> 20, strerror(errno));
  unmap_tables(region);
  return false;
}

bool host_region_guard(host_region_t *region, bool accessible) {
  size_t bytes = region->reserved_bytes;
  if (!region->mapped) {
    if (mmap(region->base, bytes, PROT_NONE,
             MAP_SHARED | MAP_FIXED | MAP_NORESERVE, region->fd,
             0) == MAP_FAILED)
      return false;
    madvise(region->base, bytes, MADV_DONTFORK);
    madvise(region->base, bytes, MADV_DONTDUMP);
    region->mapped = true;
  }
  return mprotect(region->base, bytes,
                  accessible ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

// ---- the memory of free chunks ----

static size_t stock_chunks(void) {
  size_t bytes = host_memory_limit() / STOCK_PART;
  return (bytes < STOCK_BYTES ? bytes : STOCK_BYTES) / HOST_CHUNK_BYTES;
}

void host_region_give_back(host_region_t *region, size_t first, size_t count) {
  size_t offset = first * HOST_CHUNK_BYTES, bytes = count * HOST_CHUNK_BYTES;
  if (region->kind == HOST_KIND_IMPORT)
    return;
  if (region->kept_chunks + count <= stock_chunks()) {
    memset(&region->kept[first], true, count * sizeof *region->kept);
    region->kept_chunks += count;
  } else if (region->fd >= 0) {
    (void)fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)offset, (off_t)bytes);
  } else {
    madvise(region->base + offset, bytes, MADV_DONTNEED);
  }
}

void host_region_take(host_region_t *region, size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    region->kept_chunks -= region->kept[i];
    region->kept[i] = false;
  }
}
