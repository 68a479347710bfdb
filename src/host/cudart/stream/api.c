// SPDX-License-Identifier: Apache-2.0
// cudaStream*: creates streams, waits for them, runs the program's host
// functions.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/memory/pool.h"

enum { PRIORITY_LEAST = 0, PRIORITY_GREATEST = -5 };

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                         unsigned int flags, int priority) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!stream || (flags & ~(unsigned)cudaStreamNonBlocking) != 0)
    return host_result(cudaErrorInvalidValue);
  if (priority > PRIORITY_LEAST)
    priority = PRIORITY_LEAST;
  if (priority < PRIORITY_GREATEST)
    priority = PRIORITY_GREATEST;
  host_stream_t *opened = host_stream_open(flags, priority);
  if (!opened)
    return host_result(cudaErrorMemoryAllocation);
  *stream = opened;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
                                      unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority,
                                             int *greatestPriority) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  if (leastPriority)
    *leastPriority = PRIORITY_LEAST;
  if (greatestPriority)
    *greatestPriority = PRIORITY_GREATEST;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_stream_t *found = host_stream_get(stream);
  if (!found || found != stream)
    return host_result(cudaErrorInvalidResourceHandle);
  host_stream_close(found);
  return cudaSuccess;
}

// The first step of every function on an existing stream.
static cudaError_t stream_find(cudaStream_t stream,
                               host_stream_t **out_stream) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  *out_stream = host_stream_get(stream);
  return host_result(*out_stream ? cudaSuccess
                                 : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  host_stream_t *found;
  host_point_t point;
  cudaError_t error = stream_find(stream, &found);
  if (error)
    return error;
  error = host_stream_end(found, &point);
  if (error == cudaSuccess)
    error = host_capture_unsafe();
  if (error)
    return host_result(error);
  host_point_wait(point);
  host_pool_settle();
  return host_result(host_sticky());
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  host_stream_t *found;
  host_point_t point;
  cudaError_t error = stream_find(stream, &found);
  if (error)
    return error;
  error = host_stream_end(found, &point);
  if (error == cudaSuccess)
    error = host_capture_unsafe();
  if (error == cudaSuccess && !host_point_passed(point))
    error = cudaErrorNotReady;
  return host_result(error ? error : host_sticky());
}

// The stream of a question whose answer has room.
static cudaError_t stream_asked(cudaStream_t stream, const void *answer,
                                host_stream_t **out) {
  cudaError_t error = stream_find(stream, out);
  if (!error && !answer)
    error = host_result(cudaErrorInvalidValue);
  return error;
}

cudaError_t cudaStreamGetFlags(cudaStream_t hStream, unsigned int *flags) {
  host_stream_t *found;
  cudaError_t error = stream_asked(hStream, flags, &found);
  if (error)
    return error;
  *flags = host_stream_flags(found);
  return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t hStream, int *priority) {
  host_stream_t *found;
  cudaError_t error = stream_asked(hStream, priority, &found);
  if (error)
    return error;
  *priority = host_stream_priority(found);
  return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t hStream,
                            unsigned long long *streamId) {
  host_stream_t *found;
  cudaError_t error = stream_asked(hStream, streamId, &found);
  if (error)
    return error;
  *streamId = host_stream_id(found);
  return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t hStream, int *device) {
  host_stream_t *found;
  cudaError_t error = stream_asked(hStream, device, &found);
  if (error)
    return error;
  *device = 0;
  return cudaSuccess;
}

// ---- host functions ----

typedef struct callback {
  cudaStream_t stream;
  cudaStreamCallback_t callback; // or NULL:
  cudaHostFn_t function;
  void *data;
} callback_t;

static cudaError_t callback_run(void *argument) {
  const callback_t *call = argument;
  host_in_callback++;
  if (call->callback)
    call->callback(call->stream, host_sticky(), call->data);
  else
    call->function(call->data);
  host_in_callback--;
  return cudaSuccess;
}

static cudaError_t callback_push(host_stream_t *stream, callback_t call,
                                 bool always) {
  return host_stream_push(stream,
                          &(host_work_t){.run = callback_run,
                                         .payload = &call,
                                         .payload_bytes = sizeof call,
                                         .always = always},
                          NULL);
}

cudaError_t host_function_push(cudaHostFn_t function, void *data,
                               host_stream_t *stream) {
  return callback_push(stream, (callback_t){.function = function, .data = data},
                       false);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn,
                               void *userData) {
  host_stream_t *found;
  if (!fn)
    return host_result(cudaErrorInvalidValue);
  cudaError_t error = stream_find(stream, &found);
  if (error)
    return error;
  if (host_captured(found))
    return host_result(
        host_capture_add(found, (host_deed_t){.type = cudaGraphNodeTypeHost,
                                              .host = {fn, userData}}));
  return host_result(host_function_push(fn, userData, found));
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                  cudaStreamCallback_t callback, void *userData,
                                  unsigned int flags) {
  host_stream_t *found;
  if (!callback || flags != 0)
    return host_result(cudaErrorInvalidValue);
  cudaError_t error = stream_find(stream, &found);
  if (error)
    return error;
  return host_result(callback_push(
      found,
      (callback_t){.stream = stream, .callback = callback, .data = userData},
      true));
}
