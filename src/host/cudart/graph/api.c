// SPDX-License-Identifier: Apache-2.0
// cudaGraph*: makes and copies graphs, and lists their nodes and edges.
#include "src/host/cudart/graph/memory.h"

#include <stdlib.h>
#include <string.h>

cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!pGraph || flags != 0)
    return host_result(cudaErrorInvalidValue);
  cudaGraph_t made = host_graph_create();
  if (!made)
    return host_result(cudaErrorMemoryAllocation);
  *pGraph = made;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph || !host_graph_exists(graph))
    return host_result(cudaErrorInvalidValue);
  host_graph_destroy(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t *pGraphClone,
                           cudaGraph_t originalGraph) {
  if (!pGraphClone || !originalGraph)
    return host_result(cudaErrorInvalidValue);
  if (host_graph_has_memory(originalGraph))
    return host_result(cudaErrorNotSupported);
  cudaGraph_t copy = host_graph_copy(originalGraph);
  if (!copy)
    return host_result(cudaErrorMemoryAllocation);
  *pGraphClone = copy;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *pNode,
                                     cudaGraphNode_t originalNode,
                                     cudaGraph_t clonedGraph) {
  if (!pNode || !originalNode || !clonedGraph || !clonedGraph->origin)
    return host_result(cudaErrorInvalidValue);
  for (size_t i = 0; i < clonedGraph->count; i++)
    if (clonedGraph->nodes[i]->origin == originalNode) {
      *pNode = clonedGraph->nodes[i];
      return cudaSuccess;
    }
  return host_result(cudaErrorInvalidValue);
}

// ---- lists ----

// Returns `found` nodes as all these functions do: only their number if the
// array is NULL; unused elements of the array become NULL.
static cudaError_t list_give(cudaGraphNode_t const *list, size_t found,
                             cudaGraphNode_t *nodes, size_t *count) {
  for (size_t i = 0; nodes && i < *count; i++)
    nodes[i] = i < found ? list[i] : NULL;
  if (!nodes || *count > found)
    *count = found;
  return cudaSuccess;
}

static cudaError_t edges_plain(cudaGraphEdgeData *edges, size_t count) {
  if (edges)
    memset(edges, 0, count * sizeof *edges);
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes,
                              size_t *numNodes) {
  if (!graph || !numNodes)
    return host_result(cudaErrorInvalidValue);
  return list_give(graph->nodes, graph->count, nodes, numNodes);
}

// Lists the nodes that depend on `need` or, if that is NULL, the nodes without
// dependencies.
static cudaError_t select_give(cudaGraph_t graph, cudaGraphNode_t need,
                               cudaGraphNode_t *nodes, size_t *count) {
  cudaGraphNode_t *list = malloc((graph->count + 1) * sizeof(cudaGraphNode_t));
  size_t found = 0;
  if (!list)
    return host_result(cudaErrorMemoryAllocation);
  for (size_t i = 0; i < graph->count; i++) {
    cudaGraphNode_t node = graph->nodes[i];
    bool wanted = !need && node->need_count == 0;
    for (size_t k = 0; need && k < node->need_count; k++)
      wanted = wanted || node->needs[k] == need;
    if (wanted)
      list[found++] = node;
  }
  cudaError_t error = list_give(list, found, nodes, count);
  free(list);
  return error;
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph,
                                  cudaGraphNode_t *pRootNodes,
                                  size_t *pNumRootNodes) {
  if (!graph || !pNumRootNodes)
    return host_result(cudaErrorInvalidValue);
  return select_give(graph, NULL, pRootNodes, pNumRootNodes);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
                                         cudaGraphNode_t *pDependencies,
                                         cudaGraphEdgeData *edgeData,
                                         size_t *pNumDependencies) {
  if (!node || !pNumDependencies)
    return host_result(cudaErrorInvalidValue);
  edges_plain(pDependencies ? edgeData : NULL, *pNumDependencies);
  return list_give(node->needs, node->need_count, pDependencies,
                   pNumDependencies);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
                                           cudaGraphNode_t *pDependentNodes,
                                           cudaGraphEdgeData *edgeData,
                                           size_t *pNumDependentNodes) {
  if (!node || !pNumDependentNodes)
    return host_result(cudaErrorInvalidValue);
  edges_plain(pDependentNodes ? edgeData : NULL, *pNumDependentNodes);
  return select_give(node->graph, node, pDependentNodes, pNumDependentNodes);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
                              cudaGraphNode_t *to, cudaGraphEdgeData *edgeData,
                              size_t *numEdges) {
  if (!graph || !numEdges || (from == NULL) != (to == NULL))
    return host_result(cudaErrorInvalidValue);
  size_t found = 0, room = from ? *numEdges : 0;
  for (size_t i = 0; i < graph->count; i++)
    for (size_t k = 0; k < graph->nodes[i]->need_count; k++, found++)
      if (found < room) {
        from[found] = graph->nodes[i]->needs[k];
        to[found] = graph->nodes[i];
      }
  for (size_t i = found; i < room; i++)
    from[i] = to[i] = NULL;
  edges_plain(room ? edgeData : NULL, room);
  if (!from || room > found)
    *numEdges = found;
  return cudaSuccess;
}

