// SPDX-License-Identifier: Apache-2.0
// The arguments that batch and other normalisations have in common, checked.
#include "src/host/cudnn/normalization/args.h"

#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/model/model.h"

bool host_bn_mode_known(cudnnBatchNormMode_t mode) {
  return host_in_range(mode, CUDNN_BATCHNORM_PER_ACTIVATION,
                       CUDNN_BATCHNORM_SPATIAL_PERSISTENT);
}

cudnnStatus_t host_bn_data(const host_bn_t *bn,
                           const struct cudnnTensorStruct *t, const void *p,
                           host_view_t *out) {
  REFUSE_IF(!t || !p || t->rank != bn->x.rank, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < t->rank; i++)
    REFUSE_IF(t->dim[i] != bn->x.dim[i], CUDNN_STATUS_BAD_PARAM);
  return host_view_init(t, p, out);
}

cudnnStatus_t host_bn_param(const host_bn_t *bn,
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

cudnnStatus_t host_bn_begin(host_bn_t *bn, host_bn_kind_t kind,
                            cudnnBatchNormMode_t mode, const void *alpha,
                            const void *beta, double epsilon,
                            const struct cudnnTensorStruct *x,
                            const void *x_data) {
  REFUSE_IF(!alpha || !beta || !x || !host_bn_mode_known(mode),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!(epsilon >= CUDNN_BN_MIN_EPSILON), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank < 3, CUDNN_STATUS_BAD_PARAM);
  *bn = (host_bn_t){.kind = kind,
                    .per_activation = mode == CUDNN_BATCHNORM_PER_ACTIVATION,
                    .alpha = host_scalar(alpha, x->type),
                    .beta = host_scalar(beta, x->type),
                    .epsilon = epsilon};
  return host_view_init(x, x_data, &bn->x);
}

cudnnStatus_t host_bn_fuse(host_bn_t *bn, cudnnBatchNormOps_t ops,
                           const struct cudnnActivationStruct *activation) {
  REFUSE_IF(!host_in_range(ops, CUDNN_BATCHNORM_OPS_BN,
                           CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION),
            CUDNN_STATUS_BAD_PARAM);
  if (ops == CUDNN_BATCHNORM_OPS_BN)
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!activation, CUDNN_STATUS_BAD_PARAM);
  bn->relu = activation->mode == CUDNN_ACTIVATION_RELU;
  bn->swish = activation->mode == CUDNN_ACTIVATION_SWISH;
  bn->swish_beta = activation->swish_beta;
  REFUSE_IF(!bn->relu && activation->mode != CUDNN_ACTIVATION_IDENTITY &&
                (!bn->swish || bn->kind == HOST_BN_BACKWARD),
            CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
host_bn_model(const char *entry, cudnnBatchNormOps_t ops,
              const struct cudnnTensorStruct *params,
              const struct cudnnTensorStruct *x,
              const struct cudnnTensorStruct *const others[HOST_BN_OTHERS]) {
  host_model_call_t call = {
      .operands = 1, .operand = {{.tensor = x}}, .inner = params->type};
  for (int i = 0; i < HOST_BN_OTHERS; i++)
    if (others[i])
      call.operand[call.operands++].tensor = others[i];
  return host_model_check(entry,
                          ops == CUDNN_BATCHNORM_OPS_BN
                              ? "cudnnBatchNormalization"
                              : "cudnnBatchNormalization with an activation",
                          &call);
}
