// SPDX-License-Identifier: Apache-2.0
// Ordered queues of work. Each has a worker thread, and threads that wait for a
// queue help to empty it.
//
// A queue counts the work submitted and the work completed. A point in it is a
// number (a ticket), and has passed when `completed` reaches it. The thread
// that sets `owner` executes: the worker, or a thread that waits for a point. A
// worker does not start early to wait for another queue: a thread that waits
// for both may arrive first and run what follows without a change of threads.
// The structures are never freed and their counters never decrease, so a point
// outlives its stream.
#include "src/host/cudart/stream/queue.h"
#include "src/host/cudart/stream/wait.h"
#include "src/host/thread.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  HELP_DEPTH_MAX = 16, // depth of waits that one thread executes itself
  HELP_STACK_BYTES =
      1 << 20,      // stack that a thread needs to execute what it waits for
  QUEUE_MAX = 1024, // a program that is further ahead has to wait
};

static _Thread_local int help_depth;

// ---- executing ----

static void worker_wake(host_stream_t *stream) {
  uint32_t asleep = HOST_WORKER_ASLEEP;
  if (atomic_load(&stream->worker) == HOST_WORKER_ASLEEP &&
      atomic_compare_exchange_strong(&stream->worker, &asleep,
                                     HOST_WORKER_AWAKE))
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

// The point that the work waits for, if that has not passed.
static host_point_t obstacle(const host_node_t *node) {
  host_point_t point = {NULL, 0};
  if (node->work.waits && host_sticky() == cudaSuccess)
    memcpy(&point, node->payload, sizeof point);
  return host_point_passed(point) ? (host_point_t){NULL, 0} : point;
}

uint64_t host_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Gives the node of the work that is done back, and calls its marks. Later work
// cannot be marked in its place, because it is not yet counted as completed.
static void done(host_stream_t *stream, host_node_t *node) {
  host_mark_t mark[HOST_MARKS];
  pthread_mutex_lock(&stream->lock);
  int marks = node->marks;
  memcpy(mark, node->mark, sizeof mark);
  stream->running = NULL;
  node->next = stream->spare;
  stream->spare = node;
  pthread_mutex_unlock(&stream->lock);
  uint64_t now_ns = marks ? host_now_ns() : 0;
  for (int i = 0; i < marks; i++)
    mark[i].note(mark[i].what, mark[i].number, now_ns);
}

// Does the first piece of work. The caller is the owner and the queue is not
// empty. With `out_obstacle`, work that waits for a point is not started;
// *out_obstacle is that point.
static bool step(host_stream_t *stream, host_point_t *out_obstacle) {
  pthread_mutex_lock(&stream->lock);
  host_node_t *node = stream->first;
  if (out_obstacle) {
    *out_obstacle = obstacle(node);
    if (out_obstacle->stream) {
      pthread_mutex_unlock(&stream->lock);
      return false;
    }
  }
  stream->first = node->next;
  if (!stream->first)
    stream->last = NULL;
  stream->running = node;
  pthread_mutex_unlock(&stream->lock);

  work_do(&node->work,
          node->work.payload_bytes > 0 ? node->payload : node->work.argument);

  done(stream, node);
  uint64_t completed =
      atomic_load_explicit(&stream->completed, memory_order_relaxed) + 1;
  atomic_store(&stream->completed, completed);
  if (completed >= atomic_load(&stream->wanted)) {
    atomic_store(&stream->wanted, UINT64_MAX);
    atomic_fetch_add(&stream->bell, 1);
    host_futex_wake(&stream->bell);
  }
  return true;
}

// Executes until `ticket` is completed. Returns early if another thread
// executes, or with `out_obstacle` as step() does.
static void help(host_stream_t *stream, uint64_t ticket,
                 host_point_t *out_obstacle) {
  bool goes_on = true;
  while (goes_on && atomic_load(&stream->completed) < ticket) {
    int free = 0;
    if (!atomic_compare_exchange_strong(&stream->owner, &free, 1))
      return;
    while (goes_on && atomic_load_explicit(&stream->completed,
                                           memory_order_relaxed) < ticket)
      goes_on = step(stream, out_obstacle);
    atomic_store(&stream->owner, 0);
    if (host_queue_pending(stream))
      worker_wake(stream);
  }
}

// Sleeps unless the point has passed; may return before it has. A sleeper first
// lowers `wanted` to its ticket. The thread that completes that ticket resets
// `wanted`, rings the bell and wakes all sleepers. A sleeper that lowers
// `wanted` between these steps does not sleep, because the bell's value has
// changed.
static void point_sleep(host_point_t point) {
  host_stream_t *stream = point.stream;
  uint32_t bell = atomic_load(&stream->bell);
  uint64_t wanted = atomic_load(&stream->wanted);
  while (point.ticket < wanted &&
         !atomic_compare_exchange_weak(&stream->wanted, &wanted, point.ticket))
    ;
  if (!host_point_passed(point))
    host_futex_wait(&stream->bell, bell);
}

// Waits for the point. When it has passed, another thread may be the first to
// take the work.
static void obstacle_wait(host_point_t point) {
  for (int turn = 0; !host_point_passed(point); turn++)
    if (turn < HOST_WAIT_PAUSES)
      host_pause();
    else
      point_sleep(point);
}

static void *worker_main(void *argument) {
  host_stream_t *stream = argument;
  int turn = 0;
  for (;;) {
    bool executed = atomic_load(&stream->owner) != 0; // another thread executes
    if (host_queue_pending(stream) && !executed) {
      host_point_t point = {NULL, 0};
      help(stream, atomic_load(&stream->submitted), &point);
      obstacle_wait(point);
      turn = 0;
      continue;
    }
    // If the owner leaves work behind, it wakes the worker.
    if ((!executed || turn < HOST_WAIT_PAUSES) && host_wait_turn(turn++))
      continue;
    atomic_store(&stream->worker, HOST_WORKER_ASLEEP);
    // A thread that submits or stops executing after this test sees ASLEEP.
    if (!(host_queue_pending(stream) && atomic_load(&stream->owner) == 0))
      host_futex_wait(&stream->worker, HOST_WORKER_ASLEEP);
    atomic_store(&stream->worker, HOST_WORKER_AWAKE);
    turn = 0;
  }
  return NULL;
}

// ---- points ----

bool host_point_passed(host_point_t point) {
  return !point.stream || atomic_load(&point.stream->completed) >= point.ticket;
}

// Work for a GPU needs no stack of the waiting thread.
static bool may_help(void) {
  static _Thread_local enum { UNKNOWN, YES, NO } answer;
  if (HOST_UNLIKELY(answer == UNKNOWN)) {
    pthread_attr_t mine;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &mine) == 0) {
      pthread_attr_getstacksize(&mine, &bytes);
      pthread_attr_destroy(&mine);
    }
    answer = bytes >= HELP_STACK_BYTES ? YES : NO;
  }
  return answer == YES && help_depth < HELP_DEPTH_MAX;
}

