// SPDX-License-Identifier: Apache-2.0
// Pointwise ops as an op: each rank's own call is right if all operands are cut
// at the same places.
#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#include "rules/place/colocate.h"
#include "rules/place/op.h"
#include "rules/place/same_split.h"
#include "rules/pointwise/dropout.h"
#include "rules/pointwise/plan.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// Paddings and foldings of TransformTensorEx, which change extents.
typedef struct turn {
  cudnnTensorFormat_t format;
  int32_t before[SDG_DIMS_MAX], after[SDG_DIMS_MAX];
  uint32_t fold[SDG_DIMS_MAX];
  cudnnFoldingDirection_t direction;
} turn_t;

static bool turn_read(const sdg_call_t *call, turn_t *out) {
  memset(out, 0, sizeof *out);
  return sdg_call_is_complete(call) && call->op_descriptor &&
         sdg_cudnn_get()->cudnnGetTensorTransformDescriptor(
             (cudnnTensorTransformDescriptor_t)(uintptr_t)call->op_descriptor,
             (uint32_t)call->operand[0].dims, &out->format, out->before,
             out->after, out->fold, &out->direction) == CUDNN_STATUS_SUCCESS;
}

static bool turn_reshapes(const turn_t *turn) {
  for (int d = 0; d < SDG_DIMS_MAX; d++)
    if (turn->before[d] || turn->after[d] || turn->fold[d] > 1)
      return true;
  return false;
}

static void turn_describe(const sdg_call_t *call, char *out, size_t out_bytes) {
  turn_t turn;
  if (!turn_read(call, &turn))
    return;
  size_t used = (size_t)snprintf(out, out_bytes, "format %d direction %d",
                                 (int)turn.format, (int)turn.direction);
  for (int d = 0; d < call->operand[0].dims && used < out_bytes; d++)
    used += (size_t)snprintf(out + used, out_bytes - used, " %d+%d/%u",
                             turn.before[d], turn.after[d], turn.fold[d]);
}

static sdg_status_t pointwise_describe(const sdg_call_t *call, char *out,
                                       size_t out_bytes) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  if (sdg_dropout_is(call))
    return sdg_dropout_describe(call, out, out_bytes);
  void *descriptor = (void *)(uintptr_t)call->op_descriptor;
  cudnnNanPropagation_t nan;
  if (!descriptor)
    return SDG_OK;
  if (call->entry == SDG_ENTRY_cudnnOpTensor) {
    cudnnOpTensorOp_t op;
    cudnnDataType_t compute;
    if (cudnn->cudnnGetOpTensorDescriptor(descriptor, &op, &compute, &nan) ==
        CUDNN_STATUS_SUCCESS)
      snprintf(out, out_bytes, "op %d compute %d nan %d", (int)op, (int)compute,
               (int)nan);
  } else if (call->entry == SDG_ENTRY_cudnnTransformTensorEx) {
    turn_describe(call, out, out_bytes);
  } else {
    cudnnActivationMode_t mode;
    double coefficient;
    if (cudnn->cudnnGetActivationDescriptor(
            descriptor, &mode, &nan, &coefficient) == CUDNN_STATUS_SUCCESS)
      snprintf(out, out_bytes, "mode %d nan %d coefficient %.17g", (int)mode,
               (int)nan, coefficient);
  }
  return SDG_OK;
}

// Whether the call reads its output's old values: the program's scale for them
// is not zero.
static bool reads_old(const sdg_call_t *call) {
  return call->entry == SDG_ENTRY_cudnnScaleTensor ||
         sdg_call_scalar(call, SDG_BETA) != 0;
}

static int pointwise_key(const sdg_call_t *call, uint64_t *out) {
  out[0] = reads_old(call);
  out[1] = sdg_dropout_is(call) ? sdg_dropout_key(call) : 0;
  return 2;
}

static sdg_status_t pointwise_share(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_plan_t **out_plan) {
  *out_plan = NULL;
  if (sdg_dropout_is(call))
    return sdg_in_full_plan("masks and states that are those of one device",
                            out_plan);
  if (call->entry == SDG_ENTRY_cudnnTransformTensorEx)
    return sdg_in_full_plan("paddings and folds, which move elements",
                            out_plan);
  return sdg_pointwise_share(call, tagging, reads_old(call), out_plan);
}

static sdg_status_t pointwise_colocate(const sdg_call_t *call,
                                       sdg_colocation_t *colocation, int lead) {
  colocation->reads_old = reads_old(call);
  return sdg_colocate_alike(colocation, lead);
}

static sdg_status_t pointwise_plan(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t **out_plan) {
  int output = -1;
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].is_output)
      output = i;
  if (output >= 0)
    SDG_TRY(sdg_same_split_check(call, tagging, output));
  turn_t turn;
  if (call->entry == SDG_ENTRY_cudnnTransformTensorEx &&
      turn_read(call, &turn) && turn_reshapes(&turn))
    return sdg_fail(SDG_E_NO_RULE, "%s that pads or folds", call->entry_name);
  if (sdg_dropout_is(call) && sdg_call_is_complete(call) &&
      call->op_descriptor && call->operand[0].data && call->operand[1].data)
    return sdg_dropout_plan(call, tagging, out_plan);
  return sdg_literal_plan(out_plan);
}

// cudnnActivationBackward wants equal strides in y, dy, x and dx.
static int pointwise_strides(const sdg_call_t *call, int index) {
  (void)index;
  return call->entry == SDG_ENTRY_cudnnActivationBackward ? 0 : -1;
}

static const sdg_op_shard_t shard = {
    .stride_group = pointwise_strides,
};

// The bits of the value that cudnnSetTensor gives every element: it has the
// tensor's type.
static int pointwise_scalars(const sdg_call_t *call, double *out) {
  const void *value = sdg_call_scalar_at(call, SDG_VALUE);
  size_t bytes = (size_t)call->operand[0].elem_bytes;
  if (!sdg_call_has(call, SDG_ARGUMENT_VALUE))
    return sdg_call_scalars(call, out);
  *out = 0;
  if (value)
    memcpy(out, value, bytes < sizeof *out ? bytes : sizeof *out);
  return 1;
}

static const sdg_op_numbers_t numbers = {
    .scalars = pointwise_scalars,
};

const sdg_op_t sdg_op_pointwise = {
    .family = SDG_FAMILY_POINTWISE,
    .describe = pointwise_describe,
    .colocate = pointwise_colocate,
    .key = pointwise_key,
    .plan = pointwise_plan,
    .share = pointwise_share,
    .answer = sdg_dropout_answer, // the only query
    .shard = &shard,
    .numbers = &numbers,
};
