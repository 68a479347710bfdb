// SPDX-License-Identifier: Apache-2.0
// Memory that graphs allocate, and the device's counters of it.
#include "src/host/cudart/graph/memory.h"

#include <pthread.h>
#include <stdlib.h>

#include "src/host/cudart/memory/pool.h"

// Guards all of it. Taken before the lock of the regions.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static host_graph_memory_t *memories;
static uint64_t used, used_high, reserved, reserved_high;

static host_graph_memory_t *find(const void *pointer) {
  host_graph_memory_t *m = memories;
  while (m && m->params.dptr != pointer)
    m = m->next;
  return m;
}

static void set_live(host_graph_memory_t *m, bool live) {
  if (live && !m->live)
    used += m->params.bytesize;
  if (!live && m->live)
    used -= m->params.bytesize;
  if (used > used_high)
    used_high = used;
  m->live = live;
}

// Frees the memory if nothing refers to it any more.
static void settle(host_graph_memory_t *m) {
  if (m->nodes > 0 || m->live)
    return;
  host_graph_memory_t **at = &memories;
  while (*at && *at != m)
    at = &(*at)->next;
  if (*at) { // not listed after a reset of the device
    *at = m->next;
    reserved -= m->params.bytesize;
    host_region_free(host_region_own(HOST_KIND_DEVICE), m->params.dptr);
  }
  free(m);
}

static bool is_plain(const struct cudaMemAllocNodeParams *params) {
  const struct cudaMemPoolProps *pool = &params->poolProps;
  if (pool->allocType != cudaMemAllocationTypePinned ||
      pool->location.type != cudaMemLocationTypeDevice ||
      pool->location.id != 0 || pool->handleTypes != cudaMemHandleTypeNone)
    return false;
  for (size_t i = 0; i < params->accessDescCount; i++)
    if (!params->accessDescs ||
        params->accessDescs[i].location.type != cudaMemLocationTypeDevice ||
        params->accessDescs[i].location.id != 0)
      return false;
  return params->bytesize > 0;
}

cudaError_t
host_graph_memory_create(const struct cudaMemAllocNodeParams *params,
                         host_graph_memory_t **out_memory) {
  if (!params || !is_plain(params))
    return cudaErrorInvalidValue;
  host_graph_memory_t *made = malloc(sizeof *made);
  if (!made)
    return cudaErrorMemoryAllocation;
  *made = (host_graph_memory_t){.params = *params, .nodes = 1};
  made->params.accessDescs = NULL; // the program's own array
  made->params.accessDescCount = 0;
  cudaError_t error =
      host_device_allocate(&made->params.dptr, params->bytesize);
  if (error) {
    free(made);
    return error;
  }
  pthread_mutex_lock(&lock);
  made->next = memories;
  memories = made;
  reserved += params->bytesize;
  if (reserved > reserved_high)
    reserved_high = reserved;
  pthread_mutex_unlock(&lock);
  *out_memory = made;
  return cudaSuccess;
}

host_graph_memory_t *host_graph_memory_find(const void *pointer) {
  pthread_mutex_lock(&lock);
  host_graph_memory_t *found = pointer ? find(pointer) : NULL;
  if (found)
    found->nodes++;
  pthread_mutex_unlock(&lock);
  return found;
}

void host_graph_memory_hold(host_graph_memory_t *memory) {
  pthread_mutex_lock(&lock);
  memory->nodes++;
  pthread_mutex_unlock(&lock);
}

void host_graph_memory_drop(host_graph_memory_t *memory) {
  pthread_mutex_lock(&lock);
  memory->nodes--;
  settle(memory);
  pthread_mutex_unlock(&lock);
}

bool host_graph_memory_free(const void *pointer, cudaError_t *out_error) {
  pthread_mutex_lock(&lock);
  host_graph_memory_t *found = find(pointer);
  *out_error = found && !found->live ? cudaErrorInvalidValue : cudaSuccess;
  if (found)
    set_live(found, false);
  pthread_mutex_unlock(&lock);
  return found != NULL;
}

void host_graph_memory_release(const void *pointer) {
  pthread_mutex_lock(&lock);
  host_graph_memory_t *found = find(pointer);
  if (found)
    settle(found);
  pthread_mutex_unlock(&lock);
}

// ---- graphs ----

bool host_node_has_memory(const struct CUgraphNode_st *node) {
  return node->deed.type == cudaGraphNodeTypeMemAlloc ||
         node->deed.type == cudaGraphNodeTypeMemFree;
}

bool host_graph_has_memory(cudaGraph_t graph) {
  for (size_t i = 0; i < graph->count; i++)
    if (host_node_has_memory(graph->nodes[i]))
      return true;
  return false;
}

// The node of that type for the memory, or NULL.
static const struct CUgraphNode_st *node_of(cudaGraph_t graph,
                                            enum cudaGraphNodeType type,
                                            const host_graph_memory_t *memory) {
  for (size_t i = 0; i < graph->count; i++)
    if (graph->nodes[i]->deed.type == type &&
        graph->nodes[i]->deed.memory == memory)
      return graph->nodes[i];
  return NULL;
}

static void mark_instances(cudaGraph_t graph, bool instanced) {
  for (size_t i = 0; i < graph->count; i++)
    if (graph->nodes[i]->deed.type == cudaGraphNodeTypeMemAlloc)
      graph->nodes[i]->deed.memory->instanced = instanced;
}

cudaError_t host_graph_memory_instance(cudaGraph_t graph) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < graph->count; i++)
    if (graph->nodes[i]->deed.type == cudaGraphNodeTypeMemAlloc &&
        graph->nodes[i]->deed.memory->instanced)
      error = cudaErrorNotSupported;
  if (!error)
    mark_instances(graph, true);
  pthread_mutex_unlock(&lock);
  return error;
}

