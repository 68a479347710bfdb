// SPDX-License-Identifier: Apache-2.0
// Gradients of attention: five products.
#include <string.h>

#include "rules/graph/composite/reader.h"

// Tensors; -1: not found yet.
typedef struct slopes {
  int power;   // the weights
  int score;   // the slope of the scores
  int weights; // the slope of the weights
  int delta;   // sums of slopes
} slopes_t;

static const sdg_graph_node_t *written_by(const sdg_reader_t *r, int t) {
  return t < 0 || r->writer[t] < 0 ? NULL : &r->graph->node[r->writer[t]];
}

static bool is_matmul(const sdg_graph_node_t *node) {
  return node && node->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
}

static int turned_from(const sdg_reader_t *r, int t) {
  const sdg_graph_node_t *node = written_by(r, t);
  return node && node->kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR
             ? SDG_OPERAND(node, RESHAPE_XDESC)
             : -1;
}

// ---- results ---------------------------------------------------------------

// Whether a product has a result's extents, with all heads.
static bool is_like(const sdg_reader_t *r, int product, int result) {
  const int64_t *dim = r->graph->tensor[product].dim;
  const int64_t *of = r->graph->tensor[result].dim;
  return r->graph->tensor[product].rank == 4 && dim[0] == of[0] &&
         dim[1] == r->scores[1] && dim[2] == of[2] && dim[3] == of[3];
}

// DQ is the product, or the sum that the product is added to.
static bool dq_read(sdg_reader_t *r, int product) {
  for (int n = 0; n < r->graph->node_count; n++) {
    const sdg_graph_node_t *node = &r->graph->node[n];
    int y = SDG_OPERAND(node, POINTWISE_YDESC);
    if (!sdg_reader_has_mode(node, CUDNN_POINTWISE_IDENTITY) ||
        SDG_OPERAND(node, POINTWISE_XDESC) != product ||
        !sdg_reader_pointwise(r, y, CUDNN_POINTWISE_IDENTITY, SDG_READER_ANY))
      continue;
    return is_like(r, product, y) &&
           (r->graph->tensor[product].is_virtual ||
            sdg_reader_role(r, SDG_COMPOSITE_DQ_SUM, product, false)) &&
           sdg_reader_role(r, SDG_COMPOSITE_DQ, y, false);
  }
  return sdg_reader_role(r, SDG_COMPOSITE_DQ, product, false);
}

// DK and DV are the products, or their sums over groups of heads.
static bool sums_read(sdg_reader_t *r, int product, sdg_composite_role_t role,
                      sdg_composite_role_t full) {
  for (int n = 0; n < r->graph->node_count; n++) {
    const sdg_graph_node_t *node = &r->graph->node[n];
    int y = SDG_OPERAND(node, REDUCTION_YDESC);
    if (SDG_OPERAND(node, REDUCTION_XDESC) != product ||
        !sdg_reader_reduction(r, y, CUDNN_REDUCE_TENSOR_ADD))
      continue;
    return is_like(r, product, y) &&
           (r->graph->tensor[product].is_virtual ||
            sdg_reader_role(r, full, product, false)) &&
           sdg_reader_role(r, role, y, false);
  }
  return sdg_reader_role(r, role, product, false);
}

// ---- slopes ----------------------------------------------------------------

// Sums of O * DO, times one.
static bool delta_read(sdg_reader_t *r, int delta) {
  if (!sdg_reader_is_row(r, delta) ||
      r->graph->tensor[delta].type != CUDNN_DATA_FLOAT)
    return sdg_reader_lacks(r, "sums of slopes that are not a row's");
  if (!r->graph->tensor[delta].is_virtual &&
      !sdg_reader_role(r, SDG_COMPOSITE_DELTA, delta, false))
    return false;
  const sdg_graph_node_t *once =
      sdg_reader_pointwise(r, delta, CUDNN_POINTWISE_MUL, SDG_READER_SCORE);
  if (once) {
    if (!sdg_reader_number(r, SDG_OPERAND(once, POINTWISE_BDESC), &r->out->ones,
                           r->out->one))
      return false;
    delta = SDG_OPERAND(once, POINTWISE_XDESC);
  }
  const sdg_graph_node_t *sum =
      sdg_reader_reduction(r, delta, CUDNN_REDUCE_TENSOR_ADD);
  int terms = SDG_OPERAND(sum, REDUCTION_XDESC);
  const sdg_graph_node_t *product =
      sdg_reader_pointwise(r, terms, CUDNN_POINTWISE_MUL, SDG_READER_SCORE);
  int d_o = r->out->tensor[SDG_COMPOSITE_DO];
  if (!product || !sdg_reader_is_row(r, delta) ||
      r->graph->tensor[delta].type != CUDNN_DATA_FLOAT ||
      sdg_reader_other(product, d_o) < 0 ||
      memcmp(r->graph->tensor[terms].dim, r->graph->tensor[d_o].dim,
             4 * sizeof(int64_t)) != 0)
    return sdg_reader_lacks(r, "sums of slopes that are stated in another way");
  return sdg_reader_role(r, SDG_COMPOSITE_O, sdg_reader_other(product, d_o),
                         false);
}

