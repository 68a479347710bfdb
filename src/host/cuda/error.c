// SPDX-License-Identifier: Apache-2.0
// The runtime's error codes as the driver's, with names and texts.
#include "src/host/cuda/call.h"

void host_cu_begin(void) {
  host_runtime()->face_begin();
}

// The numbers are the same, except for codes that only the runtime has.
CUresult host_cu_end(cudaError_t error) {
  host_runtime()->face_end();
  switch ((int)error) {
  case cudaErrorInvalidPitchValue:
  case cudaErrorInvalidHostPointer:
  case cudaErrorInvalidDevicePointer:
  case cudaErrorInvalidMemcpyDirection:
    return CUDA_ERROR_INVALID_VALUE;
  }
  return (CUresult)error;
}

static const struct {
  CUresult code;
  const char *name, *text;
} codes[] = {
#define CODE(code, text)                                                       \
  { code, #code, text }
    CODE(CUDA_SUCCESS, "no error"),
    CODE(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    CODE(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    CODE(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    CODE(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    CODE(CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    CODE(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    CODE(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    CODE(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    CODE(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    CODE(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
    CODE(CUDA_ERROR_UNMAP_FAILED, "unmapping of buffer object failed"),
    CODE(CUDA_ERROR_NO_BINARY_FOR_GPU,
         "no kernel image is available for execution on the device"),
    CODE(CUDA_ERROR_UNSUPPORTED_LIMIT, "limit is not supported on this "
                                       "architecture"),
    CODE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
         "peer access is not supported between these two devices"),
    CODE(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    CODE(CUDA_ERROR_OPERATING_SYSTEM,
         "OS call failed or operation not supported on this OS"),
    CODE(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    CODE(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    CODE(CUDA_ERROR_NOT_READY, "device not ready"),
    CODE(CUDA_ERROR_ILLEGAL_ADDRESS,
         "an illegal memory access was encountered"),
    CODE(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    CODE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
         "peer access is already enabled"),
    CODE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
         "peer access has not been enabled"),
    CODE(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
         "cannot set while device is active in this process"),
    CODE(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    CODE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
         "part or all of the requested memory range is already mapped"),
    CODE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
         "pointer does not correspond to a registered memory region"),
    CODE(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    CODE(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "operation not permitted when stream is capturing"),
    CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
         "operation failed due to a previous error during capture"),
    CODE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
         "operation would make the legacy stream depend on a capturing "
         "blocking stream"),
    CODE(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef CODE
};

CUresult cuGetErrorName(CUresult error, const char **text) {
  RETURN_IF(!text, CUDA_ERROR_INVALID_VALUE);
  *text = NULL;
  for (size_t i = 0; i < sizeof codes / sizeof *codes && !*text; i++)
    if (codes[i].code == error)
      *text = codes[i].name;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  RETURN_IF(!text, CUDA_ERROR_INVALID_VALUE);
  *text = NULL;
  for (size_t i = 0; i < sizeof codes / sizeof *codes && !*text; i++)
    if (codes[i].code == error)
      *text = codes[i].text;
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
