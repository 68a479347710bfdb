// SPDX-License-Identifier: Apache-2.0
// cudaMemcpy*: lines, planes and boxes, blocking and in streams.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/memory/copy.h"

static cudaError_t kind_expects(enum cudaMemcpyKind kind,
                                host_expected_t *out_to,
                                host_expected_t *out_from) {
  static const host_expected_t table[][2] = {
      [cudaMemcpyHostToHost] = {HOST_EXPECT_HOST, HOST_EXPECT_HOST},
      [cudaMemcpyHostToDevice] = {HOST_EXPECT_DEVICE, HOST_EXPECT_HOST},
      [cudaMemcpyDeviceToHost] = {HOST_EXPECT_HOST, HOST_EXPECT_DEVICE},
      [cudaMemcpyDeviceToDevice] = {HOST_EXPECT_DEVICE, HOST_EXPECT_DEVICE},
      [cudaMemcpyDefault] = {HOST_EXPECT_ANY, HOST_EXPECT_ANY},
  };
  if ((int)kind < 0 || (size_t)kind >= sizeof table / sizeof table[0])
    return cudaErrorInvalidMemcpyDirection;
  *out_to = table[kind][0];
  *out_from = table[kind][1];
  return cudaSuccess;
}

// Replaces both addresses by ones that the host can use.
static cudaError_t sides_resolve(host_copy_t *copy, enum cudaMemcpyKind kind,
                                 bool *out_pageable_to,
                                 bool *out_pageable_from) {
  host_expected_t to, from;
  cudaError_t error = kind_expects(kind, &to, &from);
  if (error == cudaSuccess)
    error = host_side_resolve(copy, &copy->to, to, out_pageable_to);
  if (error == cudaSuccess)
    error = host_side_resolve(copy, &copy->from, from, out_pageable_from);
  return error;
}

static struct cudaPitchedPtr pitched(const host_side_t *side, size_t width) {
  return (struct cudaPitchedPtr){side->at, side->pitch, width,
                                 side->pitch > 0 ? side->slice / side->pitch
                                                 : 0};
}

// The graph node for a copy in a captured stream.
static host_deed_t copy_deed(const host_copy_t *copy,
                             enum cudaMemcpyKind kind) {
  return (host_deed_t){
      .type = cudaGraphNodeTypeMemcpy,
      .copy = {.dstPtr = pitched(&copy->to, copy->width),
               .srcPtr = pitched(&copy->from, copy->width),
               .extent = {copy->width, copy->height, copy->depth},
               .kind = kind}};
}

static cudaError_t copy_do(host_copy_t *copy, enum cudaMemcpyKind kind,
                           cudaStream_t stream, bool wait) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  bool pageable_to, pageable_from;
  host_expected_t to, from;
  error = kind_expects(kind, &to, &from);
  if (error == cudaSuccess && wait)
    error = host_capture_legacy();
  if (error == cudaSuccess && wait)
    error = host_capture_unsafe();
  if (error)
    return host_result(error);
  if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
    return cudaSuccess;
  host_stream_t *found = host_stream_get(stream);
  if (found && host_captured(found))
    return host_result(host_capture_add(found, copy_deed(copy, kind)));
  error = sides_resolve(copy, kind, &pageable_to, &pageable_from);
  if (error == cudaSuccess)
    error = host_copy_submit(copy, stream, wait, pageable_to, pageable_from);
  return host_result(error);
}

static host_copy_t box_1d(void *to, const void *from, size_t count) {
  return (host_copy_t){.to = {to, count, count},
                       .from = {(char *)from, count, count},
                       .width = count,
                       .height = 1,
                       .depth = 1};
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
                       enum cudaMemcpyKind kind) {
  host_copy_t copy = box_1d(dst, src, count);
  return copy_do(&copy, kind, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
                            enum cudaMemcpyKind kind, cudaStream_t stream) {
  host_copy_t copy = box_1d(dst, src, count);
  return copy_do(&copy, kind, stream, false);
}

// CUDA 13.2 and later; older headers do not declare it.
cudaError_t cudaMemcpyWithAttributesAsync(void *dst, const void *src,
                                          size_t size,
                                          struct cudaMemcpyAttributes *attr,
                                          cudaStream_t stream);
cudaError_t cudaMemcpyWithAttributesAsync(void *dst, const void *src,
                                          size_t size,
                                          struct cudaMemcpyAttributes *attr,
                                          cudaStream_t stream) {
  if (!attr)
    return host_result(cudaErrorInvalidValue);
  return cudaMemcpyAsync(dst, src, size, cudaMemcpyDefault, stream);
}

static cudaError_t copy_2d(void *dst, size_t dpitch, const void *src,
                           size_t spitch, size_t width, size_t height,
                           enum cudaMemcpyKind kind, cudaStream_t stream,
                           bool wait) {
  if (width > dpitch || width > spitch)
    return host_result(cudaErrorInvalidPitchValue);
  host_copy_t copy = {.to = {dst, dpitch, dpitch * height},
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
                           host_side_t *out_side) {
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
  *out_side = (host_side_t){(char *)pointer->ptr + position.z * slice +
                                position.y * pointer->pitch + position.x,
                            pointer->pitch, slice};
  return cudaSuccess;
}

// The box of bytes that the structure describes. Its width is 0 if there is
// nothing to copy.
static cudaError_t box_3d(const struct cudaMemcpy3DParms *p,
                          host_copy_t *out_copy) {
  *out_copy = (host_copy_t){0};
  if (!p || p->srcArray || p->dstArray)
    return cudaErrorInvalidValue;
  struct cudaExtent extent = p->extent;
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0)
    return cudaSuccess;
  *out_copy = (host_copy_t){
      .width = extent.width, .height = extent.height, .depth = extent.depth};
  cudaError_t error = side_3d(&p->dstPtr, p->dstPos, extent, &out_copy->to);
  return error ? error
               : side_3d(&p->srcPtr, p->srcPos, extent, &out_copy->from);
}

cudaError_t host_copy_from(const struct cudaMemcpy3DParms *p,
                           host_copy_t *out_copy) {
  bool pageable_to, pageable_from;
  cudaError_t error = box_3d(p, out_copy);
  if (error || out_copy->width == 0)
    return error;
  return sides_resolve(out_copy, p->kind, &pageable_to, &pageable_from);
}

static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p,
                           cudaStream_t stream, bool wait) {
  host_copy_t copy;
  cudaError_t error = box_3d(p, &copy);
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

// ---- between devices: only one exists ----

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
