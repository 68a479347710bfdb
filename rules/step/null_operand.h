/* SPDX-License-Identifier: Apache-2.0 */
/* Calls without the memory of one of their tensors, which the vendor's library
 * refuses. Inside rules/ only. */
#ifndef SDG_RULES_STEP_NULL_OPERAND_H
#define SDG_RULES_STEP_NULL_OPERAND_H

#include "rules/place/op.h"

/* True if the program gives no memory for a tensor that the op cannot do
 * without. Of ops whose plans do not look for that themselves. `op` may be
 * NULL. */
bool sdg_null_operand(const sdg_call_t *call, const sdg_op_t *op);
/* Shard view, where the program's call is not right as it is: gives it to the
 * vendor's library all the same, and compares with the other ranks what that
 * says. */
sdg_status_t sdg_null_operand_plan(sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
