// SPDX-License-Identifier: Apache-2.0
// Convolutions in the calls that XLA makes for them: every plan that mode B and
// then mode A propose is timed; engine and knobs of one are read back, as an
// autotuning cache keeps them, and a plan is built from them; and a plan goes
// through text, whose first execution is cudnn-frontend's, inside a capture,
// with one pointer for all tensors.
#include <cuda_runtime_api.h>
#include <string.h>

#include "tests/clients/graphs/build.h"
#include "tests/clients/graphs/layer.h"
#include "tests/clients/graphs/readback.h"

enum { TENSORS = 4 };
static const int order[TENSORS] = {LAYER_X, LAYER_W, LAYER_BIAS, LAYER_Y};
static const int64_t uids[TENSORS] = {1, 2, 3, 4};

// relu(conv(x, w) + bias)
static build_t graph_of(cudnnHandle_t handle, const layer_t *l) {
  const build_window_t window = build_window(0, l->stride, l->padding);
  build_t conv = build_conv_how(&window), tensor[TENSORS];
  for (int i = 0; i < TENSORS; i++)
    tensor[i] = build_tensor(uids[i], CUDNN_DATA_FLOAT, l->dim[order[i]], 32);
  build_t sum = build_tensor(-10, CUDNN_DATA_FLOAT, l->dim[LAYER_Y], 32);
  build_t biased = build_tensor(-11, CUDNN_DATA_FLOAT, l->dim[LAYER_Y], 32);
  build_t ops[3] = {
      build_create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)};
  const double one = 1, zero = 0;
  BUILD_GIVE(ops[0], OPERATION_CONVOLUTION_FORWARD_X, tensor[0]);
  BUILD_GIVE(ops[0], OPERATION_CONVOLUTION_FORWARD_W, tensor[1]);
  BUILD_GIVE(ops[0], OPERATION_CONVOLUTION_FORWARD_Y, sum);
  BUILD_GIVE(ops[0], OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
  BUILD_SET(ops[0], OPERATION_CONVOLUTION_FORWARD_ALPHA, DOUBLE, 1, &one);
  BUILD_SET(ops[0], OPERATION_CONVOLUTION_FORWARD_BETA, DOUBLE, 1, &zero);
  CHECK(cudnnBackendFinalize(ops[0]));
  ops[1] = build_pointwise(CUDNN_POINTWISE_ADD, sum, tensor[2], biased);
  ops[2] = build_pointwise(CUDNN_POINTWISE_RELU_FWD, biased, NULL, tensor[3]);
  for (int i = 0; i < TENSORS; i++)
    build_destroy(tensor[i]);
  build_destroy(sum);
  build_destroy(biased);
  build_destroy(conv);
  return build_graph(handle, ops, 3);
}

static cudnnStatus_t run(cudnnHandle_t handle, build_t plan, int64_t workspace,
                         const layer_t *l) {
  void *pointers[TENSORS];
  for (int i = 0; i < TENSORS; i++)
    pointers[i] = l->device[order[i]];
  return build_execute_once(handle, plan, uids, pointers, TENSORS, workspace);
}

static void plan_check(cudnnHandle_t handle, build_t plan, const layer_t *l,
                       const char *name) {
  int64_t workspace;
  BUILD_GET(plan, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, NULL, &workspace);
  layer_clear(l, LAYER_FUSED);
  CHECK(run(handle, plan, workspace, l));
  layer_check(l, LAYER_FUSED, name);
}

int main(void) {
  static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_B,
                                                 CUDNN_HEUR_MODE_A};
  cudnnHandle_t handle;
  layer_t l;
  CHECK(cudnnCreate(&handle));
  layer_init(&l, 3, 8, 4, 16, 10, 3, 1, 1);
  // XLA adds no residual here.
  memset(l.host[LAYER_Z], 0,
         (size_t)(l.whole[LAYER_Z][0] * l.whole[LAYER_Z][1] *
                  l.whole[LAYER_Z][2] * l.whole[LAYER_Z][3]) *
             sizeof(float));
  build_t graph = graph_of(handle, &l), kept = NULL;
  for (int m = 0; m < 2; m++) {
    build_t config[BUILD_CONFIGS];
    int64_t count = build_configs(graph, modes[m], config);
    for (int64_t i = 0; i < count; i++) {
      int64_t workspace;
      build_t plan = build_plan(handle, config[i], &workspace);
      if (plan) {
        plan_check(handle, plan, &l, m ? "mode A" : "mode B");
        build_destroy(plan);
      }
      if (plan && !kept)
        kept = build_config_again(graph, config[i]);
      build_destroy(config[i]);
    }
  }
  int64_t workspace;
  CHECK(!kept);
  build_t plan = build_plan(handle, kept, &workspace);
  CHECK(!plan);
  build_destroy(kept);
  build_destroy(graph);
  plan_check(handle, plan, &l, "engine and knobs read back");
  build_t read = build_through_text(handle, plan);
  build_destroy(plan);
  build_warm_up(handle, read, uids, TENSORS);
  plan_check(handle, read, &l, "read from text");
  build_destroy(read);
  layer_fini(&l);
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
