// SPDX-License-Identifier: Apache-2.0
// Loads the tables of cuDNN's and cuBLAS' functions through the installed
// finder, and asks the libraries for the streams of their handles.
#include "rules/vendor/vendor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/vendor.h"

static const sdg_library_row_t rows[] = {
#define SDG_VENDOR(name)                                                       \
  {SDG_LIBRARY_CUDNN, #name, offsetof(sdg_cudnn_t, name)},
#include "rules/vendor/vendor.def"
#undef SDG_VENDOR
};

const sdg_cudnn_t *sdg_cudnn_get(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static sdg_cudnn_t table;
  static _Atomic(const sdg_cudnn_t *) published;
  const sdg_cudnn_t *cudnn =
      atomic_load_explicit(&published, memory_order_acquire);
  if (cudnn)
    return cudnn;
  pthread_mutex_lock(&lock);
  cudnn = atomic_load_explicit(&published, memory_order_relaxed);
  if (!cudnn &&
      sdg_library_fill(rows, sizeof rows / sizeof rows[0], &table) == SDG_OK) {
    cudnn = &table;
    atomic_store_explicit(&published, cudnn, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return cudnn;
}

static const sdg_library_row_t cublas_rows[] = {
#define SDG_CUBLAS(name)                                                       \
  {SDG_LIBRARY_CUBLAS, #name, offsetof(sdg_cublas_t, name)},
#include "rules/vendor/cublas.def"
};

const sdg_cublas_t *sdg_cublas_get(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static sdg_cublas_t table;
  static bool there;
  pthread_mutex_lock(&lock);
  there = there || sdg_library_fill(cublas_rows,
                                    sizeof cublas_rows / sizeof cublas_rows[0],
                                    &table) == SDG_OK;
  pthread_mutex_unlock(&lock);
  return there ? &table : NULL;
}

static const sdg_library_row_t cublaslt_rows[] = {
#define SDG_CUBLASLT(name)                                                     \
  {SDG_LIBRARY_CUBLASLT, #name, offsetof(sdg_cublaslt_t, name)},
#include "rules/vendor/cublas.def"
};

const sdg_cublaslt_t *sdg_cublaslt_get(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static sdg_cublaslt_t table;
  static bool there;
  pthread_mutex_lock(&lock);
  there =
      there || sdg_library_fill(cublaslt_rows,
                                sizeof cublaslt_rows / sizeof cublaslt_rows[0],
                                &table) == SDG_OK;
  pthread_mutex_unlock(&lock);
  return there ? &table : NULL;
}

int sdg_cublas_status(sdg_vendor_class_t kind) {
  switch (kind) {
  case SDG_VENDOR_BAD_PARAM:
    return CUBLAS_STATUS_INVALID_VALUE;
  case SDG_VENDOR_UNSUPPORTED:
  case SDG_VENDOR_NO_NODES:
    return CUBLAS_STATUS_NOT_SUPPORTED;
  case SDG_VENDOR_NOT_READY:
    return CUBLAS_STATUS_NOT_INITIALIZED;
  case SDG_VENDOR_NONE:
  case SDG_VENDOR_FAILED:
    break;
  }
  return CUBLAS_STATUS_EXECUTION_FAILED;
}

const char *sdg_vendor_text(sdg_stream_kind_t library, int status) {
  if (library == SDG_STREAM_CUDNN)
    return sdg_cudnn_get()->cudnnGetErrorString((cudnnStatus_t)status);
  if (library == SDG_STREAM_GIVEN)
    return sdg_vendor_get()->cudaGetErrorString((cudaError_t)status);
  const sdg_cublas_t *cublas = sdg_cublas_get();
  return cublas ? cublas->cublasGetStatusString((cublasStatus_t)status)
                : "an error of cuBLASLt";
}

// ---- the streams of handles ------------------------------------------------

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
