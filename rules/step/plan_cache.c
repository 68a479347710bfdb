// SPDX-License-Identifier: Apache-2.0
// A bounded cache of plans per calling thread; drops the least recently used.
#include "rules/step/plan_cache.h"

#include <stdlib.h>
#include <string.h>

// If memory is short, uthash leaves the element out and does not exit.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "rules/vendor/argument.h"
#include "src/base/hash.h"
#include "src/call/tag.h"
#include "src/control/control.h"
#include "src/job/job.h"
#include "src/job/thread.h"

// A plan of attention has thousands of steps of some hundred bytes each.
enum { PLANS_MAX = 1024, STEPS_MAX = 1 << 18, ROLE_BITS = 8 };
_Static_assert(
    (int)SDG_ROLE_COUNT <= 1 << (ROLE_BITS - 1),
    "a role, whether there is memory, and a generation share a word");

typedef struct cached {
  sdg_plan_entry_t entry;
  sdg_plan_key_t key;
  UT_hash_handle hh;
} cached_t;

// uthash iterates in order of insertion. A plan that is used is removed and
// inserted again, so the first one is the least recently used.
typedef struct cache {
  cached_t *first;
  cached_t *latest;
  int64_t steps; // of all plans
} cache_t;
static cache_t caches[SDG_CHANNEL_THREADS]; // by the thread's channel

void sdg_plan_key_make(const sdg_call_t *call, const sdg_op_t *op,
                       sdg_plan_key_t *out_key) {
  memset(out_key, 0, sizeof *out_key);
  out_key->entry = (uint64_t)call->entry << 1 | sdg_call_lacks_scalar(call);
  for (int i = 0; i < call->operands; i++)
    // Absent operands are not in the list, so the roles are part of the key.
    out_key->operand[i] = call->operand[i].generation << ROLE_BITS |
                          (uint64_t)!call->operand[i].data << (ROLE_BITS - 1) |
                          (uint64_t)call->operand[i].role;
  out_key->op_generation = call->op_generation;
  if (sdg_op_knows(op, call))
    (void)op->key(call, out_key->number);
}

sdg_plan_entry_t *sdg_plan_cache_find(const sdg_plan_key_t *key) {
  cache_t *cache = &caches[sdg_channel_get()];
  if (cache->latest && memcmp(&cache->latest->key, key, sizeof *key) == 0)
    return &cache->latest->entry;
  cached_t *found = NULL;
  HASH_FIND(hh, cache->first, key, sizeof *key, found);
  if (!found)
    return NULL;
  HASH_DEL(cache->first, found);
  HASH_ADD(hh, cache->first, key, sizeof found->key, found);
  cache->latest = found;
  return &found->entry;
}

static void cached_drop(cache_t *cache, cached_t *cached) {
  if (cache->latest == cached)
    cache->latest = NULL;
  HASH_DEL(cache->first, cached);
  cache->steps -= cached->entry.plan->steps;
  sdg_plan_destroy(cached->entry.plan);
  free(cached->entry.boxes);
  free(cached->entry.compared);
  free(cached->entry.prefetch);
  free(cached);
}

uint64_t sdg_plan_cache_extents(const sdg_call_t *call) {
  uint64_t hash = SDG_HASH_SEED;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    const sdg_tag_vector_t *vector =
        operand->descriptor
            ? sdg_tag_vector(operand->descriptor, operand->generation)
            : NULL;
    hash = sdg_hash_word(hash, (uint64_t)i);
    if (vector)
      hash = sdg_hash_bytes(hash, vector->extent,
                            (size_t)vector->ranks * (size_t)vector->dims *
                                sizeof *vector->extent);
  }
  return hash;
}

sdg_status_t sdg_plan_cache_renew(const sdg_call_t *call,
                                  sdg_plan_entry_t **io_entry) {
  const sdg_group_t *group = sdg_job_group();
  uint64_t has = *io_entry != NULL;
  sdg_records_t all;
  char at[96];
  bool lacks = !has;
  if (group->count < 2)
    return SDG_OK;
  sdg_job_call(at, sizeof at);
  SDG_TRY(sdg_job_gather(sdg_channel_get(), &has, sizeof has, at, &all));
  sdg_status_t status = SDG_OK;
  for (int r = 0; r < group->count && status == SDG_OK; r++) {
    uint64_t theirs = 0;
    if (all.bytes[r] != sizeof theirs)
      status = sdg_fail(SDG_E_DIVERGED, "%s: rank %d makes another call",
                        call->entry_name, group->rank[r]);
    else
      memcpy(&theirs, all.data[r], sizeof theirs);
    lacks |= !theirs;
  }
  sdg_records_free(&all);
  if (status == SDG_OK && lacks && *io_entry) {
    cache_t *cache = &caches[sdg_channel_get()];
    cached_t *found = NULL;
    HASH_FIND(hh, cache->first, (*io_entry)->key, sizeof found->key, found);
    if (found)
      cached_drop(cache, found);
    *io_entry = NULL;
  }
  return status;
}

sdg_status_t sdg_plan_cache_add(const sdg_plan_key_t *key, sdg_plan_t *plan,
                                sdg_report_row_t *row,
                                sdg_plan_entry_t **out_entry) {
  cache_t *cache = &caches[sdg_channel_get()];
  while (cache->first && (HASH_COUNT(cache->first) >= PLANS_MAX ||
                          cache->steps + plan->steps > STEPS_MAX))
    cached_drop(cache, cache->first);
  cached_t *cached;
  SDG_TRY(SDG_ALLOCATE(cached, 1, "a cached plan"));
  cached->entry.plan = plan;
  cached->entry.row = row;
  cached->key = *key;
  cached->entry.key = &cached->key;
  HASH_ADD(hh, cache->first, key, sizeof cached->key, cached);
  if (!cached->hh.tbl) {
    free(cached);
    return sdg_fail(SDG_E_NO_MEMORY, "a cached plan");
  }
  cache->latest = cached;
  cache->steps += plan->steps;
  *out_entry = &cached->entry;
  return SDG_OK;
}

void sdg_plan_cache_forget(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    while (caches[channel].first)
      cached_drop(&caches[channel], caches[channel].first);
}
