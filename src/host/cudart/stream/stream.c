// SPDX-License-Identifier: Apache-2.0
// All streams, and how they wait for each other.
//
// A wait of one stream for another is a piece of work that waits for a point.
// Points only lie in the past, so waits cannot form a cycle.
#include "src/host/cudart/stream/ending.h"
#include "src/host/cudart/stream/queue.h"

enum { STREAMS_MAX = 4096 };

// Guards opening and closing; taken before a stream's lock.
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static host_stream_t table[STREAMS_MAX]; // [0] is the legacy stream
static _Atomic int table_count = 0;      // ever used
static unsigned long long next_id = 1;
static pthread_once_t legacy_once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;
static _Thread_local host_stream_t *thread_stream;
static _Thread_local unsigned long long thread_stream_id;

void host_stream_count(uint64_t *out_submitted, uint64_t *out_completed) {
  int count = atomic_load(&table_count);
  *out_submitted = *out_completed = 0;
  for (int i = 0; i < count; i++) {
    *out_completed += atomic_load(&table[i].completed);
    *out_submitted += atomic_load(&table[i].submitted);
  }
}

// ---- waiting for each other ----

static cudaError_t wait_run(void *argument) {
  host_point_wait(*(const host_point_t *)argument);
  return cudaSuccess;
}

cudaError_t host_stream_join(host_stream_t *stream, host_point_t point) {
  if (point.stream == stream || host_point_passed(point))
    return cudaSuccess;
  return host_queue_push(stream,
                         &(host_work_t){.run = wait_run,
                                        .payload = &point,
                                        .payload_bytes = sizeof point,
                                        .waits = true},
                         NULL);
}

// The legacy stream waits for all blocking streams ...
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

// ... and a blocking stream for the legacy stream.
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

// Captured work becomes a node of a graph and never reaches this function.
static cudaError_t capture_rules(host_stream_t *stream) {
  if (HOST_LIKELY(atomic_load_explicit(&host_captures, memory_order_relaxed) ==
                  0))
    return cudaSuccess;
  if (host_capture_has(stream))
    return host_capture_spoil(stream, cudaErrorStreamCaptureUnsupported);
  return stream == &table[0] ? host_capture_legacy() : cudaSuccess;
}

cudaError_t host_stream_push(host_stream_t *stream, const host_work_t *work,
                             host_point_t *out_point) {
  host_ending_prepare();
  cudaError_t error = capture_rules(stream);
  if (error == cudaSuccess)
    error = join_rules(stream);
  if (HOST_UNLIKELY(error != cudaSuccess)) {
    if (work->release)
      work->release(work->payload_bytes > 0 ? (void *)work->payload
                                            : work->argument);
    return error;
  }
  return host_queue_push(stream, work, out_point);
}

cudaError_t host_stream_end(host_stream_t *stream, host_point_t *out_point) {
  cudaError_t error = capture_rules(stream);
  if (error == cudaSuccess)
    error = join_rules(stream);
  if (error == cudaSuccess)
    *out_point = (host_point_t){stream, atomic_load(&stream->submitted)};
  return error;
}

// ---- opening and closing ----

static void stream_init(host_stream_t *stream, unsigned flags, int priority) {
  stream->flags = flags;
  stream->priority = priority;
  stream->id = next_id++;
  atomic_store(&stream->blocking, (flags & cudaStreamNonBlocking) == 0);
  atomic_store(&stream->alive, true);
}

// A device reset may have freed the stream for other threads.
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
    if (!atomic_load(&table[i].alive) && !host_queue_pending(&table[i]))
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
  if (host_captured(stream))
    host_capture_close(stream);
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

bool host_stream_any_captured(unsigned long long id, bool blocking) {
  int count = atomic_load(&table_count);
  for (int i = 1; i < count; i++)
    if (table[i].tips.capture == id &&
        (!blocking || atomic_load(&table[i].blocking)))
      return true;
  return false;
}

void host_stream_uncapture(unsigned long long id) {
  int count = atomic_load(&table_count);
  for (int i = 1; i < count; i++)
    if (table[i].tips.capture == id)
      host_tips_drop(&table[i].tips);
}

void host_stream_close_all(void) {
  int count = atomic_load(&table_count);
  for (int i = 1; i < count; i++)
    if (host_captured(&table[i]))
      host_capture_close(&table[i]);
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

static cudaError_t submit(cudaStream_t handle, host_work_t work,
                          void *(*again)(const void *argument)) {
  cudaError_t error = host_enter();
  host_stream_t *stream = error ? NULL : host_stream_get(handle);
  if (HOST_UNLIKELY(!stream)) {
    if (work.release)
      work.release(work.argument);
    return error ? error : host_result(cudaErrorInvalidResourceHandle);
  }
  if (host_captured(stream) && again)
    return host_result(host_capture_add(
        stream, (host_deed_t){.type = cudaGraphNodeTypeKernel,
                              .task = host_task_create(work.run, work.argument,
                                                       work.release, again)}));
  host_stream_throttle(stream);
  return host_result(host_stream_push(stream, &work, NULL));
}

cudaError_t host_stream_submit(cudaStream_t stream,
                               cudaError_t (*run)(void *argument),
                               void *argument,
                               void (*release)(void *argument)) {
  return submit(
      stream,
      (host_work_t){.run = run, .argument = argument, .release = release},
      NULL);
}

cudaError_t host_stream_submit_again(cudaStream_t stream,
                                     cudaError_t (*run)(void *argument),
                                     void *argument,
                                     void (*release)(void *argument),
                                     void *(*again)(const void *argument)) {
  return submit(
      stream,
      (host_work_t){.run = run, .argument = argument, .release = release},
      again);
}

int host_stream_capturing(cudaStream_t handle) {
  host_stream_t *stream = host_stream_get(handle);
  return stream && host_captured(stream);
}
