/* SPDX-License-Identifier: Apache-2.0 */
/* What a tagged call reads and every rank must have alike, compared at its
 * first use (SUNDOG_COMPARE), or taken from the first rank
 * (SUNDOG_PARAMETERS). */
#ifndef SDG_RULES_STEP_COMPARE_H
#define SDG_RULES_STEP_COMPARE_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/base/options.h"
#include "src/job/digests.h"

/* Shard view: for a new plan, what its calls read that ranks must have alike,
 * along which axes, and what of that has not been compared: operands whose
 * descriptors' generations are new to this; where descriptors are set anew for
 * each call, at the first use of entry, operand and extents. The same on every
 * rank: no address decides it. */
sdg_status_t sdg_compare_plan(const sdg_call_t *call, const sdg_op_t *op,
                              const sdg_rules_t *rules,
                              const sdg_tagging_t *tagging,
                              sdg_compared_t **out) SDG_MUST_CHECK;

/* Shard view: compares what is due of a call (compared->due is not 0).
 * Collective over the agreement's group. Deferred to
 * the plan's next call, which is said once, while a rank's stream is captured
 * or stands still. SDG_E_VALUES_DIFFER, alike on every rank. */
sdg_status_t sdg_compare_call(const sdg_call_t *call,
                              sdg_compared_t *compared) SDG_MUST_CHECK;

/* ---- what both views have in common ---- */

/* Whether a call reads values of this operand, where it has memory of it, which
 * a rank without a piece may not. */
bool sdg_compare_reads(const sdg_operand_t *operand);
/* The numbers of what is due, of every rank of the agreement's group; `all` has
 * room for as many. *out_read is false where a rank's stream is captured or
 * stands still, which is said once: then nothing is known. Collective over the
 * group. */
sdg_status_t sdg_compare_exchange(const sdg_call_t *call,
                                  const sdg_compared_t *compared,
                                  sdg_digests_t *all, cudaStream_t *out_stream,
                                  bool *out_read) SDG_MUST_CHECK;
/* Gives the ranks the first one's values of an operand. */
sdg_status_t sdg_compare_copy(const sdg_call_t *call, int index,
                              const sdg_common_t *common,
                              cudaStream_t stream) SDG_MUST_CHECK;
/* SDG_E_VALUES_DIFFER of an operand, of which `rank` (an index in the group)
 * has other values; and of so many others. */
sdg_status_t sdg_compare_fail(const sdg_call_t *call, const sdg_digests_t *all,
                              int index, sdg_axes_t axes, int rank,
                              int others) SDG_MUST_CHECK;
/* "2,3,8,8" */
void sdg_compare_extents(const sdg_operand_t *operand, char *out,
                         size_t out_bytes);

/* What ranks have in common of an operand that is in pieces, or beside such, by
 * the operand's role and where it is: where an op says nothing of its own
 * (alike() of sdg_op_t). */
sdg_common_t sdg_compare_common(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index);

#endif
