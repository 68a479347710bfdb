/* SPDX-License-Identifier: Apache-2.0 */
/* Whole view: whether every rank gives a tagged call the same input. Inside
 * rules/ only. */
#ifndef SDG_RULES_VIEW_WHOLE_INPUTS_H
#define SDG_RULES_VIEW_WHOLE_INPUTS_H

#include "rules/place/op.h"
#include "src/geometry/buffer.h"

/* Compares what a tagged call reads and no tagged call has made, or read
 * before (SUNDOG_COMPARE): its bytes at its first use, or, of what the program
 * copied from the host to where it has been compared, the copied ones. What is
 * distributed is left out: tagged calls made it. Nothing is exchanged where
 * nothing is new. Collective like the call; the lock of the table is held, and
 * everything that the call reads in full is up to date. SDG_E_INPUTS_DIFFER,
 * SDG_E_VALUES_DIFFER, alike on every rank. */
sdg_status_t sdg_inputs_compare(const sdg_call_t *call,
                                sdg_buffers_t *table) SDG_MUST_CHECK;

#endif
