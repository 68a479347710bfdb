/* SPDX-License-Identifier: Apache-2.0 */
/* Halos of x that a convolution's forward call leaves to the gradient of its
 * filter. Inside rules/ only.
 *
 * Shard view: nothing shows whether the program's kernels write x in between,
 * so that the section has to promise it (keep = x). The messages of a forward
 * call stay in memory of their own, by the address of x; a gradient that finds
 * there what the last forward call of this x brought, in the same messages,
 * brings nothing (rules/memory/kept_slot.h). Ranks that differ in what they
 * find are seen to diverge (rules/step/divergence.h). What sundog sees written
 * is forgotten. Whole view: the buffer table knows. */
#ifndef SDG_RULES_REUSE_KEPT_H
#define SDG_RULES_REUSE_KEPT_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/plan/prefetch.h"

/* A number for what a call's messages of x are, the same on every rank; 0: they
 * are not kept. Pure in what the ranks agreed on. */
uint64_t sdg_kept_messages(const sdg_call_t *call, const sdg_op_t *op,
                           const sdg_tagging_t *tagging);
/* A plan that was just made: readies it. */
void sdg_kept_ready(const sdg_call_t *call, const sdg_op_t *op,
                    uint64_t messages, sdg_plan_entry_t *entry);
/* Which forward call's messages this one is going to read, the same on every
 * rank; 0: it brings its own. */
uint32_t sdg_kept_mark(const sdg_call_t *call, const sdg_plan_entry_t *entry);
/* Carries out a call that was readied, and counts it; `early` as of
 * sdg_step_run_with. SDG_E_KEPT where a checked run sees the promise broken. */
sdg_status_t sdg_kept_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                          cudaStream_t stream,
                          const sdg_prefetch_t *prefetch) SDG_MUST_CHECK;

#endif
