// SPDX-License-Identifier: Apache-2.0
// The entries of normalisations: batch normalisation with descriptors of its
// own for running and saved values.
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/normalization/args.h"

// Modes and fused operations have the numbers of batch normalisation.
_Static_assert((int)CUDNN_NORM_PER_ACTIVATION ==
                       (int)CUDNN_BATCHNORM_PER_ACTIVATION &&
                   (int)CUDNN_NORM_PER_CHANNEL == (int)CUDNN_BATCHNORM_SPATIAL,
               "same modes");
_Static_assert((int)CUDNN_NORM_OPS_NORM == (int)CUDNN_BATCHNORM_OPS_BN &&
                   (int)CUDNN_NORM_OPS_NORM_ADD_ACTIVATION ==
                       (int)CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION,
               "same operations");

static cudnnStatus_t known(cudnnHandle_t handle, cudnnNormMode_t mode,
                           cudnnNormOps_t ops, cudnnNormAlgo_t algo,
                           int groups) {
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(
      !host_in_range(mode, CUDNN_NORM_PER_ACTIVATION, CUDNN_NORM_PER_CHANNEL) ||
          !host_in_range(ops, CUDNN_NORM_OPS_NORM,
                         CUDNN_NORM_OPS_NORM_ADD_ACTIVATION) ||
          !host_in_range(algo, CUDNN_NORM_ALGO_STANDARD,
                         CUDNN_NORM_ALGO_PERSIST),
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(groups != 1, CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDeriveNormTensorDescriptor(cudnnTensorDescriptor_t params,
                                              cudnnTensorDescriptor_t stats,
                                              const cudnnTensorDescriptor_t x,
                                              cudnnNormMode_t mode,
                                              int groups) {
  REFUSE_IF(groups != 1, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(
      !host_in_range(mode, CUDNN_NORM_PER_ACTIVATION, CUDNN_NORM_PER_CHANNEL),
      CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status =
      cudnnDeriveBNTensorDescriptor(params, x, (cudnnBatchNormMode_t)mode);
  return status ? status
                : cudnnDeriveBNTensorDescriptor(stats, x,
                                                (cudnnBatchNormMode_t)mode);
}

cudnnStatus_t cudnnNormalizationForwardInference(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops,
    cudnnNormAlgo_t algo, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t params, const void *scale, const void *bias,
    const cudnnTensorDescriptor_t stats, const void *mean, const void *variance,
    const cudnnTensorDescriptor_t z, const void *z_data,
    cudnnActivationDescriptor_t activation, const cudnnTensorDescriptor_t y,
    void *y_data, double epsilon, int groups) {
  (void)z;
  (void)z_data;
  (void)activation;
  cudnnStatus_t s = known(handle, mode, ops, algo, groups);
  if (s)
    return s;
  // cuDNN documents that nothing is fused here.
  REFUSE_IF(ops != CUDNN_NORM_OPS_NORM, CUDNN_STATUS_NOT_SUPPORTED);
  const host_bn_call_t call = {
      .entry = __func__,
      .how = {(cudnnBatchNormMode_t)mode, CUDNN_BATCHNORM_OPS_BN, NULL},
      .by = {alpha, beta, NULL, NULL},
      .x = {x, x_data},
      .y = {y, y_data},
      .params = {params, scale, bias, NULL, NULL},
      .stats = {stats, mean, variance, NULL, NULL},
      .epsilon = epsilon};
  return host_bn_queue(handle, HOST_BN_INFERENCE, &call);
}

cudnnStatus_t cudnnNormalizationForwardTraining(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops,
    cudnnNormAlgo_t algo, const void *alpha, const void *beta,
    const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t params, const void *scale, const void *bias,
    double factor, const cudnnTensorDescriptor_t stats, void *running_mean,
    void *running_variance, double epsilon, void *saved_mean,
    void *saved_invstd, cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t z, const void *z_data,
    const cudnnTensorDescriptor_t y, void *y_data, void *workspace,
    size_t workspace_bytes, void *reserve, size_t reserve_bytes, int groups) {
  (void)workspace; // nothing is stored there
  (void)workspace_bytes;
  (void)reserve;
  (void)reserve_bytes;
  cudnnStatus_t s = known(handle, mode, ops, algo, groups);
  if (s)
    return s;
  const host_bn_call_t call = {
      .entry = __func__,
      .how = {(cudnnBatchNormMode_t)mode, (cudnnBatchNormOps_t)ops, activation},
      .by = {alpha, beta, NULL, NULL},
      .x = {x, x_data},
      .y = {y, y_data},
      .z = {z, z_data},
      .params = {params, scale, bias, NULL, NULL},
      .stats = {stats, running_mean, running_variance, saved_mean,
                saved_invstd},
      .epsilon = epsilon,
      .factor = factor};
  return host_bn_queue(handle, HOST_BN_TRAINING, &call);
}

cudnnStatus_t cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops,
    cudnnNormAlgo_t algo, const void *alpha, const void *beta,
    const void *alpha_param, const void *beta_param,
    const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t dz, void *dz_data,
    const cudnnTensorDescriptor_t dx, void *dx_data,
    const cudnnTensorDescriptor_t params, const void *scale, const void *bias,
    void *dscale, void *dbias, double epsilon,
    const cudnnTensorDescriptor_t stats, const void *saved_mean,
    const void *saved_invstd, cudnnActivationDescriptor_t activation,
    void *workspace, size_t workspace_bytes, void *reserve,
    size_t reserve_bytes, int groups) {
  (void)bias; // y shows where the activation was positive
  (void)workspace;
  (void)workspace_bytes;
  (void)reserve;
  (void)reserve_bytes;
  cudnnStatus_t s = known(handle, mode, ops, algo, groups);
  if (s)
    return s;
  const host_bn_call_t call = {
      .entry = __func__,
      .how = {(cudnnBatchNormMode_t)mode, (cudnnBatchNormOps_t)ops, activation},
      .by = {alpha, beta, alpha_param, beta_param},
      .x = {x, x_data},
      .y = {y, y_data},
      .dy = {dy, dy_data},
      .dx = {dx, dx_data},
      .dz = {dz, dz_data},
      .params = {params, scale, NULL, dscale, dbias},
      .stats = {stats, NULL, NULL, saved_mean, saved_invstd},
      .epsilon = epsilon};
  return host_bn_queue(handle, HOST_BN_BACKWARD, &call);
}

// No operation needs workspace or reserve.
static cudnnStatus_t no_bytes(cudnnHandle_t handle, host_bn_kind_t kind,
                              cudnnNormMode_t mode, cudnnNormOps_t ops,
                              cudnnNormAlgo_t algo,
                              const struct cudnnTensorStruct *x,
                              const struct cudnnActivationStruct *activation,
                              size_t *bytes, int groups) {
  REFUSE_IF(!x || !bytes, CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn = {.kind = kind};
  cudnnStatus_t s = known(handle, mode, ops, algo, groups);
  if (!s)
    s = host_bn_fuse(&bn, (cudnnBatchNormOps_t)ops, activation);
  if (!s)
    *bytes = 0;
  return s;
}

cudnnStatus_t cudnnGetNormalizationForwardTrainingWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops,
    cudnnNormAlgo_t algo, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t z, const cudnnTensorDescriptor_t y,
    const cudnnTensorDescriptor_t params,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t stats, size_t *bytes, int groups) {
  (void)z;
  REFUSE_IF(!y || !params || !stats, CUDNN_STATUS_BAD_PARAM);
  return no_bytes(handle, HOST_BN_TRAINING, mode, ops, algo, x, activation,
                  bytes, groups);
}

cudnnStatus_t cudnnGetNormalizationBackwardWorkspaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops,
    cudnnNormAlgo_t algo, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t y, const cudnnTensorDescriptor_t dy,
    const cudnnTensorDescriptor_t dz, const cudnnTensorDescriptor_t dx,
    const cudnnTensorDescriptor_t params,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t stats, size_t *bytes, int groups) {
  (void)y;
  (void)dz;
  REFUSE_IF(!dy || !dx || !params || !stats, CUDNN_STATUS_BAD_PARAM);
  return no_bytes(handle, HOST_BN_BACKWARD, mode, ops, algo, x, activation,
                  bytes, groups);
}

cudnnStatus_t cudnnGetNormalizationTrainingReserveSpaceSize(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t ops,
    cudnnNormAlgo_t algo, const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t x, size_t *bytes, int groups) {
  return no_bytes(handle, HOST_BN_TRAINING, mode, ops, algo, x, activation,
                  bytes, groups);
}
