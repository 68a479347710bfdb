// SPDX-License-Identifier: Apache-2.0
// One convolution in memory, and what it should give by plain loops.
#include "tests/clients/graphs/layer.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#include "tests/calls.h"

static int64_t count_of(const layer_t *l, int t) {
  return l->dim[t][0] * l->dim[t][1] * l->dim[t][2] * l->dim[t][3];
}

static int64_t at(const layer_t *l, int t, int64_t n, int64_t c, int64_t h,
                  int64_t w) {
  const int64_t *dim = l->dim[t];
  return ((n * dim[2] + h) * dim[3] + w) * dim[1] + c;
}

void layer_init(layer_t *l, int64_t images, int64_t channels, int64_t outputs,
                int64_t rows, int64_t columns, int64_t kernel, int64_t stride,
                int64_t padding) {
  int64_t y_rows = (rows + 2 * padding - kernel) / stride + 1;
  int64_t y_columns = (columns + 2 * padding - kernel) / stride + 1;
  const int64_t dim[LAYER_TENSORS][4] = {
      [LAYER_X] = {images, channels, rows, columns},
      [LAYER_W] = {outputs, channels, kernel, kernel},
      [LAYER_Y] = {images, outputs, y_rows, y_columns},
      [LAYER_BIAS] = {1, outputs, 1, 1},
      [LAYER_Z] = {images, outputs, y_rows, y_columns}};
  l->stride = stride;
  l->padding = padding;
  memcpy(l->dim, dim, sizeof dim);
  for (int t = 0; t < LAYER_TENSORS; t++) {
    int64_t count = count_of(l, t);
    size_t bytes = (size_t)count * sizeof(float);
    l->host[t] = malloc(bytes);
    CHECK(!l->host[t]);
    for (int64_t i = 0; i < count; i++)
      l->host[t][i] = (float)sin((double)(i * (7 + t) % 1009) * 0.7 + t) / 2;
    CHECK(cudaMalloc(&l->device[t], bytes));
    CHECK(cudaMemcpy(l->device[t], l->host[t], bytes, cudaMemcpyHostToDevice));
  }
}

void layer_fini(layer_t *l) {
  for (int t = 0; t < LAYER_TENSORS; t++) {
    free(l->host[t]);
    CHECK(cudaFree(l->device[t]));
  }
}

static int result_of(layer_what_t what) {
  return what == LAYER_DATA     ? LAYER_X
         : what == LAYER_FILTER ? LAYER_W
                                : LAYER_Y;
}

void layer_clear(const layer_t *l, layer_what_t what) {
  int t = result_of(what);
  CHECK(cudaMemset(l->device[t], 0xff, (size_t)count_of(l, t) * sizeof(float)));
}

// Adds every product of the convolution to the tensor that is computed.
static void products_add(const layer_t *l, int result, double *sums) {
  const int64_t *x = l->dim[LAYER_X], *w = l->dim[LAYER_W],
                *y = l->dim[LAYER_Y];
  for (int64_t n = 0; n < y[0]; n++)
    for (int64_t h = 0; h < y[2]; h++)
      for (int64_t v = 0; v < y[3]; v++)
        for (int64_t r = 0; r < w[2]; r++)
          for (int64_t s = 0; s < w[3]; s++) {
            int64_t row = h * l->stride + r - l->padding;
            int64_t column = v * l->stride + s - l->padding;
            if (row < 0 || row >= x[2] || column < 0 || column >= x[3])
              continue;
            for (int64_t k = 0; k < y[1]; k++)
              for (int64_t c = 0; c < x[1]; c++) {
                const int64_t place[] = {at(l, LAYER_X, n, c, row, column),
                                         at(l, LAYER_W, k, c, r, s),
                                         at(l, LAYER_Y, n, k, h, v)};
                double product = 1;
                for (int t = 0; t < 3; t++)
                  product *= t == result ? 1 : l->host[t][place[t]];
                sums[place[result]] += product;
              }
          }
}

static void finish(const layer_t *l, double *sums) {
  for (int64_t i = 0; i < count_of(l, LAYER_Y); i++) {
    sums[i] += (double)l->host[LAYER_Z][i] +
               (double)l->host[LAYER_BIAS][i % l->dim[LAYER_Y][1]];
    sums[i] = sums[i] > 0 ? sums[i] : 0;
  }
}

void layer_check(const layer_t *l, layer_what_t what, const char *name) {
  int result = result_of(what);
  int64_t count = count_of(l, result);
  float *got = malloc((size_t)count * sizeof *got);
  double *right = calloc((size_t)count, sizeof *right), most = 0, size = 1;
  CHECK(!got || !right);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(got, l->device[result], (size_t)count * sizeof *got,
                   cudaMemcpyDeviceToHost));
  products_add(l, result, right);
  if (what == LAYER_FUSED)
    finish(l, right);
  for (int64_t i = 0; i < count; i++) {
    double off = fabs(got[i] - right[i]);
    most = off <= most ? most : off; // also if it is NaN
    size = fabs(right[i]) > size ? fabs(right[i]) : size;
  }
  printf("%s: %lld values, off by at most %.1e\n", name, (long long)count,
         most);
  free(got);
  free(right);
  if (!(most <= 1e-5 * size)) {
    fprintf(stderr, "%s: wrong\n", name);
    exit(EXIT_FAILURE);
  }
}
