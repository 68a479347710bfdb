// SPDX-License-Identifier: Apache-2.0
// Attention as two products with a softmax between them, and as one op.
#include <string.h>

#include "rules/graph/composite/reader.h"

// ---- products --------------------------------------------------------------

// The weights that are multiplied with V, and what they are divided by.
typedef struct softmax {
  int power, sum, most; // tensors
} softmax_t;

static const sdg_graph_node_t *written_by(const sdg_reader_t *r, int t) {
  return t < 0 || r->writer[t] < 0 ? NULL : &r->graph->node[r->writer[t]];
}

// The product whose first factor is a result of pointwise ops.
static const sdg_graph_node_t *values_find(sdg_reader_t *r) {
  for (int n = 0; n < r->graph->node_count; n++) {
    const sdg_graph_node_t *node = &r->graph->node[n];
    if (node->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR &&
        written_by(r, SDG_OPERAND(node, MATMUL_ADESC)))
      return sdg_reader_matmul(r, SDG_OPERAND(node, MATMUL_CDESC));
  }
  return NULL;
}

static bool softmax_lacks(sdg_reader_t *r, const sdg_graph_node_t *weights) {
  const sdg_graph_node_t *sum =
      written_by(r, SDG_OPERAND(weights, POINTWISE_BDESC));
  if (sdg_reader_has_mode(weights, CUDNN_POINTWISE_MUL))
    return sdg_reader_lacks(r, "dropout");
  if (sdg_reader_has_mode(weights, CUDNN_POINTWISE_DIV) &&
      sdg_reader_has_mode(sum, CUDNN_POINTWISE_ADD))
    return sdg_reader_lacks(r, "sink tokens");
  return sdg_reader_lacks(r, "a softmax that is stated in another way");
}

// Returns the scores; -1 if this is no softmax.
static int softmax_read(sdg_reader_t *r, int weights, softmax_t *out) {
  const sdg_graph_node_t *divide =
      sdg_reader_pointwise(r, weights, CUDNN_POINTWISE_DIV, SDG_READER_ANY);
  out->power = SDG_OPERAND(divide, POINTWISE_XDESC);
  out->sum = SDG_OPERAND(divide, POINTWISE_BDESC);
  const sdg_graph_node_t *sum =
      sdg_reader_reduction(r, out->sum, CUDNN_REDUCE_TENSOR_ADD);
  const sdg_graph_node_t *power = sdg_reader_pointwise(
      r, out->power, CUDNN_POINTWISE_EXP, SDG_READER_SCORE);
  const sdg_graph_node_t *less =
      sdg_reader_pointwise(r, SDG_OPERAND(power, POINTWISE_XDESC),
                           CUDNN_POINTWISE_SUB, SDG_READER_SCORE);
  int scores = SDG_OPERAND(less, POINTWISE_XDESC);
  out->most = SDG_OPERAND(less, POINTWISE_BDESC);
  const sdg_graph_node_t *most =
      sdg_reader_reduction(r, out->most, CUDNN_REDUCE_TENSOR_MAX);
  bool is = sum && most && SDG_OPERAND(sum, REDUCTION_XDESC) == out->power &&
            SDG_OPERAND(most, REDUCTION_XDESC) == scores &&
            sdg_reader_is_row(r, out->sum) && sdg_reader_is_row(r, out->most) &&
            sdg_reader_is_score(r, out->power) &&
            sdg_reader_is_score(r, SDG_OPERAND(power, POINTWISE_XDESC)) &&
            r->graph->tensor[out->sum].type == CUDNN_DATA_FLOAT &&
            r->graph->tensor[out->most].type == CUDNN_DATA_FLOAT;
  return is ? scores : -1;
}

// The largest score plus the logarithm of the sum, which may be of no use.
static bool stats_read(sdg_reader_t *r, const softmax_t *softmax) {
  for (int n = 0; n < r->graph->node_count; n++) {
    const sdg_graph_node_t *node = &r->graph->node[n];
    int log = sdg_reader_other(node, softmax->most);
    int y = SDG_OPERAND(node, POINTWISE_YDESC);
    if (!sdg_reader_has_mode(node, CUDNN_POINTWISE_ADD) || log < 0)
      continue;
    const sdg_graph_node_t *of =
        sdg_reader_pointwise(r, log, CUDNN_POINTWISE_LOG, SDG_READER_SCORE);
    if (!of || SDG_OPERAND(of, POINTWISE_XDESC) != softmax->sum ||
        !sdg_reader_is_row(r, log) || !sdg_reader_is_row(r, y) ||
        !sdg_reader_pointwise(r, y, CUDNN_POINTWISE_ADD, SDG_READER_SCORE))
      return sdg_reader_lacks(r, "statistics that are stated in another way");
    if (!r->graph->tensor[y].is_virtual &&
        !sdg_reader_role(r, SDG_COMPOSITE_STATS, y, false))
      return false;
  }
  return !r->lacks;
}

