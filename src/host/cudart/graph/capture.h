/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are captured: what is put into them becomes nodes of a graph. */
#ifndef SDG_SRC_HOST_CUDART_GRAPH_CAPTURE_H
#define SDG_SRC_HOST_CUDART_GRAPH_CAPTURE_H

#include <pthread.h>

#include "src/host/cudart/graph/graph.h"

/* Where a captured stream is: the nodes that its next one needs. An event
 * recorded there keeps a copy. */
typedef struct host_tips {
  unsigned long long capture; /* number of the capture; 0: none */
  cudaGraphNode_t *nodes;     /* owned */
  size_t count;
} host_tips_t;

typedef struct host_capture {
  struct host_capture *next;
  unsigned long long id;
  enum cudaStreamCaptureMode mode;
  const void *thread; /* an address that only this thread has */
  host_stream_t *origin;
  cudaGraph_t graph;
  size_t first; /* nodes of the graph from here on are the capture's */
  bool lent;    /* the graph is the program's */
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
/* Ends the usefulness of the captures that the stream is part of, for
 * `error`, which it returns. */
cudaError_t host_capture_spoil(host_stream_t *stream, cudaError_t error);

/* What the call has to return if a capture forbids it; cudaSuccess if none
 * does. _unsafe: it may touch what work not yet launched uses, such as
 * memory; _everything: it waits for the device; _legacy: it uses the legacy
 * stream. Captures that forbid it are spoilt. */
cudaError_t host_capture_unsafe(void);
cudaError_t host_capture_everything(void);
cudaError_t host_capture_legacy(void);
/* True if a capture forbids the legacy stream. */
bool host_capture_concerns_legacy(void);
/* The stream loses its handle: its capture cannot end as it should. */
void host_capture_close(host_stream_t *stream);

/* stream.c: whether a stream of this capture, a blocking one if so wanted, is
 * there; all of them leave it. With the lock held. */
bool host_stream_any_captured(unsigned long long id, bool blocking);
void host_stream_uncapture(unsigned long long id);

/* As host_enter, for a call that _unsafe is about. */
static inline cudaError_t host_enter_unsafe(void) {
  cudaError_t error = host_enter();
  return error ? error : host_result(host_capture_unsafe());
}

/* Of an event: keeps where the stream is; forgets it. */
cudaError_t host_tips_take(host_stream_t *stream, host_tips_t *tips);
void host_tips_drop(host_tips_t *tips);
/* Lets the stream wait for the tips, and so become part of their capture. */
cudaError_t host_capture_join(host_stream_t *stream, const host_tips_t *tips);
/* cudaErrorCapturedEvent, for whom waits for an event in a capture. */
cudaError_t host_capture_event(unsigned long long capture);

/* Of cudaThreadExchangeStreamCaptureMode. */
extern _Thread_local enum cudaStreamCaptureMode host_capture_mode;

#pragma GCC visibility pop

#endif
