// SPDX-License-Identifier: Apache-2.0
// A graph without a convolution; prints the status of its execution.
#include <cuda_runtime_api.h>

#include "tests/clients/graphs/build.h"

int main(void) {
  static const int64_t dim[] = {1, 4, 8, 6}, uids[] = {1, 2};
  cudnnHandle_t handle;
  build_t tensor[2], config[BUILD_CONFIGS], op, plan = NULL;
  void *pointer[2], *workspace;
  int64_t bytes = 0;
  CHECK(cudnnCreate(&handle));
  for (int i = 0; i < 2; i++) {
    tensor[i] = build_tensor(uids[i], CUDNN_DATA_FLOAT, dim, 16);
    CHECK(cudaMalloc(&pointer[i], 4 * 8 * 6 * sizeof(float)));
    CHECK(cudaMemset(pointer[i], 0, 4 * 8 * 6 * sizeof(float)));
  }
  op = build_pointwise(CUDNN_POINTWISE_RELU_FWD, tensor[0], NULL, tensor[1]);
  build_t graph = build_graph(handle, &op, 1);
  int64_t configs = build_configs(graph, CUDNN_HEUR_MODE_A, config);
  for (int64_t i = 0; i < configs; i++) {
    if (!plan)
      plan = build_plan(handle, config[i], &bytes);
    build_destroy(config[i]);
  }
  CHECK(!plan);
  CHECK(cudaMalloc(&workspace, (size_t)bytes + 1));
  printf("status %d\n",
         (int)build_execute(handle, plan, uids, pointer, 2, workspace));
  build_destroy(plan);
  build_destroy(graph);
  for (int i = 0; i < 2; i++) {
    build_destroy(tensor[i]);
    CHECK(cudaFree(pointer[i]));
  }
  CHECK(cudaFree(workspace));
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
