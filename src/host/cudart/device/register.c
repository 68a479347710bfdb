// SPDX-License-Identifier: Apache-2.0
// What nvcc compiles into a program: its device code is recorded when it is
// registered.
#include <string.h>

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

// ---- what a launch is told ----

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

// ---- questions about kernels: refused where none could be launched, so that
// Thrust and CUB, which ask before they launch, stop here ----

cudaError_t cudaFuncGetName(const char **name, const void *func) {
  const char *found = host_kernel_name(func);
  if (!name)
    return host_result(cudaErrorInvalidValue);
  if (!found)
    return host_result(cudaErrorInvalidDeviceFunction);
  *name = found;
  return cudaSuccess;
}

// The device code would tell.
cudaError_t cudaFuncGetParamInfo(const void *func, size_t paramIndex,
                                 size_t *paramOffset, size_t *paramSize) {
  (void)func, (void)paramIndex, (void)paramOffset, (void)paramSize;
  return host_result(cudaErrorNotSupported);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr,
                                  const void *func) {
  enum { THREADS_MAX = 1024 };
  if (host_kernel_twin(func)) {
    if (!attr)
      return host_result(cudaErrorInvalidValue);
    memset(attr, 0, sizeof *attr);
    attr->maxThreadsPerBlock = THREADS_MAX;
    return cudaSuccess;
  }
  if (host_kernel_known(func))
    host_kernel_refuse(func);
  return host_result(cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attr,
                                 int value) {
  (void)attr, (void)value;
  return host_result(host_kernel_twin(func) ? cudaSuccess
                                            : cudaErrorInvalidDeviceFunction);
}

cudaError_t cudaFuncSetCacheConfig(const void *func,
                                   enum cudaFuncCache cacheConfig) {
  (void)cacheConfig;
  return host_result(host_kernel_twin(func) ? cudaSuccess
                                            : cudaErrorInvalidDeviceFunction);
}

struct cudaChannelFormatDesc
cudaCreateChannelDesc(int x, int y, int z, int w,
                      enum cudaChannelFormatKind f) {
  return (struct cudaChannelFormatDesc){x, y, z, w, f};
}
