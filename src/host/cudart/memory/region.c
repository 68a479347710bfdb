// SPDX-License-Identifier: Apache-2.0
// Allocates parts of a reserved range of addresses and finds, without a lock,
// the allocation that contains an address.
//
// A region is a run of chunks of 2 MiB. An allocation above 1 MiB is a large
// block of whole chunks. A smaller one is a slot of a slab, which is a chunk
// cut into slots of one power of two. The descriptions of the allocations lie
// outside the region, so that no write through a device address can damage
// them.
#include "src/host/cudart/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REGIONS_MAX = 128 };

static const size_t chunk_bytes = HOST_CHUNK_BYTES;
static const size_t small_max_bytes = (size_t)1 << HOST_SLOT_MAX_SHIFT;

// Never freed, because a reader may have a stale pointer.
struct host_slab {
  host_slab_t *older;           // list of all slabs, for leak checkers
  host_slab_t *next, *previous; // in region->partial or region->spare
  size_t chunk;
  unsigned shift; // log2 of the slot bytes; constant
  unsigned used;
  unsigned first_free;      // no free slot below it
  _Atomic uint32_t bytes[]; // per slot: allocated bytes, 0 = free
};

// Guards everything but lookups; taken before no other lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static host_region_t regions[REGIONS_MAX];
static host_slab_t *newest_slab;
static _Atomic int region_count; // published regions, never removed

static size_t chunks_for(size_t bytes) {
  return (bytes + chunk_bytes - 1) >> HOST_CHUNK_SHIFT;
}

static unsigned slots_of(const host_slab_t *slab) {
  return 1u << (HOST_CHUNK_SHIFT - slab->shift);
}

static unsigned shift_for(size_t bytes) {
  unsigned shift = HOST_SLOT_MIN_SHIFT;
  while (((size_t)1 << shift) < bytes)
    shift++;
  return shift;
}

// Maps region number region_count, whose kind, size and fd are set, and
// publishes it. Called with the lock held.
static host_region_t *publish(host_region_t *region) {
  if (!host_region_map(region)) {
    memset(region, 0, sizeof *region);
    return NULL;
  }
  atomic_fetch_add_explicit(&region_count, 1, memory_order_release);
  return region;
}

static host_region_t *own_locked(host_kind_t kind) {
  int count = atomic_load_explicit(&region_count, memory_order_relaxed);
  for (int i = 0; i < count; i++)
    if (regions[i].kind == kind)
      return &regions[i];
  if (count == REGIONS_MAX)
    return NULL;
  host_region_t *region = &regions[count];
  memset(region, 0, sizeof *region);
  region->kind = kind;
  // Twice the memory, because rounding and fragmentation cost addresses.
  region->reserved_bytes =
      2 * (chunks_for(host_memory_limit()) + 16) * chunk_bytes;
  region->fd = -1;
  if (kind == HOST_KIND_DEVICE) {
    region->fd = host_region_memory(region->reserved_bytes);
    if (region->fd < 0)
      return NULL;
  }
  int fd = region->fd;
  region = publish(region);
  if (!region && fd >= 0)
    close(fd);
  return region;
}

host_region_t *host_region_own(host_kind_t kind) {
  pthread_mutex_lock(&lock);
  host_region_t *region = own_locked(kind);
  pthread_mutex_unlock(&lock);
  return region;
}

host_region_t *host_region_import(int fd, size_t reserved_bytes) {
  pthread_mutex_lock(&lock);
  int count = atomic_load_explicit(&region_count, memory_order_relaxed);
  host_region_t *region = NULL;
  if (count < REGIONS_MAX) {
    region = &regions[count];
    memset(region, 0, sizeof *region);
    region->kind = HOST_KIND_IMPORT;
    region->reserved_bytes = reserved_bytes;
    region->fd = fd;
    region = publish(region);
  }
  pthread_mutex_unlock(&lock);
  if (!region)
    close(fd);
  return region;
}

// ---- slabs ----

static void list_add(host_slab_t **list, host_slab_t *slab) {
  slab->previous = NULL;
  slab->next = *list;
  if (*list)
    (*list)->previous = slab;
  *list = slab;
}

