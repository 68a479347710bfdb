/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments that batch and other normalisations have in common, checked. */
#ifndef SDG_SRC_HOST_CUDNN_NORMALIZATION_ARGS_H
#define SDG_SRC_HOST_CUDNN_NORMALIZATION_ARGS_H

#include "src/host/cudnn/normalization/batchnorm.h"

bool host_bn_mode_known(cudnnBatchNormMode_t mode);

/* Starts a job with tensor x. */
cudnnStatus_t host_bn_begin(host_bn_t *bn, host_bn_kind_t kind,
                            cudnnBatchNormMode_t mode, const void *alpha,
                            const void *beta, double epsilon,
                            const struct cudnnTensorStruct *x,
                            const void *x_data);

/* A view of x's extents. */
cudnnStatus_t host_bn_data(const host_bn_t *bn,
                           const struct cudnnTensorStruct *t, const void *p,
                           host_view_t *out);

/* A view of a parameter; an empty one for NULL. */
cudnnStatus_t host_bn_param(const host_bn_t *bn,
                            const struct cudnnTensorStruct *t, const void *p,
                            host_view_t *out);

/* What the model of a GPU refuses of normalisations with these operations, of x
 * and `others`, of which some may be NULL. */
enum { HOST_BN_OTHERS = 4 };
cudnnStatus_t
host_bn_model(const char *entry, cudnnBatchNormOps_t ops,
              const struct cudnnTensorStruct *params,
              const struct cudnnTensorStruct *x,
              const struct cudnnTensorStruct *const others[HOST_BN_OTHERS]);

/* The operations fused behind the normalisation. */
cudnnStatus_t host_bn_fuse(host_bn_t *bn, cudnnBatchNormOps_t ops,
                           const struct cudnnActivationStruct *activation);

#endif
