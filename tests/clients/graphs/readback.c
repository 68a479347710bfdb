// SPDX-License-Identifier: Apache-2.0
// Engines and knobs that are read back, and plans that go through text.
#include "tests/clients/graphs/readback.h"

#include <cuda_runtime_api.h>

build_t build_config_again(build_t graph, build_t config) {
  enum { ROOM = CUDNN_KNOB_TYPE_COUNTS };
  build_t engine = build_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR), knob[ROOM];
  int64_t id, count;
  for (int i = 0; i < ROOM; i++)
    knob[i] = build_create(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  BUILD_GET(config, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &count, &engine);
  BUILD_GET(engine, ENGINE_GLOBAL_INDEX, INT64, 1, &count, &id);
  BUILD_GET(config, ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, ROOM, &count,
            knob);
  build_destroy(engine);
  engine = build_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  BUILD_GIVE(engine, ENGINE_OPERATION_GRAPH, graph);
  BUILD_SET(engine, ENGINE_GLOBAL_INDEX, INT64, 1, &id);
  CHECK(cudnnBackendFinalize(engine));
  build_t again = build_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  BUILD_GIVE(again, ENGINECFG_ENGINE, engine);
  build_t choice[ROOM];
  for (int64_t i = 0; i < count; i++) {
    cudnnBackendKnobType_t type;
    int64_t value, got;
    BUILD_GET(knob[i], KNOB_CHOICE_KNOB_TYPE, KNOB_TYPE, 1, &got, &type);
    BUILD_GET(knob[i], KNOB_CHOICE_KNOB_VALUE, INT64, 1, &got, &value);
    choice[i] = build_create(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    BUILD_SET(choice[i], KNOB_CHOICE_KNOB_TYPE, KNOB_TYPE, 1, &type);
    BUILD_SET(choice[i], KNOB_CHOICE_KNOB_VALUE, INT64, 1, &value);
    CHECK(cudnnBackendFinalize(choice[i]));
  }
  if (count)
    BUILD_SET(again, ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, count, choice);
  CHECK(cudnnBackendFinalize(again));
  for (int64_t i = 0; i < count; i++)
    build_destroy(choice[i]);
  for (int i = 0; i < ROOM; i++)
    build_destroy(knob[i]);
  build_destroy(engine);
  return again;
}

build_t build_through_text(cudnnHandle_t handle, build_t plan) {
  int64_t bytes;
  BUILD_GET(plan, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, 0, &bytes, NULL);
  char *text = malloc((size_t)bytes);
  CHECK(!text);
  BUILD_GET(plan, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, bytes, &bytes,
            text);
  build_t again = build_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  BUILD_SET(again, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  BUILD_SET(again, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, bytes, text);
  CHECK(cudnnBackendFinalize(again));
  free(text);
  return again;
}

void build_warm_up(cudnnHandle_t handle, build_t plan, const int64_t *uids,
                   int64_t count) {
  cudaStream_t stream;
  cudaGraph_t graph;
  void *memory, *pointers[BUILD_WARM_TENSORS];
  CHECK(count > BUILD_WARM_TENSORS);
  CHECK(cudnnGetStream(handle, &stream));
  cudaStream_t own = NULL;
  if (!stream) { // the legacy stream cannot be captured
    CHECK(cudaStreamCreate(&own));
    CHECK(cudnnSetStream(handle, own));
  }
  CHECK(
      cudaStreamBeginCapture(own ? own : stream, cudaStreamCaptureModeRelaxed));
  CHECK(cudaMalloc(&memory, 1 << 20));
  for (int64_t i = 0; i < count; i++)
    pointers[i] = memory;
  (void)build_execute(handle, plan, uids, pointers, count, memory);
  CHECK(cudaStreamEndCapture(own ? own : stream, &graph));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(memory));
  CHECK(cudnnSetStream(handle, stream));
  if (own)
    CHECK(cudaStreamDestroy(own));
}
