// SPDX-License-Identifier: Apache-2.0
// A graph that cannot be split; prints the status of its execution.
//
// usage: refused index | window
//   index   tells each element's place along H, which a piece does not know
//   window  means over all of H and W: of the piece, or of all pieces?
#include <cuda_runtime_api.h>
#include <string.h>

#include "tests/clients/graphs/build.h"

int main(int words, char **word) {
  static const int64_t dim[] = {1, 4, 8, 6}, mean[] = {1, 4, 1, 1},
                       uids[] = {1, 2};
  CHECK(words < 2);
  bool window = strcmp(word[1], "window") == 0;
  cudnnHandle_t handle;
  build_t tensor[2], op;
  void *pointer[2];
  int64_t bytes = 0;
  CHECK(cudnnCreate(&handle));
  for (int i = 0; i < 2; i++) {
    tensor[i] = build_tensor(uids[i], CUDNN_DATA_FLOAT,
                             window && i == 1 ? mean : dim, 16);
    CHECK(cudaMalloc(&pointer[i], 4 * 8 * 6 * sizeof(float)));
    CHECK(cudaMemset(pointer[i], 0, 4 * 8 * 6 * sizeof(float)));
  }
  const build_window_t all = {
      .dims = 2, .size = {dim[2], dim[3]}, .stride = {1, 1}};
  op = window ? build_pool(CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING, &all,
                           tensor[0], tensor[1], NULL)
              : build_pointwise_as(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT,
                                   2, tensor[0], NULL, NULL, tensor[1]);
  build_t graph = build_graph(handle, &op, 1);
  build_t plan = build_first_plan(handle, graph, CUDNN_HEUR_MODE_A, &bytes);
  CHECK(!plan);
  printf("status %d\n",
         (int)build_execute_once(handle, plan, uids, pointer, 2, bytes));
  build_destroy(plan);
  build_destroy(graph);
  for (int i = 0; i < 2; i++) {
    build_destroy(tensor[i]);
    CHECK(cudaFree(pointer[i]));
  }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
