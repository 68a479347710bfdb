/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: what calls that no op judges do to memory of which something is
 * known (src/geometry/hint.h). Any thread. */
#ifndef SDG_RULES_VIEW_SHARD_OUTSIDE_H
#define SDG_RULES_VIEW_SHARD_OUTSIDE_H

#include "rules/vendor/vector.h"
#include "rules/vendor/writes.h"
#include "src/base/status.h"
#include "src/call/call.h"
#include "src/call/memory_access.h"

/* Copies of memory take what is known along; of what is written otherwise
 * nothing is known any more. */
void sdg_outside_touch(const sdg_memory_access_t *memory);
/* The same of a call that is not split, by its family's flag KEEPS_PIECES: what
 * is made of pieces is in pieces. Filters and parameters that it writes are
 * not: the program may add up the ranks'. */
void sdg_outside_call(const sdg_call_t *call);
/* The same of what a call writes without a tensor that is an operand: of memory
 * that is overwritten nothing is known; old elements that are among what the
 * new ones are made of leave it what it was. */
void sdg_outside_writes(const sdg_writes_t *writes);
/* The same of calls on vectors: copies, sums and multiples of pieces are
 * pieces. */
void sdg_outside_vector(const sdg_vector_t *vector);

/* Call it before a value is computed from vectors. SDG_E_PIECE_VALUE if they
 * are in pieces and the rules do not say what the value means;
 * SDG_E_VALUE_KIND. */
sdg_status_t sdg_outside_value(const sdg_vector_t *vector) SDG_MUST_CHECK;
/* Call it after the value was computed, or `refused` by the vendor's library.
 * With values = global it becomes that of all pieces; collective in both cases
 * then. */
sdg_status_t sdg_outside_combine(const sdg_vector_t *vector,
                                 bool refused) SDG_MUST_CHECK;

#endif
