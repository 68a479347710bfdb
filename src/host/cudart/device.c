// SPDX-License-Identifier: Apache-2.0
// The one device: choosing, describing, waiting for and resetting it.
#include "src/host/cudart/internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

cudaError_t cudaDeviceSynchronize(void) {
  cudaError_t error = host_enter();
  if (error)
    return error;
  host_stream_wait_all();
  return host_result(host_sticky());
}

/* Allocations, streams and events of the program are gone afterwards. */
cudaError_t cudaDeviceReset(void) {
  cudaError_t error = host_enter_query();
  if (error)
    return error;
  host_stream_wait_all();
  host_stream_close_all();
  host_event_close_all();
  host_region_free_all();
  host_sticky_clear();
  (void)cudaGetLastError();
  return cudaSuccess;
}
