// SPDX-License-Identifier: Apache-2.0
// Convolutions in the calls that PyTorch makes for them (aten's Conv_v8.cpp):
// configurations of mode INSTANT without those that are not deterministic, each
// in turn until one executes, then those of mode FALLBACK.
//
// usage: torch [benchmark]
//   benchmark  as with torch.backends.cudnn.benchmark: all plans of both lists,
//              each executed twice
#include <cuda_runtime_api.h>
#include <string.h>

#include "tests/clients/graphs/build.h"
#include "tests/clients/graphs/layer.h"

// The uids of PyTorch.
static const int64_t uids[LAYER_TENSORS] = {[LAYER_X] = 'x',
                                            [LAYER_W] = 'w',
                                            [LAYER_Y] = 'y',
                                            [LAYER_BIAS] = 'b',
                                            [LAYER_Z] = 'z'};

static int64_t alignment_of(const void *pointer) {
  int64_t alignment = 1;
  while (alignment < 32 && (uintptr_t)pointer % (uintptr_t)(2 * alignment) == 0)
    alignment *= 2;
  return alignment;
}

static build_t tensor_of(const layer_t *l, int t) {
  return build_tensor(uids[t], CUDNN_DATA_FLOAT, l->dim[t],
                      alignment_of(l->device[t]));
}

static build_t plain_graph(cudnnHandle_t handle, const layer_t *l,
                           layer_what_t what) {
  build_t x = tensor_of(l, LAYER_X), w = tensor_of(l, LAYER_W),
          y = tensor_of(l, LAYER_Y);
  build_t op = build_conv(what == LAYER_DATA     ? BUILD_DATA
                          : what == LAYER_FILTER ? BUILD_FILTER
                                                 : BUILD_FORWARD,
                          l->stride, l->padding, x, w, y);
  build_t graph = build_graph(handle, &op, 1);
  build_destroy(x);
  build_destroy(w);
  build_destroy(y);
  return graph;
}

// conv -> + z -> + bias -> relu
static build_t fused_graph(cudnnHandle_t handle, const layer_t *l) {
  build_t tensor[LAYER_TENSORS];
  for (int t = 0; t < LAYER_TENSORS; t++)
    tensor[t] = tensor_of(l, t);
  build_t between[3];
  for (int i = 0; i < 3; i++)
    between[i] = build_tensor(-1 - i, CUDNN_DATA_FLOAT, l->dim[LAYER_Y], 16);
  build_t ops[4];
  ops[0] = build_conv(BUILD_FORWARD, l->stride, l->padding, tensor[LAYER_X],
                      tensor[LAYER_W], between[0]);
  ops[1] = build_pointwise(CUDNN_POINTWISE_ADD, between[0], tensor[LAYER_Z],
                           between[1]);
  ops[2] = build_pointwise(CUDNN_POINTWISE_ADD, between[1], tensor[LAYER_BIAS],
                           between[2]);
  ops[3] = build_pointwise(CUDNN_POINTWISE_RELU_FWD, between[2], NULL,
                           tensor[LAYER_Y]);
  for (int t = 0; t < LAYER_TENSORS; t++)
    build_destroy(tensor[t]);
  for (int i = 0; i < 3; i++)
    build_destroy(between[i]);
  return build_graph(handle, ops, 4);
}

// As many notes are written as their number is, also if the program asks for
// more: cudnn-frontend has no room for more. In pieces none says that the
// engine makes nodes of CUDA graphs.
static void notes_check(build_t engine) {
  enum { MOST = CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, UNTOUCHED = 77 };
  const char *view = getenv("LAYER_VIEW");
  bool pieces = view && strcmp(view, "shard") == 0;
  int64_t count, again;
  int note[MOST];
  for (int i = 0; i < MOST; i++)
    note[i] = UNTOUCHED;
  BUILD_GET(engine, ENGINE_BEHAVIOR_NOTE, BEHAVIOR_NOTE, MOST, &count, NULL);
  BUILD_GET(engine, ENGINE_BEHAVIOR_NOTE, BEHAVIOR_NOTE, MOST, &again, note);
  CHECK(count != again);
  for (int i = 0; i < MOST; i++) {
    CHECK((i < count) == (note[i] == UNTOUCHED));
    CHECK(pieces &&
          note[i] == CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API);
  }
}

