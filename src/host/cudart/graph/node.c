// SPDX-License-Identifier: Apache-2.0
// cudaGraphAdd*Node, and the functions that read and set a node's parameters.
#include "src/host/cudart/graph/memory.h"
#include "src/host/exports/unsupported.h"

#include <stdlib.h>
#include <string.h>

static cudaError_t add(cudaGraphNode_t *out_node, cudaGraph_t graph,
                       const cudaGraphNode_t *needs, size_t count,
                       host_deed_t deed) {
  return host_result(host_graph_add(graph, needs, count, deed, out_node));
}

// The program's kernels cannot run here.
static cudaError_t kernel_refuse(void) {
  static _Atomic int said;
  host_unsupported("a kernel of the program in a graph", &said);
  return host_result(cudaErrorNotSupported);
}

static struct cudaMemcpy3DParms
copy_line(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  return (struct cudaMemcpy3DParms){
      .dstPtr = {to, bytes, bytes, 1},
      .srcPtr = {(void *)from, bytes, bytes, 1},
      .extent = {bytes, 1, 1},
      .kind = kind,
  };
}

static host_fill_t fill_plane(const struct cudaMemsetParams *set) {
  return (host_fill_t){*set, set->pitch * set->height, 1};
}

static host_deed_t deed_copy(struct cudaMemcpy3DParms copy) {
  return (host_deed_t){.type = cudaGraphNodeTypeMemcpy, .copy = copy};
}

static host_deed_t deed_fill(const struct cudaMemsetParams *set) {
  return (host_deed_t){.type = cudaGraphNodeTypeMemset,
                       .fill = fill_plane(set)};
}

static host_deed_t deed_host(struct cudaHostNodeParams host) {
  return (host_deed_t){.type = cudaGraphNodeTypeHost, .host = host};
}

static host_deed_t deed_event(enum cudaGraphNodeType type, cudaEvent_t event) {
  return (host_deed_t){.type = type, .event = event};
}

static host_deed_t deed_child(cudaGraph_t graph) {
  return (host_deed_t){.type = cudaGraphNodeTypeGraph,
                       .child = graph ? host_graph_copy(graph) : NULL};
}

// ---- adding ----

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode,
                                   cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies,
                                   const struct cudaMemcpy3DParms *params) {
  if (!params)
    return host_result(cudaErrorInvalidValue);
  return add(pGraphNode, graph, pDependencies, numDependencies,
             deed_copy(*params));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode,
                                     cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies,
                                     size_t numDependencies, void *dst,
                                     const void *src, size_t count,
                                     enum cudaMemcpyKind kind) {
  return add(pGraphNode, graph, pDependencies, numDependencies,
             deed_copy(copy_line(dst, src, count, kind)));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode,
                                   cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies,
                                   const struct cudaMemsetParams *params) {
  if (!params)
    return host_result(cudaErrorInvalidValue);
  return add(pGraphNode, graph, pDependencies, numDependencies,
             deed_fill(params));
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                                 const cudaGraphNode_t *pDependencies,
                                 size_t numDependencies,
                                 const struct cudaHostNodeParams *params) {
  if (!params)
    return host_result(cudaErrorInvalidValue);
  return add(pGraphNode, graph, pDependencies, numDependencies,
             deed_host(*params));
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode,
                                       cudaGraph_t graph,
                                       const cudaGraphNode_t *pDependencies,
                                       size_t numDependencies,
                                       cudaGraph_t childGraph) {
  if (!graph || graph == childGraph)
    return host_result(cudaErrorInvalidValue);
  return add(pGraphNode, graph, pDependencies, numDependencies,
             deed_child(childGraph));
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode,
                                  cudaGraph_t graph,
                                  const cudaGraphNode_t *pDependencies,
                                  size_t numDependencies) {
  return add(pGraphNode, graph, pDependencies, numDependencies,
             (host_deed_t){.type = cudaGraphNodeTypeEmpty});
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode,
                                        cudaGraph_t graph,
                                        const cudaGraphNode_t *pDependencies,
                                        size_t numDependencies,
                                        cudaEvent_t event) {
  return add(pGraphNode, graph, pDependencies, numDependencies,
             deed_event(cudaGraphNodeTypeEventRecord, event));
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode,
                                      cudaGraph_t graph,
                                      const cudaGraphNode_t *pDependencies,
                                      size_t numDependencies,
                                      cudaEvent_t event) {
  return add(pGraphNode, graph, pDependencies, numDependencies,
             deed_event(cudaGraphNodeTypeWaitEvent, event));
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode,
                                   cudaGraph_t graph,
                                   const cudaGraphNode_t *pDependencies,
                                   size_t numDependencies,
                                   const struct cudaKernelNodeParams *params) {
  (void)pGraphNode, (void)graph, (void)pDependencies, (void)numDependencies;
  (void)params;
  return kernel_refuse();
}

