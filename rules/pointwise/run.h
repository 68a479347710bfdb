/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-call of plans of pointwise ops, in both views. Inside rules/ only. */
#ifndef SDG_RULES_POINTWISE_RUN_H
#define SDG_RULES_POINTWISE_RUN_H

#include "src/plan/plan.h"

/* The part of an operand with these extents that goes into `box` of the output:
 * all of what is broadcast. */
sdg_box_t sdg_pointwise_project(const int64_t *extent, const sdg_box_t *box);

/* Gives an empty plan its state, state_destroy and run; its sub-call 0 is the
 * program's call on the boxes that follow. */
sdg_status_t sdg_pointwise_open(sdg_plan_t *plan) SDG_MUST_CHECK;
/* Operand `index` is `box` of a slab; for each operand of the call, in their
 * order. */
sdg_status_t sdg_pointwise_operand(sdg_plan_t *plan, const sdg_call_t *call,
                                   int index, int slab,
                                   const sdg_box_t *box) SDG_MUST_CHECK;

#endif
