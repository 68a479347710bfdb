/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the driver's work-alike share: how they call the runtime,
 * and the checks before a call. */
#ifndef SDG_SRC_HOST_CUDA_CALL_H
#define SDG_SRC_HOST_CUDA_CALL_H

#include <cuda.h>

#include "src/host/runtime.h"

#pragma GCC visibility push(hidden)

/* Calls the runtime and returns a CUresult: RT(cudaMalloc(&at, bytes)). */
#define RT(call) (host_cu_begin(), host_cu_end(host_runtime()->call))

void host_cu_begin(void);
CUresult host_cu_end(cudaError_t error);

/* Returns from the enclosing function. */
#define RETURN_IF(condition, status)                                           \
  do {                                                                         \
    if (condition)                                                             \
      return (status);                                                         \
  } while (0)

/* CUDA_ERROR_NOT_INITIALIZED unless cuInit or a function of the runtime has
 * been called. */
CUresult host_cu_initialized(void);
/* Also CUDA_ERROR_INVALID_CONTEXT if the thread has no context. */
CUresult host_cu_ready(void);
/* Also CUDA_ERROR_INVALID_DEVICE. */
CUresult host_cu_device(CUdevice device);

#pragma GCC visibility pop

#endif
