// SPDX-License-Identifier: Apache-2.0
// Makes plans nodes of CUDA graphs: y = x + b, of 4 channels and of 5. Prints
// for each the statuses of cudnnBackendPopulateCudaGraph and
// cudnnBackendUpdateCudaGraph. The values that a launch gives are checked, and
// those of an execution.
#include <cuda_runtime_api.h>

#include "tests/clients/graphs/build.h"

enum { ROWS = 5, COLUMNS = 6, MOST = 5 * ROWS * COLUMNS, TENSORS = 3 };
static const int64_t uids[TENSORS] = {1, 2, 3};

typedef struct {
  cudnnHandle_t handle;
  build_t plan;
  int64_t count; // elements of x and y
  int64_t channels;
  void *pointer[TENSORS], *space;
} sum_t;

static float value_at(const sum_t *s, int t, int64_t i) {
  return t == 0 ? (float)(i * 7 % 16 - 5) / 8 : (float)(i % s->channels);
}

static void clear(const sum_t *s) {
  CHECK(cudaMemset(s->pointer[2], 0x7f, (size_t)s->count * sizeof(float)));
}

static void check(const sum_t *s) {
  float y[MOST];
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(y, s->pointer[2], (size_t)s->count * sizeof *y,
                   cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < s->count; i++)
    CHECK(y[i] != value_at(s, 0, i) + value_at(s, 1, i));
}

static void sum_init(sum_t *s, cudnnHandle_t handle, int64_t channels) {
  const int64_t dim[] = {1, channels, ROWS, COLUMNS},
                one[] = {1, channels, 1, 1};
  build_t tensor[TENSORS];
  int64_t bytes;
  *s = (sum_t){.handle = handle,
               .count = channels * ROWS * COLUMNS,
               .channels = channels};
  for (int t = 0; t < TENSORS; t++) {
    float value[MOST];
    for (int64_t i = 0; i < s->count; i++)
      value[i] = value_at(s, t, i);
    tensor[t] = build_tensor(uids[t], CUDNN_DATA_FLOAT, t == 1 ? one : dim, 4);
    CHECK(cudaMalloc(&s->pointer[t], (size_t)s->count * sizeof *value));
    CHECK(cudaMemcpy(s->pointer[t], value, (size_t)s->count * sizeof *value,
                     cudaMemcpyHostToDevice));
  }
  build_t op =
      build_pointwise(CUDNN_POINTWISE_ADD, tensor[0], tensor[1], tensor[2]);
  build_t graph = build_graph(handle, &op, 1);
  s->plan = build_first_plan(handle, graph, CUDNN_HEUR_MODE_A, &bytes);
  CHECK(!s->plan);
  CHECK(cudaMalloc(&s->space, (size_t)bytes + 1));
  build_destroy(graph);
  for (int t = 0; t < TENSORS; t++)
    build_destroy(tensor[t]);
}

static build_t pack_of(const sum_t *s) {
  build_t pack = build_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  BUILD_SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, TENSORS, uids);
  BUILD_SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, TENSORS, s->pointer);
  BUILD_SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &s->space);
  CHECK(cudnnBackendFinalize(pack));
  return pack;
}

static void launch(const sum_t *s, cudaGraph_t graph) {
  cudaGraphExec_t executable;
  clear(s);
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, NULL));
  check(s);
  CHECK(cudaGraphExecDestroy(executable));
}

// Twice, as a program asks that has a graph of each shape.
static void nodes_make(sum_t *s) {
  for (int time = 0; time < 2; time++) {
    cudaGraph_t graph;
    build_t pack = pack_of(s);
    CHECK(cudaGraphCreate(&graph, 0));
    int made =
        (int)cudnnBackendPopulateCudaGraph(s->handle, s->plan, pack, graph);
    if (made == 0)
      launch(s, graph);
    build_destroy(pack);
    CHECK(cudaFree(s->pointer[2]));
    CHECK(cudaMalloc(&s->pointer[2], (size_t)s->count * sizeof(float)));
    pack = pack_of(s);
    int updated =
        (int)cudnnBackendUpdateCudaGraph(s->handle, s->plan, pack, graph);
    if (updated == 0)
      launch(s, graph);
    printf("%d channels: populate %d, update %d\n", (int)s->channels, made,
           updated);
    build_destroy(pack);
    CHECK(cudaGraphDestroy(graph));
  }
}

int main(void) {
  cudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  for (int64_t channels = 4; channels <= 5; channels++) {
    sum_t s;
    sum_init(&s, handle, channels);
    nodes_make(&s);
    clear(&s);
    CHECK(build_execute(handle, s.plan, uids, s.pointer, TENSORS, s.space));
    check(&s);
    build_destroy(s.plan);
    for (int t = 0; t < TENSORS; t++)
      CHECK(cudaFree(s.pointer[t]));
    CHECK(cudaFree(s.space));
  }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
