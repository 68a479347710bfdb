// SPDX-License-Identifier: Apache-2.0
// The device buffers that plans share, one per calling thread.
#include "src/scratch.h"

#include <stdatomic.h>

#include "src/device.h"
#include "src/thread.h"
#include "src/vendor.h"

// By the thread's channel; sizes are read by others for the report.
static struct {
  void *data;
  _Atomic(size_t) bytes;
} buffers[SDG_CONTROL_THREADS];

sdg_status_t sdg_scratch_get(size_t bytes, void **out_data) {
  int channel = sdg_thread_channel();
  void *buffer = buffers[channel].data;
  if (bytes >
      atomic_load_explicit(&buffers[channel].bytes, memory_order_relaxed)) {
    const sdg_vendor_t *cuda = sdg_vendor_get();
    if (!cuda)
      return SDG_E_LIBRARY_MISSING;
    // cudaFree waits for the work that uses the old buffer.
    SDG_TRY(sdg_device_check(cuda->cudaFree(buffer), "free of scratch"));
    buffers[channel].data = NULL;
    buffers[channel].bytes = 0;
    // A quarter more, so that slowly growing shapes do not grow it each time.
    size_t grown = bytes + bytes / 4;
    if (cuda->cudaMalloc(&buffer, grown) != cudaSuccess) {
      (void)cuda->cudaGetLastError();
      grown = bytes;
      cudaError_t result = cuda->cudaMalloc(&buffer, grown);
      if (result != cudaSuccess)
        return sdg_fail(SDG_E_DEVICE_MEMORY, "%zu bytes for halos: %s", bytes,
                        cuda->cudaGetErrorString(result));
    }
    buffers[channel].data = buffer;
    buffers[channel].bytes = grown;
  }
  *out_data = bytes ? buffer : NULL;
  return SDG_OK;
}

size_t sdg_scratch_bytes(void) {
  size_t all = 0;
  for (int channel = 0; channel < SDG_CONTROL_THREADS; channel++)
    all += buffers[channel].bytes;
  return all;
}

void sdg_scratch_forget(void) {
  for (int channel = 0; channel < SDG_CONTROL_THREADS; channel++) {
    buffers[channel].data = NULL;
    buffers[channel].bytes = 0;
  }
}
