/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime's functions as the driver API's work-alike (cuda/) calls
 * them. A library preloaded in front of the runtime does not see these calls,
 * as on a GPU. */
#ifndef SDG_SRC_HOST_RUNTIME_H
#define SDG_SRC_HOST_RUNTIME_H

#include <stdbool.h>

#include "src/host/host.h"

/* Functions that are the same in CUDA 12 and 13. */
#define HOST_RUNTIME(X)                                                        \
  X(cudaDeviceCanAccessPeer)                                                   \
  X(cudaDeviceGetAttribute)                                                    \
  X(cudaDeviceGetByPCIBusId)                                                   \
  X(cudaDeviceGetCacheConfig)                                                  \
  X(cudaDeviceGetDefaultMemPool)                                               \
  X(cudaDeviceGetLimit)                                                        \
  X(cudaDeviceGetMemPool)                                                      \
  X(cudaDeviceGetPCIBusId)                                                     \
  X(cudaDeviceGetStreamPriorityRange)                                          \
  X(cudaDeviceReset)                                                           \
  X(cudaDeviceSetCacheConfig)                                                  \
  X(cudaDeviceSetLimit)                                                        \
  X(cudaDeviceSynchronize)                                                     \
  X(cudaDriverGetVersion)                                                      \
  X(cudaEventCreateWithFlags)                                                  \
  X(cudaEventDestroy)                                                          \
  X(cudaEventElapsedTime)                                                      \
  X(cudaEventQuery)                                                            \
  X(cudaEventRecord)                                                           \
  X(cudaEventRecordWithFlags)                                                  \
  X(cudaEventSynchronize)                                                      \
  X(cudaFree)                                                                  \
  X(cudaFreeAsync)                                                             \
  X(cudaFreeHost)                                                              \
  X(cudaGetDeviceCount)                                                        \
  X(cudaHostAlloc)                                                             \
  X(cudaHostGetDevicePointer)                                                  \
  X(cudaHostGetFlags)                                                          \
  X(cudaHostRegister)                                                          \
  X(cudaHostUnregister)                                                        \
  X(cudaIpcCloseMemHandle)                                                     \
  X(cudaIpcGetMemHandle)                                                       \
  X(cudaIpcOpenMemHandle)                                                      \
  X(cudaLaunchHostFunc)                                                        \
  X(cudaMalloc)                                                                \
  X(cudaMallocAsync)                                                           \
  X(cudaMallocFromPoolAsync)                                                   \
  X(cudaMallocManaged)                                                         \
  X(cudaMallocPitch)                                                           \
  X(cudaMemGetInfo)                                                            \
  X(cudaMemcpy)                                                                \
  X(cudaMemcpyAsync)                                                           \
  X(cudaMemcpy2D)                                                              \
  X(cudaMemcpy2DAsync)                                                         \
  X(cudaMemset)                                                                \
  X(cudaMemsetAsync)                                                           \
  X(cudaMemset2D)                                                              \
  X(cudaMemset2DAsync)                                                         \
  X(cudaPointerGetAttributes)                                                  \
  X(cudaStreamAddCallback)                                                     \
  X(cudaStreamCreateWithPriority)                                              \
  X(cudaStreamDestroy)                                                         \
  X(cudaStreamGetFlags)                                                        \
  X(cudaStreamGetId)                                                           \
  X(cudaStreamGetPriority)                                                     \
  X(cudaStreamIsCapturing)                                                     \
  X(cudaStreamQuery)                                                           \
  X(cudaStreamSynchronize)                                                     \
  X(cudaStreamWaitEvent)                                                       \
  X(cudaThreadExchangeStreamCaptureMode)

typedef struct host_runtime {
#define X(name) __typeof__(&name) name;
  HOST_RUNTIME(X)
#undef X
  /* _begin and _end enclose each call of the above: the program's last error
   * stays, and the call does not count as the program's use of the runtime. */
  void (*face_begin)(void);
  void (*face_end)(void);
  /* Whether the program has called the runtime, which makes the primary context
   * current. */
  bool (*used)(void);
  /* The allocation that contains a device address. */
  bool (*allocation)(const void *pointer, void **out_base, size_t *out_bytes);
  /* Reports a kernel that was not launched. NULL: it has no name. */
  void (*kernel_refuse)(const void *function);
  void (*identity)(char out_name[256], char out_uuid[16]);
} host_runtime_t;

HOST_API const host_runtime_t *host_runtime(void);

#endif
