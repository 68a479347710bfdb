/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are computed as several nodes: reductions and pointwise
 * operations on doubles, which exist as virtual tensors. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_COMPOSITE_COMPOSITE_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_COMPOSITE_COMPOSITE_H

#include "src/graph/graph.h"

/* ---- for the computation --------------------------------------------------
 */

typedef struct host_expansion host_expansion_t;

typedef struct {
  cudnnBackendDescriptorType_t kind;
  /* The sentence for host_graph_lacks, or NULL. */
  const char *(*lacks)(const sdg_graph_t *graph, const sdg_graph_node_t *node);
  /* Adds the nodes that stand for this one. */
  void (*expand)(host_expansion_t *to, const sdg_graph_node_t *node);
} host_composite_t;

/* NULL for operations that are one node. */
const host_composite_t *host_composite(cudnnBackendDescriptorType_t kind);
bool host_has_composites(const sdg_graph_t *graph);
/* The graph without composites. Its first tensors are those of `graph`, the
 * others are virtual. To be released by the caller; NULL when memory is short.
 */
sdg_graph_t *host_expand(const sdg_graph_t *graph);

/* ---- for composites -------------------------------------------------------
 */

extern const host_composite_t host_norm_forward, host_norm_backward,
    host_norm_weights;

/* A tensor of the graph that is made, or where a result goes: NEW is a virtual
 * tensor of doubles. */
enum { HOST_NEW = -1 };

const sdg_graph_tensor_t *host_expansion_tensor(const host_expansion_t *to,
                                                int tensor);
/* These return the tensor that is written. b: HOST_NEW if there is none.
 * Extents of a new result are the larger ones of both. */
int host_expand_pointwise(host_expansion_t *to, cudnnPointwiseMode_t mode,
                          int a, int b, int result);
static inline int host_expand_add(host_expansion_t *to, int a, int b) {
  return host_expand_pointwise(to, CUDNN_POINTWISE_ADD, a, b, HOST_NEW);
}
static inline int host_expand_subtract(host_expansion_t *to, int a, int b) {
  return host_expand_pointwise(to, CUDNN_POINTWISE_SUB, a, b, HOST_NEW);
}
static inline int host_expand_multiply(host_expansion_t *to, int a, int b) {
  return host_expand_pointwise(to, CUDNN_POINTWISE_MUL, a, b, HOST_NEW);
}
/* factor * a */
int host_expand_scaled(host_expansion_t *to, double factor, int a, int result);
/* With the extents `dim` of a new result. */
int host_expand_reduction(host_expansion_t *to, cudnnReduceTensorOp_t op, int x,
                          const int64_t *dim, int result);

#endif
