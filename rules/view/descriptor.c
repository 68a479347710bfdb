// SPDX-License-Identifier: Apache-2.0
// A table of byte strings, whose addresses are keys of the tag table.
#include "rules/view/descriptor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/hash.h"
#include "src/call/tag.h"

typedef struct descriptor {
  struct descriptor *next;
  uint64_t hash;
  size_t count;
  char bytes[];
} descriptor_t;

enum { BUCKETS = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of writers
static _Atomic(descriptor_t *) buckets[BUCKETS];

static descriptor_t *find(uint64_t hash, const void *bytes, size_t count) {
  descriptor_t *at =
      atomic_load_explicit(&buckets[hash % BUCKETS], memory_order_acquire);
  while (at && (at->hash != hash || at->count != count ||
                memcmp(at->bytes, bytes, count) != 0))
    at = at->next;
  return at;
}

static descriptor_t *add(uint64_t hash, const void *bytes, size_t count) {
  _Atomic(descriptor_t *) *bucket = &buckets[hash % BUCKETS];
  descriptor_t *made = malloc(sizeof *made + count);
  if (!made)
    return NULL;
  made->hash = hash;
  made->count = count;
  memcpy(made->bytes, bytes, count);
  sdg_tag_touch(made);
  made->next = atomic_load_explicit(bucket, memory_order_relaxed);
  atomic_store_explicit(bucket, made, memory_order_release);
  return made;
}

sdg_status_t sdg_descriptor_get(const void *bytes, size_t count,
                                const void **out) {
  uint64_t hash = sdg_hash_bytes(SDG_HASH_SEED, bytes, count);
  descriptor_t *found = find(hash, bytes, count);
  if (!found) {
    pthread_mutex_lock(&lock);
    found = find(hash, bytes, count);
    if (!found)
      found = add(hash, bytes, count);
    pthread_mutex_unlock(&lock);
  }
  *out = found;
  return found ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "a descriptor");
}
