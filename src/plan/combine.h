/* SPDX-License-Identifier: Apache-2.0 */
/* Translates sundog's reduction operators and element types into NCCL's. For
 * src/ only. */
#ifndef SDG_SRC_PLAN_COMBINE_H
#define SDG_SRC_PLAN_COMBINE_H

#include <nccl.h>
#include <stdbool.h>

#include "src/plan/plan.h"

/* Returns false if NCCL cannot reduce this type. */
bool sdg_combine_type(sdg_type_t type, ncclDataType_t *out_type);
ncclRedOp_t sdg_combine_op(sdg_combine_t combine);

#endif
