/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's normalisations: batch normalisation by the plain entries, by the Ex
 * entries and by those of Normalization, which take an activation and a second
 * input; and local response normalisation. */
#include "tests/equivalence/driver/op_case.h"

#include <string.h>

static cudnnBatchNormMode_t mode_of(const op_call_t *call) {
  const char *mode = op_text(call, "mode", "spatial");
  return !strcmp(mode, "each")      ? CUDNN_BATCHNORM_PER_ACTIVATION
         : !strcmp(mode, "spatial") ? CUDNN_BATCHNORM_SPATIAL
                                    : CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
}

/* Checks that the derived descriptor equals the parameters' descriptor. */
static int prepare(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"),
                    *scale = op_tensor(call, "scale");
  cudnnTensorDescriptor_t derived;
  cudnnDataType_t type;
  int dims, extent[OP_DIMS], stride[OP_DIMS];
  OP_TRY(cudnnCreateTensorDescriptor(&derived));
  OP_TRY(cudnnDeriveBNTensorDescriptor(derived, x->desc, mode_of(call)));
  OP_TRY(cudnnGetTensorNdDescriptor(derived, OP_DIMS, &type, &dims, extent,
                                    stride));
  OP_TRY(cudnnDestroyTensorDescriptor(derived));
  return op_same_extents(scale, extent);
}

static void *device(const op_call_t *call, const char *key) {
  const op_tensor_t *t = op_tensor(call, key);
  return t ? t->device : NULL;
}

static cudnnTensorDescriptor_t desc(const op_call_t *call, const char *key) {
  const op_tensor_t *t = op_tensor(call, key);
  return t ? t->desc : NULL;
}

static const void *scalar(const op_call_t *call, const char *key,
                          double fallback) {
  return op_scalar(call, key, fallback, op_tensor(call, "x")->type);
}

/* Returns whether the call uses these entries: plain, ex or norm. */
static int is_api(const op_call_t *call, const char *api) {
  return !strcmp(op_text(call, "api", "plain"), api);
}

/* Returns which ops are fused: an activation, and an addition before it. */
static cudnnBatchNormOps_t ops_of(const op_call_t *call) {
  const char *fuse = op_text(call, "fuse", "none");
  return !strcmp(fuse, "add")   ? CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION
         : !strcmp(fuse, "act") ? CUDNN_BATCHNORM_OPS_BN_ACTIVATION
                                : CUDNN_BATCHNORM_OPS_BN;
}

enum { WORK, RESERVE }; /* indices of call->space */

/* Makes workspace and reserve as large as cuDNN says. */
static int sizes(op_call_t *call, int backward) {
  cudnnTensorDescriptor_t x = desc(call, "x"), s = desc(call, "scale"),
                          y = desc(call, "y"), z = desc(call, "z");
  cudnnTensorDescriptor_t dy = desc(call, "dy"), dx = desc(call, "dx"),
                          dz = desc(call, "dz");
  cudnnBatchNormMode_t mode = mode_of(call);
  cudnnBatchNormOps_t ops = ops_of(call);
  cudnnNormMode_t norm_mode = (cudnnNormMode_t)(mode > 0);
  cudnnNormOps_t norm_ops = (cudnnNormOps_t)ops;
  cudnnNormAlgo_t algo = (cudnnNormAlgo_t)(mode > 1);
  size_t work, reserve;
  if (is_api(call, "ex")) {
    OP_TRY(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        call->handle, mode, ops, call->act, x, &reserve));
    if (backward)
      OP_TRY(cudnnGetBatchNormalizationBackwardExWorkspaceSize(
          call->handle, mode, ops, x, y, dy, dz, dx, s, call->act, &work));
    else
      OP_TRY(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
          call->handle, mode, ops, x, z, y, s, call->act, &work));
  } else {
    OP_TRY(cudnnGetNormalizationTrainingReserveSpaceSize(
        call->handle, norm_mode, norm_ops, algo, call->act, x, &reserve, 1));
    if (backward)
      OP_TRY(cudnnGetNormalizationBackwardWorkspaceSize(
          call->handle, norm_mode, norm_ops, algo, x, y, dy, dz, dx, s,
          call->act, s, &work, 1));
    else
      OP_TRY(cudnnGetNormalizationForwardTrainingWorkspaceSize(
          call->handle, norm_mode, norm_ops, algo, x, z, y, s, call->act, s,
          &work, 1));
  }
  OP_TRY(op_space(call, WORK, work));
  return op_space(call, RESERVE, reserve);
}

