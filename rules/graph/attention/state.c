// SPDX-License-Identifier: Apache-2.0
// Attention as an operation graph: masks, a softmax, gradients.
#include "rules/graph/attention/state.h"

#include <stdlib.h>

#include "rules/graph/attention/build.h"

// The most that attention has.
enum { TENSORS = 72, NODES = 48 };

#define AT(name) CUDNN_ATTR_OPERATION_##name

// ---- masks -----------------------------------------------------------------

static int index_add(sdg_builder_t *b, cudnnDataType_t in, int scores,
                     int axis) {
  int y = sdg_build_pointwise_in(b, in, CUDNN_POINTWISE_GEN_INDEX, scores, -1,
                                 sdg_build_score(b, CUDNN_DATA_INT32));
  sdg_build_parameter(b, &b->out->graph->node[b->out->graph->node_count - 1],
                      CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  return y;
}

static int select_add(sdg_builder_t *b, int scores, int mask) {
  int fill = sdg_build_real(b, b->shape->fill);
  int y = sdg_build_pointwise(b, CUDNN_POINTWISE_BINARY_SELECT, scores, fill,
                              sdg_build_score(b, CUDNN_DATA_FLOAT));
  sdg_build_operand(b, &b->out->graph->node[b->out->graph->node_count - 1],
                    AT(POINTWISE_TDESC), mask);
  return y;
}

static int lengths_mask(sdg_builder_t *b, int scores) {
  int q = b->out->tensor[SDG_COMPOSITE_LENGTH_Q];
  int kv = b->out->tensor[SDG_COMPOSITE_LENGTH_KV];
  if (q < 0 || kv < 0)
    return scores;
  int row = index_add(b, CUDNN_DATA_INT32, scores, 2);
  int column = index_add(b, CUDNN_DATA_INT32, scores, 3);
  int rows = sdg_build_truth(b, CUDNN_POINTWISE_CMP_LT, row, q);
  int columns = sdg_build_truth(b, CUDNN_POINTWISE_CMP_LT, column, kv);
  return select_add(
      b, scores,
      sdg_build_truth(b, CUDNN_POINTWISE_LOGICAL_AND, rows, columns));
}

static int right_mask(sdg_builder_t *b, int scores) {
  if (!b->shape->right)
    return scores;
  int row = index_add(b, CUDNN_DATA_FLOAT, scores, 2);
  int column = index_add(b, CUDNN_DATA_FLOAT, scores, 3);
  if (b->shape->right_bound)
    row = sdg_build_pointwise_in(b, CUDNN_DATA_INT32, CUDNN_POINTWISE_ADD, row,
                                 sdg_build_whole(b, b->shape->right_bound),
                                 sdg_build_score(b, CUDNN_DATA_INT32));
  return select_add(b, scores,
                    sdg_build_truth(b, CUDNN_POINTWISE_CMP_GE, row, column));
}

static int left_mask(sdg_builder_t *b, int scores) {
  if (!b->shape->left)
    return scores;
  int row = index_add(b, CUDNN_DATA_FLOAT, scores, 2);
  int column = index_add(b, CUDNN_DATA_FLOAT, scores, 3);
  column = sdg_build_pointwise(b, CUDNN_POINTWISE_ADD, column,
                               sdg_build_real(b, (float)b->shape->left_bound),
                               sdg_build_score(b, CUDNN_DATA_FLOAT));
  return select_add(b, scores,
                    sdg_build_truth(b, CUDNN_POINTWISE_CMP_GT, column, row));
}

static int masks(sdg_builder_t *b, int scores) {
  return left_mask(b, right_mask(b, lengths_mask(b, scores)));
}

// ---- attention -------------------------------------------------------------

#define ROLE(role) (b->out->tensor[SDG_COMPOSITE_##role])

static int scaled(sdg_builder_t *b, int scores) {
  return b->out->scale < 0
             ? scores
             : sdg_build_pointwise(b, CUDNN_POINTWISE_MUL, scores,
                                   b->out->scale,
                                   sdg_build_score(b, CUDNN_DATA_FLOAT));
}

// Products, scaled and biased.
static int scores_add(sdg_builder_t *b) {
  sdg_build_lengths_t lengths = {ROLE(LENGTH_Q), ROLE(LENGTH_KV), -1};
  int scores = sdg_build_product(b, ROLE(Q), ROLE(K),
                                 sdg_build_score(b, CUDNN_DATA_FLOAT), lengths);
  if (b->shape->scales)
    b->out->scale = sdg_build_by_value(b, b->shape->scale_type);
  scores = scaled(b, scores);
  return ROLE(BIAS) < 0
             ? scores
             : sdg_build_pointwise(b, CUDNN_POINTWISE_ADD, scores, ROLE(BIAS),
                                   sdg_build_score(b, CUDNN_DATA_FLOAT));
}

static void forward_add(sdg_builder_t *b) {
  int scores = masks(b, scores_add(b));
  int most =
      sdg_build_reduction(b, CUDNN_REDUCE_TENSOR_MAX, scores, sdg_build_row(b));
  int less = sdg_build_pointwise(b, CUDNN_POINTWISE_SUB, scores, most,
                                 sdg_build_score(b, CUDNN_DATA_FLOAT));
  int power = sdg_build_pointwise(b, CUDNN_POINTWISE_EXP, less, -1,
                                  sdg_build_score(b, CUDNN_DATA_FLOAT));
  int sum =
      sdg_build_reduction(b, CUDNN_REDUCE_TENSOR_ADD, power, sdg_build_row(b));
  int log =
      sdg_build_pointwise(b, CUDNN_POINTWISE_LOG, sum, -1, sdg_build_row(b));
  sdg_build_pointwise(b, CUDNN_POINTWISE_ADD, most, log,
                      ROLE(STATS) < 0 ? sdg_build_row(b) : ROLE(STATS));
  int weights = sdg_build_pointwise(
      b, CUDNN_POINTWISE_DIV, power, sum,
      sdg_build_score(b, b->shape->tensor[SDG_COMPOSITE_Q].type));
  sdg_build_product(b, weights, ROLE(V), ROLE(O),
                    (sdg_build_lengths_t){ROLE(LENGTH_Q), -1, ROLE(LENGTH_KV)});
}

// Sums of O * DO.
static int delta_add(sdg_builder_t *b) {
  int64_t dim[4];
  sdg_build_extents(b->shape, SDG_COMPOSITE_O, dim);
  int terms = sdg_build_pointwise(b, CUDNN_POINTWISE_MUL, ROLE(DO), ROLE(O),
                                  sdg_build_virtual(b, CUDNN_DATA_FLOAT, dim));
  int sum =
      sdg_build_reduction(b, CUDNN_REDUCE_TENSOR_ADD, terms, sdg_build_row(b));
  ROLE(DELTA) = sdg_build_packed(b, CUDNN_DATA_FLOAT, b->rows);
  return sdg_build_pointwise(b, CUDNN_POINTWISE_MUL, sum, sdg_build_real(b, 1),
                             ROLE(DELTA));
}

// A gradient of keys or values, summed over the heads of a group.
static void summed_add(sdg_builder_t *b, int x, int y,
                       sdg_composite_role_t role, int64_t heads) {
  sdg_build_lengths_t lengths = {ROLE(LENGTH_KV), -1, ROLE(LENGTH_Q)};
  int64_t dim[4];
  if (heads == b->shape->heads) {
    sdg_build_product(b, x, y, b->out->tensor[role], lengths);
    return;
  }
  sdg_build_extents(b->shape, role, dim);
  dim[1] = b->shape->heads;
  int full = sdg_build_virtual(b, b->shape->tensor[role].type, dim);
  sdg_build_product(b, x, y, full, lengths);
  sdg_build_reduction(b, CUDNN_REDUCE_TENSOR_ADD, full, b->out->tensor[role]);
}

static void queries_add(sdg_builder_t *b, int slopes) {
  sdg_build_lengths_t lengths = {ROLE(LENGTH_Q), -1, ROLE(LENGTH_KV)};
  int keys = sdg_build_turn(b, ROLE(K), CUDNN_DATA_FLOAT);
  int64_t dim[4];
  if (b->shape->deterministic) {
    sdg_build_product(b, slopes, keys, ROLE(DQ), lengths);
    return;
  }
  sdg_build_extents(b->shape, SDG_COMPOSITE_DQ, dim);
  ROLE(DQ_SUM) = sdg_build_packed(b, CUDNN_DATA_FLOAT, dim);
  sdg_build_product(b, slopes, keys, ROLE(DQ_SUM), lengths);
  sdg_build_pointwise(b, CUDNN_POINTWISE_IDENTITY, ROLE(DQ_SUM), -1, ROLE(DQ));
}

static void backward_add(sdg_builder_t *b) {
  cudnnDataType_t type = b->shape->tensor[SDG_COMPOSITE_Q].type;
  int delta = delta_add(b);
  int less =
      sdg_build_pointwise(b, CUDNN_POINTWISE_SUB, scores_add(b), ROLE(STATS),
                          sdg_build_score(b, CUDNN_DATA_FLOAT));
  int power = sdg_build_pointwise(b, CUDNN_POINTWISE_EXP, masks(b, less), -1,
                                  sdg_build_score(b, CUDNN_DATA_FLOAT));
  summed_add(b, sdg_build_turn(b, power, type), ROLE(DO), SDG_COMPOSITE_DV,
             b->shape->v_heads);
  int slopes = sdg_build_product(
      b, ROLE(DO), ROLE(V), sdg_build_score(b, CUDNN_DATA_FLOAT),
      (sdg_build_lengths_t){ROLE(LENGTH_Q), ROLE(LENGTH_KV), -1});
  slopes = sdg_build_pointwise(b, CUDNN_POINTWISE_SUB, slopes, delta,
                               sdg_build_score(b, CUDNN_DATA_FLOAT));
  slopes = scaled(b, sdg_build_pointwise(b, CUDNN_POINTWISE_MUL, slopes, power,
                                         sdg_build_score(b, CUDNN_DATA_FLOAT)));
  summed_add(b, sdg_build_turn(b, slopes, type), ROLE(Q), SDG_COMPOSITE_DK,
             b->shape->k_heads);
  queries_add(b, slopes);
}

static void unified_add(sdg_builder_t *b) {
  sdg_graph_node_t *node =
      sdg_build_node(b, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  if (b->shape->scales) { // of one dimension here
    b->out->scale = sdg_build_by_value(b, b->shape->scale_type);
    b->out->graph->tensor[b->out->scale].rank = 1;
  }
  sdg_build_operand(b, node, AT(SDPA_FWD_QDESC), ROLE(Q));
  sdg_build_operand(b, node, AT(SDPA_FWD_KDESC), ROLE(K));
  sdg_build_operand(b, node, AT(SDPA_FWD_VDESC), ROLE(V));
  sdg_build_operand(b, node, AT(SDPA_FWD_ODESC), ROLE(O));
  sdg_build_operand(b, node, AT(SDPA_FWD_STATSDESC), ROLE(STATS));
  sdg_build_operand(b, node, AT(SDPA_FWD_SCALEDESC), b->out->scale);
  sdg_build_operand(b, node, AT(SDPA_FWD_SEQ_LEN_QDESC), ROLE(LENGTH_Q));
  sdg_build_operand(b, node, AT(SDPA_FWD_SEQ_LEN_KVDESC), ROLE(LENGTH_KV));
}

sdg_status_t sdg_attention_state_init(const sdg_attention_shape_t *shape,
                                      sdg_attention_state_t *out) {
  sdg_builder_t b = {
      .shape = shape,
      .out = out,
      .scores = {shape->batch, shape->heads, shape->queries, shape->keys},
      .rows = {shape->batch, shape->heads, shape->queries, 1}};
  *out = (sdg_attention_state_t){.scale = -1};
  SDG_TRY(SDG_ALLOCATE(out->graph, 1, "a piece of attention"));
  out->graph->references = 1;
  out->graph->tensor = calloc(TENSORS, sizeof *out->graph->tensor);
  out->graph->node = calloc(NODES, sizeof *out->graph->node);
  b.failed = !out->graph->tensor || !out->graph->node;
  if (!b.failed) {
    sdg_build_roles(&b);
    if (shape->unified)
      unified_add(&b);
    else if (shape->backward)
      backward_add(&b);
    else
      forward_add(&b);
  }
  if (!b.failed)
    return SDG_OK;
  sdg_attention_state_fini(out);
  return sdg_fail(SDG_E_NO_MEMORY, "a piece of attention");
}

void sdg_attention_state_fini(sdg_attention_state_t *state) {
  sdg_graph_release(state->graph);
  state->graph = NULL;
}
