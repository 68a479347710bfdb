/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that make the parameters of a batch normalisation of sums over
 * channels (BN_FINALIZE), in the shard view. Every rank executes them on
 * numbers that all ranks have: nothing is split. But the sums may be of all
 * ranks' elements, and then the number of these belongs to them, in place of
 * the number of the rank's own, which the program knows. */
#ifndef SDG_RULES_GRAPH_STATISTICS_STATISTICS_H
#define SDG_RULES_GRAPH_STATISTICS_STATISTICS_H

#include "rules/graph/chain/call.h"

/* Whether a graph does this, and nothing else. */
static inline bool sdg_graph_statistics_is(const sdg_graph_t *graph) {
  return graph->node_count == 1 &&
         graph->tensor_count <= SDG_GRAPH_TENSORS_MAX &&
         graph->node[0].kind ==
             CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR;
}

/* NULL, or what keeps an execution from being right, for people. *out_all: the
 * count of its sums, which are of all ranks' elements; 0: the program's call is
 * right as it is. */
const char *sdg_graph_statistics_judge(const sdg_graph_execution_t *execution,
                                       int64_t *out_all);

/* Adds what it does to memory. */
void sdg_graph_statistics_access(const sdg_graph_execution_t *execution,
                                 sdg_memory_access_t *out);

/* Executes the program's plan with this count. Returns cuDNN's status. */
int sdg_graph_statistics_execute(const sdg_graph_execution_t *execution,
                                 cudnnHandle_t handle, int64_t all);

#endif
