/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: what calls that no op judges do to memory of which something is
 * known (src/geometry/hint.h). Any thread. */
#ifndef SDG_RULES_VIEW_SHARD_OUTSIDE_H
#define SDG_RULES_VIEW_SHARD_OUTSIDE_H

#include "rules/vendor/vector.h"
#include "src/base/status.h"
#include "src/call/memory_access.h"

/* Copies of memory take what is known along; of what is written otherwise
 * nothing is known any more. */
void sdg_outside_touch(const sdg_memory_access_t *memory);
/* A call that no op has to do with writes a tensor. */
void sdg_outside_written(const void *at, size_t bytes);
/* The same of calls on vectors: copies, sums and multiples of pieces are
 * pieces. */
void sdg_outside_vector(const sdg_vector_t *vector);

/* A value is about to be made of vectors. SDG_E_PIECE_VALUE where they are in
 * pieces and nothing says what the value shall be, SDG_E_VALUE_KIND. */
sdg_status_t sdg_outside_value(const sdg_vector_t *vector) SDG_MUST_CHECK;
/* It was made: it becomes that of all pieces, where that is meant. Collective
 * then, as well as where the vendor's library has `refused` the call. */
sdg_status_t sdg_outside_combine(const sdg_vector_t *vector,
                                 bool refused) SDG_MUST_CHECK;

#endif
