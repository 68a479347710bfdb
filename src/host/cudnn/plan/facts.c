// SPDX-License-Identifier: Apache-2.0
// What the rules of the planner ask of an operation graph.
#include "src/host/cudnn/plan/facts.h"

#include <stdlib.h>
#include <string.h>

// ---- nodes -----------------------------------------------------------------

static host_conv_kind_t kind_of(const sdg_graph_node_t *node) {
  switch ((int)node->kind) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    return HOST_CONV_FORWARD;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    return HOST_CONV_DATA;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    return HOST_CONV_FILTER;
  }
  return HOST_CONV_NONE;
}

bool host_node_is_pointwise(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
}

bool host_node_is_reduction(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR;
}

bool host_node_is_statistics(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
}

bool host_node_is_pooling(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR ||
         node->kind == CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR;
}

bool host_node_reads(const sdg_graph_node_t *node, int tensor) {
  for (int i = 0; i < node->operand_count; i++)
    if (node->operand[i].tensor == tensor &&
        !sdg_graph_writes(node, node->operand[i].name))
      return true;
  return false;
}

static bool writes(const sdg_graph_node_t *node, int tensor) {
  for (int i = 0; i < node->operand_count; i++)
    if (node->operand[i].tensor == tensor &&
        sdg_graph_writes(node, node->operand[i].name))
      return true;
  return false;
}

const sdg_graph_tensor_t *host_node_result(const sdg_graph_t *graph,
                                           const sdg_graph_node_t *node) {
  for (int i = 0; i < node->operand_count; i++)
    if (sdg_graph_writes(node, node->operand[i].name))
      return &graph->tensor[node->operand[i].tensor];
  return NULL;
}

int host_facts_writer(const host_facts_t *facts, int tensor) {
  for (int n = 0; n < facts->graph->node_count; n++)
    if (writes(&facts->graph->node[n], tensor))
      return n;
  return -1;
}

// ---- the graph -------------------------------------------------------------

// x, w, y of each kind.
static const cudnnBackendAttributeName_t names[][3] = {
    [HOST_CONV_FORWARD] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    [HOST_CONV_DATA] = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [HOST_CONV_FILTER] = {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

static void conv_note(host_facts_t *f, const sdg_graph_node_t *node) {
  const sdg_graph_tensor_t **to[] = {&f->x, &f->w, &f->y};
  f->conv = node;
  f->kind = kind_of(node);
  for (int i = 0; i < 3; i++) {
    int tensor = sdg_graph_operand(node, names[f->kind][i]);
    *to[i] = tensor < 0 ? NULL : &f->graph->tensor[tensor];
    f->strange |= tensor < 0;
  }
  f->result = host_node_result(f->graph, node);
}

// Nodes are in topological order.
static void before_mark(host_facts_t *f) {
  const sdg_graph_t *graph = f->graph;
  for (int n = graph->node_count; n-- > 0;)
    for (int other = n + 1; other < graph->node_count; other++) {
      const sdg_graph_node_t *later = &graph->node[other];
      if (!f->before[other] && later != f->conv && later != f->product &&
          later != f->pair[1])
        continue;
      for (int i = 0; i < later->operand_count; i++)
        f->before[n] |= !sdg_graph_writes(later, later->operand[i].name) &&
                        writes(&graph->node[n], later->operand[i].tensor);
    }
}

bool host_facts_init(const sdg_graph_t *graph, host_facts_t *out) {
  *out = (host_facts_t){.graph = graph};
  out->before = calloc((size_t)graph->node_count, sizeof *out->before);
  if (!out->before)
    return false;
  int poolings = 0, products = 0, others = 0;
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    if (host_node_is_pooling(node)) {
      out->pool = node;
      poolings++;
    } else if (node->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      out->product = node;
      if (products < 2)
        out->pair[products] = node;
      products++;
    } else {
      others += !host_node_is_pointwise(node) && !host_node_is_reduction(node);
    }
    bool is_sum = host_node_is_reduction(node) || host_node_is_statistics(node);
    bool is_conv = kind_of(node) != HOST_CONV_NONE;
    out->sums += is_sum;
    out->convolutions += is_conv;
    out->strange |= !is_sum && !is_conv && !host_node_is_pointwise(node);
    if (is_conv && !out->conv)
      conv_note(out, node);
  }
  if (poolings != 1 || products + others > 0)
    out->pool = NULL;
  if (products != 1 || poolings + others > 0)
    out->product = NULL;
  bool several = products > 1 && poolings + others == 0;
  out->products = poolings + others > 0 ? 0 : products;
  if (!several)
    out->pair[0] = out->pair[1] = NULL;
  before_mark(out);
  return true;
}

void host_facts_fini(host_facts_t *facts) {
  free(facts->before);
}

int64_t host_facts_groups(const host_facts_t *f) {
  return f->w->dim[1] > 0 ? f->x->dim[1] / f->w->dim[1] : 1;
}

// ---- tensors ---------------------------------------------------------------

bool host_tensor_is_last(const sdg_graph_tensor_t *t) {
  return t->rank < 3 || t->stride[1] == 1;
}

bool host_tensor_is_packed(const sdg_graph_tensor_t *t) {
  int64_t stride = 1;
  int large = 0;
  bool packed = true;
  for (int i = t->rank; i-- > 0;) {
    int d = i == t->rank - 1 ? 1 : i == 0 ? 0 : i + 1;
    d = t->rank < 3 ? i : d;
    packed &= t->stride[d] == stride;
    stride *= t->dim[d];
    large += t->dim[d] > 1;
  }
  return packed || large < 2;
}

bool host_tensor_same(const sdg_graph_tensor_t *a,
                      const sdg_graph_tensor_t *b) {
  return a->rank == b->rank &&
         memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}
