// SPDX-License-Identifier: Apache-2.0
// Asks the vendor's libraries for the streams of their handles.
#include "rules/vendor/stream.h"

#include "rules/vendor/vendor.h"
#include "src/base/vendor.h"

static sdg_status_t cublas_stream(const sdg_call_t *call,
                                  cudaStream_t *out_stream) {
  const sdg_cublas_t *cublas = sdg_cublas_get();
  if (!cublas)
    return SDG_E_LIBRARY_MISSING;
  cublasStatus_t got = cublas->cublasGetStream_v2(
      (cublasHandle_t)(uintptr_t)call->handle, out_stream);
  return got == CUBLAS_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "cublasGetStream: %d", (int)got);
}

static sdg_status_t cudnn_stream(const sdg_call_t *call,
                                 cudaStream_t *out_stream) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnStatus_t got =
      cudnn->cudnnGetStream((cudnnHandle_t)(uintptr_t)call->handle, out_stream);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "cudnnGetStream: %d", (int)got);
}

sdg_status_t sdg_stream_state(const sdg_call_t *call, cudaStream_t *out_stream,
                              bool *out_capturing) {
  if (call->stream_kind == SDG_STREAM_CUBLAS)
    SDG_TRY(cublas_stream(call, out_stream));
  else if (call->stream_kind == SDG_STREAM_CUDNN)
    SDG_TRY(cudnn_stream(call, out_stream));
  else
    *out_stream = (cudaStream_t)(uintptr_t)call->stream;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  SDG_TRY(sdg_vendor_check(cuda->cudaStreamIsCapturing(*out_stream, &capturing),
                           "cudaStreamIsCapturing"));
  *out_capturing = capturing != cudaStreamCaptureStatusNone;
  return SDG_OK;
}

sdg_status_t sdg_stream_of(const sdg_call_t *call, cudaStream_t *out_stream) {
  bool capturing;
  SDG_TRY(sdg_stream_state(call, out_stream, &capturing));
  return capturing ? sdg_fail(SDG_E_CAPTURE, "%s", call->entry_name) : SDG_OK;
}
