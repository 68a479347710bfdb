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

static build_t plan_of(cudnnHandle_t handle, int64_t rows, int64_t *out_bytes) {
  static const build_window_t window = {.dims = 2,
                                        .size = {3, 1},
                                        .pre = {1, 0},
                                        .post = {1, 0},
                                        .stride = {1, 1}};
  build_t tensor[TENSORS];
  const int64_t dim[] = {1, CHANNELS, rows, 1};
  for (int t = 0; t < TENSORS; t++)
    tensor[t] = build_tensor(t + 1, CUDNN_DATA_FLOAT, dim, 4);
  build_t op = build_pool_back(CUDNN_RESAMPLE_MAXPOOL, &window, tensor[DY],
                               NULL, tensor[X], tensor[Y], tensor[DX]);
  build_t graph = build_graph(handle, &op, 1);
  build_t plan = build_first_plan(handle, graph, CUDNN_HEUR_MODE_A, out_bytes);
  CHECK(!plan);
  for (int t = 0; t < TENSORS; t++)
    build_destroy(tensor[t]);
  build_destroy(graph);
  return plan;
}

int main(void) {
  int64_t rank = number_of("SUNDOG_RANK"), ranks = number_of("SUNDOG_SIZE");
  int64_t rows = rank == 0 ? 1 : MANY, all = 1 + MANY * (ranks - 1), bytes = 0;
  int64_t first = rank == 0 ? 0 : 1 + MANY * (rank - 1);
  const int64_t uid[] = {1, 2, 3, 4};
  float value[MANY * CHANNELS];
  void *pointer[TENSORS];
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
  CHECK(build_execute_once(handle, plan, uid, pointer, TENSORS, bytes));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(value, pointer[DX], size, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < rows * CHANNELS; i++)
    CHECK(value[i] != value_of(DX, first + i / CHANNELS, all, i % CHANNELS));
  build_destroy(plan);
  for (int t = 0; t < TENSORS; t++)
    CHECK(cudaFree(pointer[t]));
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
