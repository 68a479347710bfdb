// SPDX-License-Identifier: Apache-2.0
// Two layers with one plan: the memory of one layer's input is tagged as rows
// of a split tensor, that of the other one's as the rank's own.
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "tests/clients/graphs/build.h"
#include "tests/clients/graphs/layer.h"
#include "tests/clients/graphs/tag.h"

static build_t plan_of(cudnnHandle_t handle, const layer_t *l,
                       int64_t *out_bytes) {
  build_t tensor[3];
  for (int t = LAYER_X; t <= LAYER_Y; t++)
    tensor[t] = build_tensor(t + 1, CUDNN_DATA_FLOAT, l->dim[t], 16);
  build_t op = build_conv(BUILD_FORWARD, l->stride, l->padding, tensor[LAYER_X],
                          tensor[LAYER_W], tensor[LAYER_Y]);
  build_t graph = build_graph(handle, &op, 1);
  build_t plan = build_first_plan(handle, graph, CUDNN_HEUR_MODE_A, out_bytes);
  CHECK(!plan);
  for (int t = LAYER_X; t <= LAYER_Y; t++)
    build_destroy(tensor[t]);
  build_destroy(graph);
  return plan;
}

static void run(cudnnHandle_t handle, build_t plan, const layer_t *l,
                void *space, const char *name) {
  const int64_t uid[] = {1, 2, 3};
  void *pointer[3];
  for (int t = LAYER_X; t <= LAYER_Y; t++)
    pointer[t] = l->device[t];
  layer_clear(l, LAYER_FORWARD);
  CHECK(build_execute(handle, plan, uid, pointer, 3, space));
  layer_check(l, LAYER_FORWARD, name);
}

int main(void) {
  layer_t split, own;
  cudnnHandle_t handle;
  int64_t bytes = 0;
  void *space;
  CHECK(cudnnCreate(&handle));
  layer_init(&split, 2, 3, 4, 17, 9, 3, 1, 1);
  CHECK(unsetenv("LAYER_VIEW"));
  layer_init(&own, 2, 3, 4, split.dim[LAYER_X][2], 9, 3, 1, 1);
  size_t rows = (size_t)(2 * 3 * 9 * split.dim[LAYER_X][2]);
  tag_range(split.device[LAYER_X], rows * sizeof(float), "H");
  tag_range(own.device[LAYER_X], rows * sizeof(float), "local");
  build_t plan = plan_of(handle, &split, &bytes);
  CHECK(cudaMalloc(&space, (size_t)bytes + 1));
  for (int i = 0; i < 2; i++) {
    run(handle, plan, &split, space, "split");
    run(handle, plan, &own, space, "own");
  }
  build_destroy(plan);
  CHECK(cudaFree(space));
  layer_fini(&split);
  layer_fini(&own);
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
