/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of a graph as a call. */
#ifndef SDG_RULES_GRAPH_CHAIN_CALL_H
#define SDG_RULES_GRAPH_CHAIN_CALL_H

#include "rules/graph/chain/pattern.h"

/* What an execution uses; call->args points to one. */
typedef struct sdg_graph_execution {
  sdg_graph_pattern_t *pattern;
  cudnnBackendDescriptor_t plan, pack;
  uint64_t plan_generation; /* of the plan's descriptor; never used again */
  /* Of a plan that was read from JSON; NULL: its engine is asked for. */
  const sdg_graph_config_t *config;
  /* Of each tensor of the graph: device memory, or a by-value tensor's host
   * memory; NULL for others. */
  void *pointer[SDG_GRAPH_TENSORS_MAX];
  void *workspace;
  bool overrides; /* extents or strides other than the graph's */
} sdg_graph_execution_t;

/* Fills the call but for entry, entry_name's table row and memory. The graph
 * can be split (pattern->lacks is NULL). `execution` must live as long as the
 * call. SDG_E_NO_MEMORY. */
sdg_status_t sdg_graph_call_init(const sdg_graph_execution_t *execution,
                                 int entry, cudnnHandle_t handle,
                                 sdg_call_t *out) SDG_MUST_CHECK;

/* The execution behind a call. */
static inline const sdg_graph_execution_t *
sdg_graph_call_execution(const sdg_call_t *call) {
  return call->args;
}

#endif
