// SPDX-License-Identifier: Apache-2.0
// Times all plans of a convolution as cudnn-frontend's autotuner does: each is
// executed again and again until its time says that it is enough. Here the last
// digits of the time say that, which differ from rank to rank.
#include <cuda_runtime_api.h>

#include "tests/clients/graphs/build.h"
#include "tests/clients/graphs/layer.h"

enum { EXECUTIONS = 100 };

typedef struct {
  cudnnHandle_t handle;
  build_t plan;
  void *space;
  layer_t *layer;
} tuned_t;

static build_t graph_of(cudnnHandle_t handle, const layer_t *l) {
  build_t tensor[3];
  for (int t = LAYER_X; t <= LAYER_Y; t++)
    tensor[t] = build_tensor(t + 1, CUDNN_DATA_FLOAT, l->dim[t], 16);
  build_t op = build_conv(BUILD_FORWARD, l->stride, l->padding, tensor[LAYER_X],
                          tensor[LAYER_W], tensor[LAYER_Y]);
  for (int t = LAYER_X; t <= LAYER_Y; t++)
    build_destroy(tensor[t]);
  return build_graph(handle, &op, 1);
}

static void execute(const tuned_t *t) {
  static const int64_t uids[] = {LAYER_X + 1, LAYER_W + 1, LAYER_Y + 1};
  CHECK(build_execute(t->handle, t->plan, uids, t->layer->device, 3, t->space));
}

static int executions_until_enough(const tuned_t *t) {
  cudaEvent_t before, after;
  CHECK(cudaEventCreate(&before));
  CHECK(cudaEventCreate(&after));
  int count = 0;
  long digits = 0;
  do {
    float ms;
    CHECK(cudaEventRecord(before, NULL));
    execute(t);
    CHECK(cudaEventRecord(after, NULL));
    CHECK(cudaEventSynchronize(after));
    CHECK(cudaEventElapsedTime(&ms, before, after));
    digits = (long)((double)ms * 1e6);
  } while (++count < EXECUTIONS && digits % 4);
  CHECK(cudaEventDestroy(before));
  CHECK(cudaEventDestroy(after));
  return count;
}

static void tune(cudnnHandle_t handle, int64_t kernel) {
  layer_t layer;
  tuned_t t = {.handle = handle, .layer = &layer};
  build_t config[BUILD_CONFIGS], plan[BUILD_CONFIGS];
  int64_t bytes = 0, most = 0, plans = 0;
  int count = 0;
  layer_init(&layer, 2, 5, 6, 17, 13, kernel, 1, kernel / 2);
  build_t graph = graph_of(t.handle, &layer);
  int64_t configs = build_configs(graph, CUDNN_HEUR_MODE_INSTANT, config);
  for (int64_t i = 0; i < configs; i++) {
    plan[plans] = build_plan(t.handle, config[i], &bytes);
    plans += plan[plans] != NULL;
    most = bytes > most ? bytes : most;
    build_destroy(config[i]);
  }
  CHECK(plans < 2);
  CHECK(cudaMalloc(&t.space, (size_t)most + 1));
  for (int64_t i = 0; i < plans; i++) {
    t.plan = plan[i];
    layer_clear(&layer, LAYER_FORWARD);
    execute(&t);
    count += executions_until_enough(&t);
    layer_check(&layer, LAYER_FORWARD, "a plan");
  }
  printf("%d executions of %d plans\n", count, (int)plans);
  for (int64_t i = 0; i < plans; i++)
    build_destroy(plan[i]);
  build_destroy(graph);
  CHECK(cudaFree(t.space));
  layer_fini(&layer);
}

// The second needs no rows of other ranks: the program's own plans are right.
int main(void) {
  cudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  tune(handle, 3);
  tune(handle, 1);
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
