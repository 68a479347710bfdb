// SPDX-License-Identifier: Apache-2.0
// The order of an operation graph's nodes.
#include "src/graph/graph.h"

#include <stdlib.h>

// Whether a node that was not placed yet writes something that `node` reads.
static bool waits(const sdg_graph_t *graph, const sdg_graph_node_t *node,
                  const bool *placed, const int *writer) {
  for (int i = 0; i < node->operand_count; i++) {
    int from = writer[node->operand[i].tensor];
    if (sdg_graph_writes(node, node->operand[i].name) || from < 0)
      continue;
    // An op may work in place.
    if (!placed[from] && &graph->node[from] != node)
      return true;
  }
  return false;
}

static bool sort(sdg_graph_t *graph, sdg_graph_node_t *sorted, bool *placed,
                 int *writer) {
  for (int t = 0; t < graph->tensor_count; t++)
    writer[t] = -1;
  for (int n = 0; n < graph->node_count; n++)
    for (int i = 0; i < graph->node[n].operand_count; i++)
      if (sdg_graph_writes(&graph->node[n], graph->node[n].operand[i].name))
        writer[graph->node[n].operand[i].tensor] = n;
  for (int done = 0; done < graph->node_count; done++) {
    int next = 0;
    while (next < graph->node_count &&
           (placed[next] || waits(graph, &graph->node[next], placed, writer)))
      next++;
    if (next == graph->node_count)
      return false;
    placed[next] = true;
    sorted[done] = graph->node[next];
  }
  for (int n = 0; n < graph->node_count; n++)
    graph->node[n] = sorted[n];
  return true;
}

bool sdg_graph_sort(sdg_graph_t *graph) {
  size_t nodes = (size_t)graph->node_count;
  size_t tensors = (size_t)graph->tensor_count;
  sdg_graph_node_t *sorted = calloc(nodes + 1, sizeof *sorted);
  bool *placed = calloc(nodes + 1, sizeof *placed);
  int *writer = calloc(tensors + 1, sizeof *writer);
  bool good = sorted && placed && writer && sort(graph, sorted, placed, writer);
  free(sorted);
  free(placed);
  free(writer);
  return good;
}