static int prepare_fused(op_call_t *call, int backward) {
  OP_TRY(prepare(call));
  if (is_api(call, "plain"))
    return 0;
  if (ops_of(call) != CUDNN_BATCHNORM_OPS_BN) {
    OP_TRY(cudnnCreateActivationDescriptor(&call->act));
    OP_TRY(cudnnSetActivationDescriptor(call->act, CUDNN_ACTIVATION_RELU,
                                        CUDNN_PROPAGATE_NAN, 0));
  }
  return sizes(call, backward);
}

static int prepare_training(op_call_t *call) {
  return prepare_fused(call, 0);
}

static int prepare_backward(op_call_t *call) {
  return prepare_fused(call, 1);
}

static int run_training(op_call_t *call) {
  const void *alpha = scalar(call, "alpha", 1), *beta = scalar(call, "beta", 0);
  double factor = op_real(call, "factor", 1);
  double epsilon = op_real(call, "epsilon", 1e-5);
  cudnnTensorDescriptor_t s = desc(call, "scale");
  if (is_api(call, "plain"))
    OP_TRY(cudnnBatchNormalizationForwardTraining(
        call->handle, mode_of(call), alpha, beta, desc(call, "x"),
        device(call, "x"), desc(call, "y"), device(call, "y"), s,
        device(call, "scale"), device(call, "bias"), factor,
        device(call, "running_mean"), device(call, "running_var"), epsilon,
        device(call, "saved_mean"), device(call, "saved_inv")));
  else if (is_api(call, "ex"))
    OP_TRY(cudnnBatchNormalizationForwardTrainingEx(
        call->handle, mode_of(call), ops_of(call), alpha, beta, desc(call, "x"),
        device(call, "x"), desc(call, "z"), device(call, "z"), desc(call, "y"),
        device(call, "y"), s, device(call, "scale"), device(call, "bias"),
        factor, device(call, "running_mean"), device(call, "running_var"),
        epsilon, device(call, "saved_mean"), device(call, "saved_inv"),
        call->act, call->space[WORK], call->space_bytes[WORK],
        call->space[RESERVE], call->space_bytes[RESERVE]));
  else
    OP_TRY(cudnnNormalizationForwardTraining(
        call->handle, (cudnnNormMode_t)(mode_of(call) > 0),
        (cudnnNormOps_t)ops_of(call), (cudnnNormAlgo_t)(mode_of(call) > 1),
        alpha, beta, desc(call, "x"), device(call, "x"), s,
        device(call, "scale"), device(call, "bias"), factor, s,
        device(call, "running_mean"), device(call, "running_var"), epsilon,
        device(call, "saved_mean"), device(call, "saved_inv"), call->act,
        desc(call, "z"), device(call, "z"), desc(call, "y"), device(call, "y"),
        call->space[WORK], call->space_bytes[WORK], call->space[RESERVE],
        call->space_bytes[RESERVE], 1));
  return 0;
}

static int run_inference(op_call_t *call) {
  const void *alpha = scalar(call, "alpha", 1), *beta = scalar(call, "beta", 0);
  double epsilon = op_real(call, "epsilon", 1e-5);
  cudnnTensorDescriptor_t s = desc(call, "scale");
  if (is_api(call, "norm"))
    OP_TRY(cudnnNormalizationForwardInference(
        call->handle, (cudnnNormMode_t)(mode_of(call) > 0), CUDNN_NORM_OPS_NORM,
        (cudnnNormAlgo_t)(mode_of(call) > 1), alpha, beta, desc(call, "x"),
        device(call, "x"), s, device(call, "scale"), device(call, "bias"), s,
        device(call, "mean"), device(call, "var"), NULL, NULL, NULL,
        desc(call, "y"), device(call, "y"), epsilon, 1));
  else
    OP_TRY(cudnnBatchNormalizationForwardInference(
        call->handle, mode_of(call), alpha, beta, desc(call, "x"),
        device(call, "x"), desc(call, "y"), device(call, "y"), s,
        device(call, "scale"), device(call, "bias"), device(call, "mean"),
        device(call, "var"), epsilon));
  return 0;
}

