/* SPDX-License-Identifier: Apache-2.0 */
/* Attention that a graph states as one operation. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_ATTENTION_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_ATTENTION_H

#include "src/graph/graph.h"

static inline bool host_node_is_attention(const sdg_graph_node_t *node) {
  return node->kind == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
}

/* The sentence for host_graph_lacks, or NULL; of a node that is attention. */
const char *host_attention_lacks(const sdg_graph_t *graph,
                                 const sdg_graph_node_t *node);

/* A graph without such nodes, which computes the same. */
typedef struct {
  sdg_graph_t graph; /* its first tensors are those of the original */
  void **data;       /* of its tensors */
  bool *is_made;     /* by node: made here, not the original's */
} host_attention_graph_t;

/* False if memory is short; both outlive the expansion. */
bool host_attention_expand(const sdg_graph_t *graph, void *const *data,
                           host_attention_graph_t *out);
/* Also of one that could not be made. */
void host_attention_release(host_attention_graph_t *expansion);

#endif