static void list_remove(host_slab_t **list, host_slab_t *slab) {
  if (slab->previous)
    slab->previous->next = slab->next;
  else
    *list = slab->next;
  if (slab->next)
    slab->next->previous = slab->previous;
}

// First of `count` free chunks in a row; SIZE_MAX if no such run exists.
static size_t find_chunks(const host_region_t *region, size_t count) {
  size_t run = 0;
  for (size_t i = 0; i < region->chunks; i++) {
    run = atomic_load_explicit(&region->chunk[i], memory_order_relaxed) == 0
              ? run + 1
              : 0;
    if (run == count)
      return i + 1 - count;
  }
  return SIZE_MAX;
}

// A new empty slab over the chunk, put in the list of partial ones.
static host_slab_t *slab_create(host_region_t *region, size_t chunk,
                                unsigned shift) {
  unsigned class = shift - HOST_SLOT_MIN_SHIFT;
  host_slab_t *slab = region->spare[class];
  if (slab) {
    list_remove(&region->spare[class], slab);
  } else {
    size_t slots = (size_t)1 << (HOST_CHUNK_SHIFT - shift);
    slab = calloc(1, sizeof *slab + slots * sizeof slab->bytes[0]);
    if (!slab)
      return NULL;
    slab->shift = shift;
    slab->older = newest_slab;
    newest_slab = slab;
  }
  host_region_take(region, chunk, 1);
  slab->chunk = chunk;
  slab->used = 0;
  slab->first_free = 0;
  list_add(&region->partial[class], slab);
  atomic_store_explicit(&region->chunk[chunk], (uintptr_t)slab,
                        memory_order_release);
  return slab;
}

static void slab_destroy(host_region_t *region, host_slab_t *slab) {
  unsigned class = slab->shift - HOST_SLOT_MIN_SHIFT;
  list_remove(&region->partial[class], slab);
  list_add(&region->spare[class], slab);
  host_region_give_back(region, slab->chunk, 1);
  atomic_store_explicit(&region->chunk[slab->chunk], 0, memory_order_release);
}

static void slot_set(host_region_t *region, host_slab_t *slab, unsigned slot,
                     size_t bytes) {
  atomic_store_explicit(&slab->bytes[slot], (uint32_t)bytes,
                        memory_order_release);
  if (++slab->used == slots_of(slab))
    list_remove(&region->partial[slab->shift - HOST_SLOT_MIN_SHIFT], slab);
}

static void slot_clear(host_region_t *region, host_slab_t *slab,
                       unsigned slot) {
  host_slab_t **partial = &region->partial[slab->shift - HOST_SLOT_MIN_SHIFT];
  atomic_store_explicit(&slab->bytes[slot], 0, memory_order_release);
  if (slab->used-- == slots_of(slab))
    list_add(partial, slab);
  if (slot < slab->first_free)
    slab->first_free = slot;
  // Keep the last slab of a class, for programs that allocate and free in turn.
  if (slab->used == 0 && (slab->next || slab->previous))
    slab_destroy(region, slab);
}

static char *small_allocate(host_region_t *region, size_t bytes) {
  unsigned shift = shift_for(bytes);
  host_slab_t *slab = region->partial[shift - HOST_SLOT_MIN_SHIFT];
  if (!slab) {
    size_t chunk = find_chunks(region, 1);
    if (chunk == SIZE_MAX || !(slab = slab_create(region, chunk, shift)))
      return NULL;
  }
  unsigned slot = slab->first_free;
  while (atomic_load_explicit(&slab->bytes[slot], memory_order_relaxed) != 0)
    slot++;
  slab->first_free = slot + 1;
  slot_set(region, slab, slot, bytes);
  return region->base + (slab->chunk << HOST_CHUNK_SHIFT) +
         ((size_t)slot << shift);
}

// ---- large blocks ----

static void large_set(host_region_t *region, size_t first, size_t bytes) {
  size_t count = chunks_for(bytes);
  host_region_take(region, first, count);
  atomic_store_explicit(&region->large_bytes[first], bytes,
                        memory_order_release);
  for (size_t i = first; i < first + count; i++)
    atomic_store_explicit(&region->chunk[i], (uintptr_t)(first << 1 | 1),
                          memory_order_release);
}

