// SPDX-License-Identifier: Apache-2.0
// The device buffer that plans share.
#include "src/scratch.h"

#include "src/device.h"
#include "src/vendor.h"

static void *buffer;
static size_t buffer_bytes;

sdg_status_t sdg_scratch_get(size_t bytes, void **out_data) {
  if (bytes > buffer_bytes) {
    const sdg_vendor_t *cuda = sdg_vendor_get();
    if (!cuda)
      return SDG_E_LIBRARY_MISSING;
    // cudaFree waits for the work that uses the old buffer.
    SDG_TRY(sdg_device_check(cuda->cudaFree(buffer), "free of scratch"));
    buffer = NULL;
    buffer_bytes = 0;
    // A quarter more, so that slowly growing shapes do not grow it each time.
    size_t grown = bytes + bytes / 4;
    if (cuda->cudaMalloc(&buffer, grown) != cudaSuccess) {
      (void)cuda->cudaGetLastError();
      grown = bytes;
      cudaError_t result = cuda->cudaMalloc(&buffer, grown);
      if (result != cudaSuccess)
        return sdg_fail(SDG_E_CUDA, "%zu bytes of device memory for halos: %s",
                        bytes, cuda->cudaGetErrorString(result));
    }
    buffer_bytes = grown;
  }
  *out_data = bytes ? buffer : NULL;
  return SDG_OK;
}

size_t sdg_scratch_bytes(void) {
  return buffer_bytes;
}
