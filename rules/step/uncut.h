/* SPDX-License-Identifier: Apache-2.0 */
/* Notices that all ranks have equal values in their pieces of a tensor: each
 * rank has read the whole input in the shard view, and the run computes so many
 * copies of it side by side. Nothing is refused, because a field may repeat. */
#ifndef SDG_RULES_STEP_UNCUT_H
#define SDG_RULES_STEP_UNCUT_H

#include <cuda_runtime_api.h>

#include "src/call/call.h"
#include "src/geometry/placement.h"
#include "src/job/digests.h"

/* Whether operand `index` of a call, which is in pieces by `placement`, is to
 * be looked at: the call reads it, and all pieces have the same extents.
 * *out_dim: a dimension that is split, and of two elements or more on each
 * rank. */
bool sdg_uncut_can(const sdg_call_t *call, int index,
                   const sdg_placement_t *placement, int *out_dim);

/* Computes a digest of a sample of this rank's piece. *out_varies is false if
 * the halves along `dim` are equal, as in a field of zeros: such pieces say
 * nothing, or if the memory cannot be read. Adds the bytes that were read. */
sdg_status_t sdg_uncut_digest(const sdg_operand_t *operand, int dim,
                              cudaStream_t stream, bool *out_varies,
                              uint64_t *out_digest,
                              int64_t *io_bytes) SDG_MUST_CHECK;

/* Judges the digests of operand `index`: a message says so if pieces are equal
 * on all ranks along `axes`. Returns false if no piece varies, so that a later
 * call has to tell. The same on every rank. */
bool sdg_uncut_judge(const sdg_call_t *call, int index,
                     const sdg_digests_t *all, sdg_axes_t axes);

#endif
