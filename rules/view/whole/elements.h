/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: calls that compute element by element what lies in pieces, as
 * axpy, scal, copy, swap and rot do. Inside rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_ELEMENTS_H
#define SDG_RULES_VIEW_WHOLE_ELEMENTS_H

#include "src/call/memory_access.h"
#include "src/geometry/buffer.h"

/* Whether a touch that is `elementwise` may be carried out on what each rank
 * has: every element that is right here, of what it writes, is made of elements
 * that are. What is written is then as distributed as before, and no value that
 * was the same everywhere is in pieces by it: tensors that lie in a vector
 * which is copied or exchanged go along with it, as distributed as they are. By
 * the table alone, the same on every rank. False, too, where nothing is in
 * pieces. */
bool sdg_elements_stay(const sdg_buffers_t *table,
                       const sdg_memory_access_t *memory);

/* Such a touch was made: of what it wrote each rank has right its own part. */
sdg_status_t sdg_elements_note(sdg_buffers_t *table,
                               const sdg_memory_access_t *memory,
                               const sdg_mesh_t *mesh, int self) SDG_MUST_CHECK;

#endif
