// SPDX-License-Identifier: Apache-2.0
// Names types and operators of reductions as NCCL does.
#include "src/plan/combine.h"

bool sdg_combine_type(sdg_type_t type, ncclDataType_t *out_type) {
  // By cudnnDataType_t, whose numbers sdg_type_t has.
  static const struct {
    sdg_type_t type;
    ncclDataType_t nccl;
  } rows[] = {
      {0, ncclFloat32}, {1, ncclFloat64}, {2, ncclFloat16},  {3, ncclInt8},
      {4, ncclInt32},   {6, ncclUint8},   {9, ncclBfloat16},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].type == type) {
      *out_type = rows[i].nccl;
      return true;
    }
  return false;
}

ncclRedOp_t sdg_combine_op(sdg_combine_t combine) {
  static const ncclRedOp_t ops[] = {
      [SDG_COMBINE_SUM] = ncclSum,
      [SDG_COMBINE_PRODUCT] = ncclProd,
      [SDG_COMBINE_MAX] = ncclMax,
      [SDG_COMBINE_MIN] = ncclMin,
  };
  return ops[combine];
}
