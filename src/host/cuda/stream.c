// SPDX-License-Identifier: Apache-2.0
// Streams and events, which are the runtime's, and launches, which are refused.
#include "src/host/cuda/call.h"

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags,
                                    int priority) {
  CUresult result = host_cu_ready();
  return result ? result
                : RT(cudaStreamCreateWithPriority(stream, flags, priority));
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy(CUstream stream) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaStreamDestroy(stream));
}

CUresult cuStreamSynchronize(CUstream stream) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaStreamSynchronize(stream));
}

CUresult cuStreamQuery(CUstream stream) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaStreamQuery(stream));
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaStreamWaitEvent(stream, event, flags));
}

CUresult cuStreamGetFlags(CUstream stream, unsigned *flags) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaStreamGetFlags(stream, flags));
}

CUresult cuStreamGetPriority(CUstream stream, int *priority) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaStreamGetPriority(stream, priority));
}

CUresult cuStreamGetId(CUstream stream, unsigned long long *id) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaStreamGetId(stream, id));
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context) {
  unsigned flags;
  CUresult result = cuStreamGetFlags(stream, &flags);
  return result ? result : cuCtxGetCurrent(context);
}

// The states of a capture have the runtime's numbers.
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  enum cudaStreamCaptureStatus found;
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!status, CUDA_ERROR_INVALID_VALUE);
  result = RT(cudaStreamIsCapturing(stream, &found));
  if (result == CUDA_SUCCESS)
    *status = (CUstreamCaptureStatus)found;
  return result;
}

// So have the modes.
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  RETURN_IF(!mode, CUDA_ERROR_INVALID_VALUE);
  int number = (int)*mode;
  enum cudaStreamCaptureMode exchanged = (enum cudaStreamCaptureMode)number;
  result = RT(cudaThreadExchangeStreamCaptureMode(&exchanged));
  if (result == CUDA_SUCCESS)
    *mode = (CUstreamCaptureMode)exchanged;
  return result;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaLaunchHostFunc(stream, function, data));
}

// The program's function takes the same values under other types.
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback,
                             void *data, unsigned flags) {
  CUresult result = host_cu_ready();
  return result ? result
                : RT(cudaStreamAddCallback(
                      stream, (cudaStreamCallback_t)(void (*)(void))callback,
                      data, flags));
}

// ---- events ----

CUresult cuEventCreate(CUevent *event, unsigned flags) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaEventCreateWithFlags(event, flags));
}

CUresult cuEventDestroy(CUevent event) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaEventDestroy(event));
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaEventRecord(event, stream));
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream,
                                unsigned flags) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaEventRecordWithFlags(event, stream, flags));
}

CUresult cuEventQuery(CUevent event) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaEventQuery(event));
}

CUresult cuEventSynchronize(CUevent event) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaEventSynchronize(event));
}

// Defines cuEventElapsedTime_v2; the older name means the same.
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  CUresult result = host_cu_ready();
  return result ? result : RT(cudaEventElapsedTime(ms, start, end));
}
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(ms, start, end);
}

// ---- launches ----

static CUresult refuse(void) {
  CUresult result = host_cu_ready();
  RETURN_IF(result, result);
  host_runtime()->kernel_refuse(NULL);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                        unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **arguments, void **extra) {
  (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x;
  (void)block_y, (void)block_z, (void)shared_bytes, (void)stream;
  (void)arguments, (void)extra;
  return refuse();
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                          void **arguments, void **extra) {
  (void)config, (void)function, (void)arguments, (void)extra;
  return refuse();
}
