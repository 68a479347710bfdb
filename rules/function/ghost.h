/* SPDX-License-Identifier: Apache-2.0 */
/* Ghosts: rows of other ranks beside a rank's own, in the program's tensors.
 * They are filled in place, and the function works on the program's memory.
 *
 * At an end of the domain ghosts belong to the program, and to the tensor: its
 * first and last rank have them, and others get what they see of them. In a
 * dimension that wraps, ghosts are the elements at the other end. */
#ifndef SDG_RULES_FUNCTION_GHOST_H
#define SDG_RULES_FUNCTION_GHOST_H

#include "rules/function/call.h"
#include "rules/kit/fetch.h"

/* Whether elements of operand `index` come from other ranks into its ghosts. */
bool sdg_ghosts_filled(const sdg_call_t *call, const sdg_tagging_t *tagging,
                       int index);

/* Adds this rank's messages to the plan's next exchange, and the slab of the
 * program's memory with all ghosts: out->from and out->into. `period` is that
 * of sdg_transfer_plan. */
sdg_status_t sdg_ghosts_open(sdg_plan_t *plan, const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const int64_t *period, int index,
                             sdg_fetch_t *out) SDG_MUST_CHECK;

#endif
