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

// The same extents and the same type.
static bool similar(host_object_t *op, cudnnBackendAttributeName_t a,
                    cudnnBackendAttributeName_t b) {
  return same_shape(op, a, b) && type_of(op, a) == type_of(op, b);
}

static bool by_value(host_object_t *op, cudnnBackendAttributeName_t name) {
  host_object_t *tensor = host_object_child(op, name);
  return tensor && tensor->finalized &&
         host_object_integer(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0;
}

// Running statistics are batch norm's, in training.
static cudnnStatus_t check_running(host_object_t *op, int64_t mode,
                                   bool inference) {
  static const cudnnBackendAttributeName_t running[] = {
      FORWARD(INPUT_RUNNING_MEAN_DESC),
      FORWARD(INPUT_RUNNING_VAR_DESC),
      FORWARD(OUTPUT_RUNNING_MEAN_DESC),
      FORWARD(OUTPUT_RUNNING_VAR_DESC),
  };
  bool used = host_operand_there(op, FORWARD(EXP_AVG_FACTOR_DESC));
  REFUSE_IF(used && !by_value(op, FORWARD(EXP_AVG_FACTOR_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  for (size_t i = 0; i < sizeof running / sizeof *running; i++)
    used |= host_operand_there(op, running[i]);
  REFUSE_IF(inference && used, CUDNN_STATUS_BAD_PARAM);
  used |= host_operand_there(op, FORWARD(PEER_STAT_DESCS));
  REFUSE_IF(mode != CUDNN_BATCH_NORM && used, CUDNN_STATUS_BAD_PARAM);
  for (size_t i = 0; i < sizeof running / sizeof *running; i++)
    REFUSE_IF(host_operand_there(op, running[i]) &&
                  !similar(op, FORWARD(MEAN_DESC), running[i]),
              CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_check_norm_forward(host_object_t *op) {
  int64_t mode = host_object_integer(op, FORWARD(MODE), CUDNN_LAYER_NORM);
  bool inference =
      host_object_integer(op, FORWARD(PHASE), CUDNN_NORM_FWD_TRAINING) ==
      CUDNN_NORM_FWD_INFERENCE;
  bool epsilon = host_operand_there(op, FORWARD(EPSILON_DESC));
  bool scale = host_operand_there(op, FORWARD(SCALE_DESC));
  bool bias = host_operand_there(op, FORWARD(BIAS_DESC));
  REFUSE_IF(!epsilon && !inference, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(epsilon && !by_value(op, FORWARD(EPSILON_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(bias && !scale, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode == CUDNN_ADA_LAYER_NORM && !scale, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!same_shape(op, FORWARD(XDESC), FORWARD(YDESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(host_operand_there(op, FORWARD(MEAN_DESC)) &&
                !similar(op, FORWARD(INV_VARIANCE_DESC), FORWARD(MEAN_DESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(bias && !same_shape(op, FORWARD(SCALE_DESC), FORWARD(BIAS_DESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  return check_running(op, mode, inference);
}

cudnnStatus_t host_check_norm_backward(host_object_t *op) {
  int64_t mode = host_object_integer(op, BACKWARD(MODE), CUDNN_LAYER_NORM);
  bool mean = host_operand_there(op, BACKWARD(MEAN_DESC));
  bool scale = host_operand_there(op, BACKWARD(SCALE_DESC));
  // Only RMS norm takes no mean off.
  REFUSE_IF((mode == CUDNN_RMS_NORM) == mean, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(scale != host_operand_there(op, BACKWARD(DSCALE_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode != CUDNN_BATCH_NORM &&
                host_operand_there(op, BACKWARD(PEER_STAT_DESCS)),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!same_shape(op, BACKWARD(XDESC), BACKWARD(DXDESC)) ||
                !same_shape(op, BACKWARD(XDESC), BACKWARD(DYDESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(mean &&
                !similar(op, BACKWARD(INV_VARIANCE_DESC), BACKWARD(MEAN_DESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(!same_shape(op, BACKWARD(SCALE_DESC), BACKWARD(DSCALE_DESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(host_operand_there(op, BACKWARD(DBIAS_DESC)) &&
                !same_shape(op, BACKWARD(SCALE_DESC), BACKWARD(DBIAS_DESC)),
            CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
  REFUSE_IF(host_operand_there(op, BACKWARD(EPSILON_DESC)) &&
                !by_value(op, BACKWARD(EPSILON_DESC)),
            CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}
