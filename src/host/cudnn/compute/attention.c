// SPDX-License-Identifier: Apache-2.0
// Attention as one operation becomes the products, pointwise operations and
// reductions that cudnn-frontend states it by, with the same roundings.
#include "src/host/cudnn/compute/attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The most that one operation becomes.
enum { TENSORS = 20, NODES = 16, OPERANDS = 6, PARAMETERS = 2 };

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

// ---- what is computed ------------------------------------------------------

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

const char *host_attention_lacks(const sdg_graph_t *graph,
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

// ---- the expansion ---------------------------------------------------------

static int tensor_add(host_attention_graph_t *e,
                      const sdg_graph_tensor_t *tensor, void *data) {
  int index = e->graph.tensor_count++;
  e->graph.tensor[index] = *tensor;
  e->graph.tensor[index].uid = -1;
  e->data[index] = data;
  return index;
}

static int virtual_add(host_attention_graph_t *e, cudnnDataType_t type,
                       const int64_t dim[4]) {
  sdg_graph_tensor_t tensor = {.type = type,
                               .rank = 4,
                               .alignment = 16,
                               .vector_count = 1,
                               .vector_dimension = -1,
                               .reordering = CUDNN_TENSOR_REORDERING_NONE,
                               .is_virtual = true};
  int64_t stride = 1;
  for (int d = 3; d >= 0; d--) {
    tensor.dim[d] = dim[d];
    tensor.stride[d] = stride;
    stride *= dim[d];
  }
  return tensor_add(e, &tensor, NULL);
}

// Memory was made for all nodes.
static sdg_graph_node_t *node_add(host_attention_graph_t *e,
                                  cudnnBackendDescriptorType_t kind) {
  sdg_graph_node_t *node = &e->graph.node[e->graph.node_count];
  e->is_made[e->graph.node_count++] = true;
  node->kind = kind;
  node->operand = calloc(OPERANDS, sizeof *node->operand);
  node->parameter = calloc(PARAMETERS, sizeof *node->parameter);
  return node;
}

// Nothing if there is no tensor.
static void operand_add(sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name, int tensor) {
  if (node->operand && tensor >= 0)
    node->operand[node->operand_count++] = (sdg_graph_operand_t){name, tensor};
}

static void number_add(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t value) {
  if (node->parameter)
    node->parameter[node->parameter_count++] = (sdg_graph_parameter_t){
        .name = name, .type = type, .count = 1, .value = {{.integer = value}}};
}

static void pointwise_add(host_attention_graph_t *e, cudnnPointwiseMode_t mode,
                          int x, int b, int t, int y) {
  sdg_graph_node_t *node =
      node_add(e, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operand_add(node, AT(POINTWISE_XDESC), x);
  operand_add(node, AT(POINTWISE_BDESC), b);
  operand_add(node, AT(POINTWISE_TDESC), t);
  operand_add(node, AT(POINTWISE_YDESC), y);
  number_add(node, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
}

static void reduction_add(host_attention_graph_t *e, cudnnReduceTensorOp_t op,
                          int x, int y) {
  sdg_graph_node_t *node =
      node_add(e, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operand_add(node, AT(REDUCTION_XDESC), x);
  operand_add(node, AT(REDUCTION_YDESC), y);
  number_add(node, CUDNN_ATTR_REDUCTION_OPERATOR,
             CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
}

static void matmul_add(host_attention_graph_t *e, int a, int b, int c, int rows,
                       int columns, int depth) {
  sdg_graph_node_t *node =
      node_add(e, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operand_add(node, AT(MATMUL_ADESC), a);
  operand_add(node, AT(MATMUL_BDESC), b);
  operand_add(node, AT(MATMUL_CDESC), c);
  operand_add(node, AT(MATMUL_GEMM_M_OVERRIDE_DESC), rows);
  operand_add(node, AT(MATMUL_GEMM_N_OVERRIDE_DESC), columns);
  operand_add(node, AT(MATMUL_GEMM_K_OVERRIDE_DESC), depth);
}

// The keys as columns, in the same memory.
static int keys_turn(host_attention_graph_t *e, int k) {
  sdg_graph_tensor_t turned = e->graph.tensor[k];
  for (int d = 2; d < 4; d++) {
    turned.dim[d] = e->graph.tensor[k].dim[5 - d];
    turned.stride[d] = e->graph.tensor[k].stride[5 - d];
  }
  return tensor_add(e, &turned, e->data[k]);
}

// A number of any rank as one that goes with scores.
static int number_turn(host_attention_graph_t *e, int number) {
  sdg_graph_tensor_t turned = e->graph.tensor[number];
  turned.rank = 4;
  for (int d = 0; d < 4; d++)
    turned.dim[d] = turned.stride[d] = 1;
  return tensor_add(e, &turned, e->data[number]);
}

static int unlike_any_score(host_attention_graph_t *e) {
  static const float none = -INFINITY;
  int tensor = virtual_add(e, CUDNN_DATA_FLOAT, (const int64_t[]){1, 1, 1, 1});
  e->graph.tensor[tensor].is_virtual = false;
  e->graph.tensor[tensor].is_by_value = true;
  e->data[tensor] = (void *)(uintptr_t)&none;
  return tensor;
}

// Whether the index along an axis is less than the batch's length.
static int within_add(host_attention_graph_t *e, int scores, int axis,
                      int length) {
  const int64_t *dim = e->graph.tensor[scores].dim;
  int index = virtual_add(e, CUDNN_DATA_INT32, dim);
  int within = virtual_add(e, CUDNN_DATA_BOOLEAN, dim);
  pointwise_add(e, CUDNN_POINTWISE_GEN_INDEX, scores, -1, -1, index);
  number_add(&e->graph.node[e->graph.node_count - 1], CUDNN_ATTR_POINTWISE_AXIS,
             CUDNN_TYPE_INT64, axis);
  pointwise_add(e, CUDNN_POINTWISE_CMP_LT, index, length, -1, within);
  return within;
}

static int mask_add(host_attention_graph_t *e, const attention_t *a,
                    int scores) {
  int rows = a->rows < 0 ? -1 : within_add(e, scores, 2, a->rows);
  int columns = a->columns < 0 ? -1 : within_add(e, scores, 3, a->columns);
  const int64_t *dim = e->graph.tensor[scores].dim;
  int both = rows < 0 ? columns : rows;
  if (both < 0)
    return scores;
  if (rows >= 0 && columns >= 0) {
    both = virtual_add(e, CUDNN_DATA_BOOLEAN, dim);
    pointwise_add(e, CUDNN_POINTWISE_LOGICAL_AND, rows, columns, -1, both);
  }
  int masked = virtual_add(e, CUDNN_DATA_FLOAT, dim);
  pointwise_add(e, CUDNN_POINTWISE_BINARY_SELECT, scores, unlike_any_score(e),
                both, masked);
  return masked;
}

static void attention_add(host_attention_graph_t *e, const attention_t *a) {
  const sdg_graph_tensor_t *q = &e->graph.tensor[a->q];
  const int64_t dim[] = {q->dim[0], q->dim[1], q->dim[2],
                         e->graph.tensor[a->k].dim[2]},
                one[] = {q->dim[0], q->dim[1], q->dim[2], 1};
#define SCORES(type) virtual_add(e, (type), dim)
  int scores = SCORES(CUDNN_DATA_FLOAT), last = scores;
  matmul_add(e, a->q, keys_turn(e, a->k), scores, a->rows, a->columns, -1);
  if (a->scale >= 0) {
    last = SCORES(CUDNN_DATA_FLOAT);
    pointwise_add(e, CUDNN_POINTWISE_MUL, scores, number_turn(e, a->scale), -1,
                  last);
  }
  last = mask_add(e, a, last);
  int most = virtual_add(e, CUDNN_DATA_FLOAT, one);
  int less = SCORES(CUDNN_DATA_FLOAT), power = SCORES(CUDNN_DATA_FLOAT);
  int sum = virtual_add(e, CUDNN_DATA_FLOAT, one);
  reduction_add(e, CUDNN_REDUCE_TENSOR_MAX, last, most);
  pointwise_add(e, CUDNN_POINTWISE_SUB, last, most, -1, less);
  pointwise_add(e, CUDNN_POINTWISE_EXP, less, -1, -1, power);
  reduction_add(e, CUDNN_REDUCE_TENSOR_ADD, power, sum);
  if (a->stats >= 0) {
    int log = virtual_add(e, CUDNN_DATA_FLOAT, one);
    pointwise_add(e, CUDNN_POINTWISE_LOG, sum, -1, -1, log);
    pointwise_add(e, CUDNN_POINTWISE_ADD, most, log, -1, a->stats);
  }
  int weights = SCORES(q->type);
#undef SCORES
  pointwise_add(e, CUDNN_POINTWISE_DIV, power, sum, -1, weights);
  matmul_add(e, weights, a->v, a->o, a->rows, -1, a->columns);
}

bool host_attention_expand(const sdg_graph_t *graph, void *const *data,
                           host_attention_graph_t *out) {
  size_t tensors = (size_t)(graph->tensor_count + TENSORS * graph->node_count),
         nodes = (size_t)(graph->node_count * NODES);
  *out = (host_attention_graph_t){
      .graph = {.tensor_count = graph->tensor_count,
                .tensor = calloc(tensors, sizeof *out->graph.tensor),
                .node = calloc(nodes, sizeof *out->graph.node)},
      .data = calloc(tensors, sizeof *out->data),
      .is_made = calloc(nodes, sizeof *out->is_made)};
  if (!out->graph.tensor || !out->graph.node || !out->data || !out->is_made)
    return false;
  memcpy(out->graph.tensor, graph->tensor,
         (size_t)graph->tensor_count * sizeof *graph->tensor);
  memcpy(out->data, data, (size_t)graph->tensor_count * sizeof *data);
  for (int n = 0; n < graph->node_count; n++)
    if (host_node_is_attention(&graph->node[n])) {
      attention_t a = attention_of(&graph->node[n]);
      attention_add(out, &a);
    } else
      out->graph.node[out->graph.node_count++] = graph->node[n];
  for (int n = 0; n < out->graph.node_count; n++)
    if (out->is_made[n] &&
        (!out->graph.node[n].operand || !out->graph.node[n].parameter))
      return false;
  return true;
}

void host_attention_release(host_attention_graph_t *e) {
  for (int n = 0; e->is_made && n < e->graph.node_count; n++)
    if (e->is_made[n]) {
      free(e->graph.node[n].operand);
      free(e->graph.node[n].parameter);
    }
  free(e->graph.tensor);
  free(e->graph.node);
  free(e->data);
  free(e->is_made);
}
