// SPDX-License-Identifier: Apache-2.0
// Device buffers that the plans of one calling thread share.
#include "src/exchange/scratch.h"

#include <stdatomic.h>

#include "src/base/vendor.h"
#include "src/exchange/device.h"
#include "src/job/thread.h"

// Index: the thread's channel. Other threads read the sizes for the report.
typedef struct buffer {
  void *data;
  _Atomic(size_t) bytes;
} buffer_t;
static buffer_t buffers[SDG_CHANNEL_THREADS][SDG_SCRATCH_COUNT];

// A quarter more, so that slowly growing shapes do not grow the buffer in each
// call; of large buffers less, because programs fill their GPU.
static size_t spare(size_t bytes) {
  const size_t most = (size_t)64 << 20;
  return bytes / 4 < most ? bytes / 4 : most;
}

static sdg_status_t grow(const sdg_vendor_t *cuda, buffer_t *own,
                         size_t bytes) {
  // cudaFree waits for all work that uses the old buffer.
  SDG_TRY(
      sdg_vendor_check(cuda->cudaFree(own->data), "freeing of scratch memory"));
  own->data = NULL;
  own->bytes = 0;
  size_t grown = bytes + spare(bytes);
  void *buffer;
  if (cuda->cudaMalloc(&buffer, grown) != cudaSuccess) {
    (void)cuda->cudaGetLastError();
    grown = bytes;
    cudaError_t result = cuda->cudaMalloc(&buffer, grown);
    if (result != cudaSuccess)
      return sdg_fail(SDG_E_DEVICE_MEMORY, "%zu bytes for halos: %s", bytes,
                      cuda->cudaGetErrorString(result));
  }
  own->data = buffer;
  own->bytes = grown;
  return SDG_OK;
}

sdg_status_t sdg_scratch_get(sdg_scratch_kind_t kind, size_t bytes,
                             void **out_data) {
  buffer_t *own = &buffers[sdg_channel_get()][kind];
  if (bytes > atomic_load_explicit(&own->bytes, memory_order_relaxed)) {
    const sdg_vendor_t *cuda = sdg_vendor_get();
    if (!cuda)
      return SDG_E_LIBRARY_MISSING;
    // Otherwise it would spoil a capture that the program makes meanwhile.
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    (void)cuda->cudaThreadExchangeStreamCaptureMode(&mode);
    sdg_status_t status = grow(cuda, own, bytes);
    (void)cuda->cudaThreadExchangeStreamCaptureMode(&mode);
    SDG_TRY(status);
  }
  *out_data = bytes ? own->data : NULL;
  return SDG_OK;
}

size_t sdg_scratch_bytes(void) {
  size_t all = 0;
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    for (int kind = 0; kind < SDG_SCRATCH_COUNT; kind++)
      all += buffers[channel][kind].bytes;
  return all;
}

void sdg_scratch_forget(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    for (int kind = 0; kind < SDG_SCRATCH_COUNT; kind++) {
      buffers[channel][kind].data = NULL;
      buffers[channel][kind].bytes = 0;
    }
}
