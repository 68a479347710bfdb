/* SPDX-License-Identifier: Apache-2.0 */
/* A normalisation, or its gradient, as the main op of a graph. Inside
 * rules/graph only. */
#ifndef SDG_RULES_GRAPH_CHAIN_NORM_H
#define SDG_RULES_GRAPH_CHAIN_NORM_H

#include "src/base/status.h"
#include "src/call/call.h"
#include "src/graph/graph.h"

typedef struct sdg_graph_norm_kind {
  cudnnBackendNormMode_t mode;
  bool backward;
  bool computes; /* statistics of x: it does not read them */
} sdg_graph_norm_kind_t;

/* `node` is a norm. */
sdg_graph_norm_kind_t sdg_graph_norm_kind(const sdg_graph_node_t *node);
/* NULL, or what it has that cannot be split, for people. */
const char *sdg_graph_norm_read(const sdg_graph_node_t *node);
/* What tensor `t` is to it; false: no operand of it. */
bool sdg_graph_norm_role(const sdg_graph_node_t *node, int t, sdg_role_t *out);
/* The tensor in a role; -1: none. Running statistics: `out` says which. */
int sdg_graph_norm_tensor(const sdg_graph_node_t *node, sdg_role_t role,
                          bool out);
/* The tensor of one number by value: epsilon, or the factor of running
 * statistics; -1: none. */
int sdg_graph_norm_epsilon(const sdg_graph_node_t *node);
int sdg_graph_norm_factor(const sdg_graph_node_t *node);

#endif
