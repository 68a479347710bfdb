// SPDX-License-Identifier: Apache-2.0
// What nvcc compiles into a program: its device code is recorded when it is
// registered, and refused when it is launched.
#include "src/host/cudart/device/kernel.h"
#include "src/host/cudart/internal.h"

// The compiler's own headers declare these, and C cannot include them.
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterVar(void **handle, char *host, char *device,
                       const char *name, int external, size_t bytes,
                       int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device,
                              const char *name, int external, size_t bytes,
                              int constant, int global);
void __cudaRegisterHostVar(void **handle, const char *name, char *host,
                           size_t bytes);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                       size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
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

// ---- registration ----

void **__cudaRegisterFatBinary(void *binary) {
  static void *handle;
  host_kernel_begin();
  handle = binary;
  return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
  (void)handle;
}

void __cudaUnregisterFatBinary(void **handle) {
  (void)handle;
}

void __cudaRegisterVar(void **handle, char *host, char *device,
                       const char *name, int external, size_t bytes,
                       int constant, int global) {
  (void)handle, (void)host, (void)device, (void)name, (void)external;
  (void)bytes, (void)constant, (void)global;
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device,
                              const char *name, int external, size_t bytes,
                              int constant, int global) {
  (void)handle, (void)host, (void)device, (void)name, (void)external;
  (void)bytes, (void)constant, (void)global;
}

void __cudaRegisterHostVar(void **handle, const char *name, char *host,
                           size_t bytes) {
  (void)handle, (void)name, (void)host, (void)bytes;
}

char __cudaInitModule(void **handle) {
  (void)handle;
  return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp) {
  (void)handle, (void)device, (void)thread_limit;
  (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
  host_kernel_register(host, name);
}

// ---- launches ----

static _Thread_local struct {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
} pushed;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                     cudaStream_t stream) {
  pushed.grid = grid;
  pushed.block = block;
  pushed.shared_bytes = shared_bytes;
  pushed.stream = stream;
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                       size_t *shared_bytes, void *stream) {
  *grid = pushed.grid;
  *block = pushed.block;
  *shared_bytes = pushed.shared_bytes;
  *(cudaStream_t *)stream = pushed.stream;
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function) {
  *kernel = (cudaKernel_t)function;
  return cudaSuccess;
}

static cudaError_t refuse_launch(const void *function) {
  host_kernel_refuse(function);
  cudaError_t error = host_enter();
  return error ? error : host_result(cudaErrorNotSupported);
}

cudaError_t cudaLaunchKernel(const void *func, dim3 gridDim, dim3 blockDim,
                             void **args, size_t sharedMem,
                             cudaStream_t stream) {
  (void)gridDim, (void)blockDim, (void)args, (void)sharedMem, (void)stream;
  return refuse_launch(func);
}

cudaError_t cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block,
                                  void **args, size_t shared_bytes,
                                  cudaStream_t stream) {
  return cudaLaunchKernel(function, grid, block, args, shared_bytes, stream);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void **args, size_t shared_bytes,
                               cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block,
                                    void **args, size_t shared_bytes,
                                    cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *func, void **args) {
  (void)config, (void)args;
  return refuse_launch(func);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config,
                                     const void *function, void **args) {
  return cudaLaunchKernelExC(config, function, args);
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 gridDim,
                                        dim3 blockDim, void **args,
                                        size_t sharedMem, cudaStream_t stream) {
  return cudaLaunchKernel(func, gridDim, blockDim, args, sharedMem, stream);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void *function, dim3 grid,
                                             dim3 block, void **args,
                                             size_t shared_bytes,
                                             cudaStream_t stream) {
  return cudaLaunchKernel(function, grid, block, args, shared_bytes, stream);
}

// ---- questions about kernels: all refused, so that Thrust and CUB, which ask
// before they launch, stop here ----

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr,
                                  const void *func) {
  (void)attr;
  if (host_kernel_known(func))
    host_kernel_refuse(func);
  return host_result(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr,
                                 int value) {
  (void)func, (void)attr, (void)value;
  return host_result(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncSetCacheConfig(const void *func,
                                   enum cudaFuncCache cacheConfig) {
  (void)func, (void)cacheConfig;
  return host_result(cudaErrorInvalidDeviceFunction);
}

struct cudaChannelFormatDesc
cudaCreateChannelDesc(int x, int y, int z, int w,
                      enum cudaChannelFormatKind f) {
  return (struct cudaChannelFormatDesc){x, y, z, w, f};
}
