// SPDX-License-Identifier: Apache-2.0
// A call of batch or another normalisation: its arguments checked, and queued.
#include "src/host/cudnn/normalization/args.h"

#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/model/model.h"

bool host_bn_mode_known(cudnnBatchNormMode_t mode) {
  return host_in_range(mode, CUDNN_BATCHNORM_PER_ACTIVATION,
                       CUDNN_BATCHNORM_SPATIAL_PERSISTENT);
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

// A view of x's extents.
static cudnnStatus_t data_view(const host_bn_t *bn,
                               const host_bn_tensor_t *from, host_view_t *out) {
  const struct cudnnTensorStruct *t = from->tensor;
  REFUSE_IF(!t || !from->at || t->rank != bn->x.rank, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < t->rank; i++)
    REFUSE_IF(t->dim[i] != bn->x.dim[i], CUDNN_STATUS_BAD_PARAM);
  return host_view_init(t, from->at, out);
}

// A view of a parameter; an empty one for NULL.
static cudnnStatus_t param_view(const host_bn_t *bn,
                                const struct cudnnTensorStruct *t,
                                const void *p, host_view_t *out) {
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

static bool has_all(host_bn_kind_t kind, const host_bn_call_t *call) {
  // Running values come in pairs, and so do saved ones.
  if (!call->params.scale || !call->stats.mean != !call->stats.variance ||
      !call->stats.saved_mean != !call->stats.saved_invstd)
    return false;
  if (kind == HOST_BN_BACKWARD)
    return call->by.alpha_param && call->by.beta_param && call->params.dscale &&
           call->params.dbias;
  return call->params.bias && (kind == HOST_BN_TRAINING || call->stats.mean);
}

static cudnnStatus_t begin(host_bn_t *bn, host_bn_kind_t kind,
                           const host_bn_call_t *call) {
  const struct cudnnTensorStruct *x = call->x.tensor;
  REFUSE_IF(!call->by.alpha || !call->by.beta || !x ||
                !host_bn_mode_known(call->how.mode),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!(call->epsilon >= CUDNN_BN_MIN_EPSILON), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank < 3, CUDNN_STATUS_BAD_PARAM);
  *bn = (host_bn_t){.kind = kind,
                    .per_activation =
                        call->how.mode == CUDNN_BATCHNORM_PER_ACTIVATION,
                    .alpha = host_scalar(call->by.alpha, x->type),
                    .beta = host_scalar(call->by.beta, x->type),
                    .epsilon = call->epsilon,
                    .factor = call->factor};
  if (kind == HOST_BN_BACKWARD) {
    bn->alpha_param = host_scalar(call->by.alpha_param, x->type);
    bn->beta_param = host_scalar(call->by.beta_param, x->type);
  }
  return host_view_init(x, call->x.at, &bn->x);
}

static cudnnStatus_t params_set(host_bn_t *bn, const host_bn_call_t *call) {
  const struct {
    const struct cudnnTensorStruct *like;
    const void *at;
    host_view_t *to;
  } param[] = {
      {call->params.tensor, call->params.scale, &bn->scale},
      {call->params.tensor, call->params.bias, &bn->bias},
      {call->params.tensor, call->params.dscale, &bn->dscale},
      {call->params.tensor, call->params.dbias, &bn->dbias},
      {call->stats.tensor, call->stats.mean, &bn->mean},
      {call->stats.tensor, call->stats.variance, &bn->variance},
      {call->stats.tensor, call->stats.saved_mean, &bn->saved_mean},
      {call->stats.tensor, call->stats.saved_invstd, &bn->saved_invstd}};
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  for (size_t i = 0; i < sizeof param / sizeof *param && !status; i++)
    status = param_view(bn, param[i].like, param[i].at, param[i].to);
  return status;
}

static bool run(void *job) {
  return host_bn_run(job);
}

cudnnStatus_t host_bn_queue(cudnnHandle_t handle, host_bn_kind_t kind,
                            const host_bn_call_t *call) {
  REFUSE_IF(!has_all(kind, call), CUDNN_STATUS_BAD_PARAM);
  host_bn_t bn;
  cudnnStatus_t status = begin(&bn, kind, call);
  if (!status)
    status = host_bn_fuse(&bn, call->how.ops, call->how.activation);
  if (status)
    return status;
  bool back = kind == HOST_BN_BACKWARD;
  bool adds = call->how.ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION;
  const struct {
    bool has;
    host_bn_tensor_t from;
    host_view_t *to;
  } data[] = {{!back || bn.relu, call->y, &bn.y},
              {!back && adds, call->z, &bn.z},
              {back, call->dy, &bn.dy},
              {back, call->dx, &bn.dx},
              {back && adds, call->dz, &bn.dz}};
  host_model_call_t model = {.operands = 1,
                             .operand = {{.tensor = call->x.tensor}}};
  for (size_t i = 0; i < sizeof data / sizeof *data && !status; i++)
    if (data[i].has) {
      status = data_view(&bn, &data[i].from, data[i].to);
      model.operand[model.operands++].tensor = data[i].from.tensor;
    }
  if (!status)
    status = params_set(&bn, call);
  if (status)
    return status;
  model.inner = call->params.tensor->type;
  status = host_model_check(call->entry,
                            call->how.ops == CUDNN_BATCHNORM_OPS_BN
                                ? "cudnnBatchNormalization"
                                : "cudnnBatchNormalization with an activation",
                            &model);
  return status ? status : host_work_queue(handle, run, &bn, sizeof bn);
}
