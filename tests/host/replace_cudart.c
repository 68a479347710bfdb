// SPDX-License-Identifier: Apache-2.0
// A CUDA program that does not use sundog's functions: prints the device's name
// and a value that it copied to the device and back.
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void) {
  struct cudaDeviceProp properties;
  int value = 42, back = 0, *memory;
  (void)cublasGetStatusName(CUBLAS_STATUS_SUCCESS);
  if (cudaGetDeviceProperties(&properties, 0) ||
      cudaMalloc((void **)&memory, sizeof *memory) ||
      cudaMemcpy(memory, &value, sizeof value, cudaMemcpyHostToDevice) ||
      cudaMemcpy(&back, memory, sizeof back, cudaMemcpyDeviceToHost) ||
      cudaFree(memory))
    return 1;
  printf("%s: %d\n", properties.name, back);
  return 0;
}
