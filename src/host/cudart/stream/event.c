// SPDX-License-Identifier: Apache-2.0
// cudaEvent*: points in streams, with a handle and, if asked for, a time.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/memory/pool.h"
#include "src/host/cudart/stream/queue.h"

#include <pthread.h>
#include <sys/mman.h>

enum { EVENTS_MAX = 1 << 20 };

struct CUevent_st {
  pthread_mutex_t lock; // taken before a stream's lock
  _Atomic bool alive;
  unsigned flags;
  cudaEvent_t next_free;
  host_tips_t tips;   // the position, if recorded in a capture
  host_point_t point; // stream is NULL before the first record
  uint64_t record;    // number of records since the structure exists
  uint64_t time_ns;
};

// Guards the table and the free list; taken before no other lock.
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUevent_st *table; // reserved once, never freed
static _Atomic int table_count;
static cudaEvent_t free_events;

static const unsigned known_flags =
    cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;

// ---- handles ----

static cudaEvent_t take_locked(void) {
  cudaEvent_t event = free_events;
  if (event) {
    free_events = event->next_free;
    return event;
  }
  if (!table) {
    void *at = mmap(NULL, EVENTS_MAX * sizeof *table, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
      return NULL;
    table = at;
  }
  if (table_count == EVENTS_MAX)
    return NULL;
  event = &table[table_count];
  pthread_mutex_init(&event->lock, NULL);
  atomic_fetch_add(&table_count, 1);
  return event;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!event || (flags & ~known_flags) != 0 ||
      ((flags & cudaEventInterprocess) && !(flags & cudaEventDisableTiming)))
    return host_result(cudaErrorInvalidValue);
  pthread_mutex_lock(&table_lock);
  cudaEvent_t taken = take_locked();
  pthread_mutex_unlock(&table_lock);
  if (!taken)
    return host_result(cudaErrorMemoryAllocation);
  pthread_mutex_lock(&taken->lock);
  taken->flags = flags;
  taken->point = (host_point_t){NULL, 0};
  atomic_store(&taken->alive, true);
  pthread_mutex_unlock(&taken->lock);
  *event = taken;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

static bool is_event(cudaEvent_t event) {
  size_t offset = (size_t)((char *)event - (char *)table);
  size_t used = (size_t)atomic_load(&table_count) * sizeof *table;
  return event && offset < used && offset % sizeof *table == 0 &&
         atomic_load(&event->alive);
}

static cudaError_t event_check(cudaEvent_t event) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  return host_result(is_event(event) ? cudaSuccess
                                     : cudaErrorInvalidResourceHandle);
}

static void event_close(cudaEvent_t event) {
  pthread_mutex_lock(&table_lock);
  if (atomic_exchange(&event->alive, false)) {
    pthread_mutex_lock(&event->lock);
    host_tips_drop(&event->tips);
    pthread_mutex_unlock(&event->lock);
    event->next_free = free_events;
    free_events = event;
  }
  pthread_mutex_unlock(&table_lock);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaError_t error = event_check(event);
  if (error == cudaSuccess)
    event_close(event);
  return error;
}

void host_event_close_all(void) {
  int count = atomic_load(&table_count);
  for (int i = 0; i < count; i++)
    event_close(&table[i]);
}

// ---- recording ----

static void stamp(void *argument, uint64_t record, uint64_t now_ns) {
  cudaEvent_t event = argument;
  pthread_mutex_lock(&event->lock);
  if (event->record == record)
    event->time_ns = now_ns;
  pthread_mutex_unlock(&event->lock);
}

static cudaError_t record_locked(cudaEvent_t event, host_stream_t *stream) {
  host_tips_drop(&event->tips);
  host_point_t point;
  cudaError_t error = host_stream_end(stream, &point);
  if (error)
    return error;
  uint64_t record = ++event->record;
  if (!(event->flags & cudaEventDisableTiming)) {
    if (host_point_passed(point)) {
      event->time_ns = host_now_ns();
    } else {
      error =
          host_queue_mark(stream, (host_mark_t){stamp, event, record}, &point);
    }
  }
  if (error == cudaSuccess)
    event->point = point;
  return error;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                     unsigned int flags) {
  cudaError_t error = event_check(event);
  if (error)
    return error;
  host_stream_t *found = host_stream_get(stream);
  if (!found)
    return host_result(cudaErrorInvalidResourceHandle);
  if (flags != cudaEventRecordDefault && flags != cudaEventRecordExternal)
    return host_result(cudaErrorInvalidValue);
  if (!host_captured(found))
    return host_result(host_event_push(event, found));
  if (flags == cudaEventRecordExternal)
    return host_result(host_capture_add(
        found,
        (host_deed_t){.type = cudaGraphNodeTypeEventRecord, .event = event}));
  pthread_mutex_lock(&event->lock);
  error = host_tips_take(found, &event->tips);
  pthread_mutex_unlock(&event->lock);
  return host_result(error);
}

