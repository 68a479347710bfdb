// SPDX-License-Identifier: Apache-2.0
// A program with two kernels, in the form that nvcc makes. It launches one, or
// asks about it, and ignores the status.
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, uint3 *tid,
                            uint3 *bid, dim3 *block, dim3 *grid, int *warp);

static int add, scale; /* their addresses are what a program launches */

__attribute__((constructor)) static void register_kernels(void) {
  static int binary;
  void **handle = __cudaRegisterFatBinary(&binary);
  char name[] = "_Z3addPfi", other[] = "_Z5scalePf";
  __cudaRegisterFunction(handle, (const char *)&add, strdup(name), strdup(name),
                         -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterFunction(handle, (const char *)&scale, strdup(other),
                         strdup(other), -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterFatBinaryEnd(handle);
}

int main(int argc, char **argv) {
  struct cudaFuncAttributes attributes;
  const char *what = argc > 1 ? argv[1] : "";
  clearenv();
  if (strcmp(what, "launch") == 0)
    for (int i = 0; i < 3; i++)
      if (cudaLaunchKernel(&add, (dim3){1, 1, 1}, (dim3){32, 1, 1}, NULL, 0,
                           0) != cudaErrorNotSupported)
        return 1;
  if (strcmp(what, "ask") == 0 && cudaFuncGetAttributes(&attributes, &scale) !=
                                      cudaErrorInvalidDeviceFunction)
    return 1;
  if (strcmp(what, "stranger") == 0 &&
      cudaFuncGetAttributes(&attributes, &argc) !=
          cudaErrorInvalidDeviceFunction)
    return 1;
  puts("done");
  return 0;
}
