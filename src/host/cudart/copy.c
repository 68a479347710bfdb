// SPDX-License-Identifier: Apache-2.0
// cudaMemcpy* and cudaMemset*: boxes of bytes between host and device.
//
// Every copy is a box of depth slices of height rows of width bytes. A host
// side that is pageable is read before the call returns: a small one is staged,
// a larger one, and a pageable destination, make the call wait for the stream.
#include "src/host/cudart/internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
  STAGE_BYTES = 64 << 10, /* pageable sources up to here are staged */
  STAGES_KEPT = 64,
  AT_ONCE_BYTES = 32 << 10, /* done by the caller if the stream is idle */
};

/* One side of a copy, in bytes. */
typedef struct side {
  char *at;
  size_t pitch, slice;
} side_t;

typedef struct copy {
  side_t to, from;
  size_t width, height, depth;
  void *stage; /* to be given back */
  int value;   /* of a memset, whose from.at is NULL */
} copy_t;

_Static_assert(sizeof(copy_t) <= HOST_PAYLOAD_BYTES, "fits in a queue node");

/* ---- staging buffers ---- */

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

/* ---- moving bytes ---- */

static bool packed(const side_t *side, size_t width, size_t height) {
  return side->pitch == width && side->slice == width * height;
}

static void copy_rows(const copy_t *copy, char *to, const char *from,
                      size_t height, size_t width) {
  for (size_t y = 0; y < height; y++) {
    if (copy->from.at)
      memmove(to + y * copy->to.pitch, from + y * copy->from.pitch, width);
    else
      memset(to + y * copy->to.pitch, copy->value, width);
  }
}

static cudaError_t copy_run(void *argument) {
  const copy_t *copy = argument;
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
  const copy_t *copy = argument;
  if (copy->stage)
    stage_give(copy->stage);
}

/* ---- judging the sides ---- */

typedef enum expected {
  EXPECT_ANY,
  EXPECT_HOST,
  EXPECT_DEVICE,
} expected_t;

/* Bytes from the first to the last of a box; false if not representable. */
static bool span_of(const copy_t *copy, const side_t *side, size_t *out_bytes) {
  size_t rows, slices, sum;
  return !__builtin_mul_overflow(copy->height - 1, side->pitch, &rows) &&
         !__builtin_mul_overflow(copy->depth - 1, side->slice, &slices) &&
         !__builtin_add_overflow(rows, slices, &sum) &&
         !__builtin_add_overflow(sum, copy->width, out_bytes);
}

/* Turns the program's address of a side into one that can be used. */
static cudaError_t side_resolve(const copy_t *copy, side_t *side,
                                expected_t expected, bool *out_pageable) {
  size_t bytes;
  if (!side->at || !span_of(copy, side, &bytes))
    return cudaErrorInvalidValue;
  char *at = host_memory_resolve(side->at, bytes);
  bool guarded = host_address_is_guarded(side->at);
  *out_pageable = !at;
  if (!at && (guarded || expected == EXPECT_DEVICE))
    return cudaErrorInvalidValue;
  if (guarded && expected == EXPECT_HOST)
    return cudaErrorInvalidValue;
  if (at)
    side->at = at;
  return cudaSuccess;
}

static cudaError_t kind_expects(enum cudaMemcpyKind kind, expected_t *out_to,
                                expected_t *out_from) {
  static const expected_t table[][2] = {
      [cudaMemcpyHostToHost] = {EXPECT_HOST, EXPECT_HOST},
      [cudaMemcpyHostToDevice] = {EXPECT_DEVICE, EXPECT_HOST},
      [cudaMemcpyDeviceToHost] = {EXPECT_HOST, EXPECT_DEVICE},
      [cudaMemcpyDeviceToDevice] = {EXPECT_DEVICE, EXPECT_DEVICE},
      [cudaMemcpyDefault] = {EXPECT_ANY, EXPECT_ANY},
  };
  if ((int)kind < 0 || (size_t)kind >= sizeof table / sizeof table[0])
    return cudaErrorInvalidMemcpyDirection;
  *out_to = table[kind][0];
  *out_from = table[kind][1];
  return cudaSuccess;
}