static void large_clear(host_region_t *region, size_t first) {
  size_t bytes =
      atomic_load_explicit(&region->large_bytes[first], memory_order_relaxed);
  size_t count = chunks_for(bytes);
  atomic_store_explicit(&region->large_bytes[first], 0, memory_order_release);
  host_region_give_back(region, first, count);
  for (size_t i = first; i < first + count; i++)
    atomic_store_explicit(&region->chunk[i], 0, memory_order_release);
}

static char *large_allocate(host_region_t *region, size_t bytes) {
  size_t count = chunks_for(bytes);
  size_t first = find_chunks(region, count);
  if (first == SIZE_MAX)
    return NULL;
  large_set(region, first, bytes);
  return region->base + (first << HOST_CHUNK_SHIFT);
}

// ---- the interface ----

void *host_region_allocate(host_region_t *region, size_t bytes) {
  size_t limit = host_memory_limit();
  char *pointer = NULL;
  pthread_mutex_lock(&lock);
  if (bytes <= limit && region->used_bytes <= limit - bytes)
    pointer = bytes <= small_max_bytes ? small_allocate(region, bytes)
                                       : large_allocate(region, bytes);
  if (pointer)
    region->used_bytes += bytes;
  pthread_mutex_unlock(&lock);
  return pointer;
}

static bool region_find(const host_region_t *region, const void *pointer,
                        char **out_base, size_t *out_bytes) {
  size_t offset = (size_t)((const char *)pointer - region->base);
  if (offset >= region->reserved_bytes)
    return false;
  size_t chunk = offset >> HOST_CHUNK_SHIFT;
  uintptr_t entry =
      atomic_load_explicit(&region->chunk[chunk], memory_order_acquire);
  if (entry == 0)
    return false;
  if (entry & 1) {
    size_t first = entry >> 1;
    *out_base = region->base + (first << HOST_CHUNK_SHIFT);
    *out_bytes =
        atomic_load_explicit(&region->large_bytes[first], memory_order_acquire);
  } else {
    const host_slab_t *slab = (const host_slab_t *)entry;
    size_t slot = (offset & (chunk_bytes - 1)) >> slab->shift;
    *out_base =
        region->base + (chunk << HOST_CHUNK_SHIFT) + (slot << slab->shift);
    *out_bytes = atomic_load_explicit(&slab->bytes[slot], memory_order_acquire);
  }
  return *out_bytes > 0;
}

// Removes the allocation that starts at `base`.
static void forget(host_region_t *region, const char *base) {
  size_t offset = (size_t)(base - region->base);
  size_t chunk = offset >> HOST_CHUNK_SHIFT;
  uintptr_t entry =
      atomic_load_explicit(&region->chunk[chunk], memory_order_relaxed);
  if (entry & 1) {
    large_clear(region, chunk);
  } else {
    host_slab_t *slab = (host_slab_t *)entry;
    slot_clear(region, slab,
               (unsigned)((offset & (chunk_bytes - 1)) >> slab->shift));
  }
}

