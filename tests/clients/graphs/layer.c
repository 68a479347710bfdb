// SPDX-License-Identifier: Apache-2.0
// One convolution in memory, and what it should give by plain loops.
#include "tests/clients/graphs/layer.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

static int64_t count_of(const int64_t dim[4]) {
  return dim[0] * dim[1] * dim[2] * dim[3];
}

static int64_t at(const layer_t *l, int t, int64_t n, int64_t c, int64_t h,
                  int64_t w) {
  const int64_t *dim = l->whole[t];
  return ((n * dim[2] + h) * dim[3] + w) * dim[1] + c;
}

static int64_t number_of(const char *name, int64_t missing) {
  const char *text = getenv(name);
  return text ? strtoll(text, NULL, 10) : missing;
}

// Pieces are multiples of the stride, but for the last one, so that pieces of
// the result add up. The first rank has a row more, the last one less.
static int64_t boundary(int64_t rows, int64_t stride, int64_t rank,
                        int64_t ranks) {
  int64_t units = rows / stride;
  int64_t more = rank > 0 && rank < ranks && units > 2 * ranks;
  return rank == ranks ? rows : stride * (units * rank / ranks + more);
}

static void cut(layer_t *l) {
  const char *view = getenv("LAYER_VIEW");
  bool cuts = view && strcmp(view, "shard") == 0;
  int64_t ranks = cuts ? number_of("SUNDOG_SIZE", 1) : 1;
  int64_t rank = cuts ? number_of("SUNDOG_RANK", 0) : 0;
  int64_t rows = l->whole[LAYER_X][2], kernel = l->whole[LAYER_W][2], y = 0;
  memcpy(l->dim, l->whole, sizeof l->dim);
  memset(l->first, 0, sizeof l->first);
  for (int64_t r = 0; ranks > 1 && r <= rank; r++) {
    int64_t begin = boundary(rows, l->stride, r, ranks);
    int64_t size = boundary(rows, l->stride, r + 1, ranks) - begin;
    int64_t outputs = (size + 2 * l->padding - kernel) / l->stride + 1;
    l->first[LAYER_X] = begin;
    l->dim[LAYER_X][2] = size;
    l->first[LAYER_Y] = l->first[LAYER_Z] = y;
    l->dim[LAYER_Y][2] = l->dim[LAYER_Z][2] = outputs;
    y += outputs;
  }
}

// Copies this rank's rows between the whole tensor and `piece`.
static void rows_copy(const layer_t *l, int t, float *piece, bool to_piece) {
  const int64_t *dim = l->dim[t];
  size_t row = (size_t)(dim[1] * dim[3]);
  for (int64_t n = 0; n < dim[0]; n++)
    for (int64_t h = 0; h < dim[2]; h++) {
      float *whole = l->host[t] + at(l, t, n, 0, h + l->first[t], 0);
      float *own = piece + (size_t)(n * dim[2] + h) * row;
      memcpy(to_piece ? own : whole, to_piece ? whole : own, row * sizeof *own);
    }
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
  memcpy(l->whole, dim, sizeof dim);
  cut(l);
  for (int t = 0; t < LAYER_TENSORS; t++) {
    int64_t count = count_of(l->whole[t]);
    size_t bytes = (size_t)count_of(l->dim[t]) * sizeof(float);
    float *piece = malloc(bytes);
    l->host[t] = malloc((size_t)count * sizeof(float));
    CHECK(!l->host[t] || !piece);
    for (int64_t i = 0; i < count; i++)
      l->host[t][i] = (float)sin((double)(i * (7 + t) % 1009) * 0.7 + t) / 2;
    CHECK(cudaMalloc(&l->device[t], bytes));
    rows_copy(l, t, piece, true);
    CHECK(cudaMemcpy(l->device[t], piece, bytes, cudaMemcpyHostToDevice));
    free(piece);
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
  CHECK(cudaMemset(l->device[t], 0xff,
                   (size_t)count_of(l->dim[t]) * sizeof(float)));
}

// Adds every product of the convolution to the tensor that is computed.
static void products_add(const layer_t *l, int result, double *sums) {
  const int64_t *x = l->whole[LAYER_X], *w = l->whole[LAYER_W],
                *y = l->whole[LAYER_Y];
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
  for (int64_t i = 0; i < count_of(l->whole[LAYER_Y]); i++) {
    sums[i] += (double)l->host[LAYER_Z][i] +
               (double)l->host[LAYER_BIAS][i % l->whole[LAYER_Y][1]];
    sums[i] = sums[i] > 0 ? sums[i] : 0;
  }
}

void layer_check(const layer_t *l, layer_what_t what, const char *name) {
  int result = result_of(what);
  const int64_t *dim = l->dim[result];
  int64_t count = count_of(dim), row = dim[1] * dim[3];
  float *got = malloc((size_t)count * sizeof *got);
  double *all = calloc((size_t)count_of(l->whole[result]), sizeof *all);
  double most = 0, size = 1;
  CHECK(!got || !all);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(got, l->device[result], (size_t)count * sizeof *got,
                   cudaMemcpyDeviceToHost));
  products_add(l, result, all);
  if (what == LAYER_FUSED)
    finish(l, all);
  for (int64_t i = 0; i < count; i++) {
    int64_t n = i / (row * dim[2]), h = i / row % dim[2] + l->first[result];
    double right = all[at(l, result, n, 0, h, 0) + i % row];
    double off = fabs(got[i] - right);
    most = off <= most ? most : off; // also if it is NaN
    size = fabs(right) > size ? fabs(right) : size;
  }
  printf("%s: %lld values, off by at most %.1e\n", name, (long long)count,
         most);
  free(got);
  free(all);
  if (!(most <= 1e-5 * size)) {
    fprintf(stderr, "%s: wrong\n", name);
    exit(EXIT_FAILURE);
  }
}
