// SPDX-License-Identifier: Apache-2.0
// cudaMemset*: lines, planes and boxes, blocking and in streams.
#include "src/host/cudart/graph/capture.h"
#include "src/host/cudart/memory/copy.h"

static cudaError_t set_do(void *pointer, size_t pitch, size_t slice, int value,
                          struct cudaExtent extent, cudaStream_t stream,
                          bool wait) {
  cudaError_t error = host_enter();
  if (error || extent.width == 0 || extent.height == 0 || extent.depth == 0)
    return error;
  bool pageable;
  host_copy_t copy = {.to = {pointer, pitch, slice},
                      .width = extent.width,
                      .height = extent.height,
                      .depth = extent.depth,
                      .value = value};
  if (extent.width > pitch)
    return host_result(cudaErrorInvalidValue);
  host_stream_t *found = host_stream_get(stream);
  if (found && host_captured(found))
    return host_result(host_capture_add(
        found, (host_deed_t){.type = cudaGraphNodeTypeMemset,
                             .fill = {{pointer, pitch, (unsigned char)value, 1,
                                       extent.width, extent.height},
                                      slice,
                                      extent.depth}}));
  error = wait ? host_capture_legacy() : cudaSuccess;
  if (error == cudaSuccess && wait)
    error = host_capture_unsafe();
  if (error == cudaSuccess)
    error = host_side_resolve(&copy, &copy.to, HOST_EXPECT_DEVICE, &pageable);
  // The blocking form waits only if the host can see the result.
  wait = wait && !host_address_is_guarded(pointer);
  if (error == cudaSuccess)
    error = host_copy_submit(&copy, stream, wait, false, false);
  return host_result(error);
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count) {
  return set_do(devPtr, count, count, value, (struct cudaExtent){count, 1, 1},
                NULL, true);
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
                            cudaStream_t stream) {
  return set_do(devPtr, count, count, value, (struct cudaExtent){count, 1, 1},
                stream, false);
}

cudaError_t cudaMemset2D(void *devPtr, size_t pitch, int value, size_t width,
                         size_t height) {
  return set_do(devPtr, pitch, pitch * height, value,
                (struct cudaExtent){width, height, 1}, NULL, true);
}

cudaError_t cudaMemset2DAsync(void *devPtr, size_t pitch, int value,
                              size_t width, size_t height,
                              cudaStream_t stream) {
  return set_do(devPtr, pitch, pitch * height, value,
                (struct cudaExtent){width, height, 1}, stream, false);
}

static cudaError_t set_3d(struct cudaPitchedPtr to, int value,
                          struct cudaExtent extent, cudaStream_t stream,
                          bool wait) {
  if (extent.depth > 1 && extent.height > to.ysize)
    return host_result(cudaErrorInvalidValue);
  return set_do(to.ptr, to.pitch, to.pitch * to.ysize, value, extent, stream,
                wait);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr pitchedDevPtr, int value,
                         struct cudaExtent extent) {
  return set_3d(pitchedDevPtr, value, extent, NULL, true);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr pitchedDevPtr, int value,
                              struct cudaExtent extent, cudaStream_t stream) {
  return set_3d(pitchedDevPtr, value, extent, stream, false);
}