static bool is_deterministic(build_t config) {
  build_t engine = build_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t count;
  bool is = true;
  BUILD_GET(config, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &count, &engine);
  BUILD_GET(engine, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE,
            CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, note);
  for (int64_t i = 0; i < count; i++)
    is &= note[i] != CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  notes_check(engine);
  build_destroy(engine);
  return is;
}

// "inplace": z is where y will be.
static bool in_place;

static bool plan_run(cudnnHandle_t handle, build_t plan, int64_t workspace,
                     const layer_t *l, layer_what_t what) {
  static const int order[] = {LAYER_X, LAYER_Y, LAYER_W, LAYER_Z, LAYER_BIAS};
  int count = what == LAYER_FUSED ? 5 : 3;
  int64_t ids[5];
  void *pointers[5];
  for (int i = 0; i < count; i++) {
    ids[i] = uids[order[i]];
    pointers[i] = l->device[order[i]];
    if (in_place && order[i] == LAYER_Z) {
      const int64_t *dim = l->dim[LAYER_Y];
      CHECK(cudaMemcpy(l->device[LAYER_Y], pointers[i],
                       (size_t)(dim[0] * dim[1] * dim[2] * dim[3]) *
                           sizeof(float),
                       cudaMemcpyDeviceToDevice));
      pointers[i] = l->device[LAYER_Y];
    }
  }
  return build_execute_once(handle, plan, ids, pointers, count, workspace) ==
         CUDNN_STATUS_SUCCESS;
}

// The number of plans that were executed.
static int configs_try(cudnnHandle_t handle, build_t graph, const layer_t *l,
                       layer_what_t what, cudnnBackendHeurMode_t mode,
                       bool all) {
  build_t config[BUILD_CONFIGS];
  int64_t count = build_configs(graph, mode, config);
  int ran = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t workspace = 0;
    build_t plan = (all || ran == 0) && is_deterministic(config[i])
                       ? build_plan(handle, config[i], &workspace)
                       : NULL;
    build_destroy(config[i]);
    if (!plan)
      continue;
    layer_clear(l, what);
    bool good = plan_run(handle, plan, workspace, l, what);
    if (all) {
      good &= plan_run(handle, plan, workspace, l, what);
      layer_check(l, what, "a plan");
    }
    ran += good;
    build_destroy(plan);
  }
  return ran;
}

static void layer_run(cudnnHandle_t handle, const layer_t *l, layer_what_t what,
                      bool benchmark, const char *name) {
  build_t graph = what == LAYER_FUSED ? fused_graph(handle, l)
                                      : plain_graph(handle, l, what);
  int ran =
      configs_try(handle, graph, l, what, CUDNN_HEUR_MODE_INSTANT, benchmark);
  if (benchmark || ran == 0)
    ran += configs_try(handle, graph, l, what, CUDNN_HEUR_MODE_FALLBACK,
                       benchmark);
  build_destroy(graph);
  CHECK(ran == 0);
  layer_check(l, what, name);
}

int main(int count, char **words) {
  static const char *const name[] = {"forward", "data", "filter", "fused"};
  bool benchmark = count > 1 && strcmp(words[1], "benchmark") == 0;
  cudnnHandle_t handle;
  in_place = count > 1 && strcmp(words[1], "inplace") == 0;
  CHECK(cudnnCreate(&handle));
  for (int what = in_place ? LAYER_FUSED : LAYER_FORWARD; what <= LAYER_FUSED;
       what++)
    for (int64_t stride = 1; stride <= 2; stride++) {
      layer_t l;
      layer_init(&l, 2, 5, 6, 17, 13, 3, stride, 1);
      layer_run(handle, &l, (layer_what_t)what, benchmark, name[what]);
      layer_fini(&l);
    }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
