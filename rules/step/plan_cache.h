/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by what decides them: entry, generations of all descriptors, and the
 * numbers that the op names; of the calling thread (src/job/thread.h). */
#ifndef SDG_RULES_STEP_PLAN_CACHE_H
#define SDG_RULES_STEP_PLAN_CACHE_H

#include "rules/place/op.h"
#include "src/observe/report.h"

typedef struct sdg_plan_key {
  uint64_t entry;
  uint64_t operand[SDG_OPERANDS_MAX]; /* generation, role, if it has memory */
  uint64_t op_generation;
  uint64_t number[SDG_OP_KEYS];
  /* Whole view: hashes of placements. Shard view: what is known of memory
   * (rules/place/ones.h). */
  uint64_t placed[SDG_OPERANDS_MAX];
} sdg_plan_key_t;

/* An output that a call wrote, and what is known of it then
 * (src/geometry/hint.h). */
typedef struct sdg_written {
  size_t bytes; /* 0: none */
  bool gaps;
  sdg_hint_t hint;
} sdg_written_t;

/* Of a call in a pair that reads one tensor (rules/reuse/prefetch.h). */
typedef enum sdg_prefetch_part {
  SDG_PREFETCH_NONE,
  SDG_PREFETCH_FIRST,
  SDG_PREFETCH_SECOND,
} sdg_prefetch_part_t;

/* What a call reads that ranks must have alike (rules/step/compare.h). */
typedef struct sdg_compared {
  unsigned due, copied; /* bits of operands: still to be compared; that were
                           copied */
  sdg_common_t common[SDG_OPERANDS_MAX];
  uint64_t use[SDG_OPERANDS_MAX]; /* a number of entry, operand and extents */
} sdg_compared_t;

typedef struct sdg_plan_entry sdg_plan_entry_t;
struct sdg_plan_entry {
  const sdg_plan_key_t *key;
  sdg_plan_t *plan;         /* owned by the cache */
  sdg_report_row_t *row;    /* may be NULL */
  uint32_t hash;            /* rules/step/divergence.h */
  int recorded;             /* rules/observe/run_record.h */
  sdg_box_t *boxes;         /* rules/observe/values.h; owned, may be NULL */
  sdg_compared_t *compared; /* owned; NULL: ranks have nothing alike */
  sdg_written_t written[SDG_OPERANDS_MAX]; /* shard view */
  bool settled; /* shard view: calls with this key need no agreement, and no
                   look at the rules or at what is known of memory */
  /* rules/reuse/prefetch.h: */
  sdg_prefetch_part_t part;
  int operand; /* SECOND: the tensor of the pair */
  bool asked;  /* SECOND: the ranks have told each other */
  sdg_plan_key_t
      *prefetch; /* FIRST: whose exchange goes along; owned, NULL: none */
  /* rules/reuse/kept.h: */
  sdg_prefetch_part_t leaves;
  int left;          /* the tensor of which messages are kept */
  uint64_t messages; /* which ones they are */
};

void sdg_plan_key_make(const sdg_call_t *call, const sdg_op_t *op,
                       sdg_plan_key_t *out_key);
/* NULL if there is none. */
sdg_plan_entry_t *sdg_plan_cache_find(const sdg_plan_key_t *key);
/* Takes the plan. A cache full of plans, or of their steps, drops the plan used
 * least recently: programs that set their descriptors anew at every step leave
 * plans behind that no call can ask for again, as generations are never reused.
 */
sdg_status_t sdg_plan_cache_add(const sdg_plan_key_t *key, sdg_plan_t *plan,
                                sdg_report_row_t *row,
                                sdg_plan_entry_t **out_entry) SDG_MUST_CHECK;

/* Drops the plans of all threads, none of which makes a tagged call now. */
void sdg_plan_cache_forget(void);

#endif
