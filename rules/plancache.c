// SPDX-License-Identifier: Apache-2.0
// The cache of plans, bounded, least recently used first out.
#include "rules/plancache.h"

#include <stdlib.h>
#include <string.h>

// Without memory uthash leaves the element out, rather than exit.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum { PLANS_MAX = 1024, ROLE_BITS = 8 };
_Static_assert((int)SDG_ROLE_COUNT <= 1 << ROLE_BITS, "a role and a generation "
                                                      "share a word");

typedef struct cached {
  sdg_plan_entry_t entry;
  sdg_plan_key_t key;
  UT_hash_handle hh;
} cached_t;

// In order of use: uthash iterates in order of insertion, and what is used is
// inserted again.
static cached_t *cache;
static cached_t *latest;

void sdg_plan_key_make(const sdg_call_t *call, const sdg_rule_t *rule,
                       sdg_plan_key_t *out_key) {
  memset(out_key, 0, sizeof *out_key);
  out_key->entry = (uint64_t)call->entry;
  for (int i = 0; i < call->operands; i++)
    // Operands that are absent are left out: their roles tell which are there.
    out_key->operand[i] = call->operand[i].generation << ROLE_BITS |
                          (uint64_t)call->operand[i].role;
  out_key->op_generation = call->op_generation;
  if (rule && rule->knows(call))
    (void)rule->key(call, out_key->number);
}

sdg_plan_entry_t *sdg_plancache_find(const sdg_plan_key_t *key) {
  if (latest && memcmp(&latest->key, key, sizeof *key) == 0)
    return &latest->entry;
  cached_t *found = NULL;
  HASH_FIND(hh, cache, key, sizeof *key, found);
  if (!found)
    return NULL;
  HASH_DEL(cache, found);
  HASH_ADD(hh, cache, key, sizeof found->key, found);
  latest = found;
  return &found->entry;
}

static void cached_drop(cached_t *cached) {
  if (latest == cached)
    latest = NULL;
  HASH_DEL(cache, cached);
  sdg_plan_destroy(cached->entry.plan);
  free(cached);
}

sdg_status_t sdg_plancache_add(const sdg_plan_key_t *key, sdg_plan_t *plan,
                               sdg_report_row_t *row,
                               sdg_plan_entry_t **out_entry) {
  if (HASH_COUNT(cache) >= PLANS_MAX)
    cached_drop(cache);
  cached_t *cached = calloc(1, sizeof *cached);
  if (!cached)
    return sdg_fail(SDG_E_NO_MEMORY, "a cached plan");
  cached->entry.plan = plan;
  cached->entry.row = row;
  cached->key = *key;
  HASH_ADD(hh, cache, key, sizeof cached->key, cached);
  if (!cached->hh.tbl) {
    free(cached);
    return sdg_fail(SDG_E_NO_MEMORY, "a cached plan");
  }
  latest = cached;
  *out_entry = &cached->entry;
  return SDG_OK;
}
