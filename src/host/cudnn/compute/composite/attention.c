// SPDX-License-Identifier: Apache-2.0
// Attention as one operation becomes the products, pointwise operations and
// reductions that cudnn-frontend states it by, with the same roundings.
#include <math.h>

#include "src/host/cudnn/compute/composite/composite.h"

#define AT(name) CUDNN_ATTR_OPERATION_##name

typedef struct {
  int q, k, v, o, stats, scale, rows, columns; // tensors; -1: none
} attention_t;

static attention_t attention_of(const sdg_graph_node_t *node) {
  return (attention_t){
      .q = sdg_graph_operand(node, AT(SDPA_FWD_QDESC)),
      .k = sdg_graph_operand(node, AT(SDPA_FWD_KDESC)),
      .v = sdg_graph_operand(node, AT(SDPA_FWD_VDESC)),
      .o = sdg_graph_operand(node, AT(SDPA_FWD_ODESC)),
      .stats = sdg_graph_operand(node, AT(SDPA_FWD_STATSDESC)),
      .scale = sdg_graph_operand(node, AT(SDPA_FWD_SCALEDESC)),
      .rows = sdg_graph_operand(node, AT(SDPA_FWD_SEQ_LEN_QDESC)),
      .columns = sdg_graph_operand(node, AT(SDPA_FWD_SEQ_LEN_KVDESC))};
}

// ---- what is not computed
// ------------------------------------------------------

static bool has_extents(const sdg_graph_tensor_t *t, int64_t b, int64_t h,
                        int64_t s, int64_t d) {
  return t->rank == 4 && t->dim[0] == b && t->dim[1] == h && t->dim[2] == s &&
         t->dim[3] == d;
}

static bool is_one(const sdg_graph_tensor_t *t) {
  for (int d = 0; d < t->rank; d++)
    if (t->dim[d] != 1)
      return false;
  return true;
}

static bool extents_fit(const sdg_graph_t *graph, const attention_t *a) {
  const sdg_graph_tensor_t *t = graph->tensor;
  const sdg_graph_tensor_t *q = &t[a->q], *k = &t[a->k], *v = &t[a->v];
  if (q->rank != 4 || k->rank != 4 || v->rank != 4 || k->dim[1] < 1 ||
      v->dim[1] < 1)
    return false;
  int64_t b = q->dim[0], h = q->dim[1], s = q->dim[2];
  return h % k->dim[1] == 0 && h % v->dim[1] == 0 &&
         has_extents(k, b, k->dim[1], k->dim[2], q->dim[3]) &&
         has_extents(v, b, v->dim[1], k->dim[2], v->dim[3]) &&
         has_extents(&t[a->o], b, h, s, v->dim[3]) &&
         (a->stats < 0 || has_extents(&t[a->stats], b, h, s, 1)) &&
         (a->scale < 0 || is_one(&t[a->scale])) &&
         (a->rows < 0 || has_extents(&t[a->rows], b, 1, 1, 1)) &&
         (a->columns < 0 || has_extents(&t[a->columns], b, 1, 1, 1));
}

static bool is_written(const sdg_graph_t *graph, int tensor) {
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->node[n].operand_count; i++)
      if (graph->node[n].operand[i].tensor == tensor &&
          sdg_graph_writes(&graph->node[n], graph->node[n].operand[i].name))
        return true;
  return false;
}

static const char *lacks(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  attention_t a = attention_of(node);
  if (sdg_graph_operand(node, AT(SDPA_FWD_BLOCK_MASK_DESC)) >= 0)
    return "attention with a mask of blocks";
  if (sdg_graph_operand(node, AT(SDPA_FWD_PAGE_TABLE_KDESC)) >= 0 ||
      sdg_graph_operand(node, AT(SDPA_FWD_PAGE_TABLE_VDESC)) >= 0)
    return "attention on paged keys or values";
  if (a.q < 0 || a.k < 0 || a.v < 0 || a.o < 0)
    return "attention without one of its tensors";
  if (is_written(graph, a.k) || (a.scale >= 0 && is_written(graph, a.scale)))
    return "attention on keys or a scale that the same graph computes";
  if (!extents_fit(graph, &a))
    return "attention on tensors whose extents do not fit";
  return NULL;
}

