/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over ranks in NCCL's terms. Inside src/ only. */
#ifndef SDG_SRC_PLAN_COMBINE_H
#define SDG_SRC_PLAN_COMBINE_H

#include <nccl.h>
#include <stdbool.h>

#include "src/plan/plan.h"

/* False for a type that NCCL does not reduce. */
bool sdg_combine_type(sdg_type_t type, ncclDataType_t *out_type);
ncclRedOp_t sdg_combine_op(sdg_combine_t combine);

#endif