// ---- edges ----

static bool edges_known(const cudaGraphEdgeData *edges, size_t count) {
  static const cudaGraphEdgeData plain;
  for (size_t i = 0; edges && i < count; i++)
    if (memcmp(&edges[i], &plain, sizeof plain) != 0)
      return false;
  return true;
}

static cudaError_t edges_check(cudaGraph_t graph, const cudaGraphNode_t *from,
                               const cudaGraphNode_t *to,
                               const cudaGraphEdgeData *edges, size_t count) {
  if (!graph || (count > 0 && (!from || !to)))
    return host_result(cudaErrorInvalidValue);
  return edges_known(edges, count) ? cudaSuccess
                                   : host_result(cudaErrorNotSupported);
}

static size_t need_find(const struct CUgraphNode_st *node,
                        cudaGraphNode_t need) {
  size_t i = 0;
  while (i < node->need_count && node->needs[i] != need)
    i++;
  return i;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph,
                                     const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to,
                                     const cudaGraphEdgeData *edgeData,
                                     size_t numDependencies) {
  cudaError_t error = edges_check(graph, from, to, edgeData, numDependencies);
  if (error)
    return error;
  for (size_t i = 0; i < numDependencies; i++) {
    if (!from[i] || !to[i] || from[i]->graph != graph ||
        to[i]->graph != graph || from[i] == to[i] ||
        need_find(to[i], from[i]) < to[i]->need_count)
      return host_result(cudaErrorInvalidValue);
    if (!host_node_add_need(to[i], from[i]))
      return host_result(cudaErrorMemoryAllocation);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph,
                                        const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to,
                                        const cudaGraphEdgeData *edgeData,
                                        size_t numDependencies) {
  cudaError_t error = edges_check(graph, from, to, edgeData, numDependencies);
  if (error)
    return error;
  for (size_t i = 0; i < numDependencies; i++) {
    if (!from[i] || !to[i] || to[i]->graph != graph)
      return host_result(cudaErrorInvalidValue);
    size_t at = need_find(to[i], from[i]);
    if (at == to[i]->need_count)
      return host_result(cudaErrorInvalidValue);
    if (host_node_has_memory(from[i]) || host_node_has_memory(to[i]))
      return host_result(cudaErrorNotSupported);
    to[i]->needs[at] = to[i]->needs[--to[i]->need_count];
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  if (!node)
    return host_result(cudaErrorInvalidValue);
  if (host_node_has_memory(node))
    return host_result(cudaErrorNotSupported);
  cudaGraph_t graph = node->graph;
  size_t at = host_node_index(node);
  memmove(&graph->nodes[at], &graph->nodes[at + 1],
          (--graph->count - at) * sizeof graph->nodes[0]);
  for (size_t i = 0; i < graph->count; i++) {
    cudaGraphNode_t other = graph->nodes[i];
    size_t k = need_find(other, node);
    if (k < other->need_count)
      other->needs[k] = other->needs[--other->need_count];
  }
  host_deed_drop(&node->deed);
  free(node->needs);
  free(node);
  return cudaSuccess;
}
