// SPDX-License-Identifier: Apache-2.0
// A program with the CUDA runtime linked in, nvcc's default:
// libcudart_static.a, or (IMITATION) what sundog recognises that by. It makes
// one call of cuDNN; the exit status is 1 if the call is refused.
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/calls.h"

enum { ROWS = 60, COLUMNS = 8 };

#ifdef IMITATION
// Like libcudart_static.a: looks one function of the driver up, which gives it
// the others. The message is that of the runtime.
static void runtime_start(void) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver || !dlsym(driver, "cuGetProcAddress_v2"))
    puts("CUDA driver version is insufficient for CUDA runtime version");
}
#else
// Fails on the host device, which has no driver for it.
static void runtime_start(void) {
  int count;
  cudaError_t error = cudaGetDeviceCount(&count);
  printf("the runtime says %d\n", (int)error);
}
#endif

int main(void) {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t tensor;
  cudnnActivationDescriptor_t relu;
  const float one = 1, zero = 0;
  // Memory that nobody touches, because the call is refused.
  void *x = (void *)(uintptr_t)0x10000000, *y = (void *)(uintptr_t)0x20000000;
  runtime_start();
  CHECK(cudnnCreate(&handle));
  CHECK(cudnnCreateTensorDescriptor(&tensor));
  CHECK(cudnnSetTensor4dDescriptor(tensor, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                   1, 1, ROWS, COLUMNS));
  CHECK(cudnnCreateActivationDescriptor(&relu));
  CHECK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU,
                                     CUDNN_PROPAGATE_NAN, 0));
  CHECK(
      cudnnActivationForward(handle, relu, &one, tensor, x, &zero, tensor, y));
  return EXIT_SUCCESS;
}
