/* SPDX-License-Identifier: Apache-2.0 */
/* sundog_combine: call->args is a pointer to the sdg_combine_t. Inside rules/
 * only. */
#ifndef SDG_RULES_COMBINE_COMBINE_H
#define SDG_RULES_COMBINE_COMBINE_H

#include "src/plan/plan.h"

/* The label of the numbers: this and the axes over which they are combined,
 * whatever the operator. */
#define SDG_COMBINE_LABEL "sum:"

#endif
