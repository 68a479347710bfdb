// SPDX-License-Identifier: Apache-2.0
// The functions for programs whose default stream is per thread.
#include "src/host/cuda/call.h"

#define OWN(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

// X(name, parameters, arguments): calls the plain function on the thread's
// stream.
#define ON_STREAM(X)                                                           \
  X(cuEventRecord, (CUevent event, CUstream s), (event, OWN(s)))               \
  X(cuEventRecordWithFlags, (CUevent event, CUstream s, unsigned flags),       \
    (event, OWN(s), flags))                                                    \
  X(cuLaunchHostFunc, (CUstream s, CUhostFn function, void *data),             \
    (OWN(s), function, data))                                                  \
  X(cuMemAllocAsync, (CUdeviceptr * out, size_t bytes, CUstream s),            \
    (out, bytes, OWN(s)))                                                      \
  X(cuMemFreeAsync, (CUdeviceptr at, CUstream s), (at, OWN(s)))                \
  X(cuMemcpyAsync,                                                             \
    (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s),              \
    (dst, src, bytes, OWN(s)))                                                 \
  X(cuMemcpyHtoDAsync_v2,                                                      \
    (CUdeviceptr dst, const void *src, size_t bytes, CUstream s),              \
    (dst, src, bytes, OWN(s)))                                                 \
  X(cuMemcpyDtoHAsync_v2,                                                      \
    (void *dst, CUdeviceptr src, size_t bytes, CUstream s),                    \
    (dst, src, bytes, OWN(s)))                                                 \
  X(cuMemcpyDtoDAsync_v2,                                                      \
    (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s),              \
    (dst, src, bytes, OWN(s)))                                                 \
  X(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream s),               \
    (copy, OWN(s)))                                                            \
  X(cuMemsetD8Async,                                                           \
    (CUdeviceptr to, unsigned char value, size_t count, CUstream s),           \
    (to, value, count, OWN(s)))                                                \
  X(cuMemsetD16Async,                                                          \
    (CUdeviceptr to, unsigned short value, size_t count, CUstream s),          \
    (to, value, count, OWN(s)))                                                \
  X(cuMemsetD32Async,                                                          \
    (CUdeviceptr to, unsigned value, size_t count, CUstream s),                \
    (to, value, count, OWN(s)))                                                \
  X(cuStreamAddCallback,                                                       \
    (CUstream s, CUstreamCallback callback, void *data, unsigned flags),       \
    (OWN(s), callback, data, flags))                                           \
  X(cuStreamGetFlags, (CUstream s, unsigned *flags), (OWN(s), flags))          \
  X(cuStreamGetId, (CUstream s, unsigned long long *id), (OWN(s), id))         \
  X(cuStreamGetPriority, (CUstream s, int *priority), (OWN(s), priority))      \
  X(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus * status),         \
    (OWN(s), status))                                                          \
  X(cuStreamQuery, (CUstream s), (OWN(s)))                                     \
  X(cuStreamSynchronize, (CUstream s), (OWN(s)))                               \
  X(cuStreamWaitEvent, (CUstream s, CUevent event, unsigned flags),            \
    (OWN(s), event, flags))

#define X(name, parameters, arguments)                                         \
  CUresult name##_ptsz parameters;                                             \
  CUresult name##_ptsz parameters {                                            \
    return name arguments;                                                     \
  }
ON_STREAM(X)
#undef X

// X(name, asynchronous, parameters, arguments): calls the asynchronous function
// and waits for its end.
#define DONE(X)                                                                \
  X(cuMemcpy, cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t bytes), \
    (dst, src, bytes, CU_STREAM_PER_THREAD))                                   \
  X(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2,                                     \
    (CUdeviceptr dst, const void *src, size_t bytes),                          \
    (dst, src, bytes, CU_STREAM_PER_THREAD))                                   \
  X(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2,                                     \
    (void *dst, CUdeviceptr src, size_t bytes),                                \
    (dst, src, bytes, CU_STREAM_PER_THREAD))                                   \
  X(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2,                                     \
    (CUdeviceptr dst, CUdeviceptr src, size_t bytes),                          \
    (dst, src, bytes, CU_STREAM_PER_THREAD))                                   \
  X(cuMemcpy2D_v2, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy),            \
    (copy, CU_STREAM_PER_THREAD))                                              \
  X(cuMemsetD8_v2, cuMemsetD8Async,                                            \
    (CUdeviceptr to, unsigned char value, size_t count),                       \
    (to, value, count, CU_STREAM_PER_THREAD))                                  \
  X(cuMemsetD16_v2, cuMemsetD16Async,                                          \
    (CUdeviceptr to, unsigned short value, size_t count),                      \
    (to, value, count, CU_STREAM_PER_THREAD))                                  \
  X(cuMemsetD32_v2, cuMemsetD32Async,                                          \
    (CUdeviceptr to, unsigned value, size_t count),                            \
    (to, value, count, CU_STREAM_PER_THREAD))

#define X(name, asynchronous, parameters, arguments)                           \
  CUresult name##_ptds parameters;                                             \
  CUresult name##_ptds parameters {                                            \
    CUresult result = asynchronous arguments;                                  \
    return result ? result : cuStreamSynchronize(CU_STREAM_PER_THREAD);        \
  }
DONE(X)
#undef X
