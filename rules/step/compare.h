/* SPDX-License-Identifier: Apache-2.0 */
/* Compares values that a tagged call reads and that must be equal on all ranks,
 * at their first use (SUNDOG_COMPARE), or copies them from the first rank
 * (SUNDOG_PARAMETERS). */
#ifndef SDG_RULES_STEP_COMPARE_H
#define SDG_RULES_STEP_COMPARE_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/base/options.h"
#include "src/job/digests.h"

/* Shard view, for a new plan: which operands must be equal on several ranks,
 * along which axes, and which of them have not been compared yet. An operand is
 * compared once per generation of its descriptor; if the program sets its
 * descriptors anew for each call, once per entry, operand and global extents.
 * The result is the same on every rank, because no address decides it. *out is
 * NULL if nothing is to be compared; otherwise the caller frees it.
 * SDG_E_NO_MEMORY. */
sdg_status_t sdg_compare_plan(const sdg_call_t *call, const sdg_op_t *op,
                              const sdg_rules_t *rules,
                              const sdg_tagging_t *tagging,
                              sdg_compared_t **out) SDG_MUST_CHECK;

/* Shard view: compares the call's operands that are due; compared->due is not
 * 0. Collective over the agreement's group. If a rank's stream is being
 * captured or does not advance, the comparison is deferred to the plan's next
 * call, and a message says so once; a mere hint is given up.
 * SDG_E_VALUES_DIFFER, on all ranks of the group. */
sdg_status_t sdg_compare_call(const sdg_call_t *call,
                              sdg_compared_t *compared) SDG_MUST_CHECK;

/* ---- what both views have in common ---- */

/* Whether a call reads values of this operand. Its memory may still be NULL, on
 * a rank without a piece. */
bool sdg_compare_reads(const sdg_operand_t *operand);
/* Exchanges digests of the operands that are due. `all` has one element per
 * rank of the agreement's group. *out_read is false if a rank's stream is being
 * captured or does not advance: then `all` has no digests, and a message says
 * so once. Collective over the group. */
sdg_status_t sdg_compare_exchange(const sdg_call_t *call,
                                  const sdg_compared_t *compared,
                                  sdg_digests_t *all, cudaStream_t *out_stream,
                                  bool *out_read) SDG_MUST_CHECK;
/* Copies an operand's values from the first rank along common->axes to the
 * others. Collective over these ranks. */
sdg_status_t sdg_compare_copy(const sdg_call_t *call, int index,
                              const sdg_common_t *common,
                              cudaStream_t stream) SDG_MUST_CHECK;
/* Reports and returns SDG_E_VALUES_DIFFER for operand `index`: `rank` (an index
 * in the group) has other values. `others`: how many more operands differ. */
sdg_status_t sdg_compare_fail(const sdg_call_t *call, const sdg_digests_t *all,
                              int index, sdg_axes_t axes, int rank,
                              int others) SDG_MUST_CHECK;
/* Writes the operand's extents as text, as "2,3,8,8". */
void sdg_compare_extents(const sdg_operand_t *operand, char *out,
                         size_t out_bytes);

/* What ranks have in common of an operand that is in pieces, or beside such, by
 * the operand's role and where it is: where an op says nothing of its own
 * (alike() of sdg_op_t). */
sdg_common_t sdg_compare_common(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int index);

#endif
