// SPDX-License-Identifier: Apache-2.0
// Executable graphs: copies of graphs that are launched and updated.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/graph/memory.h"

#include <stdlib.h>

struct CUgraphExec_st {
  cudaGraph_t graph; // its nodes' origins are nodes of the program's graph
  unsigned long long flags;
  host_point_t
      last; // the end of the last launch, because launches do not overlap
};

static pthread_mutex_t launch_lock = PTHREAD_MUTEX_INITIALIZER;

static const unsigned long long known_flags =
    cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
    cudaGraphInstantiateFlagUseNodePriority;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *pGraphExec, cudaGraph_t graph,
                                 unsigned long long flags) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!pGraphExec || !graph)
    return host_result(cudaErrorInvalidValue);
  if ((flags & ~known_flags) != 0)
    return host_result(flags & cudaGraphInstantiateFlagDeviceLaunch
                           ? cudaErrorNotSupported
                           : cudaErrorInvalidValue);
  cudaGraphNode_t *order = malloc((graph->count + 1) * sizeof(cudaGraphNode_t));
  bool sorted = order && host_graph_sort(graph, order);
  free(order);
  if (!sorted)
    return host_result(cudaErrorInvalidValue);
  error = host_graph_memory_instance(graph);
  if (error)
    return host_result(error);
  cudaGraphExec_t made = calloc(1, sizeof *made);
  if (made)
    made->graph = host_graph_copy(graph);
  if (!made || !made->graph) {
    host_graph_memory_uninstance(graph);
    free(made);
    return host_result(cudaErrorMemoryAllocation);
  }
  made->flags = flags;
  *pGraphExec = made;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *pGraphExec,
                                          cudaGraph_t graph,
                                          unsigned long long flags) {
  return cudaGraphInstantiate(pGraphExec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec,
                                           cudaGraph_t graph,
                                           cudaGraphInstantiateParams *params) {
  if (!params)
    return host_result(cudaErrorInvalidValue);
  cudaError_t error = cudaGraphInstantiate(pGraphExec, graph, params->flags);
  params->errNode_out = NULL;
  params->result_out = !error  ? cudaGraphInstantiateSuccess
                       : graph ? cudaGraphInstantiateInvalidStructure
                               : cudaGraphInstantiateError;
  return error;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec) {
  if (!graphExec)
    return host_result(cudaErrorInvalidValue);
  // Queued work holds its own references.
  host_graph_memory_uninstance(graphExec->graph);
  host_graph_destroy(graphExec->graph);
  free(graphExec);
  return cudaSuccess;
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec,
                                  unsigned long long *flags) {
  if (!graphExec || !flags)
    return host_result(cudaErrorInvalidValue);
  *flags = graphExec->flags;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!host_stream_get(stream))
    return host_result(cudaErrorInvalidResourceHandle);
  return host_result(graphExec ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_stream_t *found = host_stream_get(stream);
  if (!graphExec || !found)
    return host_result(graphExec ? cudaErrorInvalidResourceHandle
                                 : cudaErrorInvalidValue);
  if (host_captured(found))
    return host_result(host_capture_add(
        found, (host_deed_t){.type = cudaGraphNodeTypeGraph,
                             .child = host_graph_copy(graphExec->graph)}));
  host_stream_throttle(found);
  // A communicator's work is numbered in the order of launches.
  pthread_mutex_lock(&launch_lock);
  bool frees =
      (graphExec->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch) != 0;
  error = host_graph_memory_launch(graphExec->graph, frees);
  if (error == cudaSuccess)
    error = host_stream_join(found, graphExec->last);
  if (error == cudaSuccess)
    error = host_graph_push(graphExec->graph, found);
  if (error == cudaSuccess)
    error = host_kept_launch(graphExec->graph, found);
  if (error == cudaSuccess)
    error = host_stream_end(found, &graphExec->last);
  pthread_mutex_unlock(&launch_lock);
  return host_result(error);
}

// ---- updating ----

static cudaGraphNode_t copy_find(cudaGraph_t graph, cudaGraphNode_t origin) {
  cudaGraphNode_t found = NULL;
  for (size_t i = 0; !found && i < graph->count; i++) {
    cudaGraphNode_t node = graph->nodes[i];
    if (node->origin == origin)
      found = node;
    else if (node->deed.type == cudaGraphNodeTypeGraph)
      found = copy_find(node->deed.child, origin);
  }
  return found;
}

cudaGraphNode_t host_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node) {
  return exec && node ? copy_find(exec->graph, node) : NULL;
}

