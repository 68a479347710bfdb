/* SPDX-License-Identifier: Apache-2.0 */
/* Halos that travel before the call that needs them. A gradient of the data
 * needs rows of dy that other ranks have; a program that makes the gradient of
 * the filter first reads dy there already, and then the rows travel while that
 * one is computed. Inside rules/ only.
 *
 * Which calls belong together is learnt (sdg_op_reuse_t): a second call that
 * comes after a first one of the same thread, on the same tensor, finds its
 * exchange done by the first from the next time on. What goes early is the
 * exchange that the second call's plan has anyway, so nothing about it is
 * guessed; a second call that does not come costs its bytes.
 *
 * Shard view: nothing shows whether the program's kernels write the tensor in
 * between, so that the section has to promise it (keep = dy). All ranks say
 * once for each second plan whether it was the same tensor; where it is another
 * one later, that is an error. Writes that sundog sees are none: then the rows
 * travel again.
 * Whole view: the buffer table knows, and is the same on every rank. */
#ifndef SDG_RULES_REUSE_PREFETCH_H
#define SDG_RULES_REUSE_PREFETCH_H

#include <cuda_runtime_api.h>

#include "rules/place/op.h"
#include "rules/step/plan_cache.h"
#include "src/geometry/buffer.h"

/* Shard view, a plan that was just made: readies it for its part. */
void sdg_prefetch_ready(const sdg_call_t *call, const sdg_op_t *op,
                        const sdg_section_t *section, sdg_plan_entry_t *entry);
/* What of an exchange is early in this call, the same on every rank: bits that
 * differ where the ranks' messages do. */
uint32_t sdg_prefetch_mark(const sdg_plan_entry_t *entry);
/* Shard view: counts the call, and carries it out as sdg_step_run does.
 * SDG_E_KEPT where the promise is broken. Collective. */
sdg_status_t sdg_prefetch_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                              cudaStream_t stream) SDG_MUST_CHECK;

/* Shard view: these bytes are written, by the program or a tagged call, as far
 * as sundog sees it: what travelled early of a tensor there, or was kept of it
 * (rules/reuse/kept.h), is brought anew. Any thread. SIZE_MAX bytes from NULL:
 * it is not known which. */
void sdg_prefetch_written(const void *at, size_t bytes);

/* Whole view, before inputs are brought up to date: learns. */
sdg_status_t sdg_prefetch_learn(const sdg_call_t *call, const sdg_op_t *op,
                                sdg_buffers_t *table,
                                sdg_plan_entry_t *entry) SDG_MUST_CHECK;
/* Whole view, inputs are up to date: as sdg_step_run. */
sdg_status_t sdg_prefetch_share(sdg_call_t *call, const sdg_op_t *op,
                                sdg_buffers_t *table,
                                const sdg_plan_entry_t *entry,
                                cudaStream_t stream) SDG_MUST_CHECK;

/* The device is about to be reset; the plans are gone. */
void sdg_prefetch_forget(void);

#endif
