// SPDX-License-Identifier: Apache-2.0
// Which graphs are attention. All others are judged by the other rules.
#include "src/host/cudnn/plan/attention.h"

#include <stdlib.h>

#include "src/host/cudnn/plan/facts.h"

#define AT(name) CUDNN_ATTR_OPERATION_##name

// ---- nodes -----------------------------------------------------------------

static bool is_kind(const sdg_graph_node_t *node, int kind) {
  return node && (int)node->kind == kind;
}

static bool is_matmul(const sdg_graph_node_t *node) {
  return is_kind(node, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
}

static bool is_mode(const sdg_graph_node_t *node, cudnnPointwiseMode_t mode) {
  return node && host_node_is_pointwise(node) &&
         sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1) == mode;
}

// A reduction to one number of each row.
static bool is_of_rows(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                       cudnnReduceTensorOp_t op) {
  if (!node || !host_node_is_reduction(node) ||
      sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR, -1) != (int64_t)op)
    return false;
  const sdg_graph_tensor_t
      *x = &graph->tensor[sdg_graph_operand(node, AT(REDUCTION_XDESC))],
      *y = &graph->tensor[sdg_graph_operand(node, AT(REDUCTION_YDESC))];
  for (int d = 0; d < x->rank - 1; d++)
    if (x->dim[d] != y->dim[d])
      return false;
  return y->dim[y->rank - 1] == 1;
}

// The node that writes a tensor, or NULL.
static const sdg_graph_node_t *writer(const sdg_graph_t *graph, int tensor) {
  for (int n = 0; tensor >= 0 && n < graph->node_count; n++)
    for (int i = 0; i < graph->node[n].operand_count; i++)
      if (graph->node[n].operand[i].tensor == tensor &&
          sdg_graph_writes(&graph->node[n], graph->node[n].operand[i].name))
        return &graph->node[n];
  return NULL;
}

static const sdg_graph_node_t *writer_of(const sdg_graph_t *graph,
                                         const sdg_graph_node_t *node,
                                         cudnnBackendAttributeName_t name) {
  return node ? writer(graph, sdg_graph_operand(node, name)) : NULL;
}

static bool reads_marked(const sdg_graph_t *graph, const bool *mark,
                         const sdg_graph_node_t *node) {
  for (int i = 0; i < node->operand_count; i++) {
    const sdg_graph_node_t *from = writer(graph, node->operand[i].tensor);
    if (from && from != node && mark[from - graph->node])
      return true;
  }
  return false;
}

// Nodes are in topological order.
bool host_attention_comes_from(const sdg_graph_t *graph,
                               const sdg_graph_node_t *node,
                               const sdg_graph_node_t *from) {
  if (!node || !from || node < from)
    return false;
  bool *mark = calloc((size_t)graph->node_count, sizeof *mark);
  if (!mark)
    return false;
  mark[from - graph->node] = true;
  for (const sdg_graph_node_t *at = from + 1; at <= node; at++)
    mark[at - graph->node] = reads_marked(graph, mark, at);
  bool found = mark[node - graph->node];
  free(mark);
  return found;
}

static int count(const sdg_graph_t *graph, int kind) {
  int found = 0;
  for (int n = 0; n < graph->node_count; n++)
    found += is_kind(&graph->node[n], kind);
  return found;
}

const sdg_graph_node_t *host_attention_product(const sdg_graph_t *graph,
                                               int number) {
  for (int n = 0; n < graph->node_count; n++)
    if (is_matmul(&graph->node[n]) && number-- == 0)
      return &graph->node[n];
  return NULL;
}

const sdg_graph_node_t *host_attention_power(const sdg_graph_t *graph) {
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; is_mode(&graph->node[n], CUDNN_POINTWISE_EXP) &&
                    host_attention_product(graph, i);
         i++)
      if (host_attention_comes_from(graph, &graph->node[n],
                                    host_attention_product(graph, i)))
        return &graph->node[n];
  return NULL;
}

// ---- what is attention -----------------------------------------------------

