// SPDX-License-Identifier: Apache-2.0
// Shard view: the gradient of a maximum over three rows, where the first rank
// has one row of a tensor without columns, and each other one four. The extents
// of its x and y are those of numbers for each channel.
#include <cuda_runtime_api.h>
#include <math.h>

#include "tests/clients/graphs/build.h"

enum { CHANNELS = 2, MANY = 4, DY = 0, DX, X, Y, TENSORS };

static int64_t number_of(const char *name) {
  const char *text = getenv(name);
  return text ? strtoll(text, NULL, 10) : 0;
}

// x rises from row to row, so that each maximum is in its window's last row.
static float value_of(int tensor, int64_t row, int64_t rows, int64_t channel) {
  switch (tensor) {
  case DY:
    return (float)(row * row + channel);
  case DX:
    return (row > 0 ? value_of(DY, row - 1, rows, channel) : 0) +
           (row == rows - 1 ? value_of(DY, row, rows, channel) : 0);
  case Y:
    return value_of(X, row < rows - 1 ? row + 1 : row, rows, channel);
  }
  return (float)(3 * row + channel);
}

static build_t pooling(void) {
  build_t how = build_create(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnResampleMode_t mode = CUDNN_RESAMPLE_MAXPOOL;
  cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  cudnnPaddingMode_t border = CUDNN_NEG_INF_PAD;
  const int64_t spatial = BUILD_SPATIAL, window[] = {3, 1}, pad[] = {1, 0},
                one[] = {1, 1};
  BUILD_SET(how, RESAMPLE_MODE, RESAMPLE_MODE, 1, &mode);
  BUILD_SET(how, RESAMPLE_COMP_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(how, RESAMPLE_NAN_PROPAGATION, NAN_PROPOGATION, 1, &nan);
  BUILD_SET(how, RESAMPLE_PADDING_MODE, PADDING_MODE, 1, &border);
  BUILD_SET(how, RESAMPLE_SPATIAL_DIMS, INT64, 1, &spatial);
  BUILD_SET(how, RESAMPLE_WINDOW_DIMS, INT64, spatial, window);
  BUILD_SET(how, RESAMPLE_PRE_PADDINGS, INT64, spatial, pad);
  BUILD_SET(how, RESAMPLE_POST_PADDINGS, INT64, spatial, pad);
  BUILD_SET(how, RESAMPLE_STRIDES, INT64, spatial, one);
  CHECK(cudnnBackendFinalize(how));
  return how;
}

static build_t plan_of(cudnnHandle_t handle, int64_t rows, int64_t *out_bytes) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
  build_t how = pooling(), tensor[TENSORS], config[BUILD_CONFIGS], plan = NULL;
  const int64_t dim[] = {1, CHANNELS, rows, 1};
  for (int t = 0; t < TENSORS; t++)
    tensor[t] = build_tensor(t + 1, CUDNN_DATA_FLOAT, dim, 4);
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DESC, how);
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DXDESC, tensor[DX]);
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DYDESC, tensor[DY]);
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_XDESC, tensor[X]);
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_YDESC, tensor[Y]);
  CHECK(cudnnBackendFinalize(op));
  build_t graph = build_graph(handle, &op, 1);
  int64_t configs = build_configs(graph, CUDNN_HEUR_MODE_A, config);
  for (int64_t i = 0; i < configs; i++) {
    if (!plan)
      plan = build_plan(handle, config[i], out_bytes);
    build_destroy(config[i]);
  }
  CHECK(!plan);
  for (int t = 0; t < TENSORS; t++)
    build_destroy(tensor[t]);
  build_destroy(how);
  build_destroy(graph);
  return plan;
}

int main(void) {
  int64_t rank = number_of("SUNDOG_RANK"), ranks = number_of("SUNDOG_SIZE");
  int64_t rows = rank == 0 ? 1 : MANY, all = 1 + MANY * (ranks - 1), bytes = 0;
  int64_t first = rank == 0 ? 0 : 1 + MANY * (rank - 1);
  const int64_t uid[] = {1, 2, 3, 4};
  float value[MANY * CHANNELS];
  void *pointer[TENSORS], *space;
  cudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  size_t size = (size_t)(rows * CHANNELS) * sizeof *value;
  for (int t = 0; t < TENSORS; t++) {
    for (int64_t i = 0; i < rows * CHANNELS; i++)
      value[i] =
          t == DX ? NAN : value_of(t, first + i / CHANNELS, all, i % CHANNELS);
    CHECK(cudaMalloc(&pointer[t], size));
    CHECK(cudaMemcpy(pointer[t], value, size, cudaMemcpyHostToDevice));
  }
  build_t plan = plan_of(handle, rows, &bytes);
  CHECK(cudaMalloc(&space, (size_t)bytes + 1));
  CHECK(build_execute(handle, plan, uid, pointer, TENSORS, space));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(value, pointer[DX], size, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < rows * CHANNELS; i++)
    CHECK(value[i] != value_of(DX, first + i / CHANNELS, all, i % CHANNELS));
  build_destroy(plan);
  for (int t = 0; t < TENSORS; t++)
    CHECK(cudaFree(pointer[t]));
  CHECK(cudaFree(space));
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
