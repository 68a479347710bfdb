/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-call of plans of pointwise ops, in both views. Inside rules/ only. */
#ifndef SDG_RULES_POINTWISE_RUN_H
#define SDG_RULES_POINTWISE_RUN_H

#include "src/plan/plan.h"

/* The part of an operand with these extents that `box` of the output requires:
 * in broadcast dimensions all of it. */
sdg_box_t sdg_pointwise_project(const int64_t *extent, const sdg_box_t *box);

/* Sets state, state_destroy and run of an empty plan. Its sub-call 0 is the
 * program's call on the boxes that sdg_pointwise_operand() adds. */
sdg_status_t sdg_pointwise_open(sdg_plan_t *plan) SDG_MUST_CHECK;
/* Sets operand `index` of the sub-call to `box` of a slab. Call it for each
 * operand of the call, in order. */
sdg_status_t sdg_pointwise_operand(sdg_plan_t *plan, const sdg_call_t *call,
                                   int index, int slab,
                                   const sdg_box_t *box) SDG_MUST_CHECK;

#endif
