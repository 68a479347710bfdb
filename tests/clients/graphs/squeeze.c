// SPDX-License-Identifier: Apache-2.0
// A squeeze as in squeeze-and-excitation networks: a graph sums its result over
// all rows, and the filter gradient of a 1x1 convolution reads the sums, which
// every rank has.
//
// usage: squeeze [rows | scaled]
//   rows  each rank (SUNDOG_RANK of SUNDOG_SIZE) has so many rows; default 3.
//         With 1 nothing says whether the sums are each rank's own: the
//         execution is refused, and its status printed
//   scaled  instead: rows of one for each rank, in front of a 3x3 convolution
//         multiplied by a number that differs from rank to rank; is refused
#include <cuda_runtime_api.h>
#include <math.h>

#include "tests/clients/graphs/build.h"

enum { CHANNELS = 2, COLUMNS = 4, ROWS_MAX = 8 };

typedef struct {
  int64_t uid, dim[BUILD_DIMS];
  void *device;
} tensor_t;

static tensor_t tensor_make(int64_t uid, int64_t outputs, int64_t rows,
                            int64_t columns, const float *value) {
  tensor_t t = {uid, {outputs, CHANNELS, rows, columns}, NULL};
  size_t bytes = (size_t)(outputs * CHANNELS * rows * columns) * sizeof *value;
  CHECK(cudaMalloc(&t.device, bytes));
  CHECK(value ? cudaMemcpy(t.device, value, bytes, cudaMemcpyHostToDevice)
              : cudaMemset(t.device, 0xff, bytes));
  return t;
}

static build_t described(const tensor_t *t) {
  return build_tensor(t->uid, CUDNN_DATA_FLOAT, t->dim, 16);
}

// Destroys the ops.
static cudnnStatus_t run(cudnnHandle_t handle, build_t *op, int64_t ops,
                         const tensor_t *const *tensor, int64_t tensors) {
  build_t graph = build_graph(handle, op, ops);
  int64_t bytes = 0, uid[4];
  void *pointer[4];
  build_t plan =
      build_first_plan(handle, graph, CUDNN_HEUR_MODE_INSTANT, &bytes);
  CHECK(!plan);
  for (int64_t i = 0; i < tensors; i++) {
    uid[i] = tensor[i]->uid;
    pointer[i] = tensor[i]->device;
  }
  cudnnStatus_t status =
      build_execute_once(handle, plan, uid, pointer, tensors, bytes);
  CHECK(cudaDeviceSynchronize());
  build_destroy(plan);
  build_destroy(graph);
  return status;
}

// s = sum over rows and columns of conv(x, w)
static cudnnStatus_t squeeze(cudnnHandle_t handle, const tensor_t *x,
                             const tensor_t *w, const tensor_t *s) {
  build_t in = described(x), filter = described(w), sum = described(s);
  build_t between = build_tensor(-1, CUDNN_DATA_FLOAT, x->dim, 16);
  build_t op[] = {build_conv(BUILD_FORWARD, 1, 0, in, filter, between),
                  build_reduction(CUDNN_REDUCE_TENSOR_ADD, between, sum)};
  return run(handle, op, 2, (const tensor_t *const[]){x, w, s}, 3);
}

// dw = gradient of a 1x1 convolution of s whose result has the gradient dy
static cudnnStatus_t excite_gradient(cudnnHandle_t handle, const tensor_t *s,
                                     const tensor_t *dy, const tensor_t *dw) {
  build_t op = build_conv(BUILD_FILTER, 1, 0, described(s), described(dw),
                          described(dy));
  return run(handle, &op, 1, (const tensor_t *const[]){s, dy, dw}, 3);
}

// y = conv(s * x, w)
static cudnnStatus_t scaled(cudnnHandle_t handle, float number) {
  static const float zero[9 * CHANNELS * CHANNELS];
  tensor_t x = tensor_make(1, 1, 1, COLUMNS, zero);
  tensor_t y = tensor_make(2, 1, 1, COLUMNS, NULL);
  tensor_t w = tensor_make(3, CHANNELS, 3, 3, zero);
  tensor_t s = tensor_make(4, 1, 1, 1, zero);
  s.dim[1] = 1;
  CHECK(cudaMemcpy(s.device, &number, sizeof number, cudaMemcpyHostToDevice));
  build_t between = build_tensor(-1, CUDNN_DATA_FLOAT, x.dim, 16);
  build_t op[] = {
      build_pointwise(CUDNN_POINTWISE_MUL, described(&x), described(&s),
                      between),
      build_conv(BUILD_FORWARD, 1, 1, between, described(&w), described(&y))};
  return run(handle, op, 2, (const tensor_t *const[]){&x, &y, &w, &s}, 4);
}

static void expect(const char *name, const tensor_t *t, const double *right,
                   int count) {
  float got[CHANNELS * CHANNELS];
  CHECK(cudaMemcpy(got, t->device, (size_t)count * sizeof *got,
                   cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; i++)
    if (!(fabs((double)got[i] - right[i]) <= 1e-5 * fabs(right[i]))) {
      fprintf(stderr, "%s: wrong: %g, not %g\n", name, (double)got[i],
              right[i]);
      exit(EXIT_FAILURE);
    }
}

int main(int words, char **word) {
  static const float w[] = {1, 0, 0, 2}, dy[] = {0.5F, -1};
  float x[ROWS_MAX * COLUMNS * CHANNELS];
  double sums[CHANNELS] = {0}, dw[CHANNELS * CHANNELS];
  const char *view = getenv("LAYER_VIEW"), *size = getenv("SUNDOG_SIZE");
  int ranks = view && view[0] == 's' && size ? atoi(size) : 1;
  const char *rank = getenv("SUNDOG_RANK");
  cudnnHandle_t handle;
  if (words > 1 && word[1][0] == 's') {
    CHECK(cudnnCreate(&handle));
    printf("status %d\n",
           (int)scaled(handle, rank ? (float)atoi(rank) + 1 : 1));
    CHECK(cudnnDestroy(handle));
    return EXIT_SUCCESS;
  }
  int rows = words > 1 ? atoi(word[1]) : 3;
  CHECK(rows < 1 || rows > ROWS_MAX);
  for (int i = 0; i < rows * COLUMNS * CHANNELS; i++) {
    x[i] = (float)(i % 5) + 1; // the same in each rank's piece
    sums[i % CHANNELS] += (double)(x[i] * w[3 * (i % CHANNELS)]) * ranks;
  }
  for (int i = 0; i < CHANNELS * CHANNELS; i++)
    dw[i] = (double)dy[i / CHANNELS] * sums[i % CHANNELS];
  CHECK(cudnnCreate(&handle));
  tensor_t in = tensor_make(1, 1, rows, COLUMNS, x);
  tensor_t filter = tensor_make(2, CHANNELS, 1, 1, w);
  tensor_t sum = tensor_make(3, 1, 1, 1, NULL);
  tensor_t out = tensor_make(4, 1, 1, 1, dy);
  tensor_t gradient = tensor_make(5, CHANNELS, 1, 1, NULL);
  cudnnStatus_t status = squeeze(handle, &in, &filter, &sum);
  printf("status %d\n", (int)status);
  if (status == CUDNN_STATUS_SUCCESS) {
    expect("sums", &sum, sums, CHANNELS);
    CHECK(excite_gradient(handle, &sum, &out, &gradient));
    expect("dw", &gradient, dw, CHANNELS * CHANNELS);
  }
  CHECK(cudnnDestroy(handle));
  return EXIT_SUCCESS;
}
