// SPDX-License-Identifier: Apache-2.0
// cudaStream*Capture*: begins, ends and queries captures.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/stream/queue.h"

#include <stdlib.h>

static unsigned long long last_id; // guarded by the lock of captures

// ---- beginning ----

static cudaError_t begin_locked(host_stream_t *stream, cudaGraph_t lent,
                                const cudaGraphNode_t *needs, size_t count,
                                enum cudaStreamCaptureMode mode) {
  if (host_capture_of(stream))
    return cudaErrorIllegalState;
  host_capture_t *capture = calloc(1, sizeof *capture);
  cudaGraph_t graph = lent ? lent : host_graph_create();
  if (!capture || !graph ||
      !host_tips_set(&stream->tips, last_id + 1, needs, count)) {
    free(capture);
    if (!lent)
      host_graph_destroy(graph);
    return cudaErrorMemoryAllocation;
  }
  *capture = (host_capture_t){.next = host_capture_list,
                              .id = ++last_id,
                              .mode = mode,
                              .thread = &host_capture_self,
                              .origin = stream,
                              .graph = graph,
                              .first = graph->count,
                              .lent = lent != NULL};
  host_capture_list = capture;
  atomic_fetch_add(&host_captures, 1);
  return cudaSuccess;
}

static cudaError_t begin(cudaStream_t handle, cudaGraph_t lent,
                         const cudaGraphNode_t *needs, size_t count,
                         enum cudaStreamCaptureMode mode) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_stream_t *stream = host_stream_get(handle);
  if (!stream)
    return host_result(cudaErrorInvalidResourceHandle);
  if ((unsigned)mode > cudaStreamCaptureModeRelaxed)
    return host_result(cudaErrorInvalidValue);
  if (stream == host_stream_legacy())
    return host_result(cudaErrorStreamCaptureUnsupported);
  pthread_mutex_lock(&host_capture_lock);
  error = begin_locked(stream, lent, needs, count, mode);
  pthread_mutex_unlock(&host_capture_lock);
  return host_result(error);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode) {
  return begin(stream, NULL, NULL, 0, mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(
    cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
    const cudaGraphEdgeData *dependencyData, size_t numDependencies,
    enum cudaStreamCaptureMode mode) {
  if (!graph || (numDependencies > 0 && !dependencies))
    return host_result(cudaErrorInvalidValue);
  for (size_t i = 0; i < numDependencies; i++)
    if (!dependencies[i] || dependencies[i]->graph != graph)
      return host_result(cudaErrorInvalidValue);
  if (dependencyData)
    return host_result(cudaErrorNotSupported);
  return begin(stream, graph, dependencies, numDependencies, mode);
}

// ---- ending ----

// True if every node of the capture comes before the end of its stream.
static bool joined(const host_capture_t *capture) {
  cudaGraph_t graph = capture->graph;
  const host_tips_t *tips = &capture->origin->tips;
  for (size_t i = 0; i < graph->count; i++)
    graph->nodes[i]->mark = i < capture->first;
  for (size_t i = 0; i < graph->count; i++)
    for (size_t k = 0; k < graph->nodes[i]->need_count; k++)
      graph->nodes[i]->needs[k]->mark = 1;
  for (size_t k = 0; k < tips->count; k++)
    tips->nodes[k]->mark = 1;
  for (size_t i = 0; i < graph->count; i++)
    if (!graph->nodes[i]->mark)
      return false;
  return true;
}

// Ends the capture and keeps its graph.
static void end_locked(host_capture_t *capture) {
  host_capture_t **at = &host_capture_list;
  while (*at != capture)
    at = &(*at)->next;
  *at = capture->next;
  host_stream_uncapture(capture->id);
  atomic_fetch_sub(&host_captures, 1);
}

// Ends the capture. *out_graph is its graph; after an error the graph is
// destroyed.
static void end_with(host_capture_t *capture, cudaError_t error,
                     cudaGraph_t *out_graph) {
  end_locked(capture);
  if (error == cudaSuccess)
    *out_graph = capture->graph;
  else if (!capture->lent)
    host_graph_destroy(capture->graph);
  free(capture);
}

void host_capture_close(host_stream_t *stream) {
  pthread_mutex_lock(&host_capture_lock);
  host_capture_t *capture = host_capture_of(stream);
  if (capture)
    capture->spoilt = true;
  if (capture && capture->origin == stream)
    end_with(capture, cudaErrorStreamCaptureInvalidated, NULL);
  host_tips_drop(&stream->tips);
  pthread_mutex_unlock(&host_capture_lock);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *pGraph) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  host_stream_t *stream = host_stream_get(handle);
  if (!stream || !pGraph)
    return host_result(stream ? cudaErrorInvalidValue
                              : cudaErrorInvalidResourceHandle);
  *pGraph = NULL;
  pthread_mutex_lock(&host_capture_lock);
  host_capture_t *capture = host_capture_of(stream);
  if (!capture) {
    error = cudaErrorIllegalState;
  } else if (capture->origin != stream) {
    error = cudaErrorStreamCaptureUnmatched;
    capture->spoilt = true;
  } else if (capture->thread != &host_capture_self &&
             capture->mode != cudaStreamCaptureModeRelaxed) {
    error = cudaErrorStreamCaptureWrongThread;
  } else {
    error = capture->spoilt   ? cudaErrorStreamCaptureInvalidated
            : joined(capture) ? cudaSuccess
                              : cudaErrorStreamCaptureUnjoined;
    end_with(capture, error, pGraph);
  }
  pthread_mutex_unlock(&host_capture_lock);
  return host_result(error);
}

// ---- asking ----

cudaError_t cudaStreamGetCaptureInfo(
    cudaStream_t handle, enum cudaStreamCaptureStatus *captureStatus_out,
    unsigned long long *id_out, cudaGraph_t *graph_out,
    const cudaGraphNode_t **dependencies_out,
    const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  host_stream_t *stream = host_stream_get(handle);
  if (!stream || !captureStatus_out)
    return host_result(stream ? cudaErrorInvalidValue
                              : cudaErrorInvalidResourceHandle);
  if (stream == host_stream_legacy() && host_capture_concerns_legacy())
    return host_result(cudaErrorStreamCaptureImplicit);
  pthread_mutex_lock(&host_capture_lock);
  const host_capture_t *capture = host_capture_of(stream);
  *captureStatus_out = !capture          ? cudaStreamCaptureStatusNone
                       : capture->spoilt ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
  bool active = capture && !capture->spoilt;
  if (active && id_out)
    *id_out = capture->id;
  if (active && graph_out)
    *graph_out = capture->graph;
  if (active && dependencies_out)
    *dependencies_out = stream->tips.nodes;
  if (active && edgeData_out)
    *edgeData_out = NULL;
  if (active && numDependencies_out)
    *numDependencies_out = stream->tips.count;
  pthread_mutex_unlock(&host_capture_lock);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *status) {
  return cudaStreamGetCaptureInfo(stream, status, NULL, NULL, NULL, NULL, NULL);
}

cudaError_t cudaStreamUpdateCaptureDependencies(
    cudaStream_t handle, cudaGraphNode_t *dependencies,
    const cudaGraphEdgeData *dependencyData, size_t numDependencies,
    unsigned int flags) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  host_stream_t *stream = host_stream_get(handle);
  if (!stream)
    return host_result(cudaErrorInvalidResourceHandle);
  if (flags > cudaStreamSetCaptureDependencies ||
      (numDependencies > 0 && !dependencies))
    return host_result(cudaErrorInvalidValue);
  if (dependencyData)
    return host_result(cudaErrorNotSupported);
  pthread_mutex_lock(&host_capture_lock);
  host_capture_t *capture = host_capture_of(stream);
  error = !capture          ? cudaErrorIllegalState
          : capture->spoilt ? cudaErrorStreamCaptureInvalidated
                            : cudaSuccess;
  for (size_t i = 0; error == cudaSuccess && i < numDependencies; i++)
    if (!dependencies[i] || dependencies[i]->graph != capture->graph)
      error = cudaErrorInvalidValue;
  if (error == cudaSuccess) {
    bool good =
        flags == cudaStreamSetCaptureDependencies
            ? host_tips_set(&stream->tips, capture->id, dependencies,
                            numDependencies)
            : host_tips_add(&stream->tips, dependencies, numDependencies);
    error = good ? cudaSuccess : cudaErrorMemoryAllocation;
  }
  pthread_mutex_unlock(&host_capture_lock);
  return host_result(error);
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (!mode || (unsigned)*mode > cudaStreamCaptureModeRelaxed)
    return host_result(cudaErrorInvalidValue);
  enum cudaStreamCaptureMode before = host_capture_mode;
  host_capture_mode = *mode;
  *mode = before;
  return cudaSuccess;
}
