/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: whether every rank gives a tagged call the same input. Inside
 * rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_INPUTS_H
#define SDG_RULES_VIEW_WHOLE_INPUTS_H

#include "rules/place/op.h"
#include "src/geometry/buffer.h"

/* Compares the ranks' bytes of inputs that are new: no tagged call has written
 * or read them before (SUNDOG_COMPARE). If the program copies new values from
 * the host to memory that has been compared, the copied bytes are compared.
 * Distributed tensors are not compared, because tagged calls made them. Makes
 * no exchange if nothing is new. Collective like the call. The caller holds the
 * lock of the table, and everything that the call reads in full is up to date.
 * SDG_E_INPUTS_DIFFER, SDG_E_VALUES_DIFFER, the same on every rank. */
sdg_status_t sdg_inputs_compare(const sdg_call_t *call,
                                sdg_buffers_t *table) SDG_MUST_CHECK;

#endif