// Of the weights of the second product: exponentials of what is left of the
// scores without the largest one, divided by their sum; then dropout may
// follow. `*out_sum` is what divides.
static bool is_softmax(const sdg_graph_t *graph,
                       const sdg_graph_node_t *weights,
                       const sdg_graph_node_t *scores,
                       const sdg_graph_node_t **out_sum,
                       const sdg_graph_node_t **out_most) {
  while (weights && !is_mode(weights, CUDNN_POINTWISE_DIV) &&
         host_node_is_pointwise(weights))
    weights = writer_of(graph, weights, AT(POINTWISE_XDESC));
  const sdg_graph_node_t *power =
                             writer_of(graph, weights, AT(POINTWISE_XDESC)),
                         *less = writer_of(graph, power, AT(POINTWISE_XDESC)),
                         *most, *sum;
  *out_most = most = writer_of(graph, less, AT(POINTWISE_BDESC));
  *out_sum = sum = writer_of(graph, weights, AT(POINTWISE_BDESC));
  // A sink joins both reductions as one more score.
  if (is_mode(most, CUDNN_POINTWISE_MAX))
    most = writer_of(graph, most, AT(POINTWISE_XDESC));
  if (is_mode(sum, CUDNN_POINTWISE_ADD))
    sum = writer_of(graph, sum, AT(POINTWISE_XDESC));
  return is_mode(weights, CUDNN_POINTWISE_DIV) &&
         is_mode(power, CUDNN_POINTWISE_EXP) &&
         is_mode(less, CUDNN_POINTWISE_SUB) &&
         is_of_rows(graph, most, CUDNN_REDUCE_TENSOR_MAX) &&
         is_of_rows(graph, sum, CUDNN_REDUCE_TENSOR_ADD) &&
         writer_of(graph, sum, AT(REDUCTION_XDESC)) == power &&
         writer_of(graph, most, AT(REDUCTION_XDESC)) ==
             writer_of(graph, less, AT(POINTWISE_XDESC)) &&
         host_attention_comes_from(graph, less, scores);
}

static bool is_in_memory(const sdg_graph_t *graph,
                         const sdg_graph_node_t *node) {
  const sdg_graph_tensor_t *result = host_node_result(graph, node);
  return result && !result->is_virtual;
}

// The logarithm of the sum, plus the largest score; or both in memory.
static bool has_statistics(const sdg_graph_t *graph,
                           const sdg_graph_node_t *sum,
                           const sdg_graph_node_t *most) {
  for (int n = 0; n < graph->node_count; n++) {
    const sdg_graph_node_t *node = &graph->node[n];
    const sdg_graph_node_t *x = writer_of(graph, node, AT(POINTWISE_XDESC)),
                           *b = writer_of(graph, node, AT(POINTWISE_BDESC));
    if (!is_mode(node, CUDNN_POINTWISE_ADD) || (x != most && b != most))
      continue;
    const sdg_graph_node_t *log = x == most ? b : x;
    if (is_mode(log, CUDNN_POINTWISE_LOG) &&
        writer_of(graph, log, AT(POINTWISE_XDESC)) == sum)
      return true;
  }
  return is_in_memory(graph, sum) && is_in_memory(graph, most);
}

static bool is_forward(const sdg_graph_t *graph) {
  const sdg_graph_node_t *scores = host_attention_product(graph, 0),
                         *end = host_attention_product(graph, 1);
  const sdg_graph_node_t *sum, *most;
  return count(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) == 2 &&
         is_softmax(graph, writer_of(graph, end, AT(MATMUL_ADESC)), scores,
                    &sum, &most) &&
         has_statistics(graph, sum, most);
}

// Weights from scores and statistics, without a reduction; and four more
// products: of these and the gradient of the result, and of slopes.
static bool is_backward(const sdg_graph_t *graph) {
  const sdg_graph_node_t *power = host_attention_power(graph);
  int products = 0;
  for (int i = 0; i < 5; i++)
    products += power && host_attention_comes_from(
                             graph, host_attention_product(graph, i), power);
  return count(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) == 5 &&
         count(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) == 3 &&
         products == 3;
}

host_attention_kind_t host_attention_kind(const sdg_graph_t *graph) {
  if (count(graph, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR) > 0)
    return HOST_ATTENTION_ONE;
  return is_forward(graph)    ? HOST_ATTENTION_FORWARD
         : is_backward(graph) ? HOST_ATTENTION_BACKWARD
                              : HOST_ATTENTION_NONE;
}
