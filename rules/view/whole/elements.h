/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: calls that compute element by element (axpy, scal, copy, swap,
 * rot) on tensors in pieces. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_ELEMENTS_H
#define SDG_RULES_VIEW_WHOLE_ELEMENTS_H

#include "src/call/memory_access.h"
#include "src/geometry/buffer.h"

/* Whether each rank may carry out an elementwise call on its own piece, without
 * a transfer: each element that is up to date here and is written is computed
 * from elements that are up to date here. The written tensors stay distributed
 * as before, and nothing that every rank has in full becomes distributed,
 * except that a copy or exchange of vectors moves the tensors in them as they
 * are. Decides by the table alone, so the result is the same on every rank.
 * False if nothing is in pieces. */
bool sdg_elements_stay(const sdg_buffers_t *table,
                       const sdg_memory_access_t *memory);

/* Records that such a call was made: each rank has only its own piece of the
 * written tensors up to date. `self` is this rank. SDG_E_NO_MEMORY. */
sdg_status_t sdg_elements_note(sdg_buffers_t *table,
                               const sdg_memory_access_t *memory,
                               const sdg_mesh_t *mesh, int self) SDG_MUST_CHECK;

#endif
