// SPDX-License-Identifier: Apache-2.0
// Reads a batch normalisation from the arguments of any of its entries.
#include "rules/norm/call.h"

#include "rules/vendor/args.h"

// The operand index of a tensor. An absent descriptor is no operand, so
// operands are counted in the order of the entry's table.
typedef struct counter {
  sdg_norm_t *norm;
  int next;
} counter_t;

static void count(counter_t *at, const void *descriptor,
                  sdg_norm_tensor_t which) {
  at->norm->operand[which] = descriptor ? at->next++ : -1;
}

static void params(counter_t *at, const void *descriptor,
                   const sdg_norm_tensor_t *which, int tensors) {
  for (int i = 0; i < tensors; i++)
    count(at, descriptor, which[i]);
}

static const sdg_norm_tensor_t of_inference[] = {
    SDG_NORM_SCALE, SDG_NORM_BIAS, SDG_NORM_MEAN, SDG_NORM_VARIANCE};
static const sdg_norm_tensor_t of_training[] = {
    SDG_NORM_SCALE,    SDG_NORM_BIAS,       SDG_NORM_MEAN,
    SDG_NORM_VARIANCE, SDG_NORM_SAVED_MEAN, SDG_NORM_SAVED_INVERSE};
static const sdg_norm_tensor_t of_backward[] = {
    SDG_NORM_SCALE, SDG_NORM_DSCALE, SDG_NORM_DBIAS, SDG_NORM_SAVED_MEAN,
    SDG_NORM_SAVED_INVERSE};
static const sdg_norm_tensor_t of_backward_ex[] = {
    SDG_NORM_SCALE, SDG_NORM_BIAS,       SDG_NORM_DSCALE,
    SDG_NORM_DBIAS, SDG_NORM_SAVED_MEAN, SDG_NORM_SAVED_INVERSE};

#define ARGS(entry) const struct sdg_args_##entry *a = call->args

static void read_inference(const sdg_call_t *call, counter_t *at) {
  sdg_norm_t *norm = at->norm;
  norm->kind = SDG_NORM_INFERENCE;
  if (call->entry == SDG_ENTRY_cudnnBatchNormalizationForwardInference) {
    ARGS(cudnnBatchNormalizationForwardInference);
    norm->mode = a->mode;
    norm->epsilon = a->epsilon;
    norm->alpha = a->alpha;
    norm->beta = a->beta;
    count(at, a->xDesc, SDG_NORM_X);
    count(at, a->yDesc, SDG_NORM_Y);
    params(at, a->bnScaleBiasMeanVarDesc, of_inference, 4);
    return;
  }
  ARGS(cudnnNormalizationForwardInference);
  norm->mode = (cudnnBatchNormMode_t)a->mode;
  norm->ops = (cudnnBatchNormOps_t)a->normOps;
  norm->groups = a->groupCnt;
  norm->epsilon = a->epsilon;
  norm->alpha = a->alpha;
  norm->beta = a->beta;
  norm->activation = a->activationDesc;
  count(at, a->xDesc, SDG_NORM_X);
  params(at, a->normScaleBiasDesc, of_inference, 2);
  params(at, a->normMeanVarDesc, of_inference + 2, 2);
  count(at, a->zDesc, SDG_NORM_Z);
  count(at, a->yDesc, SDG_NORM_Y);
}

static void read_training(const sdg_call_t *call, counter_t *at) {
  sdg_norm_t *norm = at->norm;
  norm->kind = SDG_NORM_TRAINING;
  if (call->entry == SDG_ENTRY_cudnnBatchNormalizationForwardTraining) {
    ARGS(cudnnBatchNormalizationForwardTraining);
    norm->mode = a->mode;
    norm->epsilon = a->epsilon;
    norm->factor = a->exponentialAverageFactor;
    norm->alpha = a->alpha;
    norm->beta = a->beta;
    count(at, a->xDesc, SDG_NORM_X);
    count(at, a->yDesc, SDG_NORM_Y);
    params(at, a->bnScaleBiasMeanVarDesc, of_training, 6);
    return;
  }
  if (call->entry == SDG_ENTRY_cudnnBatchNormalizationForwardTrainingEx) {
    ARGS(cudnnBatchNormalizationForwardTrainingEx);
    norm->mode = a->mode;
    norm->ops = a->bnOps;
    norm->epsilon = a->epsilon;
    norm->factor = a->exponentialAverageFactor;
    norm->alpha = a->alpha;
    norm->beta = a->beta;
    norm->activation = a->activationDesc;
    count(at, a->xDesc, SDG_NORM_X);
    count(at, a->zDesc, SDG_NORM_Z);
    count(at, a->yDesc, SDG_NORM_Y);
    params(at, a->bnScaleBiasMeanVarDesc, of_training, 6);
    return;
  }
  ARGS(cudnnNormalizationForwardTraining);
  norm->mode = (cudnnBatchNormMode_t)a->mode;
  norm->ops = (cudnnBatchNormOps_t)a->normOps;
  norm->groups = a->groupCnt;
  norm->epsilon = a->epsilon;
  norm->factor = a->exponentialAverageFactor;
  norm->alpha = a->alpha;
  norm->beta = a->beta;
  norm->activation = a->activationDesc;
  count(at, a->xDesc, SDG_NORM_X);
  params(at, a->normScaleBiasDesc, of_training, 2);
  params(at, a->normMeanVarDesc, of_training + 2, 4);
  count(at, a->zDesc, SDG_NORM_Z);
  count(at, a->yDesc, SDG_NORM_Y);
}

