// SPDX-License-Identifier: Apache-2.0
// Which graphs an engine takes: as long as the host device models cuDNN 9.19 on
// an H100, those that have an engine there. What is not computed here yet is
// planned, and refused by its name when it is executed.
#include "src/host/cudnn/model/model.h"
#include "src/host/cudnn/plan/plan.h"

static bool is_conv(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         node->kind ==
             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         node->kind ==
             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
}

static bool is_sum(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR ||
         node->kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR;
}

static const sdg_graph_node_t *conv_of(const sdg_graph_t *graph) {
  for (int i = 0; i < graph->node_count; i++)
    if (is_conv(&graph->node[i]))
      return &graph->node[i];
  return NULL;
}

static bool one_convolution(const sdg_graph_t *graph) {
  int count = 0;
  for (int i = 0; i < graph->node_count; i++)
    count += is_conv(&graph->node[i]);
  return count <= 1;
}

static bool reads(const sdg_graph_node_t *node, int tensor) {
  for (int i = 0; i < node->operand_count; i++)
    if (node->operand[i].tensor == tensor &&
        !sdg_graph_writes(node, node->operand[i].name))
      return true;
  return false;
}

static bool sums_end_it(const sdg_graph_t *graph) {
  for (int i = 0; i < graph->node_count; i++) {
    const sdg_graph_node_t *node = &graph->node[i];
    for (int k = 0; is_sum(node) && k < node->operand_count; k++)
      for (int other = 0; other < graph->node_count; other++)
        if (sdg_graph_writes(node, node->operand[k].name) &&
            reads(&graph->node[other], node->operand[k].tensor))
          return false;
  }
  return true;
}

static const sdg_graph_node_t *statistics_of(const sdg_graph_t *graph) {
  for (int i = 0; i < graph->node_count; i++)
    if (graph->node[i].kind == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR)
      return &graph->node[i];
  return NULL;
}

static bool statistics_follow(const sdg_graph_t *graph) {
  return !statistics_of(graph) || conv_of(graph);
}

static bool paddings_equal(const sdg_graph_node_t *conv) {
  const sdg_graph_parameter_t *pre =
      sdg_graph_parameter(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const sdg_graph_parameter_t *post =
      sdg_graph_parameter(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  for (int d = 0; pre && post && d < pre->count && d < post->count; d++)
    if (pre->value[d].integer != post->value[d].integer)
      return false;
  return true;
}

static bool statistics_fit(const sdg_graph_t *graph) {
  const sdg_graph_node_t *conv = conv_of(graph);
  if (!statistics_of(graph) || !conv)
    return true;
  int w = sdg_graph_operand(conv, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
  // The input may be a virtual tensor of another type, behind scale and bias.
  return w >= 0 && graph->tensor[w].type == CUDNN_DATA_HALF &&
         graph->tensor[w].stride[1] == 1 && paddings_equal(conv);
}

typedef struct {
  bool (*holds)(const sdg_graph_t *graph);
  const char *text;
} rule_t;

static const rule_t rules[] = {
    {one_convolution, "at most one convolution in a graph"},
    {sums_end_it, "no operation that reads the result of a reduction or of "
                  "statistics in the same graph"},
    {statistics_follow, "statistics of a convolution's result only"},
    {statistics_fit, "statistics behind a forward convolution of halves in "
                     "NHWC with equal paddings on both sides only"},
};

const char *host_plan_refuses(const sdg_graph_t *graph) {
  bool is_hopper = host_model_is_hopper();
  for (size_t i = 0; i < sizeof rules / sizeof *rules && is_hopper; i++)
    if (!rules[i].holds(graph))
      return rules[i].text;
  return NULL;
}
