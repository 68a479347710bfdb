/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose CUDA runtime nobody else can see, as if it were linked in: it
 * looks all functions up in libraries of other names.
 *
 * usage: own_runtime RUNTIME CUDNN    (files)
 */
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <stdint.h>

#include "tests/calls.h"

static void *runtime, *cudnn;

static void *look(void *library, const char *name) {
  void *address = dlsym(library, name);
  if (!address) {
    fprintf(stderr, "%s\n", dlerror());
    exit(EXIT_FAILURE);
  }
  return address;
}

static void *load(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    exit(EXIT_FAILURE);
  }
  return library;
}

#define CUDA(name)  ((__typeof__(&name))(uintptr_t)look(runtime, #name))
#define CUDNN(name) ((__typeof__(&name))(uintptr_t)look(cudnn, #name))

int main(int argc, char **argv) {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x;
  const float one = 1, zero = 0;
  void *data;
  if (argc != 3)
    return EXIT_FAILURE;
  runtime = load(argv[1]);
  cudnn = load(argv[2]);
  CHECK(CUDA(cudaMalloc)(&data, 2048));
  CHECK(CUDNN(cudnnCreate)(&handle));
  CHECK(CUDNN(cudnnCreateTensorDescriptor)(&x));
  CHECK(CUDNN(cudnnSetTensor4dDescriptor)(x, CUDNN_TENSOR_NCHW,
                                          CUDNN_DATA_FLOAT, 1, 2, 16, 16));
  CHECK(CUDNN(cudnnSoftmaxForward)(handle, CUDNN_SOFTMAX_FAST,
                                   CUDNN_SOFTMAX_MODE_CHANNEL, &one, x, data,
                                   &zero, x, data));
  return EXIT_SUCCESS;
}
