/* SPDX-License-Identifier: Apache-2.0 */
/* Captured streams: work submitted to them becomes nodes of a graph. */
#ifndef SDG_SRC_HOST_CUDART_GRAPH_CAPTURE_H
#define SDG_SRC_HOST_CUDART_GRAPH_CAPTURE_H

#include <pthread.h>

#include "src/host/cudart/graph/graph.h"

/* The position of a captured stream: the nodes that the next node depends on.
 * An event recorded there keeps a copy. */
typedef struct host_tips {
  unsigned long long capture; /* number of the capture; 0: none */
  cudaGraphNode_t *nodes;     /* owned */
  size_t count;
} host_tips_t;

typedef struct host_capture {
  struct host_capture *next;
  unsigned long long id;
  enum cudaStreamCaptureMode mode;
  const void *thread; /* an address unique to the thread */
  host_stream_t *origin;
  cudaGraph_t graph;
  size_t first; /* the capture's nodes begin at this index */
  bool lent;    /* the program owns the graph */
  bool spoilt;
} host_capture_t;

#pragma GCC visibility push(hidden)

/* Guards the list of captures and each stream's tips; innermost. */
extern pthread_mutex_t host_capture_lock;
extern host_capture_t *host_capture_list;
extern _Thread_local char host_capture_self; /* its address names a thread */
/* The capture of the stream, or NULL; with the lock held. */
host_capture_t *host_capture_of(const host_stream_t *stream);
bool host_tips_set(host_tips_t *tips, unsigned long long capture,
                   const cudaGraphNode_t *nodes, size_t count);
bool host_tips_add(host_tips_t *tips, const cudaGraphNode_t *nodes,
                   size_t count);

/* Captures that have not ended, of all threads. */
extern _Atomic int host_captures;

bool host_capture_has(const host_stream_t *stream);
/* True if the stream is captured, invalidated or not. */
static inline bool host_captured(const host_stream_t *stream) {
  return HOST_UNLIKELY(
             atomic_load_explicit(&host_captures, memory_order_relaxed) > 0) &&
         host_capture_has(stream);
}

/* Adds a node at the end of a captured stream; takes over what it holds. */
cudaError_t host_capture_add(host_stream_t *stream, host_deed_t deed);
/* Invalidates the captures that the stream takes part in. Returns `error`. */
cudaError_t host_capture_spoil(host_stream_t *stream, cudaError_t error);

/* The error that a call returns if a capture forbids it; cudaSuccess if none
 * does. _unsafe: for calls that may use what work not yet launched uses, such
 * as memory; _everything: for calls that wait for the device; _legacy: for
 * calls that use the legacy stream. Invalidates the captures that forbid the
 * call. */
cudaError_t host_capture_unsafe(void);
cudaError_t host_capture_everything(void);
cudaError_t host_capture_legacy(void);
/* True if a capture forbids the legacy stream. */
bool host_capture_concerns_legacy(void);
/* The stream's handle is destroyed, so its capture cannot end normally. */
void host_capture_close(host_stream_t *stream);

/* api.c: whether a stream takes part in this capture (with `blocking`: a
 * blocking stream). All streams leave the capture. Call with the lock held. */
bool host_stream_any_captured(unsigned long long id, bool blocking);
void host_stream_uncapture(unsigned long long id);

/* host_enter for a call that host_capture_unsafe concerns. */
static inline cudaError_t host_enter_unsafe(void) {
  cudaError_t error = host_enter();
  return error ? error : host_result(host_capture_unsafe());
}

/* For events: _take stores the stream's position, _drop forgets it. */
cudaError_t host_tips_take(host_stream_t *stream, host_tips_t *tips);
void host_tips_drop(host_tips_t *tips);
/* Makes the stream wait for these nodes and so join their capture. */
cudaError_t host_capture_join(host_stream_t *stream, const host_tips_t *tips);
/* cudaErrorCapturedEvent, for a thread that waits for an event of a capture. */
cudaError_t host_capture_event(unsigned long long capture);

/* Set by cudaThreadExchangeStreamCaptureMode. */
extern _Thread_local enum cudaStreamCaptureMode host_capture_mode;

#pragma GCC visibility pop

#endif
