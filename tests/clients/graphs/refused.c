// SPDX-License-Identifier: Apache-2.0
// A graph that cannot be split; prints the status of its execution.
//
// usage: refused index | window
//   index   tells each element's place along H, which a piece does not know
//   window  means over all of H and W: of the piece, or of all pieces?
#include <cuda_runtime_api.h>
#include <string.h>

#include "tests/clients/graphs/build.h"

static build_t place_along(int64_t axis, build_t x, build_t y) {
  build_t how = build_create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  build_t made = build_create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_GEN_INDEX;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
  BUILD_SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
  BUILD_SET(how, POINTWISE_AXIS, INT64, 1, &axis);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(made, OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  BUILD_GIVE(made, OPERATION_POINTWISE_XDESC, x);
  BUILD_GIVE(made, OPERATION_POINTWISE_YDESC, y);
  CHECK(cudnnBackendFinalize(made));
  build_destroy(how);
  return made;
}

static build_t mean_of(const int64_t *window, build_t x, build_t y) {
  build_t how = build_create(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  build_t made = build_create(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  cudnnResampleMode_t mode = CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnPaddingMode_t border = CUDNN_ZERO_PAD;
  const int64_t spatial = BUILD_SPATIAL, none[] = {0, 0}, one[] = {1, 1};
  BUILD_SET(how, RESAMPLE_MODE, RESAMPLE_MODE, 1, &mode);
  BUILD_SET(how, RESAMPLE_COMP_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(how, RESAMPLE_PADDING_MODE, PADDING_MODE, 1, &border);
  BUILD_SET(how, RESAMPLE_SPATIAL_DIMS, INT64, 1, &spatial);
  BUILD_SET(how, RESAMPLE_WINDOW_DIMS, INT64, BUILD_SPATIAL, window);
  BUILD_SET(how, RESAMPLE_PRE_PADDINGS, INT64, BUILD_SPATIAL, none);
  BUILD_SET(how, RESAMPLE_POST_PADDINGS, INT64, BUILD_SPATIAL, none);
  BUILD_SET(how, RESAMPLE_STRIDES, INT64, BUILD_SPATIAL, one);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(made, OPERATION_RESAMPLE_FWD_DESC, how);
  BUILD_GIVE(made, OPERATION_RESAMPLE_FWD_XDESC, x);
  BUILD_GIVE(made, OPERATION_RESAMPLE_FWD_YDESC, y);
  CHECK(cudnnBackendFinalize(made));
  build_destroy(how);
  return made;
}

int main(int words, char **word) {
  static const int64_t dim[] = {1, 4, 8, 6}, mean[] = {1, 4, 1, 1},
                       uids[] = {1, 2};
  CHECK(words < 2);
  bool window = strcmp(word[1], "window") == 0;
  cudnnHandle_t handle;
  build_t tensor[2], config[BUILD_CONFIGS], op, plan = NULL;
  void *pointer[2], *workspace;
  int64_t bytes = 0;
  CHECK(cudnnCreate(&handle));
  for (int i = 0; i < 2; i++) {
    tensor[i] = build_tensor(uids[i], CUDNN_DATA_FLOAT,
                             window && i == 1 ? mean : dim, 16);
    CHECK(cudaMalloc(&pointer[i], 4 * 8 * 6 * sizeof(float)));
    CHECK(cudaMemset(pointer[i], 0, 4 * 8 * 6 * sizeof(float)));
  }
  op = window ? mean_of(dim + 2, tensor[0], tensor[1])
              : place_along(2, tensor[0], tensor[1]);
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
