/* SPDX-License-Identifier: Apache-2.0 */
/* Halos of x that a convolution's forward call keeps for the filter gradient.
 * Inside rules/ only.
 *
 * Shard view: nothing shows whether the program's kernels write x in between,
 * so the section must promise that they do not (keep = x). The messages that a
 * forward call receives stay in memory of their own, found by the address of x.
 * A gradient that needs the same messages as the last forward call of this x
 * reads them there, and fetches nothing (rules/memory/kept_slot.h). If ranks
 * differ in what they find, that is detected as divergence
 * (rules/step/divergence.h). Writes that sundog sees invalidate the memory.
 * Whole view: the buffer table has this information. */
#ifndef SDG_RULES_REUSE_KEPT_H
#define SDG_RULES_REUSE_KEPT_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/plan/prefetch.h"

/* Where the section promises keep = x: a number that identifies a call's
 * messages of x, equal on every rank; 0: they are not kept. Depends only on
 * what the ranks agreed on. */
uint64_t sdg_kept_messages(const sdg_call_t *call, const sdg_op_t *op,
                           const sdg_tagging_t *tagging);
/* Prepares a new plan whose messages have a number. */
void sdg_kept_ready(const sdg_call_t *call, const sdg_op_t *op,
                    uint64_t messages, sdg_plan_entry_t *entry);
/* The number of the forward call whose messages this call will read, equal on
 * every rank; 0: it fetches its own. */
uint32_t sdg_kept_mark(const sdg_call_t *call, const sdg_plan_entry_t *entry);
/* Carries out a prepared call, and counts it. `prefetch`: as in sdg_exec_how_t.
 * SDG_E_KEPT if a checked run finds the promise broken. */
sdg_status_t sdg_kept_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                          cudaStream_t stream,
                          const sdg_prefetch_t *prefetch) SDG_MUST_CHECK;

#endif
