// SPDX-License-Identifier: Apache-2.0
// Captures: the streams that take part, their position in the graph, and what
// invalidates a capture.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/stream/queue.h"

#include <stdlib.h>
#include <string.h>

pthread_mutex_t host_capture_lock = PTHREAD_MUTEX_INITIALIZER;
host_capture_t *host_capture_list;
_Thread_local char host_capture_self;
_Atomic int host_captures;
_Thread_local enum cudaStreamCaptureMode host_capture_mode;

static host_capture_t *find(unsigned long long id) {
  host_capture_t *capture = host_capture_list;
  while (capture && capture->id != id)
    capture = capture->next;
  return capture;
}

host_capture_t *host_capture_of(const host_stream_t *stream) {
  return stream->tips.capture ? find(stream->tips.capture) : NULL;
}

bool host_capture_has(const host_stream_t *stream) {
  pthread_mutex_lock(&host_capture_lock);
  bool has = stream->tips.capture != 0;
  pthread_mutex_unlock(&host_capture_lock);
  return has;
}

// ---- positions of streams ----

void host_tips_drop(host_tips_t *tips) {
  free(tips->nodes);
  *tips = (host_tips_t){0};
}

bool host_tips_set(host_tips_t *tips, unsigned long long capture,
                   const cudaGraphNode_t *nodes, size_t count) {
  cudaGraphNode_t *copy = malloc((count + 1) * sizeof(cudaGraphNode_t));
  if (!copy)
    return false;
  if (count > 0)
    memcpy(copy, nodes, count * sizeof *copy);
  free(tips->nodes);
  *tips = (host_tips_t){capture, copy, count};
  return true;
}

bool host_tips_add(host_tips_t *tips, const cudaGraphNode_t *nodes,
                   size_t count) {
  cudaGraphNode_t *more =
      realloc(tips->nodes, (tips->count + count + 1) * sizeof *more);
  if (!more)
    return false;
  tips->nodes = more;
  for (size_t i = 0; i < count; i++) {
    bool there = false;
    for (size_t k = 0; k < tips->count; k++)
      there = there || more[k] == nodes[i];
    if (!there)
      more[tips->count++] = nodes[i];
  }
  return true;
}

// ---- invalidation ----

cudaError_t host_capture_spoil(host_stream_t *stream, cudaError_t error) {
  pthread_mutex_lock(&host_capture_lock);
  host_capture_t *capture = host_capture_of(stream);
  if (capture) {
    error = capture->spoilt ? cudaErrorStreamCaptureInvalidated : error;
    capture->spoilt = true;
  }
  pthread_mutex_unlock(&host_capture_lock);
  return error;
}

typedef bool (*forbids_t)(const host_capture_t *capture);

static bool forbids_unsafe(const host_capture_t *capture) {
  bool mine = capture->thread == &host_capture_self;
  switch (host_capture_mode) {
  case cudaStreamCaptureModeGlobal:
    return mine ? capture->mode != cudaStreamCaptureModeRelaxed
                : capture->mode == cudaStreamCaptureModeGlobal;
  case cudaStreamCaptureModeThreadLocal:
    return mine && capture->mode != cudaStreamCaptureModeRelaxed;
  default:
    return false;
  }
}

static bool forbids_everything(const host_capture_t *capture) {
  (void)capture;
  return true;
}

static bool forbids_legacy(const host_capture_t *capture) {
  return host_stream_any_captured(capture->id, true);
}

bool host_capture_concerns_legacy(void) {
  pthread_mutex_lock(&host_capture_lock);
  bool found = false;
  for (host_capture_t *c = host_capture_list; c && !found; c = c->next)
    found = forbids_legacy(c);
  pthread_mutex_unlock(&host_capture_lock);
  return found;
}

static cudaError_t spoil_where(forbids_t forbids, cudaError_t error) {
  if (HOST_LIKELY(atomic_load_explicit(&host_captures, memory_order_relaxed) ==
                  0))
    return cudaSuccess;
  bool found = false;
  pthread_mutex_lock(&host_capture_lock);
  for (host_capture_t *capture = host_capture_list; capture;
       capture = capture->next)
    if (forbids(capture))
      found = capture->spoilt = true;
  pthread_mutex_unlock(&host_capture_lock);
  return found ? error : cudaSuccess;
}

cudaError_t host_capture_unsafe(void) {
  return spoil_where(forbids_unsafe, cudaErrorStreamCaptureUnsupported);
}

cudaError_t host_capture_everything(void) {
  return spoil_where(forbids_everything, cudaErrorStreamCaptureUnsupported);
}

cudaError_t host_capture_legacy(void) {
  return spoil_where(forbids_legacy, cudaErrorStreamCaptureImplicit);
}

// ---- adding and joining ----

cudaError_t host_capture_add(host_stream_t *stream, host_deed_t deed) {
  pthread_mutex_lock(&host_capture_lock);
  host_capture_t *capture = host_capture_of(stream);
  cudaGraphNode_t node;
  cudaError_t error = cudaErrorStreamCaptureInvalidated;
  if (!capture || capture->spoilt) {
    host_deed_drop(&deed);
  } else {
    error = host_graph_add(capture->graph, stream->tips.nodes,
                           stream->tips.count, deed, &node);
    if (error == cudaSuccess &&
        !host_tips_set(&stream->tips, capture->id, &node, 1))
      error = cudaErrorMemoryAllocation;
    capture->spoilt = error != cudaSuccess;
  }
  pthread_mutex_unlock(&host_capture_lock);
  return error;
}

cudaError_t host_tips_take(host_stream_t *stream, host_tips_t *tips) {
  pthread_mutex_lock(&host_capture_lock);
  const host_capture_t *capture = host_capture_of(stream);
  cudaError_t error = !capture || capture->spoilt
                          ? cudaErrorStreamCaptureInvalidated
                          : cudaSuccess;
  if (!error &&
      !host_tips_set(tips, capture->id, stream->tips.nodes, stream->tips.count))
    error = cudaErrorMemoryAllocation;
  pthread_mutex_unlock(&host_capture_lock);
  return error;
}

static cudaError_t join_locked(host_stream_t *stream, const host_tips_t *tips) {
  host_capture_t *theirs = find(tips->capture), *mine = host_capture_of(stream);
  if (!theirs)
    return cudaErrorCapturedEvent;
  if (mine && mine != theirs) {
    mine->spoilt = theirs->spoilt = true;
    return cudaErrorStreamCaptureMerge;
  }
  if (theirs->spoilt)
    return cudaErrorStreamCaptureInvalidated;
  if (stream == host_stream_legacy()) {
    theirs->spoilt = true;
    return cudaErrorStreamCaptureImplicit;
  }
  bool good = mine ? host_tips_add(&stream->tips, tips->nodes, tips->count)
                   : host_tips_set(&stream->tips, tips->capture, tips->nodes,
                                   tips->count);
  return good ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t host_capture_join(host_stream_t *stream, const host_tips_t *tips) {
  pthread_mutex_lock(&host_capture_lock);
  cudaError_t error = join_locked(stream, tips);
  pthread_mutex_unlock(&host_capture_lock);
  return error;
}

cudaError_t host_capture_event(unsigned long long id) {
  pthread_mutex_lock(&host_capture_lock);
  host_capture_t *capture = find(id);
  if (capture)
    capture->spoilt = true;
  pthread_mutex_unlock(&host_capture_lock);
  return cudaErrorCapturedEvent;
}
