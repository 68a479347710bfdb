/* SPDX-License-Identifier: Apache-2.0 */
/* Values that cuBLAS makes of vectors in pieces: each rank has the value of its
 * own piece until they are put together. Inside rules/ only. */
#ifndef SDG_RULES_STEP_TOGETHER_H
#define SDG_RULES_STEP_TOGETHER_H

#include <stdbool.h>

#include "rules/vendor/vector.h"
#include "src/base/status.h"
#include "src/geometry/hint.h"

/* Whether a value of these elements can be put together. SDG_E_VALUE_KIND. */
sdg_status_t sdg_together_check(const sdg_vector_t *vector) SDG_MUST_CHECK;

/* The same without a message. */
bool sdg_together_may(const sdg_vector_t *vector);

/* The call has returned its value, of this rank's piece, or will leave it in
 * device memory: it becomes that of all pieces along `axes`. `same`: ranks
 * along the group's other axes have the same pieces; all ranks take the value
 * of the first ones, so that all have the same bits. Collective over the
 * agreement's group. `hash`: of what all ranks' calls have alike beside entry,
 * types, `axes` and kind of memory; SDG_E_DIVERGED if a rank makes another
 * call. `contents`: which tensors x and y are of; 0, unknown, equals any.
 * Any failure but SDG_E_CAPTURE breaks the job. */
sdg_status_t sdg_together_make(const sdg_vector_t *vector, sdg_axes_t axes,
                               bool same, uint64_t hash,
                               const uint64_t contents[2]) SDG_MUST_CHECK;

/* The vendor's library has refused the call: on every rank, or SDG_E_DIVERGED,
 * which breaks the job. */
sdg_status_t sdg_together_refused(const sdg_vector_t *vector) SDG_MUST_CHECK;

/* The device is reset: communicators are made anew (src/exchange/exchange.h).
 */
void sdg_together_forget(void);

#endif