/* ---- carrying out ---- */

/* Waits for the stream and copies at once. */
static cudaError_t copy_now(copy_t *copy, host_point_t before) {
  host_point_wait(before);
  if (host_sticky())
    return host_sticky();
  return copy_run(copy);
}

static void copy_stage(copy_t *copy) {
  copy_t pack = *copy;
  pack.to = (side_t){copy->stage, copy->width, copy->width * copy->height};
  copy_run(&pack);
  copy->from = pack.to;
}

/* Runs a copy whose sides are resolved, or queues it. */
static cudaError_t copy_submit(copy_t *copy, cudaStream_t handle, bool wait,
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
  return host_stream_push(stream,
                          &(host_work_t){.run = copy_run,
                                         .release = copy_release,
                                         .payload = copy,
                                         .payload_bytes = sizeof *copy},
                          NULL);
}

static cudaError_t copy_do(copy_t *copy, enum cudaMemcpyKind kind,
                           cudaStream_t stream, bool wait) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  expected_t to, from;
  bool pageable_to, pageable_from;
  error = kind_expects(kind, &to, &from);
  if (error)
    return host_result(error);
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
    return cudaSuccess;
  error = side_resolve(copy, &copy->to, to, &pageable_to);
  if (error == cudaSuccess)
    error = side_resolve(copy, &copy->from, from, &pageable_from);
  if (error == cudaSuccess)
    error = copy_submit(copy, stream, wait, pageable_to, pageable_from);
  return host_result(error);
}

static copy_t box_1d(void *to, const void *from, size_t count) {
  return (copy_t){.to = {to, count, count},
                  .from = {(char *)from, count, count},
                  .width = count,
                  .height = 1,
                  .depth = 1};
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
                       enum cudaMemcpyKind kind) {
  copy_t copy = box_1d(dst, src, count);
  return copy_do(&copy, kind, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
  copy_t copy = box_1d(dst, src, count);
  return copy_do(&copy, kind, stream, false);
}

static cudaError_t copy_2d(void *dst, size_t dpitch, const void *src,
                           size_t spitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, cudaStream_t stream,
                           bool wait) {
  if (width > dpitch || width > spitch)
    return host_result(cudaErrorInvalidPitchValue);
  copy_t copy = {.to = {dst, dpitch, dpitch * height},
                 .from = {(char *)src, spitch, spitch * height},
                 .width = width,
                 .height = height,
                 .depth = 1};
  return copy_do(&copy, kind, stream, wait);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dpitch, const void *src,
                         size_t spitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
  return copy_2d(dst, dpitch, src, spitch, width, height, kind, NULL, true);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dpitch, const void *src,
                              size_t spitch, size_t width, size_t height,
                              enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_2d(dst, dpitch, src, spitch, width, height, kind, stream, false);
}

static cudaError_t side_3d(const struct cudaPitchedPtr *pointer,
                           struct cudaPos position, struct cudaExtent extent,
                           side_t *out_side) {
  if (!pointer->ptr)
    return cudaErrorInvalidValue;
  if (extent.width > pointer->pitch || position.x > pointer->pitch ||
      position.x + extent.width > pointer->pitch)
    return cudaErrorInvalidPitchValue;
  if ((extent.depth > 1 || position.z > 0) &&
      (position.y > pointer->ysize ||
       extent.height > pointer->ysize - position.y))
    return cudaErrorInvalidValue;
  size_t slice = pointer->pitch * pointer->ysize;
  *out_side = (side_t){(char *)pointer->ptr + position.z * slice +
                           position.y * pointer->pitch + position.x,
                       pointer->pitch, slice};
  return cudaSuccess;
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p,
                           cudaStream_t stream, bool wait) {
  if (!p || p->srcArray || p->dstArray)
    return host_result(cudaErrorInvalidValue);
  struct cudaExtent extent = p->extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0)
    return host_enter();
  copy_t copy = {
      .width = extent.width, .height = extent.height, .depth = extent.depth};
  cudaError_t error = side_3d(&p->dstPtr, p->dstPos, extent, &copy.to);
  if (error == cudaSuccess)
    error = side_3d(&p->srcPtr, p->srcPos, extent, &copy.from);
  if (error)
    return host_result(error);
  return copy_do(&copy, p->kind, stream, wait);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) {
  return copy_3d(p, NULL, true);
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p,
                              cudaStream_t stream) {
  return copy_3d(p, stream, false);
}

