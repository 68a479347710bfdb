// SPDX-License-Identifier: Apache-2.0
// Streams: ordered queues of work, each with a worker thread, which threads
// that wait help to empty.
//
// A stream counts what was submitted and what is completed; a point in it is
// a number (a ticket) and has passed when completed reaches it. Whoever sets
// `owner` executes: the worker, or a thread that waits for a point. A wait of
// one stream for another is a piece of work that waits for a point; points
// only lie in the past, so waits cannot form a circle. The structures are
// never freed, their counters never go back: a point outlives its stream.
#include "src/host/cudart/internal.h"
#include "src/host/cudart/wait.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum {
  STREAMS_MAX = 4096,
  HELP_DEPTH_MAX = 16, /* waits for waits that one thread executes itself */
  WORKER_NONE = 0,
  WORKER_AWAKE,
  WORKER_ASLEEP,
};

typedef struct node {
  struct node *next;
  host_work_t work;
  _Alignas(16) char payload[HOST_PAYLOAD_BYTES];
} node_t;

struct CUstream_st {
  _Atomic bool alive;    /* has a handle */
  _Atomic bool blocking; /* takes part in the rules of the legacy stream */
  unsigned flags;
  int priority;
  unsigned long long id;
  pthread_mutex_t lock; /* the list of nodes and the worker's start */
  node_t *first, *last;
  node_t *spare; /* nodes for later work; never freed */
  _Atomic uint64_t submitted;
  _Alignas(64) _Atomic uint64_t completed;
  _Atomic uint32_t done;       /* low part of completed: a futex */
  _Atomic uint32_t waiters;    /* threads asleep on done */
  _Atomic uint32_t worker;     /* WORKER_*: a futex */
  _Atomic int owner;           /* 1 while a thread executes */
  _Atomic uint64_t joined;     /* last ticket of the legacy waited for here */
  _Atomic uint64_t legacy_saw; /* last ticket here the legacy waits for */
};

/* Guards opening and closing; taken before a stream's lock. */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static host_stream_t table[STREAMS_MAX]; /* [0] is the legacy stream */
static _Atomic int table_count = 0;      /* ever used */
static unsigned long long next_id = 1;
static pthread_once_t legacy_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static _Thread_local host_stream_t *thread_stream;
static _Thread_local unsigned long long thread_stream_id;
static _Thread_local int help_depth;

static bool pending(host_stream_t *stream) {
  return atomic_load(&stream->submitted) != atomic_load(&stream->completed);
}

/* ---- executing ---- */

static void worker_wake(host_stream_t *stream) {
  uint32_t asleep = WORKER_ASLEEP;
  if (atomic_load(&stream->worker) == WORKER_ASLEEP &&
      atomic_compare_exchange_strong(&stream->worker, &asleep, WORKER_AWAKE))
    host_futex_wake(&stream->worker);
}

static void work_do(const host_work_t *work, void *argument) {
  if (work->run && (work->always || host_sticky() == cudaSuccess)) {
    cudaError_t error = work->run(argument);
    if (HOST_UNLIKELY(error != cudaSuccess))
      host_sticky_set(error);
  }
  if (work->release)
    work->release(argument);
}

/* Does the first piece of work; the caller is the owner and the queue is not
 * empty. */
static void step(host_stream_t *stream) {
  pthread_mutex_lock(&stream->lock);
  node_t *node = stream->first;
  stream->first = node->next;
  if (!stream->first)
    stream->last = NULL;
  pthread_mutex_unlock(&stream->lock);

  work_do(&node->work,
          node->work.payload_bytes > 0 ? node->payload : node->work.argument);

  pthread_mutex_lock(&stream->lock);
  node->next = stream->spare;
  stream->spare = node;
  pthread_mutex_unlock(&stream->lock);
  uint64_t completed =
      atomic_load_explicit(&stream->completed, memory_order_relaxed) + 1;
  atomic_store(&stream->completed, completed);
  atomic_store(&stream->done, (uint32_t)completed);
  if (atomic_load(&stream->waiters) > 0)
    host_futex_wake(&stream->done);
}

/* Executes until `ticket` is completed; returns early when another thread
 * executes. */
static void help(host_stream_t *stream, uint64_t ticket) {
  while (atomic_load(&stream->completed) < ticket) {
    int free = 0;
    if (!atomic_compare_exchange_strong(&stream->owner, &free, 1))
      return;
    while (atomic_load_explicit(&stream->completed, memory_order_relaxed) <
           ticket)
      step(stream);
    atomic_store(&stream->owner, 0);
    if (pending(stream))
      worker_wake(stream);
  }
}

static void *worker_main(void *argument) {
  host_stream_t *stream = argument;
  int turn = 0;
  for (;;) {
    if (pending(stream) && atomic_load(&stream->owner) == 0) {
      help(stream, atomic_load(&stream->submitted));
      turn = 0;
      continue;
    }
    if (host_wait_turn(turn++))
      continue;
    atomic_store(&stream->worker, WORKER_ASLEEP);
    /* Who submits, or stops executing, after this look sees ASLEEP. */
    if (!(pending(stream) && atomic_load(&stream->owner) == 0))
      host_futex_wait(&stream->worker, WORKER_ASLEEP);
    atomic_store(&stream->worker, WORKER_AWAKE);
    turn = 0;
  }
  return NULL;
}