static void fields_of_backward(counter_t *at, const void *const descriptor[5]) {
  static const sdg_norm_tensor_t which[] = {SDG_NORM_X, SDG_NORM_Y, SDG_NORM_DY,
                                            SDG_NORM_DZ, SDG_NORM_DX};
  for (int i = 0; i < 5; i++)
    count(at, descriptor[i], which[i]);
}

static void read_backward(const sdg_call_t *call, counter_t *at) {
  sdg_norm_t *norm = at->norm;
  norm->kind = SDG_NORM_BACKWARD;
  if (call->entry == SDG_ENTRY_cudnnBatchNormalizationBackward) {
    ARGS(cudnnBatchNormalizationBackward);
    norm->mode = a->mode;
    norm->epsilon = a->epsilon;
    norm->alpha = a->alphaDataDiff;
    norm->beta = a->betaDataDiff;
    norm->alpha_param = a->alphaParamDiff;
    norm->beta_param = a->betaParamDiff;
    count(at, a->xDesc, SDG_NORM_X);
    count(at, a->dyDesc, SDG_NORM_DY);
    count(at, a->dxDesc, SDG_NORM_DX);
    params(at, a->dBnScaleBiasDesc, of_backward, 5);
    return;
  }
  if (call->entry == SDG_ENTRY_cudnnBatchNormalizationBackwardEx) {
    ARGS(cudnnBatchNormalizationBackwardEx);
    norm->mode = a->mode;
    norm->ops = a->bnOps;
    norm->epsilon = a->epsilon;
    norm->alpha = a->alphaDataDiff;
    norm->beta = a->betaDataDiff;
    norm->alpha_param = a->alphaParamDiff;
    norm->beta_param = a->betaParamDiff;
    norm->activation = a->activationDesc;
    const void *const fields[] = {a->xDesc, a->yDesc, a->dyDesc, a->dzDesc,
                                  a->dxDesc};
    fields_of_backward(at, fields);
    params(at, a->dBnScaleBiasDesc, of_backward_ex, 6);
    return;
  }
  ARGS(cudnnNormalizationBackward);
  norm->mode = (cudnnBatchNormMode_t)a->mode;
  norm->ops = (cudnnBatchNormOps_t)a->normOps;
  norm->groups = a->groupCnt;
  norm->epsilon = a->epsilon;
  norm->alpha = a->alphaDataDiff;
  norm->beta = a->betaDataDiff;
  norm->alpha_param = a->alphaParamDiff;
  norm->beta_param = a->betaParamDiff;
  norm->activation = a->activationDesc;
  const void *const fields[] = {a->xDesc, a->yDesc, a->dyDesc, a->dzDesc,
                                a->dxDesc};
  fields_of_backward(at, fields);
  params(at, a->dNormScaleBiasDesc, of_backward_ex, 4);
  params(at, a->normMeanVarDesc, of_backward_ex + 4, 2);
}

void sdg_norm_read(const sdg_call_t *call, sdg_norm_t *out) {
  counter_t at = {.norm = out};
  *out = (sdg_norm_t){.kind = SDG_NORM_NONE, .groups = 1};
  for (int i = 0; i < SDG_NORM_TENSORS; i++)
    out->operand[i] = -1;
  switch (call->entry) {
  case SDG_ENTRY_cudnnBatchNormalizationForwardInference:
  case SDG_ENTRY_cudnnNormalizationForwardInference:
    read_inference(call, &at);
    break;
  case SDG_ENTRY_cudnnBatchNormalizationForwardTraining:
  case SDG_ENTRY_cudnnBatchNormalizationForwardTrainingEx:
  case SDG_ENTRY_cudnnNormalizationForwardTraining:
    read_training(call, &at);
    break;
  case SDG_ENTRY_cudnnBatchNormalizationBackward:
  case SDG_ENTRY_cudnnBatchNormalizationBackwardEx:
  case SDG_ENTRY_cudnnNormalizationBackward:
    read_backward(call, &at);
    break;
  default:
    break;
  }
  if (out->ops != CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
    out->operand[SDG_NORM_Z] = out->operand[SDG_NORM_DZ] = -1;
  if (out->ops == CUDNN_BATCHNORM_OPS_BN && out->kind == SDG_NORM_BACKWARD)
    out->operand[SDG_NORM_Y] = -1;
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

// The call has both or neither.
static bool paired(const sdg_call_t *call, const sdg_norm_t *norm,
                   sdg_norm_tensor_t a, sdg_norm_tensor_t b) {
  bool has_a = sdg_norm_data(call, norm, a),
       has_b = sdg_norm_data(call, norm, b);
  return has_a == has_b &&
         (!has_a || (fits(call, norm, a) && fits(call, norm, b)));
}

static bool sound(const sdg_call_t *call, const sdg_norm_t *norm) {
  bool fused = norm->ops != CUDNN_BATCHNORM_OPS_BN;
  bool adds = norm->ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
  if (!norm->alpha || !norm->beta || !(norm->epsilon >= CUDNN_BN_MIN_EPSILON) ||
      !fits(call, norm, SDG_NORM_X) || call->operand[0].dims < 3 ||
      !fits(call, norm, SDG_NORM_SCALE) || (fused && !norm->activation))
    return false;
  if (norm->kind == SDG_NORM_BACKWARD)
    return norm->alpha_param && norm->beta_param &&
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
