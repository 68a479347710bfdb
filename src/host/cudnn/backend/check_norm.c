// SPDX-License-Identifier: Apache-2.0
// Normalisations: which statistics and parameters belong together.
#include "src/host/cudnn/backend/check.h"

#define FORWARD(name)  CUDNN_ATTR_OPERATION_NORM_FWD_##name
#define BACKWARD(name) CUDNN_ATTR_OPERATION_NORM_BWD_##name

static bool same_shape(host_object_t *op, cudnnBackendAttributeName_t a,
                       cudnnBackendAttributeName_t b) {
  host_extents_t first = host_extents_of(op, a),
                 second = host_extents_of(op, b);
  return host_extents_same(&first, &second);
}

static int64_t type_of(host_object_t *op, cudnnBackendAttributeName_t name) {
  host_object_t *tensor = host_object_child(op, name);
  return tensor ? host_object_integer(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, 0)
                : -1;
}

// An operand that was set to NULL is used, too: an empty tensor.
static bool used(host_object_t *op, cudnnBackendAttributeName_t name) {
  return host_object_value(op, name)->count > 0;
}

static bool any_used(host_object_t *op, const cudnnBackendAttributeName_t *name,
                     int count) {
  bool any = false;
  for (int i = 0; i < count; i++)
    any |= used(op, name[i]);
  return any;
}

static bool by_value(host_object_t *op, cudnnBackendAttributeName_t name) {
  host_object_t *tensor = host_object_child(op, name);
  return tensor &&
         host_object_integer(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0;
}

static bool same_flag(host_object_t *op, cudnnBackendAttributeName_t a,
                      cudnnBackendAttributeName_t b,
                      cudnnBackendAttributeName_t flag) {
  return !host_object_integer(host_object_child(op, a), flag, 0) ==
         !host_object_integer(host_object_child(op, b), flag, 0);
}

// Alike but for the strides.
static bool similar(host_object_t *op, cudnnBackendAttributeName_t a,
                    cudnnBackendAttributeName_t b) {
  return host_extents_of(op, a).rank > 0 && same_shape(op, a, b) &&
         type_of(op, a) == type_of(op, b) &&
         same_flag(op, a, b, CUDNN_ATTR_TENSOR_IS_BY_VALUE) &&
         same_flag(op, a, b, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

static bool unlike(host_object_t *op, cudnnBackendAttributeName_t a,
                   cudnnBackendAttributeName_t b) {
  return used(op, b) && !similar(op, a, b);
}

// In the order of NVIDIA's library: the first that fails is answered. Running
// statistics are batch norm's, in training.
cudnnStatus_t host_check_norm_forward(host_object_t *op) {
  static const cudnnBackendAttributeName_t batch[] = {
      FORWARD(INPUT_RUNNING_MEAN_DESC),  FORWARD(INPUT_RUNNING_VAR_DESC),
      FORWARD(OUTPUT_RUNNING_MEAN_DESC), FORWARD(OUTPUT_RUNNING_VAR_DESC),
      FORWARD(EXP_AVG_FACTOR_DESC),      FORWARD(PEER_STAT_DESCS)};
  int64_t mode = host_object_integer(op, FORWARD(MODE), CUDNN_LAYER_NORM);
  bool inference =
      host_object_integer(op, FORWARD(PHASE), CUDNN_NORM_FWD_TRAINING) ==
      CUDNN_NORM_FWD_INFERENCE;
  bool epsilon = used(op, FORWARD(EPSILON_DESC));
  bool scale = used(op, FORWARD(SCALE_DESC));
  bool bias = used(op, FORWARD(BIAS_DESC));
  REFUSE_IF(bias && !scale, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode != CUDNN_BATCH_NORM && any_used(op, batch, 6),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(inference && any_used(op, batch, 5), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!epsilon && !inference, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode == CUDNN_ADA_LAYER_NORM && !scale, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((used(op, batch[0]) || used(op, batch[2])) &&
                !used(op, FORWARD(MEAN_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!same_shape(op, FORWARD(XDESC), FORWARD(YDESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(bias && !same_shape(op, FORWARD(SCALE_DESC), FORWARD(BIAS_DESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(unlike(op, FORWARD(INV_VARIANCE_DESC), FORWARD(MEAN_DESC)) ||
                unlike(op, FORWARD(MEAN_DESC), batch[0]) ||
                unlike(op, FORWARD(MEAN_DESC), batch[2]) ||
                unlike(op, FORWARD(INV_VARIANCE_DESC), batch[1]) ||
                unlike(op, FORWARD(INV_VARIANCE_DESC), batch[3]),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(epsilon && !by_value(op, FORWARD(EPSILON_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(used(op, FORWARD(EXP_AVG_FACTOR_DESC)) &&
                !by_value(op, FORWARD(EXP_AVG_FACTOR_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(host_extents_of(op, FORWARD(XDESC)).rank == 0,
            CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_check_norm_backward(host_object_t *op) {
  int64_t mode = host_object_integer(op, BACKWARD(MODE), CUDNN_LAYER_NORM);
  bool mean = used(op, BACKWARD(MEAN_DESC));
  bool dscale = used(op, BACKWARD(DSCALE_DESC));
  bool dbias = used(op, BACKWARD(DBIAS_DESC));
  REFUSE_IF(used(op, BACKWARD(SCALE_DESC)) != dscale, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(dbias && !dscale, CUDNN_STATUS_BAD_PARAM);
  // Only RMS norm takes no mean off.
  REFUSE_IF((mode == CUDNN_RMS_NORM) == mean, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode != CUDNN_BATCH_NORM && used(op, BACKWARD(PEER_STAT_DESCS)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!same_shape(op, BACKWARD(XDESC), BACKWARD(DXDESC)) ||
                !same_shape(op, BACKWARD(XDESC), BACKWARD(DYDESC)) ||
                (dbias &&
                 !same_shape(op, BACKWARD(SCALE_DESC), BACKWARD(DBIAS_DESC))) ||
                !same_shape(op, BACKWARD(SCALE_DESC), BACKWARD(DSCALE_DESC)) ||
                unlike(op, BACKWARD(INV_VARIANCE_DESC), BACKWARD(MEAN_DESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(used(op, BACKWARD(EPSILON_DESC)) &&
                !by_value(op, BACKWARD(EPSILON_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(host_extents_of(op, BACKWARD(XDESC)).rank == 0,
            CUDNN_STATUS_NOT_SUPPORTED_SHAPE);
  return CUDNN_STATUS_SUCCESS;
}