// From the slope of the scores back to the product of DO and V: weights times
// (product - delta), times the scale, in any order.
static bool slopes_read(sdg_reader_t *r, slopes_t *s) {
  bool weighted = false, scaled = false;
  int at = s->score;
  const sdg_graph_node_t *node;
  while ((node = sdg_reader_pointwise(r, at, CUDNN_POINTWISE_MUL,
                                      SDG_READER_SCORE))) {
    int x = SDG_OPERAND(node, POINTWISE_XDESC);
    int b = SDG_OPERAND(node, POINTWISE_BDESC);
    int factor = sdg_reader_is_number(r, x) || x == s->power ? x : b;
    bool *is = factor == s->power ? &weighted : &scaled;
    if (factor != s->power && !sdg_reader_is_number(r, factor))
      return sdg_reader_lacks(r, "dropout");
    if (!sdg_reader_is_score(r, at) || *is)
      return sdg_reader_lacks(r, "slopes that are multiplied twice");
    *is = true;
    if (is == &scaled && factor != r->out->scale)
      return sdg_reader_lacks(r, "slopes with another scale than the scores");
    at = sdg_reader_other(node, factor);
  }
  node = sdg_reader_pointwise(r, at, CUDNN_POINTWISE_SUB, SDG_READER_SCORE);
  if (!node || !weighted || scaled != (r->out->scale >= 0) ||
      !sdg_reader_is_score(r, at))
    return sdg_reader_lacks(r, "slopes that are stated in another way");
  s->delta = SDG_OPERAND(node, POINTWISE_BDESC);
  at = SDG_OPERAND(node, POINTWISE_XDESC);
  node = sdg_reader_pointwise(r, at, CUDNN_POINTWISE_MUL, SDG_READER_SCORE);
  if (node) {
    int one = SDG_OPERAND(node, POINTWISE_BDESC);
    if (!sdg_reader_is_number(r, one))
      return sdg_reader_lacks(r, "dropout");
    if (!sdg_reader_is_score(r, at) ||
        !sdg_reader_number(r, one, &r->out->ones, r->out->one))
      return false;
    at = SDG_OPERAND(node, POINTWISE_XDESC);
  }
  s->weights = at;
  return true;
}

// ---- products --------------------------------------------------------------

// The products that a turned tensor is the first factor of: with `from` turned.
static const sdg_graph_node_t *product_of(sdg_reader_t *r, int from) {
  for (int n = 0; n < r->graph->node_count; n++) {
    const sdg_graph_node_t *node = &r->graph->node[n];
    int a = SDG_OPERAND(node, MATMUL_ADESC);
    if (is_matmul(node) && turned_from(r, a) == from && sdg_reader_turn(r, a))
      return sdg_reader_matmul(r, SDG_OPERAND(node, MATMUL_CDESC));
  }
  sdg_reader_lacks(r, "a product that gradients need is not there");
  return NULL;
}

// The product of slopes and turned keys.
static const sdg_graph_node_t *queries_find(sdg_reader_t *r) {
  for (int n = 0; n < r->graph->node_count; n++) {
    const sdg_graph_node_t *node = &r->graph->node[n];
    if (is_matmul(node) &&
        turned_from(r, SDG_OPERAND(node, MATMUL_BDESC)) >= 0 &&
        sdg_reader_turn(r, SDG_OPERAND(node, MATMUL_BDESC)))
      return sdg_reader_matmul(r, SDG_OPERAND(node, MATMUL_CDESC));
  }
  sdg_reader_lacks(r, "a product that gradients need is not there");
  return NULL;
}

// The exponentials of scores less STATS.
static int power_find(sdg_reader_t *r) {
  int found = -1;
  for (int n = 0; n < r->graph->node_count; n++)
    if (sdg_reader_has_mode(&r->graph->node[n], CUDNN_POINTWISE_EXP)) {
      if (found >= 0)
        return -1;
      found = SDG_OPERAND(&r->graph->node[n], POINTWISE_YDESC);
    }
  return found;
}

// Both factors of a product. `turned`: the second one is, too.
static bool factors_read(sdg_reader_t *r, const sdg_graph_node_t *product,
                         int a, int b, bool turned) {
  return (a < 0 ||
          sdg_reader_role(r, (sdg_composite_role_t)a,
                          SDG_OPERAND(product, MATMUL_ADESC), false)) &&
         sdg_reader_role(r, (sdg_composite_role_t)b,
                         SDG_OPERAND(product, MATMUL_BDESC), turned);
}

