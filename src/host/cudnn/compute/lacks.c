// SPDX-License-Identifier: Apache-2.0
// Says what a graph has that cannot be computed.
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/composite/composite.h"
#include "src/host/cudnn/compute/run.h"

static const char *tensor_lacks(const sdg_graph_tensor_t *tensor) {
  if (tensor->vector_count > 1)
    return "a tensor of vectors of channels";
  if (tensor->is_ragged)
    return "a ragged tensor";
  if (tensor->reordering != CUDNN_TENSOR_REORDERING_NONE)
    return "a reordered tensor";
  if (!host_element_bytes(tensor->type))
    return "a tensor of this type";
  return NULL;
}

#define OPERATION(name)                                                        \
  case CUDNN_BACKEND_OPERATION_##name##_DESCRIPTOR:                            \
    return "operation " #name

static const char *kind_name(cudnnBackendDescriptorType_t kind) {
  switch ((int)kind) {
    OPERATION(SIGNAL);
    OPERATION(RNG);
    OPERATION(PAGED_CACHE_LOAD);
    OPERATION(BLOCK_SCALE_QUANTIZE);
    OPERATION(BLOCK_SCALE_DEQUANTIZE);
    OPERATION(EXPAND_BAND_MATRIX);
    OPERATION(CONTRACT_BAND_MATRIX);
    OPERATION(SDPA_BWD);
    OPERATION(MOE_GROUPED_MATMUL);
  }
  return "an operation of an unknown kind";
}

static const char *node_lacks(const sdg_graph_t *graph,
                              const sdg_graph_node_t *node) {
  const host_node_kind_t *kind = host_node_kind(node->kind);
  const host_composite_t *composite = host_composite(node->kind);
  if (kind)
    return kind->lacks(graph, node);
  return composite ? composite->lacks(graph, node) : kind_name(node->kind);
}

const char *host_graph_lacks(const sdg_graph_t *graph) {
  for (int n = 0; n < graph->node_count; n++) {
    const char *lacks = node_lacks(graph, &graph->node[n]);
    if (lacks)
      return lacks;
  }
  for (int t = 0; t < graph->tensor_count; t++) {
    const char *lacks = tensor_lacks(&graph->tensor[t]);
    if (lacks)
      return lacks;
  }
  return NULL;
}
