// SPDX-License-Identifier: Apache-2.0
// A program with a kernel, in the form that nvcc makes: it is registered before
// main, and launched in each way that there is.
#include <cuda_runtime_api.h>
#include <stdio.h>

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *function);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void **args, size_t shared_bytes,
                               cudaStream_t stream);

static int add; // its address is what the program launches

__attribute__((constructor)) static void kernels_register(void) {
  static int binary;
  static char name[] = "_Z3addi";
  void **handle = __cudaRegisterFatBinary(&binary);
  __cudaRegisterFunction(handle, (const char *)&add, name, name, -1, NULL, NULL,
                         NULL, NULL, NULL);
  __cudaRegisterFatBinaryEnd(handle);
}

#pragma GCC visibility push(default)
void add__host(dim3 grid, dim3 block, void **args);
void add__host(dim3 grid, dim3 block, void **args) {
  printf("add %d %u %u %u, %u %u %u\n", *(int *)args[0], grid.x, grid.y, grid.z,
         block.x, block.y, block.z);
}
#pragma GCC visibility pop

int main(void) {
  dim3 grid = {2, 3, 4}, block = {5, 6, 7};
  int value = 0;
  void *args[] = {&value};
  cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = block};
  cudaKernel_t kernel;
  int failed = 0;
  for (int pass = 0; pass < 2; pass++) {
    value++;
    failed |= cudaLaunchKernel(&add, grid, block, args, 0, NULL);
    value++;
    failed |= cudaLaunchCooperativeKernel(&add, grid, block, args, 0, NULL);
    value++;
    failed |= cudaLaunchKernelExC(&config, &add, args);
    value++;
    failed |= __cudaGetKernel(&kernel, &add);
    failed |= __cudaLaunchKernel(kernel, grid, block, args, 0, NULL);
  }
  failed |= cudaDeviceSynchronize();
  return failed;
}