// ---- the nodes -------------------------------------------------------------

// The keys as columns, in the same memory.
static int keys_turn(host_expansion_t *to, int keys) {
  const sdg_graph_tensor_t *k = host_expansion_tensor(to, keys);
  const int64_t dim[] = {k->dim[0], k->dim[1], k->dim[3], k->dim[2]};
  const int64_t stride[] = {k->stride[0], k->stride[1], k->stride[3],
                            k->stride[2]};
  return host_expand_view(to, keys, 4, dim, stride);
}

// Whether the index along an axis is less than the batch's length.
static int within_expand(host_expansion_t *to, int scores, int axis,
                         int length) {
  const int64_t *dim = host_expansion_tensor(to, scores)->dim;
  if (length < 0)
    return HOST_NONE;
  int index = host_expand_tensor(to, CUDNN_DATA_INT32, 4, dim);
  int within = host_expand_tensor(to, CUDNN_DATA_BOOLEAN, 4, dim);
  host_expand_index(to, scores, axis, index);
  return host_expand_pointwise(to, CUDNN_POINTWISE_CMP_LT, index, length,
                               within);
}

static int mask_expand(host_expansion_t *to, const attention_t *a, int scores) {
  static const float unlike_any_score = -INFINITY;
  int rows = within_expand(to, scores, 2, a->rows);
  int columns = within_expand(to, scores, 3, a->columns);
  int both = rows < 0 ? columns : rows;
  if (both < 0)
    return scores;
  if (rows >= 0 && columns >= 0)
    both = host_expand_pointwise(
        to, CUDNN_POINTWISE_LOGICAL_AND, rows, columns,
        host_expand_tensor(to, CUDNN_DATA_BOOLEAN, 4,
                           host_expansion_tensor(to, scores)->dim));
  return host_expand_select(to, scores,
                            host_expand_number(to, 4, &unlike_any_score), both);
}

static void expand(host_expansion_t *to, const sdg_graph_node_t *node) {
  static const int64_t ones[] = {1, 1, 1, 1};
  attention_t a = attention_of(node);
  const sdg_graph_tensor_t *q = host_expansion_tensor(to, a.q);
  const int64_t dim[] = {q->dim[0], q->dim[1], q->dim[2],
                         host_expansion_tensor(to, a.k)->dim[2]},
                one[] = {q->dim[0], q->dim[1], q->dim[2], 1};
  int scores = host_expand_tensor(to, CUDNN_DATA_FLOAT, 4, dim);
  host_expand_product(to, a.q, keys_turn(to, a.k), scores, a.rows, a.columns,
                      HOST_NONE);
  if (a.scale >= 0) // a number of any rank
    scores = host_expand_multiply(to, scores,
                                  host_expand_view(to, a.scale, 4, ones, ones));
  scores = mask_expand(to, &a, scores);
  int most =
      host_expand_reduction(to, CUDNN_REDUCE_TENSOR_MAX, scores, one, HOST_NEW);
  int power = host_expand_pointwise(to, CUDNN_POINTWISE_EXP,
                                    host_expand_subtract(to, scores, most),
                                    HOST_NONE, HOST_NEW);
  int sum =
      host_expand_reduction(to, CUDNN_REDUCE_TENSOR_ADD, power, one, HOST_NEW);
  if (a.stats >= 0)
    host_expand_pointwise(to, CUDNN_POINTWISE_ADD, most,
                          host_expand_pointwise(to, CUDNN_POINTWISE_LOG, sum,
                                                HOST_NONE, HOST_NEW),
                          a.stats);
  int weights = host_expand_tensor(to, q->type, 4, dim);
  host_expand_pointwise(to, CUDNN_POINTWISE_DIV, power, sum, weights);
  host_expand_product(to, weights, a.v, a.o, a.rows, HOST_NONE, a.columns);
}

const host_composite_t host_attention = {
    .kind = CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
    .type = CUDNN_DATA_FLOAT,
    .lacks = lacks,
    .expand = expand};
