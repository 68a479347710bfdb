// SPDX-License-Identifier: Apache-2.0
// Whole view: graphs of pointwise ops that write, or reduce, a tensor of other
// extents beside the one that is split. Three ranks split two rows, so that one
// of them computes nothing; a graph on three rows then reads what was written.
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/clients/graphs/build.h"

enum { MOST = 4 * 4 * 4 * 4, TENSORS = 8, OPS = 4 };

typedef struct {
  int64_t dim[BUILD_DIMS];
  float value[MOST]; // channels last
  float *device;
} tensor_t;

// Operations on tensors by their numbers, 1 + number is the unique id.
typedef struct {
  cudnnHandle_t handle;
  tensor_t *tensor[TENSORS];
  build_t made[TENSORS], op[OPS];
  int tensors, ops;
} graph_t;

static int64_t count_of(const tensor_t *t) {
  return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

static int64_t index_of(const tensor_t *t, const int64_t at[BUILD_DIMS]) {
  static const int order[] = {0, 2, 3, 1};
  int64_t index = 0;
  for (int i = 0; i < BUILD_DIMS; i++) {
    int d = order[i];
    index = index * t->dim[d] + (t->dim[d] == 1 ? 0 : at[d]);
  }
  return index;
}

static void place_of(const tensor_t *t, int64_t i, int64_t out[BUILD_DIMS]) {
  for (int d = BUILD_DIMS; d-- > 0; i /= t->dim[d])
    out[d] = i % t->dim[d];
}

// Device memory has the values, or NaN where a result is expected.
static tensor_t *tensor_new(const int64_t dim[BUILD_DIMS], bool result) {
  tensor_t *t = calloc(1, sizeof *t);
  float fill[MOST];
  CHECK(!t);
  memcpy(t->dim, dim, sizeof t->dim);
  for (int64_t i = 0; i < count_of(t); i++) {
    t->value[i] = result ? 0 : (float)(i * 7 % 16 - 5) / 8;
    fill[i] = result ? NAN : t->value[i];
  }
  size_t bytes = (size_t)count_of(t) * sizeof(float);
  CHECK(cudaMalloc((void **)&t->device, bytes));
  CHECK(cudaMemcpy(t->device, fill, bytes, cudaMemcpyHostToDevice));
  return t;
}

static build_t graph_tensor(graph_t *g, tensor_t *t) {
  for (int i = 0; i < g->tensors; i++)
    if (g->tensor[i] == t)
      return g->made[i];
  g->tensor[g->tensors] = t;
  g->made[g->tensors] =
      build_tensor(g->tensors + 1, CUDNN_DATA_FLOAT, t->dim, 4);
  return g->made[g->tensors++];
}

// y = x * b, with y's extents; b NULL: -x.
static void multiply(graph_t *g, tensor_t *x, tensor_t *b, tensor_t *y) {
  build_t from = graph_tensor(g, x), by = b ? graph_tensor(g, b) : NULL;
  g->op[g->ops++] =
      build_pointwise(b ? CUDNN_POINTWISE_MUL : CUDNN_POINTWISE_NEG, from, by,
                      graph_tensor(g, y));
  for (int64_t i = 0; i < count_of(y); i++) {
    int64_t at[BUILD_DIMS];
    place_of(y, i, at);
    y->value[index_of(y, at)] =
        x->value[index_of(x, at)] * (b ? b->value[index_of(b, at)] : -1);
  }
}

// y is the sum of x.
static void sum(graph_t *g, tensor_t *x, tensor_t *y) {
  build_t from = graph_tensor(g, x);
  g->op[g->ops++] =
      build_reduction(CUDNN_REDUCE_TENSOR_ADD, from, graph_tensor(g, y));
  y->value[0] = 0;
  for (int64_t i = 0; i < count_of(x); i++)
    y->value[0] += x->value[i];
}

static void run(graph_t *g) {
  build_t graph = build_graph(g->handle, g->op, g->ops);
  int64_t uid[TENSORS], bytes = 0;
  void *pointer[TENSORS];
  build_t plan = build_first_plan(g->handle, graph, CUDNN_HEUR_MODE_A, &bytes);
  CHECK(!plan);
  for (int i = 0; i < g->tensors; i++) {
    uid[i] = i + 1;
    pointer[i] = g->tensor[i]->device;
    build_destroy(g->made[i]);
  }
  CHECK(build_execute_once(g->handle, plan, uid, pointer, g->tensors, bytes));
  CHECK(cudaDeviceSynchronize());
  build_destroy(plan);
  build_destroy(graph);
  g->tensors = g->ops = 0;
}

static void check(const tensor_t *t, const char *name) {
  float got[MOST];
  CHECK(cudaMemcpy(got, t->device, (size_t)count_of(t) * sizeof(float),
                   cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < count_of(t); i++)
    if (!(fabsf(got[i] - t->value[i]) <= 1e-5F)) {
      fprintf(stderr, "%s: element %ld is %g, not %g\n", name, (long)i,
              (double)got[i], (double)t->value[i]);
      exit(EXIT_FAILURE);
    }
}

// y = -x beside a result of `dim`: -b, or the sum of b. Each rank reads it in a
// graph on rows of its own.
static void beside(cudnnHandle_t handle, const int64_t of_x[BUILD_DIMS],
                   const int64_t dim[BUILD_DIMS], bool reduces) {
  static const int64_t one[] = {1, 1, 1, 1};
  graph_t g = {.handle = handle};
  int64_t later[BUILD_DIMS] = {2, dim[1] > 1 ? dim[1] : 2, 3, 4};
  later[3] = dim[3] > 1 && !reduces ? dim[3] : later[3];
  tensor_t *x = tensor_new(of_x, false), *y = tensor_new(of_x, true);
  tensor_t *b = tensor_new(dim, false);
  tensor_t *small = tensor_new(reduces ? one : dim, true);
  multiply(&g, x, NULL, y);
  if (reduces)
    sum(&g, b, small);
  else
    multiply(&g, b, NULL, small);
  run(&g);
  tensor_t *more = tensor_new(later, false), *product = tensor_new(later, true);
  if (dim[2] == 1 || reduces) {
    multiply(&g, more, small, product);
    run(&g);
    check(product, "what reads the small result");
  }
  check(small, reduces ? "a sum" : "a small result");
  check(y, "the result");
  tensor_t *all[] = {x, y, b, small, more, product};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    CHECK(cudaFree(all[i]->device));
    free(all[i]);
  }
}

int main(void) {
  cudnnHandle_t handle;
  CHECK(cudnnCreate(&handle));
  // Rows of 2 on three ranks, and of 3.
  for (int64_t rows = 2; rows <= 3; rows++) {
    const int64_t x[] = {2, 3, rows, 4}, narrow[] = {4, 1, rows, 1};
    const int64_t row[] = {2, 1, rows, 1}, columns[] = {1, 3, 1, 4},
                  channels[] = {1, 3, 1, 1};
    beside(handle, x, row, false);
    beside(handle, x, columns, false);
    beside(handle, x, channels, true);
    // More channels than x has.
    beside(handle, narrow, channels, false);
    beside(handle, narrow, channels, true);
  }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