// The work that a structure for a node of any type describes.
static cudaError_t deed_of(const struct cudaGraphNodeParams *params,
                           host_deed_t *out_deed) {
  if (!params)
    return cudaErrorInvalidValue;
  switch (params->type) {
  case cudaGraphNodeTypeMemcpy:
    *out_deed = deed_copy(params->memcpy.copyParams);
    return cudaSuccess;
  case cudaGraphNodeTypeMemset:
    *out_deed = deed_fill(&(struct cudaMemsetParams){
        params->memset.dst, params->memset.pitch, params->memset.value,
        params->memset.elementSize, params->memset.width,
        params->memset.height});
    return cudaSuccess;
  case cudaGraphNodeTypeHost:
    *out_deed = deed_host(
        (struct cudaHostNodeParams){params->host.fn, params->host.userData});
    return cudaSuccess;
  case cudaGraphNodeTypeGraph:
    *out_deed = deed_child(params->graph.graph);
    return cudaSuccess;
  case cudaGraphNodeTypeWaitEvent:
    *out_deed = deed_event(params->type, params->eventWait.event);
    return cudaSuccess;
  case cudaGraphNodeTypeEventRecord:
    *out_deed = deed_event(params->type, params->eventRecord.event);
    return cudaSuccess;
  case cudaGraphNodeTypeEmpty:
    *out_deed = (host_deed_t){.type = params->type};
    return cudaSuccess;
  case cudaGraphNodeTypeKernel:
    return kernel_refuse();
  case cudaGraphNodeTypeMemAlloc:
    out_deed->type = params->type;
    return host_graph_memory_create(
        &(struct cudaMemAllocNodeParams){
            .poolProps = params->alloc.poolProps,
            .accessDescs = params->alloc.accessDescs,
            .accessDescCount = params->alloc.accessDescCount,
            .bytesize = params->alloc.bytesize},
        &out_deed->memory);
  case cudaGraphNodeTypeMemFree:
    out_deed->type = params->type;
    out_deed->memory = host_graph_memory_find(params->free.dptr);
    return out_deed->memory ? cudaSuccess : cudaErrorInvalidValue;
  default:
    return cudaErrorNotSupported;
  }
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
                             const cudaGraphNode_t *pDependencies,
                             const cudaGraphEdgeData *dependencyData,
                             size_t numDependencies,
                             struct cudaGraphNodeParams *nodeParams) {
  host_deed_t deed;
  if (dependencyData)
    return host_result(cudaErrorNotSupported);
  cudaError_t error = deed_of(nodeParams, &deed);
  if (error)
    return host_result(error);
  void *memory =
      deed.type == cudaGraphNodeTypeMemAlloc ? deed.memory->params.dptr : NULL;
  error = add(pGraphNode, graph, pDependencies, numDependencies, deed);
  if (!error && memory)
    nodeParams->alloc.dptr = memory;
  return error;
}

// ---- asking ----

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node,
                                 enum cudaGraphNodeType *pType) {
  if (!node || !pType)
    return host_result(cudaErrorInvalidValue);
  *pType = node->deed.type;
  return cudaSuccess;
}

