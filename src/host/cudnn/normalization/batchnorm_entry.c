// SPDX-License-Identifier: Apache-2.0
// The entries of batch normalisation: from their arguments to one job.
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/normalization/args.h"

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
  REFUSE_IF(!derived || !x || !host_bn_mode_known(mode),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank < 2, CUDNN_STATUS_BAD_PARAM);
  int dim[CUDNN_DIM_MAX];
  for (int i = 0; i < x->rank; i++)
    dim[i] = i == 1                                            ? x->dim[1]
             : i > 1 && mode == CUDNN_BATCHNORM_PER_ACTIVATION ? x->dim[i]
                                                               : 1;
  return cudnnSetTensorNdDescriptorEx(
      derived, CUDNN_TENSOR_NCHW,
      x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      x->rank, dim);
}

cudnnStatus_t cudnnBatchNormalizationForwardInference(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t params, const void *scale, const void *bias,
    const void *mean, const void *variance, double epsilon) {
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  const host_bn_call_t call = {.entry = __func__,
                               .how = {mode, CUDNN_BATCHNORM_OPS_BN, NULL},
                               .by = {alpha, beta, NULL, NULL},
                               .x = {x, x_data},
                               .y = {y, y_data},
                               .params = {params, scale, bias, NULL, NULL},
                               .stats = {params, mean, variance, NULL, NULL},
                               .epsilon = epsilon};
  return host_bn_queue(handle, HOST_BN_INFERENCE, &call);
}

cudnnStatus_t cudnnBatchNormalizationForwardTrainingEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void *alpha, const void *beta, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnTensorDescriptor_t z, const void *z_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t params, const void *scale, const void *bias,
    double factor, void *running_mean, void *running_variance, double epsilon,
    void *saved_mean, void *saved_invstd,
    const cudnnActivationDescriptor_t activation, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_bytes) {
  (void)workspace; // nothing is stored there
  (void)workspace_bytes;
  (void)reserve;
  (void)reserve_bytes;
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  const host_bn_call_t call = {.entry = __func__,
                               .how = {mode, ops, activation},
                               .by = {alpha, beta, NULL, NULL},
                               .x = {x, x_data},
                               .y = {y, y_data},
                               .z = {z, z_data},
                               .params = {params, scale, bias, NULL, NULL},
                               .stats = {params, running_mean, running_variance,
                                         saved_mean, saved_invstd},
                               .epsilon = epsilon,
                               .factor = factor};
  return host_bn_queue(handle, HOST_BN_TRAINING, &call);
}

cudnnStatus_t cudnnBatchNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, void *y_data,
    const cudnnTensorDescriptor_t params, const void *scale, const void *bias,
    double factor, void *running_mean, void *running_variance, double epsilon,
    void *saved_mean, void *saved_invstd) {
  return cudnnBatchNormalizationForwardTrainingEx(
      handle, mode, CUDNN_BATCHNORM_OPS_BN, alpha, beta, x, x_data, NULL, NULL,
      y, y_data, params, scale, bias, factor, running_mean, running_variance,
      epsilon, saved_mean, saved_invstd, NULL, NULL, 0, NULL, 0);
}

cudnnStatus_t cudnnBatchNormalizationBackwardEx(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const void *alpha, const void *beta, const void *alpha_param,
    const void *beta_param, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t dz, void *dz_data,
    const cudnnTensorDescriptor_t dx, void *dx_data,
    const cudnnTensorDescriptor_t params, const void *scale, const void *bias,
    void *dscale, void *dbias, double epsilon, const void *saved_mean,
    const void *saved_invstd, const cudnnActivationDescriptor_t activation,
    void *workspace, size_t workspace_bytes, void *reserve,
    size_t reserve_bytes) {
  (void)bias; // y shows where the activation was positive
  (void)workspace;
  (void)workspace_bytes;
  (void)reserve;
  (void)reserve_bytes;
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  const host_bn_call_t call = {
      .entry = __func__,
      .how = {mode, ops, activation},
      .by = {alpha, beta, alpha_param, beta_param},
      .x = {x, x_data},
      .y = {y, y_data},
      .dy = {dy, dy_data},
      .dx = {dx, dx_data},
      .dz = {dz, dz_data},
      .params = {params, scale, NULL, dscale, dbias},
      .stats = {params, NULL, NULL, saved_mean, saved_invstd},
      .epsilon = epsilon};
  return host_bn_queue(handle, HOST_BN_BACKWARD, &call);
}

cudnnStatus_t cudnnBatchNormalizationBackward(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, const void *alpha,
    const void *beta, const void *alpha_param, const void *beta_param,
    const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t dx, void *dx_data,
    const cudnnTensorDescriptor_t params, const void *scale, void *dscale,
    void *dbias, double epsilon, const void *saved_mean,
    const void *saved_invstd) {
  return cudnnBatchNormalizationBackwardEx(
      handle, mode, CUDNN_BATCHNORM_OPS_BN, alpha, beta, alpha_param,
      beta_param, x, x_data, NULL, NULL, dy, dy_data, NULL, NULL, dx, dx_data,
      params, scale, NULL, dscale, dbias, epsilon, saved_mean, saved_invstd,
      NULL, NULL, 0, NULL, 0);
}

// No operation needs workspace or reserve.
static cudnnStatus_t
no_bytes(cudnnHandle_t handle, host_bn_kind_t kind, cudnnBatchNormMode_t mode,
         cudnnBatchNormOps_t ops, const struct cudnnTensorStruct *x,
         const struct cudnnActivationStruct *activation, size_t *bytes) {
  REFUSE_IF(!handle || !x || !bytes || !host_bn_mode_known(mode),
            CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn = {.kind = kind};
  cudnnStatus_t status = host_bn_fuse(&bn, ops, activation);
  if (!status)
    *bytes = 0;
  return status;
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t z,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t params,
    const cudnnActivationDescriptor_t activation, size_t *bytes) {
  (void)z;
  REFUSE_IF(!y || !params, CUDNN_STATUS_BAD_PARAM);
  return no_bytes(handle, HOST_BN_TRAINING, mode, ops, x, activation, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnTensorDescriptor_t dy, const cudnnTensorDescriptor_t dz,
    const cudnnTensorDescriptor_t dx, const cudnnTensorDescriptor_t params,
    const cudnnActivationDescriptor_t activation, size_t *bytes) {
  (void)y;
  (void)dz;
  REFUSE_IF(!dy || !dx || !params, CUDNN_STATUS_BAD_PARAM);
  return no_bytes(handle, HOST_BN_BACKWARD, mode, ops, x, activation, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t x, size_t *bytes) {
  return no_bytes(handle, HOST_BN_TRAINING, mode, ops, x, activation, bytes);
}