bool host_region_free(host_region_t *region, void *pointer) {
  char *base;
  size_t bytes;
  pthread_mutex_lock(&lock);
  bool found =
      region_find(region, pointer, &base, &bytes) && base == (char *)pointer;
  if (found) {
    forget(region, base);
    region->used_bytes -= bytes;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static bool mark_small(host_region_t *region, size_t offset, size_t bytes) {
  unsigned shift = shift_for(bytes);
  size_t chunk = offset >> HOST_CHUNK_SHIFT;
  uintptr_t entry =
      atomic_load_explicit(&region->chunk[chunk], memory_order_relaxed);
  if (entry & 1)
    return false;
  host_slab_t *slab = (host_slab_t *)entry;
  if (slab && slab->shift != shift) {
    if (slab->used > 0)
      return false;
    slab_destroy(region, slab);
    slab = NULL;
  }
  if (!slab && !(slab = slab_create(region, chunk, shift)))
    return false;
  unsigned slot = (unsigned)((offset & (chunk_bytes - 1)) >> shift);
  if (atomic_load_explicit(&slab->bytes[slot], memory_order_relaxed) != 0)
    return false;
  slot_set(region, slab, slot, bytes);
  return true;
}

// Marks a large block; may use chunks that only an empty slab occupies.
static bool mark_large(host_region_t *region, size_t offset, size_t bytes) {
  size_t first = offset >> HOST_CHUNK_SHIFT;
  size_t count = chunks_for(bytes);
  for (size_t i = first; i < first + count; i++) {
    uintptr_t entry =
        atomic_load_explicit(&region->chunk[i], memory_order_relaxed);
    if (entry & 1 || (entry && ((host_slab_t *)entry)->used > 0))
      return false;
    if (entry)
      slab_destroy(region, (host_slab_t *)entry);
  }
  large_set(region, first, bytes);
  return true;
}

bool host_region_mark(host_region_t *region, size_t offset, size_t bytes) {
  bool done = false;
  pthread_mutex_lock(&lock);
  if (bytes > 0 && bytes <= region->reserved_bytes &&
      offset <= region->reserved_bytes - bytes)
    done = bytes <= small_max_bytes ? mark_small(region, offset, bytes)
                                    : mark_large(region, offset, bytes);
  pthread_mutex_unlock(&lock);
  return done;
}

void host_region_unmark(host_region_t *region, size_t offset) {
  pthread_mutex_lock(&lock);
  forget(region, region->base + offset);
  pthread_mutex_unlock(&lock);
}

bool host_block_find(const void *pointer, host_block_t *out_block) {
  int count = atomic_load_explicit(&region_count, memory_order_acquire);
  for (int i = 0; i < count; i++) {
    char *base;
    size_t bytes;
    if (region_find(&regions[i], pointer, &base, &bytes)) {
      *out_block = (host_block_t){&regions[i], base, bytes};
      return true;
    }
  }
  return false;
}

bool host_address_is_guarded(const void *pointer) {
  int count = atomic_load_explicit(&region_count, memory_order_acquire);
  for (int i = 0; i < count; i++) {
    size_t offset = (size_t)((const char *)pointer - regions[i].base);
    if (regions[i].fd >= 0 && offset < regions[i].reserved_bytes)
      return true;
  }
  return false;
}

static int exposed; // how often; with the lock

static bool guard_all(bool accessible) {
  int count = atomic_load_explicit(&region_count, memory_order_relaxed);
  bool done = true;
  for (int i = 0; i < count; i++)
    if (regions[i].fd >= 0)
      done &= host_region_guard(&regions[i], accessible);
  return done;
}

bool host_region_expose(void) {
  pthread_mutex_lock(&lock);
  bool done = exposed > 0 || guard_all(true);
  exposed += done;
  if (!done)
    guard_all(false);
  pthread_mutex_unlock(&lock);
  return done;
}

void host_region_hide(void) {
  pthread_mutex_lock(&lock);
  if (--exposed == 0)
    guard_all(false);
  pthread_mutex_unlock(&lock);
}

void host_region_usage(size_t *out_used_bytes) {
  pthread_mutex_lock(&lock);
  host_region_t *region = own_locked(HOST_KIND_DEVICE);
  *out_used_bytes = region ? region->used_bytes : 0;
  pthread_mutex_unlock(&lock);
}

void host_region_free_all(void) {
  pthread_mutex_lock(&lock);
  int count = atomic_load_explicit(&region_count, memory_order_relaxed);
  for (int i = 0; i < count; i++) {
    host_region_t *region = &regions[i];
    for (size_t c = 0; c < region->chunks; c++) {
      uintptr_t entry =
          atomic_load_explicit(&region->chunk[c], memory_order_relaxed);
      if (entry & 1) {
        large_clear(region, c);
      } else if (entry) {
        host_slab_t *slab = (host_slab_t *)entry;
        unsigned slots = slots_of(slab);
        for (unsigned slot = 0; slot < slots; slot++)
          if (atomic_load_explicit(&slab->bytes[slot], memory_order_relaxed))
            slot_clear(region, slab, slot);
      }
    }
    region->used_bytes = 0;
  }
  pthread_mutex_unlock(&lock);
}

void *host_memory_resolve(const void *pointer, size_t bytes) {
  host_block_t block;
  if (HOST_LIKELY(host_block_find(pointer, &block))) {
    size_t offset = (size_t)((const char *)pointer - block.base);
    if (offset > block.bytes || bytes > block.bytes - offset)
      return NULL;
    return (char *)pointer + block.region->distance;
  }
  return host_registered_find(pointer, bytes) ? (void *)pointer : NULL;
}
