// SPDX-License-Identifier: Apache-2.0
// The entries of batch normalisation: from their arguments to one job.
#include <string.h>

#include "src/host/cudnn/batchnorm.h"
#include "src/host/cudnn/life.h"
#include "src/host/cudnn/work.h"

static bool run(void *job) {
  return host_bn_run(job);
}

static bool mode_known(cudnnBatchNormMode_t mode) {
  return host_in_range(mode, CUDNN_BATCHNORM_PER_ACTIVATION,
                       CUDNN_BATCHNORM_SPATIAL_PERSISTENT);
}

cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            const cudnnTensorDescriptor_t x,
                                            cudnnBatchNormMode_t mode) {
  REFUSE_IF(!derived || !x || !mode_known(mode), CUDNN_STATUS_BAD_PARAM);
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

/* A view of x's extents. */
static cudnnStatus_t data(const host_bn_t *bn,
                          const struct cudnnTensorStruct *t, const void *p,
                          host_view_t *out) {
  REFUSE_IF(!t || !p || t->rank != bn->x.rank, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < t->rank; i++)
    REFUSE_IF(t->dim[i] != bn->x.dim[i], CUDNN_STATUS_BAD_PARAM);
  return host_view_init(t, p, out);
}

/* A view of a parameter; nothing for NULL. */
static cudnnStatus_t param(const host_bn_t *bn,
                           const struct cudnnTensorStruct *t, const void *p,
                           host_view_t *out) {
  if (!p)
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!t || t->rank != bn->x.rank || t->dim[0] != 1 ||
                t->dim[1] != bn->x.dim[1],
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 2; i < t->rank; i++)
    REFUSE_IF(t->dim[i] != (bn->per_activation ? bn->x.dim[i] : 1),
              CUDNN_STATUS_BAD_PARAM);
  return host_view_init(t, p, out);
}

static cudnnStatus_t begin(host_bn_t *bn, host_bn_kind_t kind,
                           cudnnBatchNormMode_t mode, const void *alpha,
                           const void *beta, double epsilon,
                           const struct cudnnTensorStruct *x,
                           const void *x_data) {
  REFUSE_IF(!alpha || !beta || !x || !mode_known(mode), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!(epsilon >= CUDNN_BN_MIN_EPSILON), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank < 3, CUDNN_STATUS_BAD_PARAM);
  *bn = (host_bn_t){.kind = kind,
                    .per_activation = mode == CUDNN_BATCHNORM_PER_ACTIVATION,
                    .alpha = host_scalar(alpha, x->type),
                    .beta = host_scalar(beta, x->type),
                    .epsilon = epsilon};
  return host_view_init(x, x_data, &bn->x);
}

/* What is fused behind the normalisation. */
static cudnnStatus_t fuse(host_bn_t *bn, cudnnBatchNormOps_t ops,
                          const struct cudnnActivationStruct *activation) {
  REFUSE_IF(!host_in_range(ops, CUDNN_BATCHNORM_OPS_BN,
                           CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION),
            CUDNN_STATUS_BAD_PARAM);
  if (ops == CUDNN_BATCHNORM_OPS_BN)
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!activation, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(activation->mode != CUDNN_ACTIVATION_RELU &&
                activation->mode != CUDNN_ACTIVATION_IDENTITY,
            CUDNN_STATUS_NOT_SUPPORTED);
  bn->relu = activation->mode == CUDNN_ACTIVATION_RELU;
  return CUDNN_STATUS_SUCCESS;
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
  cudnnStatus_t status =
      begin(&bn, HOST_BN_INFERENCE, mode, alpha, beta, epsilon, x, x_data);
  if (!status)
    status = data(&bn, y, y_data, &bn.y);
  if (!status)
    status = param(&bn, params, scale, &bn.scale);
  if (!status)
    status = param(&bn, params, bias, &bn.bias);
  if (!status)
    status = param(&bn, params, mean, &bn.mean);
  if (!status)
    status = param(&bn, params, variance, &bn.variance);
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
  (void)workspace; /* nothing is kept there */
  (void)workspace_bytes;
  (void)reserve;
  (void)reserve_bytes;
  REFUSE_IF(!handle || !scale || !bias, CUDNN_STATUS_BAD_PARAM);
  /* Running values come in pairs, saved ones too. */
  REFUSE_IF(!running_mean != !running_variance || !saved_mean != !saved_invstd,
            CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn;
  cudnnStatus_t status =
      begin(&bn, HOST_BN_TRAINING, mode, alpha, beta, epsilon, x, x_data);
  if (!status)
    status = fuse(&bn, ops, activation);
  if (!status)
    status = data(&bn, y, y_data, &bn.y);
  if (!status && ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
    status = data(&bn, z, z_data, &bn.z);
  if (!status)
    status = param(&bn, params, scale, &bn.scale);
  if (!status)
    status = param(&bn, params, bias, &bn.bias);
  if (!status)
    status = param(&bn, params, running_mean, &bn.mean);
  if (!status)
    status = param(&bn, params, running_variance, &bn.variance);
  if (!status)
    status = param(&bn, params, saved_mean, &bn.saved_mean);
  if (!status)
    status = param(&bn, params, saved_invstd, &bn.saved_invstd);
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
  (void)bias; /* y says where the activation let through */
  (void)workspace;
  (void)workspace_bytes;
  (void)reserve;
  (void)reserve_bytes;
  REFUSE_IF(!handle || !alpha_param || !beta_param, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!scale || !dscale || !dbias, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!saved_mean != !saved_invstd, CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn;
  cudnnStatus_t status =
      begin(&bn, HOST_BN_BACKWARD, mode, alpha, beta, epsilon, x, x_data);
  if (!status)
    status = fuse(&bn, ops, activation);
  if (!status && bn.relu)
    status = data(&bn, y, y_data, &bn.y);
  if (!status)
    status = data(&bn, dy, dy_data, &bn.dy);
  if (!status && ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
    status = data(&bn, dz, dz_data, &bn.dz);
  if (!status)
    status = data(&bn, dx, dx_data, &bn.dx);
  if (!status)
    status = param(&bn, params, scale, &bn.scale);
  if (!status)
    status = param(&bn, params, dscale, &bn.dscale);
  if (!status)
    status = param(&bn, params, dbias, &bn.dbias);
  if (!status)
    status = param(&bn, params, saved_mean, &bn.saved_mean);
  if (!status)
    status = param(&bn, params, saved_invstd, &bn.saved_invstd);
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

/* No size is needed for anything. */
static cudnnStatus_t no_bytes(cudnnHandle_t handle, cudnnBatchNormMode_t mode,
                              cudnnBatchNormOps_t ops,
                              const struct cudnnTensorStruct *x,
                              const struct cudnnActivationStruct *activation,
                              size_t *bytes) {
  REFUSE_IF(!handle || !x || !bytes || !mode_known(mode),
            CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn;
  cudnnStatus_t status = fuse(&bn, ops, activation);
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
  return no_bytes(handle, mode, ops, x, activation, bytes);
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
  return no_bytes(handle, mode, ops, x, activation, bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    cudnnHandle_t handle, cudnnBatchNormMode_t mode, cudnnBatchNormOps_t ops,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t x, size_t *bytes) {
  return no_bytes(handle, mode, ops, x, activation, bytes);
}
