// SPDX-License-Identifier: Apache-2.0
// Reads a batch normalisation from the arguments of any of its entries.
#include "rules/norm/call.h"

#include "rules/vendor/argument.h"

static const sdg_role_t role[SDG_NORM_TENSORS] = {
    [SDG_NORM_X] = SDG_ROLE_X,
    [SDG_NORM_Y] = SDG_ROLE_Y,
    [SDG_NORM_Z] = SDG_ROLE_Z,
    [SDG_NORM_DY] = SDG_ROLE_DY,
    [SDG_NORM_DX] = SDG_ROLE_DX,
    [SDG_NORM_DZ] = SDG_ROLE_Z, // backward: z is not read, its gradient is made
    [SDG_NORM_SCALE] = SDG_ROLE_SCALE,
    [SDG_NORM_BIAS] = SDG_ROLE_SHIFT,
    [SDG_NORM_MEAN] = SDG_ROLE_MEAN,
    [SDG_NORM_VARIANCE] = SDG_ROLE_VARIANCE,
    [SDG_NORM_SAVED_MEAN] = SDG_ROLE_SAVED_MEAN,
    [SDG_NORM_SAVED_INVERSE] = SDG_ROLE_SAVED_INVERSE,
    [SDG_NORM_DSCALE] = SDG_ROLE_DSCALE,
    [SDG_NORM_DBIAS] = SDG_ROLE_DSHIFT,
};

sdg_norm_kind_t sdg_norm_kind(const sdg_call_t *call) {
  switch (call->entry) {
  case SDG_ENTRY_cudnnBatchNormalizationForwardInference:
  case SDG_ENTRY_cudnnNormalizationForwardInference:
    return SDG_NORM_INFERENCE;
  case SDG_ENTRY_cudnnBatchNormalizationForwardTraining:
  case SDG_ENTRY_cudnnBatchNormalizationForwardTrainingEx:
  case SDG_ENTRY_cudnnNormalizationForwardTraining:
    return SDG_NORM_TRAINING;
  case SDG_ENTRY_cudnnBatchNormalizationBackward:
  case SDG_ENTRY_cudnnBatchNormalizationBackwardEx:
  case SDG_ENTRY_cudnnNormalizationBackward:
    return SDG_NORM_BACKWARD;
  default:
    return SDG_NORM_NONE;
  }
}

