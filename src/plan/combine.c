// SPDX-License-Identifier: Apache-2.0
// Translates element types and reduction operators into NCCL's.
#include "src/plan/combine.h"

bool sdg_combine_type(sdg_type_t type, ncclDataType_t *out_type) {
  // The key is the number of a cudnnDataType_t; sdg_type_t has the same
  // numbers.
  static const struct {
    sdg_type_t type;
    ncclDataType_t nccl;
  } rows[] = {
      {0, ncclFloat32}, {1, ncclFloat64}, {2, ncclFloat16},  {3, ncclInt8},
      {4, ncclInt32},   {6, ncclUint8},   {9, ncclBfloat16}, {10, ncclInt64},
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
