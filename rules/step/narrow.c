// SPDX-License-Identifier: Apache-2.0
// Holds cuDNN handles and descriptors with which copies of short runs are made.
#include "rules/step/narrow.h"

#include <stdbool.h>
#include <string.h>

#include "rules/vendor/vendor.h"
#include "src/base/vendor.h"
#include "src/job/thread.h"

// A handle stays with its stream: to move one between streams of unlike
// priority may cost more than a copy. Both lanes of a plan have one.
enum { HANDLES = 2 };
typedef struct own {
  cudnnTensorDescriptor_t from, to;
  struct {
    cudnnHandle_t handle;
    cudaStream_t stream;
  } of[HANDLES];
  int next; // which is moved to a stream that has none
} own_t;
static own_t owns[SDG_CHANNEL_THREADS]; // index: the thread's channel

static sdg_status_t check(cudnnStatus_t got, const char *what) {
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "%s for a copy of columns: %s", what,
                        sdg_cudnn_get()->cudnnGetErrorString(got));
}

static sdg_status_t created(const sdg_cudnn_t *cudnn, cudnnHandle_t *out) {
  // Otherwise it would spoil a capture that the program makes meanwhile.
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  (void)sdg_vendor_get()->cudaThreadExchangeStreamCaptureMode(&mode);
  cudnnStatus_t got = cudnn->cudnnCreate(out);
  (void)sdg_vendor_get()->cudaThreadExchangeStreamCaptureMode(&mode);
  if (got != CUDNN_STATUS_SUCCESS)
    *out = NULL;
  return check(got, "cudnnCreate");
}

static sdg_status_t handle_get(const sdg_cudnn_t *cudnn, own_t *own,
                               cudaStream_t stream, cudnnHandle_t *out) {
  int at = -1;
  for (int i = 0; i < HANDLES && at < 0; i++)
    if (!own->of[i].handle || own->of[i].stream == stream)
      at = i;
  if (at < 0) {
    at = own->next;
    own->next = (own->next + 1) % HANDLES;
  }
  if (!own->of[at].handle)
    SDG_TRY(created(cudnn, &own->of[at].handle));
  // A stream may have got the address of an older one.
  own->of[at].stream = stream;
  *out = own->of[at].handle;
  return check(cudnn->cudnnSetStream(*out, stream), "cudnnSetStream");
}

static sdg_status_t described(const sdg_cudnn_t *cudnn, const sdg_narrow_t *box,
                              const int *stride,
                              cudnnTensorDescriptor_t *io_descriptor) {
  if (!*io_descriptor)
    SDG_TRY(check(cudnn->cudnnCreateTensorDescriptor(io_descriptor),
                  "cudnnCreateTensorDescriptor"));
  return check(cudnn->cudnnSetTensorNdDescriptor(*io_descriptor,
                                                 CUDNN_DATA_INT8, box->dims,
                                                 box->extent, stride),
               "cudnnSetTensorNdDescriptor");
}

sdg_status_t sdg_narrow_copy(const sdg_narrow_t *copy, cudaStream_t stream) {
  static const float one = 1, zero = 0;
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  own_t *own = &owns[sdg_channel_get()];
  cudnnHandle_t handle;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  SDG_TRY(handle_get(cudnn, own, stream, &handle));
  SDG_TRY(described(cudnn, copy, copy->from_stride, &own->from));
  SDG_TRY(described(cudnn, copy, copy->to_stride, &own->to));
  return check(cudnn->cudnnTransformTensor(handle, &one, own->from, copy->from,
                                           &zero, own->to, copy->to),
               "cudnnTransformTensor");
}

void sdg_narrow_forget(void) {
  memset(owns, 0, sizeof owns);
}