void sdg_norm_read(const sdg_call_t *call, sdg_norm_t *out) {
  *out = (sdg_norm_t){.kind = sdg_norm_kind(call), .groups = 1};
  for (int i = 0; i < SDG_NORM_TENSORS; i++)
    out->operand[i] = -1;
  if (out->kind == SDG_NORM_NONE)
    return;
  out->mode = (cudnnBatchNormMode_t)sdg_call_int(call, SDG_MODE);
  out->ops = (cudnnBatchNormOps_t)sdg_call_int(call, SDG_OPS);
  if (sdg_call_has(call, SDG_ARGUMENT_GROUPS))
    out->groups = sdg_call_int(call, SDG_GROUPS);
  out->epsilon = sdg_call_number(call, SDG_EPSILON);
  out->activation = sdg_call_pointer(call, SDG_OP);
  bool backward = out->kind == SDG_NORM_BACKWARD;
  for (int i = 0; i < SDG_NORM_TENSORS; i++)
    if (i != (backward ? SDG_NORM_Z : SDG_NORM_DZ))
      out->operand[i] = sdg_call_operand(call, role[i]);
  if (out->ops != CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
    out->operand[SDG_NORM_Z] = out->operand[SDG_NORM_DZ] = -1;
  if (out->ops == CUDNN_BATCHNORM_OPS_BN && backward)
    out->operand[SDG_NORM_Y] = -1;
}

double sdg_norm_number(const sdg_call_t *call, const sdg_norm_t *norm,
                       sdg_norm_number_t which) {
  if (norm->number)
    return norm->number(call, which);
  switch (which) {
  case SDG_NORM_ALPHA:
    return sdg_call_scalar(call, SDG_ALPHA);
  case SDG_NORM_BETA:
    return sdg_call_scalar(call, SDG_BETA);
  case SDG_NORM_ALPHA_PARAM:
    return sdg_call_scalar(call, SDG_ALPHA2);
  case SDG_NORM_BETA_PARAM:
    return sdg_call_scalar(call, SDG_BETA2);
  case SDG_NORM_EPSILON:
    return sdg_call_number(call, SDG_EPSILON);
  case SDG_NORM_FACTOR:
    return sdg_call_number(call, SDG_FACTOR);
  }
  return 0;
}

void *sdg_norm_data(const sdg_call_t *call, const sdg_norm_t *norm,
                    sdg_norm_tensor_t which) {
  int index = norm->operand[which];
  return index < 0 ? NULL : call->operand[index].data;
}

// Whether a tensor exists and has x's extents, or one value for each set of x's
// values that are normalised together.
static bool fits(const sdg_call_t *call, const sdg_norm_t *norm,
                 sdg_norm_tensor_t which) {
  if (!sdg_norm_data(call, norm, which))
    return false;
  const sdg_operand_t *x = &call->operand[norm->operand[SDG_NORM_X]];
  const sdg_operand_t *tensor = &call->operand[norm->operand[which]];
  if (tensor->dims != x->dims)
    return false;
  for (int d = 0; d < x->dims; d++) {
    bool own = which < SDG_NORM_SCALE || d == 1 ||
               (d > 1 && norm->mode == CUDNN_BATCHNORM_PER_ACTIVATION);
    if (tensor->extent[d] != (own ? x->extent[d] : 1))
      return false;
  }
  return true;
}

// Whether the call has both tensors, and they fit, or neither.
static bool paired(const sdg_call_t *call, const sdg_norm_t *norm,
                   sdg_norm_tensor_t a, sdg_norm_tensor_t b) {
  bool has_a = sdg_norm_data(call, norm, a),
       has_b = sdg_norm_data(call, norm, b);
  return has_a == has_b &&
         (!has_a || (fits(call, norm, a) && fits(call, norm, b)));
}

// Whether all tensors and numbers that the call needs are there and match.
static bool sound(const sdg_call_t *call, const sdg_norm_t *norm) {
  bool fused = norm->ops != CUDNN_BATCHNORM_OPS_BN;
  bool adds = norm->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
  if (!sdg_call_scalar_at(call, SDG_ALPHA) ||
      !sdg_call_scalar_at(call, SDG_BETA) ||
      !(norm->epsilon >= CUDNN_BN_MIN_EPSILON) ||
      !fits(call, norm, SDG_NORM_X) || call->operand[0].dims < 3 ||
      !fits(call, norm, SDG_NORM_SCALE) || (fused && !norm->activation))
    return false;
  if (norm->kind == SDG_NORM_BACKWARD)
    return sdg_call_scalar_at(call, SDG_ALPHA2) &&
           sdg_call_scalar_at(call, SDG_BETA2) &&
           fits(call, norm, SDG_NORM_DY) && fits(call, norm, SDG_NORM_DX) &&
           fits(call, norm, SDG_NORM_DSCALE) &&
           fits(call, norm, SDG_NORM_DBIAS) &&
           (!fused || fits(call, norm, SDG_NORM_Y)) &&
           (!adds || fits(call, norm, SDG_NORM_DZ)) &&
           paired(call, norm, SDG_NORM_SAVED_MEAN, SDG_NORM_SAVED_INVERSE);
  return fits(call, norm, SDG_NORM_Y) && fits(call, norm, SDG_NORM_BIAS) &&
         (!adds || fits(call, norm, SDG_NORM_Z)) &&
         paired(call, norm, SDG_NORM_MEAN, SDG_NORM_VARIANCE) &&
         paired(call, norm, SDG_NORM_SAVED_MEAN, SDG_NORM_SAVED_INVERSE);
}

int sdg_norm_refusal(const sdg_call_t *call, const sdg_norm_t *norm) {
  if (norm->groups != 1)
    return CUDNN_STATUS_NOT_SUPPORTED;
  return sound(call, norm) ? 0 : CUDNN_STATUS_BAD_PARAM;
}
