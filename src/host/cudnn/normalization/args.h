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

/* What the entry was called with. Members that it does not have are 0. */
typedef struct {
  const char *entry;
  cudnnBatchNormMode_t mode;
  cudnnBatchNormOps_t ops;
  const struct cudnnActivationStruct *activation;
  const void *alpha, *beta, *alpha_param, *beta_param;
  host_bn_tensor_t x, y, z, dy, dx, dz;
  const struct cudnnTensorStruct *params;
  const void *scale, *bias, *dscale, *dbias;
  const struct cudnnTensorStruct *stats; /* of the following ones */
  const void *mean, *variance, *saved_mean, *saved_invstd;
  double epsilon, factor;
} host_bn_call_t;

cudnnStatus_t host_bn_queue(cudnnHandle_t handle, host_bn_kind_t kind,
                            const host_bn_call_t *call);

#endif
