// SPDX-License-Identifier: Apache-2.0
// Normalisations in the graphs that tests make.
#include "tests/host/cudnn/compute/norm/made_norm.h"

#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/draw.h"
#include "tests/unit/harness.h"

#define FORWARD(name)  CUDNN_ATTR_OPERATION_NORM_FWD_##name
#define BACKWARD(name) CUDNN_ATTR_OPERATION_NORM_BWD_##name
#define WEIGHTS(name)  CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_##name

/* 0: the direction has no such tensor. */
static const cudnnBackendAttributeName_t names[2][NORM_TENSORS] = {
    {[NORM_X] = FORWARD(XDESC),
     [NORM_SCALE] = FORWARD(SCALE_DESC),
     [NORM_BIAS] = FORWARD(BIAS_DESC),
     [NORM_EPSILON] = FORWARD(EPSILON_DESC),
     [NORM_MEAN] = FORWARD(MEAN_DESC),
     [NORM_INVERSE] = FORWARD(INV_VARIANCE_DESC),
     [NORM_FACTOR] = FORWARD(EXP_AVG_FACTOR_DESC),
     [NORM_OLD_MEAN] = FORWARD(INPUT_RUNNING_MEAN_DESC),
     [NORM_OLD_VARIANCE] = FORWARD(INPUT_RUNNING_VAR_DESC),
     [NORM_NEW_MEAN] = FORWARD(OUTPUT_RUNNING_MEAN_DESC),
     [NORM_NEW_VARIANCE] = FORWARD(OUTPUT_RUNNING_VAR_DESC),
     [NORM_Y] = FORWARD(YDESC)},
    {[NORM_X] = BACKWARD(XDESC),
     [NORM_SCALE] = BACKWARD(SCALE_DESC),
     [NORM_EPSILON] = BACKWARD(EPSILON_DESC),
     [NORM_MEAN] = BACKWARD(MEAN_DESC),
     [NORM_INVERSE] = BACKWARD(INV_VARIANCE_DESC),
     [NORM_DY] = BACKWARD(DYDESC),
     [NORM_DX] = BACKWARD(DXDESC),
     [NORM_DSCALE] = BACKWARD(DSCALE_DESC),
     [NORM_DBIAS] = BACKWARD(DBIAS_DESC)}};

static const cudnnBackendAttributeName_t weights[MADE_WEIGHTS] = {
    WEIGHTS(X_DESC),        WEIGHTS(DY_DESC),          WEIGHTS(MEAN_DESC),
    WEIGHTS(INVSTD_DESC),   WEIGHTS(BN_SCALE_DESC),    WEIGHTS(DBN_SCALE_DESC),
    WEIGHTS(DBN_BIAS_DESC), WEIGHTS(EQ_DY_SCALE_DESC), WEIGHTS(EQ_X_SCALE_DESC),
    WEIGHTS(EQ_BIAS)};

made_norm_t made_norm_empty(cudnnBackendNormMode_t mode, bool backward) {
  made_norm_t norm = {.mode = mode, .backward = backward};
  for (int i = 0; i < NORM_TENSORS; i++)
    norm.tensor[i] = -1;
  return norm;
}

static sdg_graph_node_t *node_add(made_t *m, cudnnBackendDescriptorType_t kind,
                                  int operands) {
  REQUIRE(m->graph.node_count < MADE_NODES);
  sdg_graph_node_t *node = &m->graph.node[m->graph.node_count++];
  node->kind = kind;
  node->operand = calloc((size_t)operands, sizeof *node->operand);
  node->parameter = calloc(2, sizeof *node->parameter);
  return node;
}

static void operand_add(made_t *m, sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name, int tensor) {
  if (tensor < 0 || name == 0)
    return;
  node->operand[node->operand_count++] =
      (sdg_graph_operand_t){.name = name, .tensor = tensor};
  m->written[tensor] |= sdg_graph_writes(node, name);
}