/* The program's signals are for the program's threads. */
static bool worker_start(host_stream_t *stream) {
  pthread_attr_t attributes;
  sigset_t all, before;
  pthread_t thread;
  if (pthread_attr_init(&attributes) != 0)
    return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, &attributes, worker_main, stream);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

/* ---- points ---- */

bool host_point_passed(host_point_t point) {
  return !point.stream || atomic_load(&point.stream->completed) >= point.ticket;
}

void host_point_wait(host_point_t point) {
  host_stream_t *stream = point.stream;
  for (int turn = 0; !host_point_passed(point); turn++) {
    if (help_depth < HELP_DEPTH_MAX) {
      help_depth++;
      help(stream, point.ticket);
      help_depth--;
      if (host_point_passed(point))
        return;
    }
    if (host_wait_turn(turn))
      continue;
    atomic_fetch_add(&stream->waiters, 1);
    uint32_t done = atomic_load(&stream->done);
    if (!host_point_passed(point))
      host_futex_wait(&stream->done, done);
    atomic_fetch_sub(&stream->waiters, 1);
  }
}

static cudaError_t wait_run(void *argument) {
  host_point_wait(*(const host_point_t *)argument);
  return cudaSuccess;
}

/* ---- submitting ---- */

static node_t *node_take(host_stream_t *stream) {
  node_t *node = stream->spare;
  if (node)
    stream->spare = node->next;
  else
    node = aligned_alloc(64, (sizeof *node + 63) / 64 * 64);
  return node;
}

/* Appends without regard to other streams. On failure the work is released. */
static cudaError_t push_raw(host_stream_t *stream, const host_work_t *work,
                            host_point_t *out_point) {
  pthread_mutex_lock(&stream->lock);
  bool ready = true;
  if (HOST_UNLIKELY(atomic_load(&stream->worker) == WORKER_NONE)) {
    atomic_store(&stream->worker, WORKER_AWAKE);
    ready = worker_start(stream);
    if (!ready)
      atomic_store(&stream->worker, WORKER_NONE);
  }
  node_t *node = ready ? node_take(stream) : NULL;
  if (!node) {
    pthread_mutex_unlock(&stream->lock);
    if (work->release)
      work->release(work->payload_bytes > 0 ? (void *)work->payload
                                            : work->argument);
    return cudaErrorMemoryAllocation;
  }
  node->next = NULL;
  node->work = *work;
  if (work->payload_bytes > 0)
    memcpy(node->payload, work->payload, work->payload_bytes);
  if (stream->last)
    stream->last->next = node;
  else
    stream->first = node;
  stream->last = node;
  uint64_t ticket =
      atomic_load_explicit(&stream->submitted, memory_order_relaxed) + 1;
  atomic_store(&stream->submitted, ticket);
  pthread_mutex_unlock(&stream->lock);
  if (out_point)
    *out_point = (host_point_t){stream, ticket};
  /* A busy owner looks again, and wakes the worker, before it goes. */
  if (atomic_load(&stream->owner) == 0)
    worker_wake(stream);
  return cudaSuccess;
}

cudaError_t host_stream_join(host_stream_t *stream, host_point_t point) {
  if (point.stream == stream || host_point_passed(point))
    return cudaSuccess;
  return push_raw(stream,
                  &(host_work_t){.run = wait_run,
                                 .payload = &point,
                                 .payload_bytes = sizeof point},
                  NULL);
}

/* The legacy stream waits for all blocking streams ... */
static cudaError_t join_blocking(host_stream_t *legacy) {
  int count = atomic_load(&table_count);
  for (int i = 1; i < count; i++) {
    host_stream_t *other = &table[i];
    if (!atomic_load_explicit(&other->blocking, memory_order_relaxed))
      continue;
    host_point_t point = {other, atomic_load(&other->submitted)};
    if (host_point_passed(point) ||
        atomic_load(&other->legacy_saw) >= point.ticket)
      continue;
    cudaError_t error = host_stream_join(legacy, point);
    if (error)
      return error;
    atomic_store(&other->legacy_saw, point.ticket);
  }
  return cudaSuccess;
}

/* ... and a blocking stream for the legacy stream. */
static cudaError_t join_legacy(host_stream_t *stream) {
  host_stream_t *legacy = &table[0];
  host_point_t point = {legacy, atomic_load(&legacy->submitted)};
  if (HOST_LIKELY(host_point_passed(point)) ||
      atomic_load(&stream->joined) >= point.ticket)
    return cudaSuccess;
  cudaError_t error = host_stream_join(stream, point);
  if (error == cudaSuccess)
    atomic_store(&stream->joined, point.ticket);
  return error;
}

static cudaError_t join_rules(host_stream_t *stream) {
  if (stream == &table[0])
    return join_blocking(stream);
  return atomic_load_explicit(&stream->blocking, memory_order_relaxed)
             ? join_legacy(stream)
             : cudaSuccess;
}

