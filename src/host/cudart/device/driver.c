// SPDX-License-Identifier: Apache-2.0
// The runtime's functions as the driver API's work-alike calls them.
#include "src/host/runtime.h"

#include <string.h>

#include "src/host/cudart/device/kernel.h"
#include "src/host/cudart/internal.h"

static bool allocation(const void *pointer, void **out_base,
                       size_t *out_bytes) {
  host_block_t block;
  if (!host_block_find(pointer, &block))
    return false;
  *out_base = block.base;
  *out_bytes = block.bytes;
  return true;
}

static void identity(char out_name[256], char out_uuid[16]) {
  struct cudaDeviceProp properties;
  memset(&properties, 0, sizeof properties);
  (void)cudaGetDeviceProperties(&properties, 0);
  memcpy(out_name, properties.name, 256);
  memcpy(out_uuid, properties.uuid.bytes, 16);
}

const host_runtime_t *host_runtime(void) {
  static const host_runtime_t runtime = {
#define X(name) name,
      HOST_RUNTIME(X)
#undef X
          .face_begin = host_face_begin,
      .face_end = host_face_end,
      .used = host_used,
      .allocation = allocation,
      .kernel_refuse = host_kernel_refuse,
      .identity = identity,
  };
  return &runtime;
}
