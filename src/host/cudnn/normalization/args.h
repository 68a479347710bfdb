/* SPDX-License-Identifier: Apache-2.0 */
/* A call of batch or another normalisation: its arguments checked, and queued.
 */
#ifndef SDG_SRC_HOST_CUDNN_NORMALIZATION_ARGS_H
#define SDG_SRC_HOST_CUDNN_NORMALIZATION_ARGS_H

#include "src/host/cudnn/normalization/batchnorm.h"

bool host_bn_mode_known(cudnnBatchNormMode_t mode);

/* The operations fused behind the normalisation. */
cudnnStatus_t host_bn_fuse(host_bn_t *bn, cudnnBatchNormOps_t ops,
                           const struct cudnnActivationStruct *activation);

typedef struct {
  const struct cudnnTensorStruct *tensor;
  const void *at;
} host_bn_tensor_t;

/* What the entry was called with, in groups that all entries have in this
 * order. Members that it does not have are 0. */
typedef struct {
  const char *entry;
  struct {
    cudnnBatchNormMode_t mode;
    cudnnBatchNormOps_t ops;
    const struct cudnnActivationStruct *activation;
  } how;
  struct {
    const void *alpha, *beta, *alpha_param, *beta_param;
  } by;
  host_bn_tensor_t x, y, z, dy, dx, dz;
  struct {
    const struct cudnnTensorStruct *tensor;
    const void *scale, *bias, *dscale, *dbias;
  } params;
  struct {
    const struct cudnnTensorStruct *tensor;
    const void *mean, *variance, *saved_mean, *saved_invstd;
  } stats;
  double epsilon, factor;
} host_bn_call_t;

cudnnStatus_t host_bn_queue(cudnnHandle_t handle, host_bn_kind_t kind,
                            const host_bn_call_t *call);

#endif