cudaError_t host_stream_push(host_stream_t *stream, const host_work_t *work,
                             host_point_t *out_point) {
  cudaError_t error = join_rules(stream);
  if (HOST_UNLIKELY(error != cudaSuccess)) {
    if (work->release)
      work->release(work->payload_bytes > 0 ? (void *)work->payload
                                            : work->argument);
    return error;
  }
  return push_raw(stream, work, out_point);
}

cudaError_t host_stream_end(host_stream_t *stream, host_point_t *out_point) {
  cudaError_t error = join_rules(stream);
  if (error == cudaSuccess)
    *out_point = (host_point_t){stream, atomic_load(&stream->submitted)};
  return error;
}

/* ---- opening and closing ---- */

static void stream_init(host_stream_t *stream, unsigned flags, int priority) {
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_id++;
  atomic_store(&stream->blocking, (flags & cudaStreamNonBlocking) == 0);
  atomic_store(&stream->alive, true);
}

/* A device reset may have taken the stream away and given it to others. */
static bool thread_stream_valid(void) {
  return thread_stream && atomic_load(&thread_stream->alive) &&
         thread_stream->id == thread_stream_id;
}

static void thread_stream_close(void *stream) {
  if (thread_stream_valid())
    host_stream_close(stream);
}

static void legacy_start(void) {
  pthread_mutex_lock(&table_lock);
  pthread_mutex_init(&table[0].lock, NULL);
  stream_init(&table[0], cudaStreamDefault, 0);
  atomic_store(&table_count, 1);
  pthread_mutex_unlock(&table_lock);
  pthread_key_create(&thread_key, thread_stream_close);
}

host_stream_t *host_stream_legacy(void) {
  pthread_once(&legacy_once, legacy_start);
  return &table[0];
}

host_stream_t *host_stream_open(unsigned flags, int priority) {
  host_stream_legacy();
  host_stream_t *stream = NULL;
  pthread_mutex_lock(&table_lock);
  int count = atomic_load(&table_count);
  for (int i = 1; i < count && !stream; i++)
    if (!atomic_load(&table[i].alive) && !pending(&table[i]))
      stream = &table[i];
  if (!stream && count < STREAMS_MAX) {
    stream = &table[count];
    pthread_mutex_init(&stream->lock, NULL);
  }
  if (stream)
    stream_init(stream, flags, priority);
  if (stream == &table[count])
    atomic_store(&table_count, count + 1);
  pthread_mutex_unlock(&table_lock);
  return stream;
}

void host_stream_close(host_stream_t *stream) {
  pthread_mutex_lock(&table_lock);
  atomic_store(&stream->alive, false);
  pthread_mutex_unlock(&table_lock);
}

static host_stream_t *per_thread(void) {
  if (HOST_LIKELY(thread_stream_valid()))
    return thread_stream;
  thread_stream = host_stream_open(cudaStreamDefault, 0);
  if (thread_stream) {
    thread_stream_id = thread_stream->id;
    pthread_setspecific(thread_key, thread_stream);
  }
  return thread_stream;
}

host_stream_t *host_stream_get(cudaStream_t handle) {
  host_stream_t *legacy = host_stream_legacy();
  if (handle == NULL || handle == cudaStreamLegacy)
    return legacy;
  if (handle == cudaStreamPerThread)
    return per_thread();
  size_t offset = (size_t)((char *)handle - (char *)table);
  if (offset >= sizeof table || offset % sizeof table[0] != 0 ||
      handle == legacy || !atomic_load(&handle->alive))
    return NULL;
  return handle;
}

void host_stream_wait_all(void) {
  host_stream_legacy();
  int count = atomic_load(&table_count);
  for (int i = 0; i < count; i++)
    host_point_wait(
        (host_point_t){&table[i], atomic_load(&table[i].submitted)});
}

void host_stream_close_all(void) {
  int count = atomic_load(&table_count);
  pthread_mutex_lock(&table_lock);
  for (int i = 1; i < count; i++)
    atomic_store(&table[i].alive, false);
  pthread_mutex_unlock(&table_lock);
}

unsigned host_stream_flags(const host_stream_t *stream) {
  return stream->flags;
}

int host_stream_priority(const host_stream_t *stream) {
  return stream->priority;
}

unsigned long long host_stream_id(const host_stream_t *stream) {
  return stream->id;
}

cudaError_t host_stream_submit(cudaStream_t handle,
                               cudaError_t (*run)(void *argument),
                               void *argument,
                               void (*release)(void *argument)) {
  cudaError_t error = host_enter();
  host_stream_t *stream = error ? NULL : host_stream_get(handle);
  if (HOST_UNLIKELY(!stream)) {
    if (release)
      release(argument);
    return error ? error : host_result(cudaErrorInvalidResourceHandle);
  }
  return host_result(host_stream_push(
      stream,
      &(host_work_t){.run = run, .argument = argument, .release = release},
      NULL));
}

int host_stream_capturing(cudaStream_t stream) {
  (void)stream;
  return 0; /* capture is refused: see cudaStreamBeginCapture */
}
