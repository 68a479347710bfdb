/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of random.h. They copy fields to the host, compute, and copy
 * results back, so that they run on device memory anywhere. */
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/clients/functions/random.h"

struct random_how random_how[RANDOM_FUNCTIONS];
long random_work;

struct box {
  const struct random_how *how;
  long extent[RANDOM_DIMS], stride[RANDOM_DIMS];
  int placed; /* the function knows where the first row and column lie */
  long row0, column0;
};

static struct box box_of(int k, long planes, long rows, long columns, long ld) {
  struct box box = {&random_how[k], {planes, rows, columns}, {0}, 0, 0, 0};
  for (int d = 0; d < RANDOM_DIMS; d++)
    box.extent[d] -= box.how->staggered;
  if (box.how->order == 1) { /* the first index of Fortran is that of planes */
    box.stride[0] = 1;
    box.stride[1] = box.extent[0];
    box.stride[2] = box.extent[0] * box.extent[1];
  } else {
    box.stride[2] = 1;
    box.stride[1] = box.how->order == 2 ? ld : box.extent[2];
    box.stride[0] =
        box.how->order == 2 ? box.extent[2] : box.extent[2] * box.extent[1];
  }
  return box;
}

static size_t span_of(const struct box *box) {
  long span = 1;
  for (int d = 0; d < RANDOM_DIMS; d++)
    span += (box->extent[d] - 1) * box->stride[d];
  return (size_t)span;
}

static void *fetch(const void *device, size_t bytes, cudaStream_t stream) {
  void *host = malloc(bytes);
  CHECK(host == NULL);
  CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  return host;
}

static long at(const struct box *box, const long *index) {
  long place = 0;
  for (int d = 0; d < RANDOM_DIMS; d++)
    place += index[d] * box->stride[d];
  return place;
}

/* Copies back the elements that it computed, and no others: between rows may
 * lie what belongs to nobody. */
static void store(const struct box *box, void *device, const void *host,
                  size_t each, cudaStream_t stream) {
  int inner = box->how->order == 1 ? 0 : 2;
  int middle = box->how->order == 2 ? 0 : 1;
  int outer = RANDOM_DIMS - inner - middle;
  size_t width = (size_t)box->extent[inner] * each;
  for (long o = 0; o < box->extent[outer]; o++) {
    size_t offset = (size_t)(o * box->stride[outer]) * each;
    CHECK(cudaMemcpy2DAsync(
        (char *)device + offset, (size_t)box->stride[middle] * each,
        (const char *)host + offset, (size_t)box->stride[middle] * each, width,
        (size_t)box->extent[middle], cudaMemcpyHostToDevice, stream));
  }
  CHECK(cudaStreamSynchronize(stream));
}

/* What the element at `index` moved by `by` sees. */
static float seen(const struct box *box, const float *a, const long *index,
                  const int *by) {
  long place[RANDOM_DIMS];
  for (int d = 0; d < RANDOM_DIMS; d++) {
    long extent = box->extent[d];
    place[d] = index[d] + by[d];
    if (place[d] >= 0 && place[d] < extent)
      continue;
    if (box->how->border[d] == RANDOM_ZERO)
      return 0;
    if (box->how->border[d] == RANDOM_OWN)
      return place[d] < 0 ? -3 : 7;
    place[d] = (place[d] % extent + extent) % extent;
  }
  return a[at(box, place)];
}

/* From where to where an element sees along a dimension. */
static void range(const struct box *box, int d, const long *index, int *lo,
                  int *hi) {
  int reach = box->how->reach[d];
  *lo = reach == RANDOM_ALL ? (int)-index[d] : -reach;
  *hi = reach == RANDOM_ALL ? (int)(box->extent[d] - 1 - index[d]) : reach;
}

static float stencil(const struct box *box, const float *a, const long *index) {
  int lo[RANDOM_DIMS], hi[RANDOM_DIMS], by[RANDOM_DIMS];
  float sum = 0;
  for (int d = 0; d < RANDOM_DIMS; d++)
    range(box, d, index, &lo[d], &hi[d]);
  for (by[0] = lo[0]; by[0] <= hi[0]; by[0]++)
    for (by[1] = lo[1]; by[1] <= hi[1]; by[1]++)
      for (by[2] = lo[2]; by[2] <= hi[2]; by[2]++) {
        int weight = (by[0] * 5 + by[1] * 3 + by[2] * 2) % 7;
        sum = sum * 0.75f + (float)weight * 0.125f * seen(box, a, index, by);
      }
  return sum + a[at(box, index)];
}