/* ---- between devices: there is one ---- */

cudaError_t cudaMemcpyPeer(void *dst, int dstDevice, const void *src,
                           int srcDevice, size_t count) {
  if (dstDevice != 0 || srcDevice != 0)
    return host_result(cudaErrorInvalidDevice);
  return cudaMemcpy(dst, src, count, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src,
                                int srcDevice, size_t count,
                                cudaStream_t stream) {
  if (dstDevice != 0 || srcDevice != 0)
    return host_result(cudaErrorInvalidDevice);
  return cudaMemcpyAsync(dst, src, count, cudaMemcpyDeviceToDevice, stream);
}

static cudaError_t peer_3d(const struct cudaMemcpy3DPeerParms *p,
                           cudaStream_t stream, bool wait) {
  if (!p || p->srcArray || p->dstArray)
    return host_result(cudaErrorInvalidValue);
  if (p->srcDevice != 0 || p->dstDevice != 0)
    return host_result(cudaErrorInvalidDevice);
  struct cudaMemcpy3DParms plain = {.srcPos = p->srcPos,
                                    .srcPtr = p->srcPtr,
                                    .dstPos = p->dstPos,
                                    .dstPtr = p->dstPtr,
                                    .extent = p->extent,
                                    .kind = cudaMemcpyDeviceToDevice};
  return copy_3d(&plain, stream, wait);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p) {
  return peer_3d(p, NULL, true);
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p,
                                  cudaStream_t stream) {
  return peer_3d(p, stream, false);
}

/* ---- memset ---- */

static cudaError_t set_do(void *pointer, size_t pitch, size_t slice, int value,
                          struct cudaExtent extent, cudaStream_t stream) {
  cudaError_t error = host_enter();
  if (error || extent.width == 0 || extent.height == 0 || extent.depth == 0)
    return error;
  bool pageable;
  copy_t copy = {.to = {pointer, pitch, slice},
                 .width = extent.width,
                 .height = extent.height,
                 .depth = extent.depth,
                 .value = value};
  if (extent.width > pitch)
    return host_result(cudaErrorInvalidValue);
  error = side_resolve(&copy, &copy.to, EXPECT_DEVICE, &pageable);
  if (error == cudaSuccess)
    error = copy_submit(&copy, stream, false, false, false);
  return host_result(error);
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
                            cudaStream_t stream) {
  return set_do(devPtr, count, count, value, (struct cudaExtent){count, 1, 1},
                stream);
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count) {
  return cudaMemsetAsync(devPtr, value, count, NULL);
}

cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value,
                              size_t width, size_t height,
                              cudaStream_t stream) {
  return set_do(devPtr, pitch, pitch * height, value,
                (struct cudaExtent){width, height, 1}, stream);
}

cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width,
                         size_t height) {
  return cudaMemset2DAsync(devPtr, pitch, value, width, height, NULL);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
                              struct cudaExtent extent, cudaStream_t stream) {
  if (extent.depth > 1 && extent.height > pitchedDevPtr.ysize)
    return host_result(cudaErrorInvalidValue);
  return set_do(pitchedDevPtr.ptr, pitchedDevPtr.pitch,
                pitchedDevPtr.pitch * pitchedDevPtr.ysize, value, extent,
                stream);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
                         struct cudaExtent extent) {
  return cudaMemset3DAsync(pitchedDevPtr, value, extent, NULL);
}
