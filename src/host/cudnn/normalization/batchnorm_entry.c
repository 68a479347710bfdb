// SPDX-License-Identifier: Apache-2.0
// The entries of batch normalisation: from their arguments to one job.
#include <string.h>

#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/normalization/args.h"

static bool run(void *job) {
  return host_bn_run(job);
}

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
  REFUSE_IF(!handle || !scale || !bias || !mean || !variance,
            CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn;
  cudnnStatus_t status = host_bn_begin(&bn, HOST_BN_INFERENCE, mode, alpha,
                                       beta, epsilon, x, x_data);
  if (!status)
    status = host_bn_data(&bn, y, y_data, &bn.y);
  if (!status)
    status = host_bn_param(&bn, params, scale, &bn.scale);
  if (!status)
    status = host_bn_param(&bn, params, bias, &bn.bias);
  if (!status)
    status = host_bn_param(&bn, params, mean, &bn.mean);
  if (!status)
    status = host_bn_param(&bn, params, variance, &bn.variance);
  if (!status)
    status =
        host_bn_model(__func__, CUDNN_BATCHNORM_OPS_BN, params, x,
                      (const struct cudnnTensorStruct *[HOST_BN_OTHERS]){y});
  return status ? status : host_work_queue(handle, run, &bn, sizeof bn);
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
  REFUSE_IF(!handle || !scale || !bias, CUDNN_STATUS_BAD_PARAM);
  // Running values come in pairs, and so do saved ones.
  REFUSE_IF(!running_mean != !running_variance || !saved_mean != !saved_invstd,
            CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn;
  cudnnStatus_t status = host_bn_begin(&bn, HOST_BN_TRAINING, mode, alpha, beta,
                                       epsilon, x, x_data);
  if (!status)
    status = host_bn_fuse(&bn, ops, activation);
  if (!status)
    status = host_bn_data(&bn, y, y_data, &bn.y);
  if (!status && ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
    status = host_bn_data(&bn, z, z_data, &bn.z);
  if (!status)
    status = host_bn_param(&bn, params, scale, &bn.scale);
  if (!status)
    status = host_bn_param(&bn, params, bias, &bn.bias);
  if (!status)
    status = host_bn_param(&bn, params, running_mean, &bn.mean);
  if (!status)
    status = host_bn_param(&bn, params, running_variance, &bn.variance);
  if (!status)
    status = host_bn_param(&bn, params, saved_mean, &bn.saved_mean);
  if (!status)
    status = host_bn_param(&bn, params, saved_invstd, &bn.saved_invstd);
  if (!status)
    status = host_bn_model(__func__, ops, params, x,
                           (const struct cudnnTensorStruct *[HOST_BN_OTHERS]){
                               y, bn.z.data ? z : NULL});
  bn.factor = factor;
  return status ? status : host_work_queue(handle, run, &bn, sizeof bn);
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
  REFUSE_IF(!handle || !alpha_param || !beta_param, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!scale || !dscale || !dbias, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!saved_mean != !saved_invstd, CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn;
  cudnnStatus_t status = host_bn_begin(&bn, HOST_BN_BACKWARD, mode, alpha, beta,
                                       epsilon, x, x_data);
  if (!status)
    status = host_bn_fuse(&bn, ops, activation);
  if (!status && bn.relu)
    status = host_bn_data(&bn, y, y_data, &bn.y);
  if (!status)
    status = host_bn_data(&bn, dy, dy_data, &bn.dy);
  if (!status && ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
    status = host_bn_data(&bn, dz, dz_data, &bn.dz);
  if (!status)
    status = host_bn_data(&bn, dx, dx_data, &bn.dx);
  if (!status)
    status = host_bn_param(&bn, params, scale, &bn.scale);
  if (!status)
    status = host_bn_param(&bn, params, dscale, &bn.dscale);
  if (!status)
    status = host_bn_param(&bn, params, dbias, &bn.dbias);
  if (!status)
    status = host_bn_param(&bn, params, saved_mean, &bn.saved_mean);
  if (!status)
    status = host_bn_param(&bn, params, saved_invstd, &bn.saved_invstd);
  if (status)
    return status;
  status =
      host_bn_model(__func__, ops, params, x,
                    (const struct cudnnTensorStruct *[HOST_BN_OTHERS]){
                        bn.relu ? y : NULL, dy, dx, bn.dz.data ? dz : NULL});
  if (status)
    return status;
  bn.alpha_param = host_scalar(alpha_param, x->type);
  bn.beta_param = host_scalar(beta_param, x->type);
  return host_work_queue(handle, run, &bn, sizeof bn);
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