void host_graph_memory_uninstance(cudaGraph_t graph) {
  pthread_mutex_lock(&lock);
  mark_instances(graph, false);
  pthread_mutex_unlock(&lock);
}

// Whether the graph allocates this memory and does not free it, or frees it and
// does not allocate it.
static bool reaches_out(cudaGraph_t graph, const struct CUgraphNode_st *node) {
  bool allocates = node->deed.type == cudaGraphNodeTypeMemAlloc;
  return !node_of(
      graph, allocates ? cudaGraphNodeTypeMemFree : cudaGraphNodeTypeMemAlloc,
      node->deed.memory);
}

cudaError_t host_graph_memory_launch(cudaGraph_t graph, bool frees_before) {
  cudaError_t error = cudaSuccess;
  pthread_mutex_lock(&lock);
  for (int sets = 0; sets < 2 && !error; sets++)
    for (size_t i = 0; i < graph->count && !error; i++) {
      const struct CUgraphNode_st *node = graph->nodes[i];
      if (!host_node_has_memory(node) || !reaches_out(graph, node))
        continue;
      bool allocates = node->deed.type == cudaGraphNodeTypeMemAlloc;
      if (sets)
        set_live(node->deed.memory, allocates);
      else if (node->deed.memory->live == allocates &&
               !(allocates && frees_before))
        error = cudaErrorInvalidValue;
    }
  pthread_mutex_unlock(&lock);
  return error;
}

void host_graph_memory_close_all(void) {
  pthread_mutex_lock(&lock);
  for (host_graph_memory_t *m = memories, *next; m; m = next) {
    next = m->next;
    m->live = false;
    if (m->nodes == 0)
      free(m);
  }
  memories = NULL;
  used = used_high = reserved = reserved_high = 0;
  pthread_mutex_unlock(&lock);
}

// ---- nodes ----

static cudaError_t add(cudaGraphNode_t *out_node, cudaGraph_t graph,
                       const cudaGraphNode_t *needs, size_t count,
                       enum cudaGraphNodeType type,
                       host_graph_memory_t *memory) {
  return host_graph_add(graph, needs, count,
                        (host_deed_t){.type = type, .memory = memory},
                        out_node);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode,
                                     cudaGraph_t graph,
                                     const cudaGraphNode_t *pDependencies,
                                     size_t numDependencies,
                                     struct cudaMemAllocNodeParams *params) {
  host_graph_memory_t *memory;
  cudaError_t error = host_graph_memory_create(params, &memory);
  if (error)
    return host_result(error);
  void *pointer = memory->params.dptr;
  error = add(pGraphNode, graph, pDependencies, numDependencies,
              cudaGraphNodeTypeMemAlloc, memory);
  if (!error)
    params->dptr = pointer;
  return host_result(error);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode,
                                    cudaGraph_t graph,
                                    const cudaGraphNode_t *pDependencies,
                                    size_t numDependencies, void *dptr) {
  host_graph_memory_t *memory = host_graph_memory_find(dptr);
  if (!memory)
    return host_result(cudaErrorInvalidValue);
  // Memory may be freed once in a graph.
  if (graph && node_of(graph, cudaGraphNodeTypeMemFree, memory)) {
    host_graph_memory_drop(memory);
    return host_result(cudaErrorInvalidValue);
  }
  return host_result(add(pGraphNode, graph, pDependencies, numDependencies,
                         cudaGraphNodeTypeMemFree, memory));
}

cudaError_t
cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                               struct cudaMemAllocNodeParams *params_out) {
  if (!node || !params_out || node->deed.type != cudaGraphNodeTypeMemAlloc)
    return host_result(cudaErrorInvalidValue);
  *params_out = node->deed.memory->params;
  return cudaSuccess;
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node,
                                          void *dptr_out) {
  if (!node || !dptr_out || node->deed.type != cudaGraphNodeTypeMemFree)
    return host_result(cudaErrorInvalidValue);
  *(void **)dptr_out = node->deed.memory->params.dptr;
  return cudaSuccess;
}

// ---- the device ----

static cudaError_t enter(int device, const void *value) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  return host_result(device != 0 ? cudaErrorInvalidDevice
                     : !value    ? cudaErrorInvalidValue
                                 : cudaSuccess);
}

cudaError_t cudaDeviceGetGraphMemAttribute(int device,
                                           enum cudaGraphMemAttributeType attr,
                                           void *value) {
  cudaError_t error = enter(device, value);
  if (error)
    return error;
  const uint64_t *const of[] = {&used, &used_high, &reserved, &reserved_high};
  if ((unsigned)attr >= sizeof of / sizeof *of)
    return host_result(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  *(uint64_t *)value = *of[attr];
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

// Only the high marks can be set, and only to the present value.
cudaError_t cudaDeviceSetGraphMemAttribute(int device,
                                           enum cudaGraphMemAttributeType attr,
                                           void *value) {
  cudaError_t error = enter(device, value);
  if (error)
    return error;
  if (*(uint64_t *)value != 0 || (attr != cudaGraphMemAttrUsedMemHigh &&
                                  attr != cudaGraphMemAttrReservedMemHigh))
    return host_result(cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  if (attr == cudaGraphMemAttrUsedMemHigh)
    used_high = used;
  else
    reserved_high = reserved;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

// Nothing is kept in reserve, so nothing is freed here.
cudaError_t cudaDeviceGraphMemTrim(int device) {
  return enter(device, &used);
}
