/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program's own, split. Each rank calls the function on its
 * own elements and those around them that these see, and keeps its own. Inside
 * this folder only. */
#ifndef SDG_RULES_FUNCTION_FUNCTION_H
#define SDG_RULES_FUNCTION_FUNCTION_H

#include "rules/function/call.h"
#include "rules/place/op.h"

/* Places the tensors beside the lead: they are cut as it is in the dimensions
 * that they have. SDG_E_FUNCTION if their extents do not fit it. */
sdg_status_t sdg_function_place(const sdg_call_t *call,
                                sdg_tagging_t *io_tagging) SDG_MUST_CHECK;

/* The elements that `rank` needs of the inputs, in global coordinates of the
 * lead: its own, and those in reach. Beyond the ends of a periodic dimension
 * they are images. */
sdg_box_t sdg_function_need(const sdg_call_t *call,
                            const sdg_tagging_t *tagging, int rank);

/* Whole view: what of a call's addresses decides whether the ranks can share
 * it. Call with the lock of rules/memory held. */
uint64_t sdg_function_memory(const sdg_call_t *call);

sdg_op_plan_t sdg_function_plan;
sdg_op_plan_t sdg_function_share;

#endif
