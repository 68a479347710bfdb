// SPDX-License-Identifier: Apache-2.0
// The work of graph nodes: checked when a node is made, carried out in a
// stream, copied.
#include "src/host/cudart/graph/memory.h"
#include "src/host/cudart/memory/copy.h"

#include <stdlib.h>

// ---- tasks ----

host_task_t *host_task_create(cudaError_t (*run)(void *argument),
                              void *argument, void (*release)(void *argument),
                              void *(*again)(const void *argument)) {
  host_task_t *task = malloc(sizeof *task);
  if (!task)
    return NULL;
  *task = (host_task_t){1, run, argument, release, again};
  return task;
}

static void task_drop(host_task_t *task) {
  if (atomic_fetch_sub(&task->references, 1) != 1)
    return;
  if (task->release)
    task->release(task->argument);
  free(task);
}

static cudaError_t task_push(const host_task_t *task, host_stream_t *stream) {
  void *argument = task->again(task->argument);
  if (!argument)
    return cudaErrorMemoryAllocation;
  return host_stream_push(stream,
                          &(host_work_t){.run = task->run,
                                         .argument = argument,
                                         .release = task->release},
                          NULL);
}

// ---- memory ----

// The box of bytes that a memset fills; false for invalid sizes.
static bool fill_box(const host_fill_t *fill, host_copy_t *out_copy) {
  const struct cudaMemsetParams *set = &fill->set;
  unsigned element = set->elementSize;
  size_t width;
  if ((element != 1 && element != 2 && element != 4) ||
      __builtin_mul_overflow(set->width, element, &width) ||
      (set->height > 1 && set->pitch < width) ||
      (element < 4 && set->value >> 8 * element != 0))
    return false;
  size_t pitch = set->height > 1 ? set->pitch : width;
  *out_copy = (host_copy_t){.to = {set->dst, pitch, fill->slice},
                            .width = width,
                            .height = set->height,
                            .depth = fill->depth,
                            .value = (int)set->value,
                            .element = element};
  return true;
}

// A copy or a memset with addresses that the host can use. Pageable memory is
// read and written when the work runs.
static cudaError_t memory_resolve(const host_deed_t *deed, host_copy_t *out) {
  bool pageable;
  if (deed->type == cudaGraphNodeTypeMemcpy)
    return host_copy_from(&deed->copy, out);
  if (!fill_box(&deed->fill, out))
    return cudaErrorInvalidValue;
  if (out->width == 0 || out->height == 0 || out->depth == 0)
    return cudaSuccess;
  return host_side_resolve(out, &out->to, HOST_EXPECT_DEVICE, &pageable);
}

cudaError_t host_deed_check(const host_deed_t *deed) {
  host_copy_t copy;
  switch (deed->type) {
  case cudaGraphNodeTypeMemcpy:
  case cudaGraphNodeTypeMemset:
    return memory_resolve(deed, &copy);
  case cudaGraphNodeTypeHost:
    return deed->host.fn ? cudaSuccess : cudaErrorInvalidValue;
  case cudaGraphNodeTypeEventRecord:
  case cudaGraphNodeTypeWaitEvent:
    return host_event_known(deed->event) ? cudaSuccess
                                         : cudaErrorInvalidResourceHandle;
  case cudaGraphNodeTypeGraph:
    return !deed->child                         ? cudaErrorInvalidValue
           : host_graph_has_memory(deed->child) ? cudaErrorNotSupported
                                                : cudaSuccess;
  case cudaGraphNodeTypeKernel:
    return deed->task ? cudaSuccess : cudaErrorMemoryAllocation;
  case cudaGraphNodeTypeEmpty:
  case cudaGraphNodeTypeMemAlloc:
  case cudaGraphNodeTypeMemFree:
    return cudaSuccess;
  default:
    return cudaErrorNotSupported;
  }
}

cudaError_t host_deed_push(const host_deed_t *deed, host_stream_t *stream) {
  host_copy_t copy;
  cudaError_t error;
  switch (deed->type) {
  case cudaGraphNodeTypeMemcpy:
  case cudaGraphNodeTypeMemset:
    error = memory_resolve(deed, &copy);
    return error ? error : host_copy_push(&copy, stream);
  case cudaGraphNodeTypeHost:
    return host_function_push(deed->host.fn, deed->host.userData, stream);
  case cudaGraphNodeTypeEventRecord:
    return host_event_push(deed->event, stream);
  case cudaGraphNodeTypeWaitEvent:
    return host_event_await(deed->event, stream);
  case cudaGraphNodeTypeGraph:
    return host_graph_push(deed->child, stream);
  case cudaGraphNodeTypeKernel:
    return task_push(deed->task, stream);
  default:
    return cudaSuccess;
  }
}

void host_deed_drop(host_deed_t *deed) {
  if (deed->type == cudaGraphNodeTypeGraph)
    host_graph_destroy(deed->child);
  if (deed->type == cudaGraphNodeTypeKernel && deed->task)
    task_drop(deed->task);
  if (deed->type == cudaGraphNodeTypeMemAlloc ||
      deed->type == cudaGraphNodeTypeMemFree)
    host_graph_memory_drop(deed->memory);
}

bool host_deed_copy(const host_deed_t *deed, host_deed_t *out_deed) {
  *out_deed = *deed;
  if (deed->type == cudaGraphNodeTypeKernel)
    atomic_fetch_add(&deed->task->references, 1);
  if (deed->type == cudaGraphNodeTypeMemAlloc ||
      deed->type == cudaGraphNodeTypeMemFree)
    host_graph_memory_hold(deed->memory);
  if (deed->type == cudaGraphNodeTypeGraph) {
    out_deed->child = host_graph_copy(deed->child);
    return out_deed->child != NULL;
  }
  return true;
}

cudaError_t host_graph_add_again(cudaGraph_t graph, bool replaces,
                                 cudaError_t (*run)(void *argument),
                                 void *argument,
                                 void (*release)(void *argument),
                                 void *(*again)(const void *argument)) {
  host_deed_t deed = {.type = cudaGraphNodeTypeKernel,
                      .task = host_task_create(run, argument, release, again)};
  cudaGraphNode_t node;
  if (!deed.task) {
    release(argument);
    return host_result(cudaErrorMemoryAllocation);
  }
  if (!replaces)
    return host_result(host_graph_add(graph, NULL, 0, deed, &node));
  if (graph->count != 1 ||
      graph->nodes[0]->deed.type != cudaGraphNodeTypeKernel) {
    host_deed_drop(&deed);
    return host_result(cudaErrorInvalidValue);
  }
  host_deed_drop(&graph->nodes[0]->deed);
  graph->nodes[0]->deed = deed;
  return cudaSuccess;
}