bool host_event_known(cudaEvent_t event) {
  return is_event(event);
}

cudaError_t host_event_push(cudaEvent_t event, host_stream_t *stream) {
  pthread_mutex_lock(&event->lock);
  cudaError_t error = record_locked(event, stream);
  pthread_mutex_unlock(&event->lock);
  return error;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

// ---- waiting ----

static host_point_t point_of(cudaEvent_t event) {
  pthread_mutex_lock(&event->lock);
  host_point_t point = event->point;
  pthread_mutex_unlock(&event->lock);
  return point;
}

cudaError_t host_event_await(cudaEvent_t event, host_stream_t *stream) {
  return host_stream_join(stream, point_of(event));
}

// The capture that the event was last recorded in; 0 if none.
static unsigned long long event_captured(cudaEvent_t event) {
  pthread_mutex_lock(&event->lock);
  unsigned long long capture = event->tips.capture;
  pthread_mutex_unlock(&event->lock);
  return capture;
}

// event_check for a thread that waits for the event.
static cudaError_t event_check_wait(cudaEvent_t event) {
  cudaError_t error = event_check(event);
  unsigned long long capture = error ? 0 : event_captured(event);
  if (error == cudaSuccess)
    error = host_result(capture ? host_capture_event(capture)
                                : host_capture_unsafe());
  return error;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  cudaError_t error = event_check_wait(event);
  if (error)
    return error;
  return host_result(host_point_passed(point_of(event)) ? host_sticky()
                                                        : cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cudaError_t error = event_check_wait(event);
  if (error)
    return error;
  host_point_wait(point_of(event));
  host_pool_settle();
  return host_result(host_sticky());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned int flags) {
  cudaError_t error = event_check(event);
  if (error)
    return error;
  host_stream_t *found = host_stream_get(stream);
  if (!found)
    return host_result(cudaErrorInvalidResourceHandle);
  if (flags != cudaEventWaitDefault && flags != cudaEventWaitExternal)
    return host_result(cudaErrorInvalidValue);
  if (event_captured(event)) {
    pthread_mutex_lock(&event->lock);
    error = host_capture_join(found, &event->tips);
    pthread_mutex_unlock(&event->lock);
  } else if (!host_captured(found)) {
    error = host_event_await(event, found);
  } else if (flags == cudaEventWaitExternal) {
    error = host_capture_add(
        found,
        (host_deed_t){.type = cudaGraphNodeTypeWaitEvent, .event = event});
  } else {
    error = host_capture_spoil(found, cudaErrorStreamCaptureIsolation);
  }
  return host_result(error);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start,
                                 cudaEvent_t end) {
  cudaError_t error = event_check(start);
  if (error == cudaSuccess)
    error = event_check(end);
  if (error)
    return error;
  if (!ms)
    return host_result(cudaErrorInvalidValue);
  cudaEvent_t events[2] = {start, end};
  uint64_t time_ns[2];
  for (int i = 0; i < 2; i++) {
    cudaEvent_t event = events[i];
    pthread_mutex_lock(&event->lock);
    if ((event->flags & cudaEventDisableTiming) || !event->point.stream)
      error = cudaErrorInvalidResourceHandle;
    else if (!host_point_passed(event->point) && error == cudaSuccess)
      error = cudaErrorNotReady;
    time_ns[i] = event->time_ns;
    pthread_mutex_unlock(&event->lock);
  }
  if (error)
    return host_result(error);
  *ms = (float)((double)(int64_t)(time_ns[1] - time_ns[0]) * 1e-6);
  return host_result(host_sticky());
}