bool sdg_reader_forward(sdg_reader_t *r) {
  const sdg_graph_node_t *values = values_find(r);
  int weights = SDG_OPERAND(values, MATMUL_ADESC);
  softmax_t softmax;
  if (!values || r->graph->tensor[weights].rank != 4)
    return sdg_reader_lacks(r, "products of tensors without 4 dimensions");
  memcpy(r->scores, r->graph->tensor[weights].dim, sizeof r->scores);
  memcpy(r->rows, r->scores, sizeof r->rows);
  r->rows[3] = 1;
  int scores = softmax_read(r, weights, &softmax);
  if (scores < 0)
    return softmax_lacks(r, written_by(r, weights));
  if (!stats_read(r, &softmax))
    return false;
  const sdg_graph_node_t *product = sdg_reader_scores(r, scores, false);
  if (!product)
    return false;
  const int *role = r->out->tensor;
  int q = role[SDG_COMPOSITE_LENGTH_Q], kv = role[SDG_COMPOSITE_LENGTH_KV];
  return sdg_reader_role(r, SDG_COMPOSITE_Q, SDG_OPERAND(product, MATMUL_ADESC),
                         false) &&
         sdg_reader_role(r, SDG_COMPOSITE_K, SDG_OPERAND(product, MATMUL_BDESC),
                         true) &&
         sdg_reader_role(r, SDG_COMPOSITE_V, SDG_OPERAND(values, MATMUL_BDESC),
                         false) &&
         sdg_reader_role(r, SDG_COMPOSITE_O, SDG_OPERAND(values, MATMUL_CDESC),
                         false) &&
         sdg_reader_overrides(r, product, q, kv, -1) &&
         sdg_reader_overrides(r, values, q, -1, kv) &&
         (r->graph->tensor[weights].type ==
              r->graph->tensor[role[SDG_COMPOSITE_Q]].type ||
          sdg_reader_lacks(r, "weights of another type than the queries"));
}

// ---- one op ----------------------------------------------------------------

bool sdg_reader_unified(sdg_reader_t *r) {
  static const struct {
    cudnnBackendAttributeName_t name;
    sdg_composite_role_t role;
    bool optional;
  } operands[] = {
#define OPERAND(name, role, optional)                                          \
  {CUDNN_ATTR_OPERATION_SDPA_FWD_##name, SDG_COMPOSITE_##role, optional}
      OPERAND(QDESC, Q, false),
      OPERAND(KDESC, K, false),
      OPERAND(VDESC, V, false),
      OPERAND(ODESC, O, false),
      OPERAND(STATSDESC, STATS, true),
      OPERAND(SEQ_LEN_QDESC, LENGTH_Q, true),
      OPERAND(SEQ_LEN_KVDESC, LENGTH_KV, true),
#undef OPERAND
  };
  const sdg_graph_node_t *node = r->graph->node;
  if (r->graph->node_count != 1)
    return sdg_reader_lacks(r, "an op beside attention");
  if (SDG_OPERAND(node, SDPA_FWD_BLOCK_MASK_DESC) >= 0)
    return sdg_reader_lacks(r, "a block mask");
  if (SDG_OPERAND(node, SDPA_FWD_PAGE_TABLE_KDESC) >= 0 ||
      SDG_OPERAND(node, SDPA_FWD_PAGE_TABLE_VDESC) >= 0)
    return sdg_reader_lacks(r, "paged keys or values");
  if (node->parameter_count)
    return sdg_reader_lacks(r, "an attention op with parameters");
  r->out->unified = r->taken[0] = true;
  for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
    int t = sdg_graph_operand(node, operands[i].name);
    if (!(t < 0 && operands[i].optional) &&
        !sdg_reader_role(r, operands[i].role, t, false))
      return false;
  }
  int scale = SDG_OPERAND(node, SDPA_FWD_SCALEDESC);
  return (scale < 0 || sdg_reader_scale(r, scale)) && sdg_reader_masks_close(r);
}
