// SPDX-License-Identifier: Apache-2.0
// The rule for pointwise ops: each rank's own call is right where all operands
// are cut in the same places.
#include <cudnn.h>
#include <stdio.h>

#include "rules/alike.h"
#include "rules/args.h"
#include "rules/pointwisebring.h"
#include "rules/pointwiseplan.h"
#include "rules/rule.h"
#include "rules/vendor.h"

static bool pointwise_knows(const sdg_call_t *call) {
  switch (call->entry) {
  case SDG_ENTRY_cudnnActivationForward:
  case SDG_ENTRY_cudnnActivationBackward:
  case SDG_ENTRY_cudnnAddTensor:
  case SDG_ENTRY_cudnnOpTensor:
  case SDG_ENTRY_cudnnScaleTensor:
  case SDG_ENTRY_cudnnSetTensor:
  case SDG_ENTRY_cudnnTransformTensor:
    return true;
  default:
    return false;
  }
}

static sdg_status_t pointwise_describe(const sdg_call_t *call, char *out,
                                       size_t out_bytes) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
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

static int pointwise_scalars(const sdg_call_t *call, double *out) {
  const void *pointer[SDG_RULE_SCALARS];
  int count = 0;
#define SCALAR(entry, member)                                                  \
  pointer[count++] = ((const struct sdg_args_##entry *)call->args)->member
  switch (call->entry) {
  case SDG_ENTRY_cudnnActivationForward:
    SCALAR(cudnnActivationForward, alpha);
    SCALAR(cudnnActivationForward, beta);
    break;
  case SDG_ENTRY_cudnnActivationBackward:
    SCALAR(cudnnActivationBackward, alpha);
    SCALAR(cudnnActivationBackward, beta);
    break;
  case SDG_ENTRY_cudnnAddTensor:
    SCALAR(cudnnAddTensor, alpha);
    SCALAR(cudnnAddTensor, beta);
    break;
  case SDG_ENTRY_cudnnOpTensor:
    SCALAR(cudnnOpTensor, alpha1);
    SCALAR(cudnnOpTensor, alpha2);
    SCALAR(cudnnOpTensor, beta);
    break;
  case SDG_ENTRY_cudnnScaleTensor:
    SCALAR(cudnnScaleTensor, alpha);
    break;
  case SDG_ENTRY_cudnnTransformTensor:
    SCALAR(cudnnTransformTensor, alpha);
    SCALAR(cudnnTransformTensor, beta);
    break;
  default: // the value of SetTensor has the tensor's own type
    break;
  }
#undef SCALAR
  for (int i = 0; i < count; i++)
    out[i] = sdg_rule_scalar(call, pointer[i]);
  return count;
}

// Whether the call reads its output's old values, which the program says by a
// scale that is not zero.
static bool reads_old(const sdg_call_t *call) {
  double scalar[SDG_RULE_SCALARS];
  switch (call->entry) {
  case SDG_ENTRY_cudnnSetTensor:
    return false;
  case SDG_ENTRY_cudnnScaleTensor:
    return true;
  default:
    return scalar[pointwise_scalars(call, scalar) - 1] != 0;
  }
}

static int pointwise_key(const sdg_call_t *call, uint64_t *out) {
  out[0] = reads_old(call);
  return 1;
}

static sdg_status_t pointwise_share(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_plan_t **out_plan) {
  return sdg_pointwise_share(call, tagging, reads_old(call), out_plan);
}

static sdg_status_t pointwise_plan(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t **out_plan) {
  int output = -1;
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].is_output)
      output = i;
  for (int i = 0; i < call->operands && output >= 0; i++)
    if (sdg_role_is_activation(call->operand[i].role) &&
        !sdg_alike(&tagging->placement[i], &tagging->placement[output]))
      return sdg_pointwise_bring(call, tagging, output, out_plan);
  return sdg_literal_plan(out_plan);
}

const sdg_rule_t sdg_rule_pointwise = {
    .family = SDG_FAMILY_POINTWISE,
    .knows = pointwise_knows,
    .describe = pointwise_describe,
    .key = pointwise_key,
    .scalars = pointwise_scalars,
    .plan = pointwise_plan,
    .share = pointwise_share,
};