/* A number that depends on the place in the whole. */
static long place_of(const struct box *box, const long *index) {
  return box->placed ? box->row0 + index[1] + 2 * (box->column0 + index[2]) : 1;
}

/* w = stencil(a) + beside(...), for all elements. */
static void apply(const struct box *box, const float *a, const float *b,
                  const double *f, float factor, float *w) {
  long index[RANDOM_DIMS];
  for (index[0] = 0; index[0] < box->extent[0]; index[0]++)
    for (index[1] = 0; index[1] < box->extent[1]; index[1]++)
      for (index[2] = 0; index[2] < box->extent[2]; index[2]++) {
        float value = factor * stencil(box, a, index);
        long place = place_of(box, index);
        if (box->how->leaves && place % box->how->leaves == 0)
          continue;
        value += b ? b[at(box, index)] : 0;
        value += f ? (float)f[index[1]] : 0;
        value += (float)place;
        w[at(box, index)] = value > 100 || value < -100 ? value / 64 : value;
      }
  random_work += box->extent[0] * box->extent[1] * box->extent[2];
}

void random_0(const float *a, const double *f, float *w, int planes, int rows,
              int columns, int ld, int row0, int column0, cudaStream_t stream) {
  struct box box = box_of(0, planes, rows, columns, ld);
  box.placed = 1, box.row0 = row0, box.column0 = column0;
  float *x = fetch(a, span_of(&box) * sizeof *a, stream);
  float *y = fetch(w, span_of(&box) * sizeof *w, stream);
  double *z = fetch(f, (size_t)box.extent[1] * sizeof *f, stream);
  apply(&box, x, NULL, z, 0.5f, y);
  store(&box, w, y, sizeof *w, stream);
  free(x), free(y), free(z);
}

void random_1(float *w, const int *planes, const long *rows,
              const unsigned *columns, const float *a, const long *row0,
              short column0, double factor, int ld, const float *scale) {
  struct box box = box_of(1, *planes, *rows, *columns, ld);
  box.placed = 1, box.row0 = *row0, box.column0 = column0;
  float *b = fetch(a, span_of(&box) * sizeof *a, 0);
  float *x = fetch(w, span_of(&box) * sizeof *w, 0);
  float *y = fetch(w, span_of(&box) * sizeof *w, 0);
  float *one = fetch(scale, sizeof *scale, 0);
  apply(&box, x, b, NULL, (float)factor * (1 + *one / 128), y);
  free(one);
  store(&box, w, y, sizeof *w, 0);
  free(b), free(x), free(y);
}

void random_2(double *total, float *most, int *least, const float *a,
              long planes, long rows, long columns, long ld) {
  struct box box = box_of(2, planes, rows, columns, ld);
  float *x = fetch(a, span_of(&box) * sizeof *a, 0);
  long index[RANDOM_DIMS];
  *total = 0, *most = -1e30f, *least = 1 << 30;
  for (index[0] = 0; index[0] < box.extent[0]; index[0]++)
    for (index[1] = 0; index[1] < box.extent[1]; index[1]++)
      for (index[2] = 0; index[2] < box.extent[2]; index[2]++) {
        float value = x[at(&box, index)];
        *total += (int)(value * 16);
        *most = value > *most ? value : *most;
        *least = (int)value < *least ? (int)value : *least;
      }
  random_work += box.extent[0] * box.extent[1] * box.extent[2];
  free(x);
}

void random_3(int ld, int columns, int rows, int planes, float *w, double *g,
              const float *a, const float *b, const double *f,
              cudaStream_t stream) {
  struct box box = box_of(3, planes, rows, columns, ld);
  float *x = fetch(a, span_of(&box) * sizeof *a, stream);
  float *z = fetch(b, span_of(&box) * sizeof *b, stream);
  float *y = fetch(w, span_of(&box) * sizeof *w, stream);
  double *s = fetch(f, (size_t)box.extent[1] * sizeof *f, stream);
  apply(&box, x, z, s, 0.25f, y);
  for (long i = 0; i < box.extent[1]; i++)
    s[i] *= 2;
  store(&box, w, y, sizeof *w, stream);
  CHECK(cudaMemcpyAsync(g, s, (size_t)box.extent[1] * sizeof *g,
                        cudaMemcpyHostToDevice, stream));
  CHECK(cudaStreamSynchronize(stream));
  free(x), free(y), free(z), free(s);
}