static bool overrides_read(sdg_reader_t *r, const sdg_graph_node_t *scores,
                           const sdg_graph_node_t *weights,
                           const sdg_graph_node_t *dq,
                           const sdg_graph_node_t *dk,
                           const sdg_graph_node_t *dv) {
  int q = r->out->tensor[SDG_COMPOSITE_LENGTH_Q],
      kv = r->out->tensor[SDG_COMPOSITE_LENGTH_KV];
  return sdg_reader_overrides(r, scores, q, kv, -1) &&
         sdg_reader_overrides(r, weights, q, kv, -1) &&
         sdg_reader_overrides(r, dq, q, -1, kv) &&
         sdg_reader_overrides(r, dk, kv, -1, q) &&
         sdg_reader_overrides(r, dv, kv, -1, q);
}

static bool types_fit(sdg_reader_t *r, const sdg_graph_node_t *dk,
                      const sdg_graph_node_t *dv,
                      const sdg_graph_node_t *weights) {
  const sdg_graph_tensor_t *tensor = r->graph->tensor;
  cudnnDataType_t type = tensor[r->out->tensor[SDG_COMPOSITE_Q]].type;
  int dq_sum = r->out->tensor[SDG_COMPOSITE_DQ_SUM];
  return (tensor[SDG_OPERAND(dk, MATMUL_ADESC)].type == type &&
          tensor[SDG_OPERAND(dv, MATMUL_ADESC)].type == type &&
          tensor[SDG_OPERAND(weights, MATMUL_CDESC)].type == CUDNN_DATA_FLOAT &&
          (dq_sum < 0 || tensor[dq_sum].type == CUDNN_DATA_FLOAT)) ||
         sdg_reader_lacks(r, "weights or slopes of another type");
}

bool sdg_reader_backward(sdg_reader_t *r) {
  slopes_t s = {power_find(r), -1, -1, -1};
  r->out->backward = true;
  if (s.power < 0 || r->graph->tensor[s.power].rank != 4)
    return sdg_reader_lacks(r, "gradients of another softmax");
  memcpy(r->scores, r->graph->tensor[s.power].dim, sizeof r->scores);
  memcpy(r->rows, r->scores, sizeof r->rows);
  r->rows[3] = 1;
  const sdg_graph_node_t *power =
      sdg_reader_pointwise(r, s.power, CUDNN_POINTWISE_EXP, SDG_READER_SCORE);
  const sdg_graph_node_t *scores =
      sdg_reader_scores(r, SDG_OPERAND(power, POINTWISE_XDESC), true);
  const sdg_graph_node_t *dq = scores ? queries_find(r) : NULL;
  s.score = SDG_OPERAND(dq, MATMUL_ADESC);
  if (!dq || !slopes_read(r, &s))
    return false;
  const sdg_graph_node_t *weights = sdg_reader_matmul(r, s.weights);
  const sdg_graph_node_t *dk = product_of(r, s.score);
  const sdg_graph_node_t *dv = product_of(r, s.power);
  if (!weights || !dk || !dv || !sdg_reader_is_score(r, s.weights))
    return sdg_reader_lacks(r, "gradients that are stated in another way");
  if (r->out->tensor[SDG_COMPOSITE_STATS] < 0)
    return sdg_reader_lacks(r, "gradients without statistics");
  int keys = turned_from(r, SDG_OPERAND(dq, MATMUL_BDESC));
  return factors_read(r, scores, SDG_COMPOSITE_Q, SDG_COMPOSITE_K, true) &&
         factors_read(r, weights, SDG_COMPOSITE_DO, SDG_COMPOSITE_V, true) &&
         factors_read(r, dk, -1, SDG_COMPOSITE_Q, false) &&
         factors_read(r, dv, -1, SDG_COMPOSITE_DO, false) &&
         sdg_reader_role(r, SDG_COMPOSITE_K, keys, true) &&
         delta_read(r, s.delta) &&
         overrides_read(r, scores, weights, dq, dk, dv) &&
         dq_read(r, SDG_OPERAND(dq, MATMUL_CDESC)) &&
         sums_read(r, SDG_OPERAND(dk, MATMUL_CDESC), SDG_COMPOSITE_DK,
                   SDG_COMPOSITE_DK_FULL) &&
         sums_read(r, SDG_OPERAND(dv, MATMUL_CDESC), SDG_COMPOSITE_DV,
                   SDG_COMPOSITE_DV_FULL) &&
         types_fit(r, dk, dv, weights);
}
