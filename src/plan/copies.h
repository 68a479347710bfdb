/* SPDX-License-Identifier: Apache-2.0 */
/* Finds copies of a plan that one call of the CUDA runtime may carry out. */
#ifndef SDG_SRC_PLAN_COPIES_H
#define SDG_SRC_PLAN_COPIES_H

#include "src/plan/plan.h"

/* Sets `copies` of every step. Two strips whose slabs lie one behind the other
 * have such steps: the copies of their own rows, and those of their results. */
void sdg_plan_group_copies(sdg_plan_t *plan);

#endif
