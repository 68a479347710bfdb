// SPDX-License-Identifier: Apache-2.0
// A program that loads the runtime work-alike by name and closes it while work
// is queued: test_cudart_dlclose LIBRARY
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic int done;

static void work(void *argument) {
  usleep(20000);
  atomic_fetch_add((_Atomic int *)argument, 1);
}

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "no library given");
    return 1;
  }
  cudaError_t (*launch)(cudaStream_t, cudaHostFn_t, void *);
  *(void **)&launch = dlsym(library, "cudaLaunchHostFunc");
  for (int i = 0; i < 3; i++)
    if (launch(cudaStreamPerThread, work, &done) != cudaSuccess)
      return 2;
  dlclose(library);
  for (int i = 0; i < 500 && atomic_load(&done) < 3; i++)
    usleep(10000);
  return atomic_load(&done) == 3 ? 0 : 3;
}
