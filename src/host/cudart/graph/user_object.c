// SPDX-License-Identifier: Apache-2.0
// cudaUserObject*: objects of the program that live as long as a graph uses
// them, counted by references of the program and of graphs.
#include "src/host/cudart/graph/graph.h"

#include <stdlib.h>

struct CUuserObject_st {
  _Atomic unsigned references;
  void *data;
  cudaHostFn_t destroy;
};

static void drop(cudaUserObject_t object, unsigned count) {
  if (atomic_fetch_sub(&object->references, count) != count)
    return;
  object->destroy(object->data);
  free(object);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr,
                                 cudaHostFn_t destroy,
                                 unsigned int initialRefcount,
                                 unsigned int flags) {
  if (!object_out || !destroy || initialRefcount == 0 ||
      initialRefcount > INT32_MAX || flags != cudaUserObjectNoDestructorSync)
    return host_result(cudaErrorInvalidValue);
  cudaUserObject_t made = malloc(sizeof *made);
  if (!made)
    return host_result(cudaErrorMemoryAllocation);
  *made = (struct CUuserObject_st){initialRefcount, ptr, destroy};
  *object_out = made;
  return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  if (!object || count == 0 || count > INT32_MAX)
    return host_result(cudaErrorInvalidValue);
  atomic_fetch_add(&object->references, count);
  return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  if (!object || count == 0 || count > atomic_load(&object->references))
    return host_result(cudaErrorInvalidValue);
  drop(object, count);
  return cudaSuccess;
}

// ---- the references of graphs ----

static host_kept_t *kept_find(cudaGraph_t graph, cudaUserObject_t object) {
  host_kept_t *kept = graph->kept;
  while (kept && kept->object != object)
    kept = kept->next;
  return kept;
}

// The references become the graph's.
static bool kept_add(cudaGraph_t graph, cudaUserObject_t object,
                     unsigned count) {
  host_kept_t *kept = kept_find(graph, object);
  if (!kept) {
    kept = malloc(sizeof *kept);
    if (!kept)
      return false;
    *kept = (host_kept_t){.next = graph->kept, .object = object};
    graph->kept = kept;
  }
  kept->count += count;
  return true;
}

void host_kept_drop(cudaGraph_t graph) {
  while (graph->kept) {
    host_kept_t *kept = graph->kept;
    graph->kept = kept->next;
    if (kept->count > 0)
      drop(kept->object, kept->count);
    free(kept);
  }
}

bool host_kept_copy(cudaGraph_t from, cudaGraph_t to) {
  for (const host_kept_t *kept = from->kept; kept; kept = kept->next) {
    if (kept->count == 0)
      continue;
    if (!kept_add(to, kept->object, 1))
      return false;
    atomic_fetch_add(&kept->object->references, 1);
  }
  return true;
}

// ---- the references of launches ----

static bool kept_gather(cudaGraph_t from, cudaGraph_t to) {
  bool good = host_kept_copy(from, to);
  for (size_t i = 0; good && i < from->count; i++)
    if (from->nodes[i]->deed.type == cudaGraphNodeTypeGraph)
      good = kept_gather(from->nodes[i]->deed.child, to);
  return good;
}

static cudaError_t nothing(void *holder) {
  (void)holder;
  return cudaSuccess;
}

static void holder_release(void *holder) {
  host_kept_drop(holder);
  free(holder);
}

cudaError_t host_kept_launch(cudaGraph_t graph, host_stream_t *stream) {
  cudaGraph_t holder = calloc(1, sizeof *holder);
  if (!holder)
    return cudaErrorMemoryAllocation;
  bool good = kept_gather(graph, holder);
  if (!good || !holder->kept) {
    holder_release(holder);
    return good ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  return host_stream_push(stream,
                          &(host_work_t){.run = nothing,
                                         .argument = holder,
                                         .release = holder_release},
                          NULL);
}

void host_kept_swap(cudaGraph_t a, cudaGraph_t b) {
  host_kept_t *kept = a->kept;
  a->kept = b->kept;
  b->kept = kept;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph,
                                      cudaUserObject_t object,
                                      unsigned int count, unsigned int flags) {
  if (!graph || !object || count == 0 || count > INT32_MAX ||
      (flags & ~(unsigned)cudaGraphUserObjectMove) != 0)
    return host_result(cudaErrorInvalidValue);
  if (!kept_add(graph, object, count))
    return host_result(cudaErrorMemoryAllocation);
  if (!(flags & cudaGraphUserObjectMove))
    atomic_fetch_add(&object->references, count);
  return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph,
                                       cudaUserObject_t object,
                                       unsigned int count) {
  host_kept_t *kept = graph && object ? kept_find(graph, object) : NULL;
  if (!kept || count == 0 || count > kept->count)
    return host_result(cudaErrorInvalidValue);
  kept->count -= count;
  drop(object, count);
  return cudaSuccess;
}
