// SPDX-License-Identifier: Apache-2.0
// Stands for NVIDIA's libcudnn.so.9, which finds its sub-libraries by name.
#include <cudnn.h>
#include <dlfcn.h>

#pragma GCC visibility push(default)
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  cudnnStatus_t (*create)(cudnnHandle_t *);
  void *graph = dlopen("libcudnn_graph.so.9", RTLD_NOW | RTLD_LOCAL);
  if (!graph)
    return CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED;
  *(void **)&create = dlsym(graph, "cudnnCreate");
  return create(handle);
}