static bool is(cudaGraphNode_t node, enum cudaGraphNodeType type,
               const void *out) {
  return node && out && node->deed.type == type;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemcpy3DParms *params) {
  if (!is(node, cudaGraphNodeTypeMemcpy, params))
    return host_result(cudaErrorInvalidValue);
  *params = node->deed.copy;
  return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node,
                                         struct cudaMemsetParams *params) {
  if (!is(node, cudaGraphNodeTypeMemset, params) || node->deed.fill.depth > 1)
    return host_result(cudaErrorInvalidValue);
  *params = node->deed.fill.set;
  return cudaSuccess;
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node,
                                       struct cudaHostNodeParams *params) {
  if (!is(node, cudaGraphNodeTypeHost, params))
    return host_result(cudaErrorInvalidValue);
  *params = node->deed.host;
  return cudaSuccess;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node,
                                            cudaGraph_t *pGraph) {
  if (!is(node, cudaGraphNodeTypeGraph, pGraph))
    return host_result(cudaErrorInvalidValue);
  *pGraph = node->deed.child;
  return cudaSuccess;
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node,
                                             cudaEvent_t *event_out) {
  if (!is(node, cudaGraphNodeTypeEventRecord, event_out))
    return host_result(cudaErrorInvalidValue);
  *event_out = node->deed.event;
  return cudaSuccess;
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node,
                                           cudaEvent_t *event_out) {
  if (!is(node, cudaGraphNodeTypeWaitEvent, event_out))
    return host_result(cudaErrorInvalidValue);
  *event_out = node->deed.event;
  return cudaSuccess;
}

// ---- setting, in a graph or in an executable copy of it ----

// Gives the node other work of the same type.
static cudaError_t set(cudaGraphNode_t node, host_deed_t deed) {
  cudaError_t error =
      !node || node->deed.type != deed.type || host_node_has_memory(node)
          ? cudaErrorInvalidValue
          : host_deed_check(&deed);
  if (error) {
    host_deed_drop(&deed);
    return host_result(error);
  }
  host_deed_drop(&node->deed);
  node->deed = deed;
  return cudaSuccess;
}

// Defines the function on a node and the one on an executable graph.
#define SETTERS(name, parameters, exec_parameters, condition, deed)            \
  cudaError_t cudaGraph##name parameters {                                     \
    if (!(condition))                                                          \
      return host_result(cudaErrorInvalidValue);                               \
    return set(node, deed);                                                    \
  }                                                                            \
  cudaError_t cudaGraphExec##name exec_parameters {                            \
    if (!(condition))                                                          \
      return host_result(cudaErrorInvalidValue);                               \
    return set(host_exec_node(exec, node), deed);                              \
  }

SETTERS(MemcpyNodeSetParams,
        (cudaGraphNode_t node, const struct cudaMemcpy3DParms *params),
        (cudaGraphExec_t exec, cudaGraphNode_t node,
         const struct cudaMemcpy3DParms *params),
        params, deed_copy(*params))
SETTERS(MemcpyNodeSetParams1D,
        (cudaGraphNode_t node, void *to, const void *from, size_t bytes,
         enum cudaMemcpyKind kind),
        (cudaGraphExec_t exec, cudaGraphNode_t node, void *to, const void *from,
         size_t bytes, enum cudaMemcpyKind kind),
        true, deed_copy(copy_line(to, from, bytes, kind)))
SETTERS(MemsetNodeSetParams,
        (cudaGraphNode_t node, const struct cudaMemsetParams *params),
        (cudaGraphExec_t exec, cudaGraphNode_t node,
         const struct cudaMemsetParams *params),
        params, deed_fill(params))
SETTERS(HostNodeSetParams,
        (cudaGraphNode_t node, const struct cudaHostNodeParams *params),
        (cudaGraphExec_t exec, cudaGraphNode_t node,
         const struct cudaHostNodeParams *params),
        params, deed_host(*params))
SETTERS(EventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event), true,
        deed_event(cudaGraphNodeTypeEventRecord, event))
SETTERS(EventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event), true,
        deed_event(cudaGraphNodeTypeWaitEvent, event))

static cudaError_t set_any(cudaGraphNode_t node,
                           const struct cudaGraphNodeParams *params) {
  host_deed_t deed;
  cudaError_t error = deed_of(params, &deed);
  return error ? host_result(error) : set(node, deed);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node,
                                   struct cudaGraphNodeParams *nodeParams) {
  return set_any(node, nodeParams);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t graphExec,
                                       cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *nodeParams) {
  return set_any(host_exec_node(graphExec, node), nodeParams);
}
