/* SPDX-License-Identifier: Apache-2.0 */
/* Halos that travel before the call that needs them. A data gradient needs rows
 * of dy from other ranks. If the program computes the filter gradient first, dy
 * is complete at that call, and the rows travel while that gradient is
 * computed. Inside rules/ only.
 *
 * Which calls belong together is learnt (sdg_op_reuse_t): if a second call
 * follows a first one of the same thread, on the same tensor, then from the
 * next time on the first call carries out the second's exchange. It is the
 * exchange that the second call's plan has anyway, so nothing is guessed. If
 * the second call does not follow, its bytes were sent in vain.
 *
 * Shard view: nothing shows whether the program's kernels write the tensor in
 * between, so the section must promise that they do not (keep = dy). For each
 * new plan of a second call all ranks say once whether the tensor was the same;
 * if it is another one later, that is an error. After a write that sundog sees
 * the rows are sent again.
 * Whole view: the buffer table has this information, equal on every rank. */
#ifndef SDG_RULES_REUSE_PREFETCH_H
#define SDG_RULES_REUSE_PREFETCH_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/geometry/buffer.h"

/* Shard view: prepares a new plan. */
void sdg_prefetch_ready(const sdg_call_t *call, const sdg_op_t *op,
                        const sdg_section_t *section, sdg_plan_entry_t *entry);
/* Which parts of an exchange are made early in this call, and whose messages of
 * x it reads (rules/reuse/kept.h), equal on every rank: bits that differ if the
 * ranks' messages do. */
uint32_t sdg_prefetch_mark(const sdg_call_t *call,
                           const sdg_plan_entry_t *entry);
/* Shard view: counts the call, and carries it out as sdg_step_run does.
 * SDG_E_KEPT if the promise is broken. Collective. */
sdg_status_t sdg_prefetch_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                              cudaStream_t stream) SDG_MUST_CHECK;

/* Shard view: the program or a tagged call writes these bytes, as far as sundog
 * sees it. What was sent early from a tensor there, or kept of it
 * (rules/reuse/kept.h), is sent again. SIZE_MAX bytes from NULL: unknown which.
 * Any thread may call it. */
void sdg_prefetch_written(const void *at, size_t bytes);

/* Whole view, before inputs are brought up to date: learns which calls belong
 * together. */
sdg_status_t sdg_prefetch_learn(const sdg_call_t *call, const sdg_op_t *op,
                                sdg_buffers_t *table,
                                sdg_plan_entry_t *entry) SDG_MUST_CHECK;
/* Whole view, after inputs are up to date: as sdg_step_run. */
sdg_status_t sdg_prefetch_share(sdg_call_t *call, const sdg_op_t *op,
                                sdg_buffers_t *table,
                                const sdg_plan_entry_t *entry,
                                cudaStream_t stream) SDG_MUST_CHECK;

/* The device is about to be reset, and the plans have been dropped. */
void sdg_prefetch_forget(void);

#endif
