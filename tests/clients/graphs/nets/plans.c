// SPDX-License-Identifier: Apache-2.0
// Graphs that are planned as frameworks do it, and executed.
#include <cuda_runtime_api.h>

#include "tests/clients/graphs/nets/sketch.h"
#include "tests/clients/graphs/readback.h"

op_t op_make(const net_t *net, sketch_t *s) {
  op_t op = {.tensors = s->tensors, .convolves = s->convolves};
  for (int i = 0; i < s->tensors; i++) {
    op.uid[i] = s->tensor[i]->uid;
    op.pointer[i] = s->tensor[i]->at;
    op.has_numbers |= s->tensor[i]->is_by_value;
  }
  op.graph = build_graph(net->handle, s->op, s->ops);
  for (int i = 0; i < s->mades; i++)
    build_destroy(s->made[i]);
  *s = (sketch_t){0};
  return op;
}

static cudnnStatus_t execute(const net_t *net, const op_t *op, build_t plan,
                             int64_t bytes) {
  if (op->zeroed)
    CHECK(cudaMemsetAsync(op->zeroed, 0, op->zeroed_bytes, NULL));
  return build_execute_once(net->handle, plan, op->uid, (void **)op->pointer,
                            op->tensors, bytes);
}

// What an execution takes, in ms, after one that warms up; negative: it fails.
static float time_of(const net_t *net, const op_t *op, build_t plan,
                     int64_t bytes) {
  cudaEvent_t begin, end;
  float ms = -1;
  if (execute(net, op, plan, bytes) != CUDNN_STATUS_SUCCESS)
    return ms;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin, NULL));
  CHECK(execute(net, op, plan, bytes));
  CHECK(cudaEventRecord(end, NULL));
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  return ms;
}

// PyTorch's: the configurations of a list in turn, until a plan executes; to
// compare, all of them.
static void list_try(const net_t *net, op_t *op, cudnnBackendHeurMode_t mode,
                     bool compares, float *io_best) {
  build_t config[BUILD_CONFIGS];
  int64_t count = build_configs(op->graph, mode, config), bytes = 0;
  for (int64_t i = 0; i < count; i++) {
    bool wanted = compares || !op->plan;
    build_t plan = wanted ? build_plan(net->handle, config[i], &bytes) : NULL;
    build_destroy(config[i]);
    if (!plan)
      continue;
    float ms = compares ? time_of(net, op, plan, bytes)
               : execute(net, op, plan, bytes) == CUDNN_STATUS_SUCCESS ? 0
                                                                       : -1;
    if (ms < 0 || (op->plan && ms >= *io_best)) {
      build_destroy(plan);
      continue;
    }
    if (op->plan)
      build_destroy(op->plan);
    op->plan = plan;
    op->space_bytes = bytes;
    *io_best = ms;
  }
}

static void torch_run(const net_t *net, op_t *op) {
  bool compares = net->manner == MANNER_BENCHMARK && op->convolves;
  float best = 0;
  list_try(net, op, CUDNN_HEUR_MODE_INSTANT, compares, &best);
  if (!op->plan || compares)
    list_try(net, op, CUDNN_HEUR_MODE_FALLBACK, compares, &best);
  CHECK(!op->plan);
  if (compares)
    CHECK(execute(net, op, op->plan, op->space_bytes));
}

// XLA's: compiled once, with engine and knobs as an autotuning cache keeps
// them, and read from text when the program runs.
static void xla_plan(const net_t *net, op_t *op) {
  static const cudnnBackendHeurMode_t modes[] = {
      CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
  build_t config[BUILD_CONFIGS], kept = NULL;
  for (int m = 0; m < 3 && !kept; m++) {
    int64_t count = build_configs(op->graph, modes[m], config), bytes;
    for (int64_t i = 0; i < count; i++) {
      build_t plan = kept ? NULL : build_plan(net->handle, config[i], &bytes);
      if (plan) {
        kept = build_config_again(op->graph, config[i]);
        build_destroy(plan);
      }
      build_destroy(config[i]);
    }
  }
  CHECK(!kept);
  build_t plan = build_plan(net->handle, kept, &op->space_bytes);
  CHECK(!plan);
  build_destroy(kept);
  op->plan = build_through_text(net->handle, plan);
  build_destroy(plan);
  BUILD_GET(op->plan, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, NULL,
            &op->space_bytes);
  if (!op->has_numbers)
    build_warm_up(net->handle, op->plan, op->uid, op->tensors);
}

void op_run(const net_t *net, op_t *op) {
  if (op->call) {
    op->call(op->what);
    return;
  }
  if (!op->plan && net->manner != MANNER_XLA) {
    torch_run(net, op);
    return;
  }
  if (!op->plan)
    xla_plan(net, op);
  CHECK(execute(net, op, op->plan, op->space_bytes));
}

void op_free(op_t *op) {
  free(op->what);
  if (op->graph)
    build_destroy(op->graph);
  if (op->plan)
    build_destroy(op->plan);
}
