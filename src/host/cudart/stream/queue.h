/* SPDX-License-Identifier: Apache-2.0 */
/* The structure behind a stream's handle: a queue, its counters, its worker. */
#ifndef SDG_SRC_HOST_CUDART_STREAM_QUEUE_H
#define SDG_SRC_HOST_CUDART_STREAM_QUEUE_H

#include <pthread.h>

#include "src/host/cudart/graph/capture.h"

enum {
  HOST_WORKER_NONE = 0,
  HOST_WORKER_AWAKE,
  HOST_WORKER_ASLEEP,
};

/* Attached to work: note(what, number, now) is called when the work is done. */
typedef struct host_mark {
  void (*note)(void *what, uint64_t number, uint64_t now_ns);
  void *what;
  uint64_t number;
} host_mark_t;

enum { HOST_MARKS = 2 };

typedef struct host_node {
  struct host_node *next;
  host_work_t work;
  int marks;
  host_mark_t mark[HOST_MARKS];
  _Alignas(16) char payload[HOST_PAYLOAD_BYTES];
} host_node_t;

struct CUstream_st {
  _Atomic bool alive;    /* has a handle */
  _Atomic bool blocking; /* follows the rules of the legacy stream */
  unsigned flags;
  int priority;
  unsigned long long id;
  host_tips_t
      tips; /* its position in a capture; guarded by the lock of captures */
  pthread_mutex_t lock; /* guards the list of nodes and the worker's start */
  host_node_t *first, *last;
  host_node_t *running; /* taken off the list, and not done; NULL: none */
  host_node_t *spare;   /* nodes for later work; never freed */
  _Atomic uint64_t submitted;
  _Alignas(64) _Atomic uint64_t completed;
  _Atomic uint64_t
      wanted; /* completing this ticket or a later one rings the bell */
  _Atomic uint32_t
      bell; /* futex on which threads sleep that wait for a point */
  _Atomic uint32_t worker; /* WORKER_*; a futex */
  _Atomic int owner;       /* 1 while a thread executes the queue's work */
  _Atomic uint64_t joined; /* the legacy stream's last ticket waited for here */
  _Atomic uint64_t legacy_saw; /* this stream's last ticket that the legacy
                                  stream waits for */
};

#pragma GCC visibility push(hidden)

/* Appends work, ignoring other streams. Releases the work on failure. */
cudaError_t host_queue_push(host_stream_t *stream, const host_work_t *work,
                            host_point_t *out_point);
/* Attaches the mark to the last work submitted, or, if that is done or has as
 * many marks as it can hold, to new work that does nothing. *out_point is the
 * point after that work. */
cudaError_t host_queue_mark(host_stream_t *stream, host_mark_t mark,
                            host_point_t *out_point);
/* CLOCK_MONOTONIC, as marks tell it. */
uint64_t host_now_ns(void);

#pragma GCC visibility pop

static inline bool host_queue_pending(host_stream_t *stream) {
  return atomic_load(&stream->submitted) != atomic_load(&stream->completed);
}

#endif
