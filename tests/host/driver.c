// SPDX-License-Identifier: Apache-2.0
// A program that uses only the driver: it is linked with -lcuda.
#include <cuda.h>
#include <stdio.h>
#include <unistd.h>

/* The driver does not call the runtime's public names, so an interposer of the
 * runtime sees nothing. */
int cudaMalloc(void **at, size_t bytes);
int cudaMalloc(void **at, size_t bytes) {
  (void)at, (void)bytes;
  _exit(3);
}

int main(void) {
  CUcontext context;
  CUdeviceptr at;
  char name[64];
  int got = 0;
  if (cuInit(0) || cuDeviceGetName(name, sizeof name, 0) ||
      cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuMemAlloc(&at, 64) || cuMemsetD32(at, 42, 16) ||
      cuMemcpyDtoH(&got, at + 60, sizeof got) || got != 42 || cuMemFree(at))
    return 1;
  puts(name);
  return 0;
}
