/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are computed as several nodes: pointwise operations,
 * reductions and products, between which there are virtual tensors. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_COMPOSITE_COMPOSITE_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_COMPOSITE_COMPOSITE_H

#include "src/graph/graph.h"

/* ---- for the computation ------------------------------------------------- */

typedef struct host_expansion host_expansion_t;

typedef struct {
  cudnnBackendDescriptorType_t kind;
  /* In which the nodes compute, and their virtual tensors have elements. */
  cudnnDataType_t type;
  /* The sentence for host_graph_lacks, or NULL. */
  const char *(*lacks)(const sdg_graph_t *graph, const sdg_graph_node_t *node);
  /* Adds the nodes that stand for this one. */
  void (*expand)(host_expansion_t *to, const sdg_graph_node_t *node);
} host_composite_t;

/* NULL for operations that are one node. */
const host_composite_t *host_composite(cudnnBackendDescriptorType_t kind);
bool host_has_composites(const sdg_graph_t *graph);
/* The graph without composites, and where its tensors are; the first ones are
 * those of `graph`. To be released and freed by the caller; false when memory
 * is short. */
bool host_expand(const sdg_graph_t *graph, void *const *data,
                 sdg_graph_t **out_graph, void ***out_data);

/* ---- for composites ------------------------------------------------------ */

extern const host_composite_t host_norm_forward, host_norm_backward,
    host_norm_weights, host_attention;

/* A tensor of the graph that is made, or where a result goes: NEW is a virtual
 * tensor of the composite's type. As an operand: there is none. */
enum { HOST_NEW = -1, HOST_NONE = -1 };

const sdg_graph_tensor_t *host_expansion_tensor(const host_expansion_t *to,
                                                int tensor);
/* A virtual tensor, packed. */
int host_expand_tensor(host_expansion_t *to, cudnnDataType_t type, int rank,
                       const int64_t *dim);
/* The memory of a tensor as one of other extents. */
int host_expand_view(host_expansion_t *to, int tensor, int rank,
                     const int64_t *dim, const int64_t *stride);
/* By value; `number` outlives the graph. Extents are 1. */
int host_expand_number(host_expansion_t *to, int rank, const float *number);

/* These return the tensor that is written. Extents of a new result are the
 * larger ones of a and b, which may be HOST_NONE. */
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
/* a where t is true, b elsewhere */
int host_expand_select(host_expansion_t *to, int a, int b, int t);
/* The index of each element of a along a dimension. */
void host_expand_index(host_expansion_t *to, int a, int axis, int result);
/* With the extents `dim` of a new result. */
int host_expand_reduction(host_expansion_t *to, cudnnReduceTensorOp_t op, int x,
                          const int64_t *dim, int result);
/* c = a b, of so many rows, columns and terms (tensors, or HOST_NONE). */
void host_expand_product(host_expansion_t *to, int a, int b, int c, int rows,
                         int columns, int terms);

#endif
