// SPDX-License-Identifier: Apache-2.0
// Launches of kernels: the program's function that stands for a kernel is
// called in its place.
#include <stddef.h>

#include "src/host/cudart/device/kernel.h"
#include "src/host/cudart/graph/capture.h"

// The compiler's own headers declare these, and C cannot include them.
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void **args, size_t shared_bytes,
                               cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                    void **args, size_t shared_bytes,
                                    cudaStream_t stream);
cudaError_t cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block,
                                  void **args, size_t shared_bytes,
                                  cudaStream_t stream);
cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config,
                                     const void *function, void **args);
cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *function, dim3 grid,
                                             dim3 block, void **args,
                                             size_t shared_bytes,
                                             cudaStream_t stream);

typedef struct launch {
  host_twin_t *twin;
  dim3 grid, block;
  void **args;
} launch_t;

// The twin uses addresses as a kernel does, so device memory is readable at
// them meanwhile, for the whole process.
static cudaError_t launch_run(void *argument) {
  const launch_t *launch = argument;
  if (!host_region_expose())
    return cudaErrorMemoryAllocation;
  host_in_callback++;
  launch->twin(launch->grid, launch->block, launch->args);
  host_in_callback--;
  host_region_hide();
  return cudaSuccess;
}

static bool within(dim3 size, unsigned x, unsigned y, unsigned z) {
  return size.x >= 1 && size.y >= 1 && size.z >= 1 && size.x <= x &&
         size.y <= y && size.z <= z;
}

static bool is_launchable(dim3 grid, dim3 block) {
  enum { THREADS_MAX = 1024, GRID_MAX = 65535 };
  return within(grid, INT32_MAX, GRID_MAX, GRID_MAX) &&
         within(block, THREADS_MAX, THREADS_MAX, 64) &&
         (size_t)block.x * block.y * block.z <= THREADS_MAX;
}

// Nothing tells the sizes of the arguments, so they cannot be copied: the
// launch returns when the twin has.
static cudaError_t launch(const void *function, dim3 grid, dim3 block,
                          void **args, cudaStream_t stream) {
  launch_t work = {host_kernel_twin(function), grid, block, args};
  host_point_t point;
  if (!work.twin)
    host_kernel_refuse(function);
  cudaError_t error = host_enter();
  if (error)
    return error;
  if (!work.twin)
    return host_result(cudaErrorNotSupported);
  host_stream_t *found = host_stream_get(stream);
  if (!found)
    return host_result(cudaErrorInvalidResourceHandle);
  if (!is_launchable(grid, block))
    return host_result(cudaErrorInvalidConfiguration);
  if (host_captured(found)) {
    host_log("kernel %s is not captured: on the host device no graph can have "
             "kernels",
             host_kernel_name(function));
    return host_result(host_capture_spoil(found, cudaErrorNotSupported));
  }
  error = host_stream_push(
      found, &(host_work_t){.run = launch_run, .argument = &work}, &point);
  if (error == cudaSuccess)
    host_point_wait(point);
  return host_result(error);
}

static cudaStream_t of_thread(cudaStream_t stream) {
  return stream ? stream : cudaStreamPerThread;
}

cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim,
                             void **args, size_t sharedMem,
                             cudaStream_t stream) {
  (void)sharedMem;
  return launch(func, gridDim, blockDim, args, stream);
}

cudaError_t cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block,
                                  void **args, size_t shared_bytes,
                                  cudaStream_t stream) {
  (void)shared_bytes;
  return launch(function, grid, block, args, of_thread(stream));
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void **args, size_t shared_bytes,
                               cudaStream_t stream) {
  (void)shared_bytes;
  return launch(kernel, grid, block, args, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                    void **args, size_t shared_bytes,
                                    cudaStream_t stream) {
  (void)shared_bytes;
  return launch(kernel, grid, block, args, of_thread(stream));
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *func, void **args) {
  if (!config)
    return host_result(cudaErrorInvalidValue);
  return launch(func, config->gridDim, config->blockDim, args, config->stream);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config,
                                     const void *function, void **args) {
  if (!config)
    return host_result(cudaErrorInvalidValue);
  return launch(function, config->gridDim, config->blockDim, args,
                of_thread(config->stream));
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim,
                                        dim3 blockDim, void **args,
                                        size_t sharedMem, cudaStream_t stream) {
  (void)sharedMem;
  return launch(func, gridDim, blockDim, args, stream);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *function, dim3 grid,
                                             dim3 block, void **args,
                                             size_t shared_bytes,
                                             cudaStream_t stream) {
  (void)shared_bytes;
  return launch(function, grid, block, args, of_thread(stream));
}
