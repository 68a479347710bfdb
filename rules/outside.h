/* SPDX-License-Identifier: Apache-2.0 */
/* Shard view: what calls that no rule judges do to memory of which something is
 * known (src/hint.h). Any thread. */
#ifndef SDG_RULES_OUTSIDE_H
#define SDG_RULES_OUTSIDE_H

#include "rules/vector.h"
#include "src/touch.h"

/* Copies of memory take what is known along; of what is written otherwise
 * nothing is known any more. */
void sdg_outside_touch(const sdg_touch_t *touch);
/* The same of calls on vectors: copies, sums and multiples of pieces are
 * pieces. */
void sdg_outside_vector(const sdg_vector_t *vector);

#endif