sdg_graph_node_t *made_norm(made_t *m, const made_norm_t *norm) {
  sdg_graph_node_t *node =
      node_add(m,
               norm->backward ? CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR
                              : CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
               NORM_TENSORS);
  made_set_integer(node, norm->backward ? BACKWARD(MODE) : FORWARD(MODE),
                   CUDNN_TYPE_NORM_MODE, norm->mode);
  if (!norm->backward)
    made_set_integer(node, FORWARD(PHASE), CUDNN_TYPE_NORM_FWD_PHASE,
                     norm->inference ? CUDNN_NORM_FWD_INFERENCE
                                     : CUDNN_NORM_FWD_TRAINING);
  for (int i = 0; i < NORM_TENSORS; i++)
    operand_add(m, node, names[norm->backward][i], norm->tensor[i]);
  return node;
}

made_norm_t made_norm_of(const sdg_graph_node_t *node) {
  bool backward =
      node->kind == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
  made_norm_t norm =
      made_norm_empty((cudnnBackendNormMode_t)sdg_graph_integer(
                          node, backward ? BACKWARD(MODE) : FORWARD(MODE), -1),
                      backward);
  norm.inference = !backward && sdg_graph_integer(node, FORWARD(PHASE), -1) ==
                                    CUDNN_NORM_FWD_INFERENCE;
  for (int i = 0; i < NORM_TENSORS; i++)
    if (names[backward][i])
      norm.tensor[i] = sdg_graph_operand(node, names[backward][i]);
  return norm;
}

sdg_graph_node_t *made_weights(made_t *m, const int tensor[MADE_WEIGHTS]) {
  sdg_graph_node_t *node = node_add(
      m, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, MADE_WEIGHTS);
  made_set_integer(node, WEIGHTS(MATH_PREC), CUDNN_TYPE_DATA_TYPE,
                   CUDNN_DATA_FLOAT);
  for (int i = 0; i < MADE_WEIGHTS; i++)
    operand_add(m, node, weights[i], tensor[i]);
  return node;
}

void made_norm_extents(cudnnBackendNormMode_t mode, int rank, const int64_t *x,
                       int64_t *out_scale, int64_t *out_statistics) {
  bool channels = mode == CUDNN_BATCH_NORM || mode == CUDNN_INSTANCE_NORM;
  for (int d = 0; d < rank; d++) {
    /* In 3 dimensions, only the last one is normalised over. */
    bool within = rank == 3 ? d == 2 : d > 0;
    out_scale[d] = (channels ? d == 1 : within) ? x[d] : 1;
    out_statistics[d] = (channels ? d == 1 : !within) ? x[d] : 1;
  }
  if (mode == CUDNN_ADA_LAYER_NORM)
    out_scale[0] = x[0];
  if (mode == CUDNN_INSTANCE_NORM)
    out_statistics[0] = x[0];
}

/* ---- random ones --------------------------------------------------------- */

static int real(made_t *m, int rank, const int64_t *dim) {
  return made_real(m, draw_type(), rank, dim, draw_layout());
}

/* Positive values. */
static int positive(made_t *m, int rank, const int64_t *dim) {
  int t = made_real(m, CUDNN_DATA_FLOAT, rank, dim, draw_layout());
  double *values = made_values(m, t, true);
  for (int64_t i = 0; i < made_count(m, t); i++)
    values[i] = 0.5 + values[i] * values[i];
  made_fill(m, t, values);
  free(values);
  return t;
}

/* An output: no other result may overwrite it. */
static int output(made_t *m, int rank, const int64_t *dim) {
  int t = real(m, rank, dim);
  m->written[t] = true;
  return t;
}

