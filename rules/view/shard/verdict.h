/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict on a call whose descriptors are agreed: where its tensors are;
 * then its plan, or the answer to its query. */
#ifndef SDG_RULES_VIEW_SHARD_VERDICT_H
#define SDG_RULES_VIEW_SHARD_VERDICT_H

#include "rules/place/colocate.h"
#include "rules/place/tagging.h"
#include "rules/step/plan_cache.h"

typedef struct sdg_shard_verdict {
  bool tagged;           /* if not, the other members are not set */
  sdg_tagging_t tagging; /* where the program's tensors are */
  sdg_colocate_result_t result;
  sdg_colocation_t colocation; /* where the op has them */
} sdg_shard_verdict_t;

/* SDG_E_UNMATCHED if the op sees beyond its element, no section matched it, and
 * its tensor may be split: an op with a window anywhere in a split network,
 * another op where the rules are about other ops on that tensor. `local`: a
 * [local] section or tag names one of its tensors. */
sdg_status_t sdg_shard_unmatched(const sdg_call_t *call,
                                 const sdg_rules_t *rules,
                                 bool local) SDG_MUST_CHECK;

/* Judges a call by the rules. If the call is tagged, the caller finishes the
 * verdict. Errors are the same on all ranks. */
sdg_status_t sdg_shard_derive(const sdg_call_t *call, const sdg_rules_t *rules,
                              const sdg_op_t *op,
                              sdg_shard_verdict_t *out) SDG_MUST_CHECK;
void sdg_shard_verdict_fini(sdg_shard_verdict_t *verdict);

/* The plan of a tagged call; the caller owns it. */
sdg_status_t sdg_shard_plan(const sdg_call_t *call, const sdg_op_t *op,
                            const sdg_shard_verdict_t *verdict,
                            sdg_plan_t **out_plan) SDG_MUST_CHECK;
/* Answers a tagged query. SDG_E_GRAPH_NODES for graphs. */
sdg_status_t
sdg_shard_answer(sdg_call_t *call, const sdg_op_t *op,
                 const sdg_shard_verdict_t *verdict) SDG_MUST_CHECK;

/* What a plan's calls write: out[i] is of operand i, and not set unless that is
 * an output with memory. */
void sdg_shard_written(const sdg_call_t *call, const sdg_tagging_t *tagging,
                       const sdg_plan_t *plan, sdg_written_t *out);

#endif
