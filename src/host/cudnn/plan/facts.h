/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of the planner ask of an operation graph. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_FACTS_H
#define SDG_SRC_HOST_CUDNN_PLAN_FACTS_H

#include "src/graph/graph.h"

typedef enum {
  HOST_CONV_NONE,
  HOST_CONV_FORWARD,
  HOST_CONV_DATA,
  HOST_CONV_FILTER
} host_conv_kind_t;

/* Of a graph with at most one convolution. x, w and y stand for their
 * gradients, too. */
typedef struct {
  const sdg_graph_t *graph;
  int convolutions;
  const sdg_graph_node_t *conv; /* the first one, or NULL */
  host_conv_kind_t kind;
  const sdg_graph_tensor_t *x, *w, *y; /* NULL without a convolution */
  const sdg_graph_tensor_t *result;    /* x, w or y; NULL */
  int sums;                            /* reductions and statistics */
  const sdg_graph_node_t *pool; /* the only one of its kind, or NULL; without a
                                   convolution or operations of other kinds */
  const sdg_graph_node_t *product; /* of matrices: likewise */
  int products; /* of matrices; 0 beside operations of other kinds */
  const sdg_graph_node_t *pair[2]; /* the first two of several */
  bool strange; /* has operations of other kinds, whose engines are not known */
  bool *before; /* of each node: the convolution, the product or the second one
                   of a pair needs it; owned */
} host_facts_t;

/* False if memory is short. */
bool host_facts_init(const sdg_graph_t *graph, host_facts_t *out);
void host_facts_fini(host_facts_t *facts);

bool host_node_is_pointwise(const sdg_graph_node_t *node);
bool host_node_is_reduction(const sdg_graph_node_t *node);
bool host_node_is_statistics(const sdg_graph_node_t *node);
bool host_node_is_pooling(const sdg_graph_node_t *node);

/* The tensor that a node writes first. */
const sdg_graph_tensor_t *host_node_result(const sdg_graph_t *graph,
                                           const sdg_graph_node_t *node);
/* The node that writes a tensor, or -1. */
int host_facts_writer(const host_facts_t *facts, int tensor);
/* Whether a node reads the tensor. */
bool host_node_reads(const sdg_graph_node_t *node, int tensor);

int64_t host_facts_groups(const host_facts_t *facts);
/* Dimension 1 is the innermost one. */
bool host_tensor_is_last(const sdg_graph_tensor_t *tensor);
/* No room between elements, dimension 1 innermost; strides of extents of 1 are
 * like those of others, but where one extent at most is not 1. */
bool host_tensor_is_packed(const sdg_graph_tensor_t *tensor);
/* Equal extents. */
bool host_tensor_same(const sdg_graph_tensor_t *a, const sdg_graph_tensor_t *b);

#endif