// The first node of `with` whose counterpart in `graph` has another kind.
static enum cudaGraphExecUpdateResult
compare(cudaGraph_t graph, cudaGraph_t with, cudaGraphNode_t *out_node) {
  *out_node = NULL;
  if (host_graph_has_memory(graph) || host_graph_has_memory(with))
    return cudaGraphExecUpdateErrorNotSupported;
  if (graph->count != with->count)
    return cudaGraphExecUpdateErrorTopologyChanged;
  for (size_t i = 0; i < graph->count; i++)
    graph->nodes[i]->mark = with->nodes[i]->mark = i;
  for (size_t i = 0; i < graph->count; i++) {
    const struct CUgraphNode_st *a = graph->nodes[i], *b = with->nodes[i];
    *out_node = with->nodes[i];
    if (a->deed.type != b->deed.type)
      return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (a->need_count != b->need_count)
      return cudaGraphExecUpdateErrorTopologyChanged;
    for (size_t k = 0; k < a->need_count; k++)
      if (a->needs[k]->mark != b->needs[k]->mark)
        return cudaGraphExecUpdateErrorTopologyChanged;
    cudaGraphNode_t inner;
    if (a->deed.type == cudaGraphNodeTypeGraph &&
        compare(a->deed.child, b->deed.child, &inner) !=
            cudaGraphExecUpdateSuccess)
      return cudaGraphExecUpdateErrorTopologyChanged;
  }
  *out_node = NULL;
  return cudaGraphExecUpdateSuccess;
}

// Replaces the work of the nodes. The graphs have the same structure.
static cudaError_t replace(cudaGraph_t graph, cudaGraph_t with) {
  cudaGraph_t copy = host_graph_copy(with);
  if (!copy)
    return cudaErrorMemoryAllocation;
  for (size_t i = 0; i < graph->count; i++) {
    host_deed_t deed = graph->nodes[i]->deed;
    graph->nodes[i]->deed = copy->nodes[i]->deed;
    copy->nodes[i]->deed = deed;
  }
  host_kept_swap(graph, copy);
  host_graph_destroy(copy);
  return cudaSuccess;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t hGraphExec, cudaGraph_t hGraph,
                                cudaGraphExecUpdateResultInfo *resultInfo) {
  if (!hGraphExec || !hGraph || !resultInfo)
    return host_result(cudaErrorInvalidValue);
  cudaGraphNode_t node;
  enum cudaGraphExecUpdateResult result =
      compare(hGraphExec->graph, hGraph, &node);
  *resultInfo = (cudaGraphExecUpdateResultInfo){result, node, NULL};
  if (result != cudaGraphExecUpdateSuccess)
    return host_result(cudaErrorGraphExecUpdateFailure);
  cudaError_t error = replace(hGraphExec->graph, hGraph);
  if (error)
    resultInfo->result = cudaGraphExecUpdateError;
  return host_result(error);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t hGraphExec,
                                                 cudaGraphNode_t node,
                                                 cudaGraph_t childGraph) {
  cudaGraphNode_t found = host_exec_node(hGraphExec, node), inner;
  if (!found || !childGraph || found->deed.type != cudaGraphNodeTypeGraph ||
      compare(found->deed.child, childGraph, &inner) !=
          cudaGraphExecUpdateSuccess)
    return host_result(cudaErrorInvalidValue);
  return host_result(replace(found->deed.child, childGraph));
}

static bool can_be_disabled(cudaGraphNode_t node) {
  return node && (node->deed.type == cudaGraphNodeTypeKernel ||
                  node->deed.type == cudaGraphNodeTypeMemcpy ||
                  node->deed.type == cudaGraphNodeTypeMemset);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t hGraphExec,
                                    cudaGraphNode_t hNode,
                                    unsigned int isEnabled) {
  cudaGraphNode_t node = host_exec_node(hGraphExec, hNode);
  if (!can_be_disabled(node))
    return host_result(cudaErrorInvalidValue);
  node->disabled = isEnabled == 0;
  return cudaSuccess;
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t hGraphExec,
                                    cudaGraphNode_t hNode,
                                    unsigned int *isEnabled) {
  cudaGraphNode_t node = host_exec_node(hGraphExec, hNode);
  if (!can_be_disabled(node) || !isEnabled)
    return host_result(cudaErrorInvalidValue);
  *isEnabled = !node->disabled;
  return cudaSuccess;
}
