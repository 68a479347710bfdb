/* SPDX-License-Identifier: Apache-2.0 */
/* The plans of each calling thread (src/job/thread.h). The key is what decides
 * a plan: entry, generations of all descriptors, and numbers of the op. */
#ifndef SDG_RULES_STEP_PLAN_CACHE_H
#define SDG_RULES_STEP_PLAN_CACHE_H

#include "rules/place/op.h"
#include "src/observe/report.h"

typedef struct sdg_plan_key {
  uint64_t entry;                     /* and whether a scaling factor is NULL */
  uint64_t operand[SDG_OPERANDS_MAX]; /* generation, role, if it has memory */
  uint64_t op_generation;
  uint64_t number[SDG_OP_KEYS];
  /* Whole view: hashes of placements. Shard view: hints of memory
   * (rules/place/ones.h). */
  uint64_t placed[SDG_OPERANDS_MAX];
  uint64_t extents; /* shard view, SUNDOG_CHECK: a hash of all ranks' */
} sdg_plan_key_t;

/* An output that a call writes, and its hint afterwards
 * (src/geometry/hint.h). */
typedef struct sdg_written {
  size_t bytes; /* 0: none */
  bool gaps;
  sdg_hint_t hint;
  sdg_counts_t counts;
} sdg_written_t;

/* Which call this is of two that read the same tensor
 * (rules/reuse/prefetch.h). */
typedef enum sdg_prefetch_part {
  SDG_PREFETCH_NONE,
  SDG_PREFETCH_FIRST,
  SDG_PREFETCH_SECOND,
} sdg_prefetch_part_t;

/* What a call reads that must be equal on several ranks
 * (rules/step/compare.h). */
typedef struct sdg_compared {
  unsigned due, copied; /* bits of operands: to be compared; that have been
                           copied from the first rank */
  sdg_common_t common[SDG_OPERANDS_MAX];
  uint64_t use[SDG_OPERANDS_MAX]; /* a hash of entry, operand and extents */
  /* The operand that is in pieces which may all be the same, if it is due, and
   * a dimension that is split (rules/step/uncut.h); -1: none. */
  int watched, watched_dim;
} sdg_compared_t;

typedef struct sdg_plan_entry sdg_plan_entry_t;
struct sdg_plan_entry {
  const sdg_plan_key_t *key;
  sdg_plan_t *plan;         /* owned by the cache */
  sdg_report_row_t *row;    /* may be NULL */
  uint32_t hash;            /* rules/step/divergence.h */
  int recorded;             /* rules/observe/run_record.h */
  sdg_box_t *boxes;         /* rules/observe/values.h; owned, may be NULL */
  sdg_compared_t *compared; /* owned; NULL: nothing must be equal */
  sdg_written_t written[SDG_OPERANDS_MAX]; /* shard view */
  bool ran;     /* shard view: was carried out, not captured */
  bool settled; /* shard view: calls with this key need no agreement, and no
                   look at the rules or at what is known of memory */
  /* rules/reuse/prefetch.h: */
  sdg_prefetch_part_t part;
  int operand; /* SECOND: the tensor of the pair */
  bool asked;  /* SECOND: the ranks have exchanged what they know of it */
  sdg_plan_key_t
      *prefetch; /* FIRST: whose exchange goes along; owned, NULL: none */
  /* rules/reuse/kept.h: */
  sdg_prefetch_part_t leaves;
  int left;          /* the operand whose messages are kept */
  uint64_t messages; /* which ones they are */
};

/* Fills in the key, but for `placed`, which becomes 0. `op` may be NULL. */
void sdg_plan_key_make(const sdg_call_t *call, const sdg_op_t *op,
                       sdg_plan_key_t *out_key);
/* The calling thread's plan with this key; NULL: it has no such plan. The cache
 * owns it; it is valid until the next sdg_plan_cache_add. */
sdg_plan_entry_t *sdg_plan_cache_find(const sdg_plan_key_t *key);
/* Of the extents that the ranks have agreed on, which change without a new
 * generation here if another rank's change; for `extents` of a key. */
uint64_t sdg_plan_cache_extents(const sdg_call_t *call);
/* SUNDOG_CHECK: if some rank of the agreement's group has no plan, those of the
 * others are destroyed, and *io_entry becomes NULL on all of them, because
 * planning may be collective. Collective itself. */
sdg_status_t sdg_plan_cache_renew(const sdg_call_t *call,
                                  sdg_plan_entry_t **io_entry) SDG_MUST_CHECK;
/* Adds a plan, which the cache owns if this succeeds. The number of plans and
 * that of their steps is limited; beyond it the least recently used plan is
 * destroyed. (A program that sets its descriptors anew at every step leaves
 * plans behind that it cannot use again, because generations are never reused.)
 * SDG_E_NO_MEMORY. */
sdg_status_t sdg_plan_cache_add(const sdg_plan_key_t *key, sdg_plan_t *plan,
                                sdg_report_row_t *row,
                                sdg_plan_entry_t **out_entry) SDG_MUST_CHECK;

/* Destroys the plans of all threads. No thread may be in a tagged call. */
void sdg_plan_cache_forget(void);

#endif