static int run_backward(op_call_t *call) {
  const void *alpha = scalar(call, "alpha", 1), *beta = scalar(call, "beta", 0);
  const void *alpha2 = scalar(call, "alpha2", 1),
             *beta2 = scalar(call, "beta2", 0);
  double epsilon = op_real(call, "epsilon", 1e-5);
  cudnnTensorDescriptor_t s = desc(call, "scale");
  if (is_api(call, "plain"))
    OP_TRY(cudnnBatchNormalizationBackward(
        call->handle, mode_of(call), alpha, beta, alpha2, beta2,
        desc(call, "x"), device(call, "x"), desc(call, "dy"),
        device(call, "dy"), desc(call, "dx"), device(call, "dx"), s,
        device(call, "scale"), device(call, "dscale"), device(call, "dbias"),
        epsilon, device(call, "saved_mean"), device(call, "saved_inv")));
  else if (is_api(call, "ex"))
    OP_TRY(cudnnBatchNormalizationBackwardEx(
        call->handle, mode_of(call), ops_of(call), alpha, beta, alpha2, beta2,
        desc(call, "x"), device(call, "x"), desc(call, "y"), device(call, "y"),
        desc(call, "dy"), device(call, "dy"), desc(call, "dz"),
        device(call, "dz"), desc(call, "dx"), device(call, "dx"), s,
        device(call, "scale"), device(call, "bias"), device(call, "dscale"),
        device(call, "dbias"), epsilon, device(call, "saved_mean"),
        device(call, "saved_inv"), call->act, call->space[WORK],
        call->space_bytes[WORK], call->space[RESERVE],
        call->space_bytes[RESERVE]));
  else
    OP_TRY(cudnnNormalizationBackward(
        call->handle, (cudnnNormMode_t)(mode_of(call) > 0),
        (cudnnNormOps_t)ops_of(call), (cudnnNormAlgo_t)(mode_of(call) > 1),
        alpha, beta, alpha2, beta2, desc(call, "x"), device(call, "x"),
        desc(call, "y"), device(call, "y"), desc(call, "dy"),
        device(call, "dy"), desc(call, "dz"), device(call, "dz"),
        desc(call, "dx"), device(call, "dx"), s, device(call, "scale"),
        device(call, "bias"), device(call, "dscale"), device(call, "dbias"),
        epsilon, s, device(call, "saved_mean"), device(call, "saved_inv"),
        call->act, call->space[WORK], call->space_bytes[WORK],
        call->space[RESERVE], call->space_bytes[RESERVE], 1));
  return 0;
}

static int prepare_lrn(op_call_t *call) {
  OP_TRY(cudnnCreateLRNDescriptor(&call->lrn));
  OP_TRY(cudnnSetLRNDescriptor(
      call->lrn, (unsigned)op_number(call, "window", 5),
      op_real(call, "lrn_alpha", 0.5), op_real(call, "lrn_beta", 0.75),
      op_real(call, "lrn_k", 2)));
  return 0;
}

static int run_lrn(op_call_t *call) {
  OP_TRY(cudnnLRNCrossChannelForward(
      call->handle, call->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1,
      scalar(call, "alpha", 1), desc(call, "x"), device(call, "x"),
      scalar(call, "beta", 0), desc(call, "y"), device(call, "y")));
  return 0;
}

static int run_lrn_backward(op_call_t *call) {
  OP_TRY(cudnnLRNCrossChannelBackward(
      call->handle, call->lrn, CUDNN_LRN_CROSS_CHANNEL_DIM1,
      scalar(call, "alpha", 1), desc(call, "y"), device(call, "y"),
      desc(call, "dy"), device(call, "dy"), desc(call, "x"), device(call, "x"),
      scalar(call, "beta", 0), desc(call, "dx"), device(call, "dx")));
  return 0;
}

static const op_row_t rows[] = {
    {"bn_training", prepare_training, run_training},
    {"bn_inference", prepare, run_inference},
    {"bn_backward", prepare_backward, run_backward},
    {"lrn_forward", prepare_lrn, run_lrn},
    {"lrn_backward", prepare_lrn, run_lrn_backward},
    {0},
};
OP_ROWS(rows)
