/* SPDX-License-Identifier: Apache-2.0 */
/* Makes tensors, ops and graphs of cuDNN's backend API from graphs that are
 * data. Inside rules/graph only. */
#ifndef SDG_RULES_GRAPH_NODES_H
#define SDG_RULES_GRAPH_NODES_H

#include "rules/graph/descriptors.h"
#include "rules/graph/piece.h"

/* Paddings other than the node's own, one per spatial dimension, and the
 * attribute that says how many of these there are. */
typedef struct sdg_graph_window {
  const int64_t *pre, *post;
  int spatial;
  cudnnBackendAttributeName_t spatial_name;
} sdg_graph_window_t;

/* A tensor of `shape`, with the host's memory if `tensor` has it. rank 0: that
 * of `tensor`. */
cudnnBackendDescriptor_t sdg_graph_tensor_make(sdg_graph_descriptors_t *maker,
                                               const sdg_graph_tensor_t *tensor,
                                               const sdg_graph_shape_t *shape,
                                               int rank, int64_t uid);
/* An op with the node's parameters; operand[i] stands for its operand i.
 * `window`: NULL for ops without one. */
cudnnBackendDescriptor_t sdg_graph_node_make(
    sdg_graph_descriptors_t *maker, const sdg_graph_node_t *node,
    const sdg_graph_window_t *window, const cudnnBackendDescriptor_t *operand);
/* The graph of these ops. */
cudnnBackendDescriptor_t sdg_graph_of_ops(sdg_graph_descriptors_t *maker,
                                          int64_t ops,
                                          const cudnnBackendDescriptor_t *op);

#endif
