// SPDX-License-Identifier: Apache-2.0
// A table of reserve spaces by their address.
#include "rules/attention/call/kept.h"

#include <stdlib.h>
#include <string.h>

// If memory runs out, uthash skips the element instead of exiting.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "src/base/hash.h"

typedef struct entry {
  const void *reserve;
  sdg_attention_kept_t kept;
  UT_hash_handle hh;
} entry_t;
static entry_t *entries;

static entry_t *entry_find(const void *reserve) {
  entry_t *entry = NULL;
  HASH_FIND_PTR(entries, &reserve, entry);
  return entry;
}

static uint64_t hash_of(const sdg_windows_t *windows,
                        const sdg_placement_t *rows, uint64_t lengths) {
  uint64_t hash = SDG_HASH_SEED;
  hash = sdg_hash_bytes(hash, &lengths, sizeof lengths);
  size_t bytes = (size_t)windows->count * sizeof *windows->lo;
  hash = sdg_hash_bytes(hash, windows->lo, bytes);
  hash = sdg_hash_bytes(hash, windows->hi, bytes);
  for (int d = 0; d < rows->dims; d++) {
    hash = sdg_hash_bytes(hash, &rows->split[d], sizeof rows->split[d]);
    hash = sdg_hash_bytes(hash, rows->part[d].offset,
                          (size_t)(rows->part[d].pieces + 1) *
                              sizeof *rows->part[d].offset);
  }
  return hash;
}

static void kept_fini(sdg_attention_kept_t *kept) {
  free((void *)(uintptr_t)kept->windows.lo);
  sdg_placement_fini(&kept->rows);
}

static sdg_status_t kept_fill(const sdg_windows_t *windows,
                              const sdg_placement_t *rows, uint64_t lengths,
                              sdg_attention_kept_t *out) {
  size_t count = (size_t)windows->count;
  int *lo = malloc(2 * count * sizeof *lo);
  if (!lo)
    return sdg_fail(SDG_E_NO_MEMORY, "windows of %zu queries", count);
  memcpy(lo, windows->lo, count * sizeof *lo);
  memcpy(lo + count, windows->hi, count * sizeof *lo);
  sdg_status_t status = sdg_placement_copy(rows, &out->rows);
  if (status != SDG_OK) {
    free(lo);
    return status;
  }
  out->windows = (sdg_windows_t){lo, lo + count, windows->count};
  out->lengths = lengths;
  out->hash = hash_of(windows, rows, lengths);
  return SDG_OK;
}

sdg_status_t sdg_attention_kept_put(const void *reserve,
                                    const sdg_windows_t *windows,
                                    const sdg_placement_t *rows,
                                    uint64_t lengths) {
  entry_t *entry = entry_find(reserve);
  if (entry && entry->kept.hash == hash_of(windows, rows, lengths))
    return SDG_OK;
  sdg_attention_kept_drop(reserve);
  SDG_TRY(SDG_ALLOCATE(entry, 1, "an attention's record"));
  entry->reserve = reserve;
  sdg_status_t status = kept_fill(windows, rows, lengths, &entry->kept);
  if (status != SDG_OK) {
    free(entry);
    return status;
  }
  HASH_ADD_PTR(entries, reserve, entry);
  if (entry->hh.tbl)
    return SDG_OK;
  kept_fini(&entry->kept);
  free(entry);
  return sdg_fail(SDG_E_NO_MEMORY, "an attention's record");
}

void sdg_attention_kept_drop(const void *reserve) {
  entry_t *entry = entry_find(reserve);
  if (!entry)
    return;
  HASH_DEL(entries, entry);
  kept_fini(&entry->kept);
  free(entry);
}

const sdg_attention_kept_t *sdg_attention_kept_find(const void *reserve) {
  entry_t *entry = entry_find(reserve);
  return entry ? &entry->kept : NULL;
}
