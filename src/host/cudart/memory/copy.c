// SPDX-License-Identifier: Apache-2.0
// Copies boxes of bytes between host and device, at once or in a stream.
//
// A pageable source is read before the call returns: a small one is copied to a
// staging buffer. For a larger one, and for a pageable destination, the call
// waits for the stream.
#include "src/host/cudart/memory/copy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
  STAGE_BYTES = 64 << 10, // pageable sources up to here are staged
  STAGES_KEPT = 64,
  AT_ONCE_BYTES = 32 << 10, // copied by the caller if the stream is idle
};

_Static_assert(sizeof(host_copy_t) <= HOST_PAYLOAD_BYTES,
               "fits in a queue node");

// ---- staging buffers ----

typedef union stage {
  union stage *next;
  char bytes[STAGE_BYTES];
} stage_t;

static pthread_mutex_t stage_lock = PTHREAD_MUTEX_INITIALIZER;
static stage_t *stages;
static int stages_kept;

static void *stage_take(void) {
  pthread_mutex_lock(&stage_lock);
  stage_t *stage = stages;
  if (stage) {
    stages = stage->next;
    stages_kept--;
  }
  pthread_mutex_unlock(&stage_lock);
  return stage ? stage : malloc(sizeof(stage_t));
}

static void stage_give(void *memory) {
  stage_t *stage = memory;
  pthread_mutex_lock(&stage_lock);
  if (stages_kept < STAGES_KEPT) {
    stage->next = stages;
    stages = stage;
    stages_kept++;
    stage = NULL;
  }
  pthread_mutex_unlock(&stage_lock);
  free(stage);
}

// ---- moving bytes ----

static bool packed(const host_side_t *side, size_t width, size_t height) {
  return side->pitch == width && side->slice == width * height;
}

static void copy_rows(const host_copy_t *copy, char *to, const char *from,
                      size_t height, size_t width) {
  for (size_t y = 0; y < height; y++) {
    char *row = to + y * copy->to.pitch;
    if (copy->from.at)
      memmove(row, from + y * copy->from.pitch, width);
    else if (copy->element < 2)
      memset(row, copy->value, width);
    else
      for (size_t x = 0; x < width; x += copy->element)
        memcpy(row + x, &copy->value, copy->element);
  }
}

static cudaError_t copy_run(void *argument) {
  const host_copy_t *copy = argument;
  size_t width = copy->width, height = copy->height, depth = copy->depth;
  bool whole = packed(&copy->to, width, height) &&
               (!copy->from.at || packed(&copy->from, width, height));
  if (whole) {
    width *= height * depth;
    height = depth = 1;
  }
  for (size_t z = 0; z < depth; z++)
    copy_rows(copy, copy->to.at + z * copy->to.slice,
              copy->from.at ? copy->from.at + z * copy->from.slice : NULL,
              height, width);
  return cudaSuccess;
}

static void copy_release(void *argument) {
  const host_copy_t *copy = argument;
  if (copy->stage)
    stage_give(copy->stage);
}

// ---- checking the sides ----

// Bytes from the first to the last of a box; false if they do not fit in
// size_t.
static bool span_of(const host_copy_t *copy, const host_side_t *side,
                    size_t *out_bytes) {
  size_t rows, slices, sum;
  return !__builtin_mul_overflow(copy->height - 1, side->pitch, &rows) &&
         !__builtin_mul_overflow(copy->depth - 1, side->slice, &slices) &&
         !__builtin_add_overflow(rows, slices, &sum) &&
         !__builtin_add_overflow(sum, copy->width, out_bytes);
}

cudaError_t host_side_resolve(const host_copy_t *copy, host_side_t *side,
                              host_expected_t expected, bool *out_pageable) {
  size_t bytes;
  if (!side->at || !span_of(copy, side, &bytes))
    return cudaErrorInvalidValue;
  char *at = host_memory_resolve(side->at, bytes);
  bool guarded = host_address_is_guarded(side->at);
  *out_pageable = !at;
  if (!at && (guarded || expected == HOST_EXPECT_DEVICE))
    return cudaErrorInvalidValue;
  if (guarded && expected == HOST_EXPECT_HOST)
    return cudaErrorInvalidValue;
  if (at)
    side->at = at;
  return cudaSuccess;
}

// ---- carrying out ----

cudaError_t host_copy_push(host_copy_t *copy, host_stream_t *stream) {
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
    return cudaSuccess;
  return host_stream_push(stream,
                          &(host_work_t){.run = copy_run,
                                         .release = copy_release,
                                         .payload = copy,
                                         .payload_bytes = sizeof *copy},
                          NULL);
}

// Waits for the stream and copies at once.
static cudaError_t copy_now(host_copy_t *copy, host_point_t before) {
  host_point_wait(before);
  if (host_sticky())
    return host_sticky();
  return copy_run(copy);
}

static void copy_stage(host_copy_t *copy) {
  host_copy_t pack = *copy;
  pack.to = (host_side_t){copy->stage, copy->width, copy->width * copy->height};
  copy_run(&pack);
  copy->from = pack.to;
}

cudaError_t host_copy_submit(host_copy_t *copy, cudaStream_t handle, bool wait,
                             bool pageable_to, bool pageable_from) {
  host_stream_t *stream = host_stream_get(handle);
  host_point_t before;
  if (!stream)
    return cudaErrorInvalidResourceHandle;
  cudaError_t error = host_stream_end(stream, &before);
  if (error)
    return error;
  size_t bytes = copy->width * copy->height * copy->depth;
  bool small = bytes <= AT_ONCE_BYTES && host_point_passed(before);
  if (wait || small || pageable_to || (pageable_from && bytes > STAGE_BYTES))
    return copy_now(copy, before);
  if (pageable_from) {
    copy->stage = stage_take();
    if (!copy->stage)
      return copy_now(copy, before);
    copy_stage(copy);
  }
  host_stream_throttle(stream);
  return host_copy_push(copy, stream);
}
