// SPDX-License-Identifier: Apache-2.0
// Nanoseconds per call of cudnnConvolutionForward, 13 arguments, or of
// cudnnBackendExecute, on a library that does nothing. Prints the median over
// many short batches, in CPU time of this thread: other work on the machine
// shows as little as can be.
//
// usage: pass [graph]
#include <cudnn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/clients/graphs/build.h"

enum { BATCHES = 301, CALLS = 5000 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The status of so many calls: 0, if all succeed.
typedef int (*calls_t)(int count);

static int convolutions(int count) {
  static cudnnTensorDescriptor_t x, y;
  static cudnnFilterDescriptor_t w;
  static cudnnConvolutionDescriptor_t op;
  float one = 1, zero = 0;
  int bad = 0;
  if (!x) {
    CHECK(cudnnCreateTensorDescriptor(&x));
    CHECK(cudnnCreateTensorDescriptor(&y));
    CHECK(cudnnCreateFilterDescriptor(&w));
    CHECK(cudnnCreateConvolutionDescriptor(&op));
  }
  for (int i = 0; i < count; i++)
    bad |= (int)cudnnConvolutionForward(NULL, &one, x, NULL, w, NULL, op,
                                        CUDNN_CONVOLUTION_FWD_ALGO_GEMM, NULL,
                                        0, &zero, y, NULL);
  return bad;
}

static build_t plan_make(void) {
  static const int64_t dim[BUILD_DIMS] = {8, 8, 8, 8}, w_dim[] = {8, 8, 1, 1};
  build_t x, w, y, op, made;
  x = build_tensor(1, CUDNN_DATA_FLOAT, dim, 16);
  w = build_tensor(2, CUDNN_DATA_FLOAT, w_dim, 16);
  y = build_tensor(3, CUDNN_DATA_FLOAT, dim, 16);
  op = build_conv(BUILD_FORWARD, 1, 0, x, w, y);
  build_t graph = build_graph(NULL, &op, 1);
  build_t engine = build_create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  BUILD_GIVE(engine, ENGINE_OPERATION_GRAPH, graph);
  CHECK(cudnnBackendFinalize(engine));
  build_t config = build_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  BUILD_GIVE(config, ENGINECFG_ENGINE, engine);
  CHECK(cudnnBackendFinalize(config));
  made = build_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  BUILD_GIVE(made, EXECUTION_PLAN_ENGINE_CONFIG, config);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

static int graphs(int count) {
  static build_t plan, pack;
  int bad = 0;
  if (!plan) {
    static const int64_t uids[] = {1, 2, 3};
    void *pointers[] = {&plan, &plan, &plan}; // nothing is read there
    plan = plan_make();
    pack = build_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    BUILD_SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, 3, uids);
    BUILD_SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 3, pointers);
    CHECK(cudnnBackendFinalize(pack));
  }
  for (int i = 0; i < count; i++)
    bad |= (int)cudnnBackendExecute(NULL, plan, pack);
  return bad;
}

int main(int words, char **word) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  (void)word;
  calls_t calls = words > 1 ? graphs : convolutions;
  static double batch[BATCHES];
  int bad = 0;
  for (int b = -20; b < BATCHES; b++) {
    double start = now_ns();
    bad |= calls(CALLS);
    if (b >= 0)
      batch[b] = (now_ns() - start) / CALLS;
  }
  qsort(batch, BATCHES, sizeof batch[0], compare);
  printf("%.3f\n", batch[BATCHES / 2]);
  return bad != 0;
}
