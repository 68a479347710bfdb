/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceTensor on split tensors: its call, its plans. Inside rules/ only. */
#ifndef SDG_RULES_REDUCE_RULE_H
#define SDG_RULES_REDUCE_RULE_H

#include <cudnn.h>

#include "rules/place/op.h"

/* The indices of the operands a and c, -1 if absent, and the values of the op's
 * descriptor. */
typedef struct sdg_reduce {
  int a, c;
  cudnnReduceTensorOp_t op;
  cudnnDataType_t compute;
  cudnnNanPropagation_t nan;
  cudnnReduceTensorIndices_t indices;
  cudnnIndicesType_t index_type;
} sdg_reduce_t;

/* False if an operand is absent, or the vendor's library rejects the
 * descriptor; the operands are filled in any case. */
bool sdg_reduce_read(const sdg_call_t *call, sdg_reduce_t *out);
/* Whether the call returns the indices of the chosen elements. */
bool sdg_reduce_points(const sdg_reduce_t *reduce);

/* Shard view: which dimensions are reduced. Each dimension of c must have the
 * extent and cut of a's, or the extent 1, which means that it is reduced; else
 * SDG_E_OPERANDS_DIFFER. `out` has SDG_DIMS_MAX elements. */
sdg_status_t sdg_reduce_dims(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_reduce_t *reduce,
                             bool *out) SDG_MUST_CHECK;

/* The vendor's status on a single device for these types and this op, as far as
 * its queries report it; 0: the library accepts the call. The same on all
 * ranks. */
int sdg_reduce_refusal(const sdg_call_t *call, const sdg_tagging_t *tagging,
                       const sdg_reduce_t *reduce);

/* See plan() and share() of sdg_op_t. */
sdg_op_plan_t sdg_reduce_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_reduce_share SDG_MUST_CHECK;

#endif
