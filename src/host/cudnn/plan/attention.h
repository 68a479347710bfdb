/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of attention, which alone may use the result of a reduction, or of a
 * product of matrices, in another one. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_ATTENTION_H
#define SDG_SRC_HOST_CUDNN_PLAN_ATTENTION_H

#include "src/graph/graph.h"

typedef enum {
  HOST_ATTENTION_NONE,
  HOST_ATTENTION_ONE,      /* one operation */
  HOST_ATTENTION_FORWARD,  /* products, pointwise operations, reductions */
  HOST_ATTENTION_BACKWARD, /* and their gradients */
} host_attention_kind_t;

host_attention_kind_t host_attention_kind(const sdg_graph_t *graph);

/* The product of matrices of this number, from 0; NULL: there are fewer. */
const sdg_graph_node_t *host_attention_product(const sdg_graph_t *graph,
                                               int number);

/* The exponentials of scores, or NULL. */
const sdg_graph_node_t *host_attention_power(const sdg_graph_t *graph);

/* Whether a node computes from another one, perhaps by others between; false
 * also if memory is short. NULL is allowed. */
bool host_attention_comes_from(const sdg_graph_t *graph,
                               const sdg_graph_node_t *node,
                               const sdg_graph_node_t *from);

/* NULL if an engine takes the attention; else the rule that it breaks, a
 * sentence for the log. */
const char *host_attention_refuses(const sdg_graph_t *graph,
                                   host_attention_kind_t kind);

#endif