/* Inputs come first: what is drawn for them may read any tensor. */
static void forward_draw(made_t *m, made_norm_t *norm, int rank,
                         const int64_t *scale, const int64_t *statistics) {
  int *t = norm->tensor;
  bool known = norm->inference && norm->mode == CUDNN_BATCH_NORM;
  bool runs = norm->mode == CUDNN_BATCH_NORM && !known && case_range(0, 1);
  bool tells = !norm->inference && case_range(0, 3);
  if (norm->mode == CUDNN_ADA_LAYER_NORM || (rank == 3 && !tells) ||
      case_range(0, 3))
    t[NORM_SCALE] = draw_input(m, rank, scale);
  if (t[NORM_SCALE] >= 0 && case_range(0, 2))
    t[NORM_BIAS] = draw_input(m, rank, scale);
  if (known) {
    t[NORM_MEAN] = real(m, rank, statistics);
    t[NORM_INVERSE] = positive(m, rank, statistics);
  } else {
    t[NORM_EPSILON] = made_number(m, CUDNN_DATA_FLOAT, rank, 0.01);
  }
  if (runs) {
    t[NORM_FACTOR] = made_number(m, CUDNN_DATA_FLOAT, rank, 0.125);
    t[NORM_OLD_MEAN] = real(m, rank, statistics);
    t[NORM_OLD_VARIANCE] = positive(m, rank, statistics);
    /* In place, or elsewhere. */
    t[NORM_NEW_MEAN] = case_range(0, 1) ? made_alias(m, t[NORM_OLD_MEAN])
                                        : output(m, rank, statistics);
    m->written[t[NORM_NEW_MEAN]] = true;
    t[NORM_NEW_VARIANCE] = output(m, rank, statistics);
  }
  if (tells) {
    if (norm->mode != CUDNN_RMS_NORM)
      t[NORM_MEAN] = output(m, rank, statistics);
    t[NORM_INVERSE] = output(m, rank, statistics);
  }
}

static void backward_draw(made_t *m, made_norm_t *norm, int rank,
                          const int64_t *x, const int64_t *scale,
                          const int64_t *statistics) {
  int *t = norm->tensor;
  bool scales = case_range(0, 4) != 0;
  t[NORM_DY] = draw_input(m, rank, x);
  if (scales)
    t[NORM_SCALE] = draw_input(m, rank, scale);
  if (norm->mode != CUDNN_RMS_NORM)
    t[NORM_MEAN] = real(m, rank, statistics);
  t[NORM_INVERSE] = positive(m, rank, statistics);
  if (scales)
    t[NORM_DSCALE] = output(m, rank, scale);
  if (case_range(0, 2))
    t[NORM_DBIAS] = output(m, rank, scale);
}

static int norm_draw(made_t *m, bool last) {
  static const cudnnBackendNormMode_t modes[] = {
      CUDNN_LAYER_NORM, CUDNN_INSTANCE_NORM, CUDNN_BATCH_NORM, CUDNN_RMS_NORM,
      CUDNN_ADA_LAYER_NORM};
  int rank = case_range(2, MADE_RANK);
  int64_t x[MADE_RANK], scale[MADE_RANK], statistics[MADE_RANK];
  for (int d = 0; d < rank; d++)
    x[d] = case_range(1, rank > 3 ? 5 : 12);
  made_norm_t norm =
      made_norm_empty(modes[case_range(0, 4)], case_range(0, 2) == 0);
  norm.inference = !norm.backward && case_range(0, 2) == 0;
  made_norm_extents(norm.mode, rank, x, scale, statistics);
  norm.tensor[NORM_X] = draw_input(m, rank, x);
  if (norm.backward)
    backward_draw(m, &norm, rank, x, scale, statistics);
  else
    forward_draw(m, &norm, rank, scale, statistics);
  const sdg_graph_tensor_t like = m->graph.tensor[norm.tensor[NORM_X]];
  int result = draw_result(m, &like, last);
  norm.tensor[norm.backward ? NORM_DX : NORM_Y] = result;
  made_norm(m, &norm);
  return result;
}

void draw_norm(made_t *m) {
  draw_around(m, norm_draw);
}