void host_point_wait(host_point_t point) {
  host_stream_t *stream = point.stream;
  for (int turn = 0; !host_point_passed(point); turn++) {
    if (may_help()) {
      help_depth++;
      help(stream, point.ticket, NULL);
      help_depth--;
      if (host_point_passed(point))
        return;
    }
    if (host_wait_turn(turn))
      continue;
    point_sleep(point);
  }
}

// ---- submitting ----

static host_node_t *host_node_take(host_stream_t *stream) {
  host_node_t *node = stream->spare;
  if (node)
    stream->spare = node->next;
  else
    node = aligned_alloc(64, (sizeof *node + 63) / 64 * 64);
  return node;
}

// With the lock held. NULL if there is no memory or no thread.
static host_node_t *append(host_stream_t *stream, const host_work_t *work) {
  if (HOST_UNLIKELY(atomic_load(&stream->worker) == HOST_WORKER_NONE)) {
    atomic_store(&stream->worker, HOST_WORKER_AWAKE);
    if (host_thread_start(NULL, worker_main, stream) != 0) {
      atomic_store(&stream->worker, HOST_WORKER_NONE);
      return NULL;
    }
  }
  host_node_t *node = host_node_take(stream);
  if (!node)
    return NULL;
  node->next = NULL;
  node->work = *work;
  node->marks = 0;
  if (work->payload_bytes > 0)
    memcpy(node->payload, work->payload, work->payload_bytes);
  if (stream->last)
    stream->last->next = node;
  else
    stream->first = node;
  stream->last = node;
  atomic_fetch_add(&stream->submitted, 1);
  return node;
}

// With the lock held: what has been submitted.
static host_point_t submitted_point(host_stream_t *stream) {
  return (host_point_t){
      stream, atomic_load_explicit(&stream->submitted, memory_order_relaxed)};
}

cudaError_t host_queue_push(host_stream_t *stream, const host_work_t *work,
                            host_point_t *out_point) {
  pthread_mutex_lock(&stream->lock);
  const host_node_t *node = append(stream, work);
  host_point_t point = submitted_point(stream);
  pthread_mutex_unlock(&stream->lock);
  if (!node) {
    if (work->release)
      work->release(work->payload_bytes > 0 ? (void *)work->payload
                                            : work->argument);
    return cudaErrorMemoryAllocation;
  }
  if (out_point)
    *out_point = point;
  // A busy owner tests again, and wakes the worker, before it leaves.
  if (atomic_load(&stream->owner) == 0)
    worker_wake(stream);
  return cudaSuccess;
}

cudaError_t host_queue_mark(host_stream_t *stream, host_mark_t mark,
                            host_point_t *out_point) {
  pthread_mutex_lock(&stream->lock);
  host_node_t *node = stream->last ? stream->last : stream->running;
  bool fits = node && node->marks < HOST_MARKS;
  if (!fits)
    node = append(stream, &(host_work_t){0});
  if (node)
    node->mark[node->marks++] = mark;
  *out_point = submitted_point(stream);
  pthread_mutex_unlock(&stream->lock);
  if (!node)
    return cudaErrorMemoryAllocation;
  if (!fits && atomic_load(&stream->owner) == 0)
    worker_wake(stream);
  return cudaSuccess;
}

void host_stream_throttle(host_stream_t *stream) {
  uint64_t submitted =
      atomic_load_explicit(&stream->submitted, memory_order_relaxed);
  uint64_t completed =
      atomic_load_explicit(&stream->completed, memory_order_relaxed);
  if (HOST_UNLIKELY(submitted > completed + QUEUE_MAX))
    host_point_wait((host_point_t){stream, submitted - QUEUE_MAX / 2});
}
