// SPDX-License-Identifier: Apache-2.0
// Reads the operands of a normalisation.
#include "rules/graph/chain/norm.h"

#define FORWARD(name)  CUDNN_ATTR_OPERATION_NORM_FWD_##name
#define BACKWARD(name) CUDNN_ATTR_OPERATION_NORM_BWD_##name

typedef struct operand {
  cudnnBackendAttributeName_t name;
  sdg_role_t role;
  bool out; // of running statistics: the new ones
} operand_t;

static const operand_t operands[] = {
    {FORWARD(XDESC), SDG_ROLE_X, false},
    {FORWARD(YDESC), SDG_ROLE_Y, true},
    {FORWARD(MEAN_DESC), SDG_ROLE_SAVED_MEAN, true},
    {FORWARD(INV_VARIANCE_DESC), SDG_ROLE_SAVED_INVERSE, true},
    {FORWARD(SCALE_DESC), SDG_ROLE_SCALE, false},
    {FORWARD(BIAS_DESC), SDG_ROLE_SHIFT, false},
    {FORWARD(INPUT_RUNNING_MEAN_DESC), SDG_ROLE_MEAN, false},
    {FORWARD(INPUT_RUNNING_VAR_DESC), SDG_ROLE_VARIANCE, false},
    {FORWARD(OUTPUT_RUNNING_MEAN_DESC), SDG_ROLE_MEAN, true},
    {FORWARD(OUTPUT_RUNNING_VAR_DESC), SDG_ROLE_VARIANCE, true},
    {BACKWARD(XDESC), SDG_ROLE_X, false},
    {BACKWARD(DYDESC), SDG_ROLE_DY, false},
    {BACKWARD(DXDESC), SDG_ROLE_DX, true},
    {BACKWARD(MEAN_DESC), SDG_ROLE_SAVED_MEAN, false},
    {BACKWARD(INV_VARIANCE_DESC), SDG_ROLE_SAVED_INVERSE, false},
    {BACKWARD(SCALE_DESC), SDG_ROLE_SCALE, false},
    {BACKWARD(DSCALE_DESC), SDG_ROLE_DSCALE, true},
    {BACKWARD(DBIAS_DESC), SDG_ROLE_DSHIFT, true},
};
enum { OPERANDS = sizeof operands / sizeof *operands };

static bool is_back(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
}

// Statistics have one place in the table for each direction, where forward
// writes or reads them.
static bool is_at(const operand_t *operand, sdg_role_t role, bool out) {
  bool runs = role == SDG_ROLE_MEAN || role == SDG_ROLE_VARIANCE;
  return operand->role == role && (!runs || operand->out == out);
}

bool sdg_graph_norm_role(const sdg_graph_node_t *node, int t, sdg_role_t *out) {
  for (int i = 0; i < OPERANDS; i++)
    if (sdg_graph_operand(node, operands[i].name) == t) {
      *out = operands[i].role;
      return true;
    }
  return false;
}

int sdg_graph_norm_tensor(const sdg_graph_node_t *node, sdg_role_t role,
                          bool out) {
  for (int i = 0; i < OPERANDS; i++) {
    int t = is_at(&operands[i], role, out)
                ? sdg_graph_operand(node, operands[i].name)
                : -1;
    if (t >= 0)
      return t;
  }
  return -1;
}

int sdg_graph_norm_epsilon(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, is_back(node) ? BACKWARD(EPSILON_DESC)
                                               : FORWARD(EPSILON_DESC));
}

int sdg_graph_norm_factor(const sdg_graph_node_t *node) {
  return sdg_graph_operand(node, FORWARD(EXP_AVG_FACTOR_DESC));
}

sdg_graph_norm_kind_t sdg_graph_norm_kind(const sdg_graph_node_t *node) {
  bool back = is_back(node);
  bool infers =
      sdg_graph_integer(node, FORWARD(PHASE), CUDNN_NORM_FWD_TRAINING) ==
      CUDNN_NORM_FWD_INFERENCE;
  int inverse = sdg_graph_norm_tensor(node, SDG_ROLE_SAVED_INVERSE, false);
  return (sdg_graph_norm_kind_t){
      .mode = (cudnnBackendNormMode_t)sdg_graph_integer(
          node, back ? BACKWARD(MODE) : FORWARD(MODE), CUDNN_LAYER_NORM),
      .backward = back,
      .computes = !back && !(infers && inverse >= 0)};
}

const char *sdg_graph_norm_read(const sdg_graph_node_t *node) {
  bool back = is_back(node);
  switch (sdg_graph_norm_kind(node).mode) {
  case CUDNN_LAYER_NORM:
  case CUDNN_INSTANCE_NORM:
  case CUDNN_BATCH_NORM:
  case CUDNN_RMS_NORM:
  case CUDNN_ADA_LAYER_NORM:
    break;
  case CUDNN_GROUP_NORM:
    return "a norm over groups of channels";
  default:
    return "a norm of a mode that is not known";
  }
  // It is changed behind the program's back, by other processes.
  if (sdg_graph_operand(node, back ? BACKWARD(PEER_STAT_DESCS)
                                   : FORWARD(PEER_STAT_DESCS)) >= 0)
    return "a norm with memory that GPUs share (PEER_STAT_DESCS)";
  if (sdg_graph_norm_tensor(node, SDG_ROLE_X, false) < 0 ||
      sdg_graph_norm_tensor(node, back ? SDG_ROLE_DX : SDG_ROLE_Y, true) < 0 ||
      (back &&
       (sdg_graph_norm_tensor(node, SDG_ROLE_DY, false) < 0 ||
        sdg_graph_norm_tensor(node, SDG_ROLE_SAVED_INVERSE, false) < 0)))
    return "a norm without one of its tensors";
  return NULL;
}
