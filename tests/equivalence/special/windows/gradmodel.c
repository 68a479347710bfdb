/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a convolution, fills its tensors, and computes its gradients naively.
 */
#include "gradcase.h"

#include <math.h>
#include <string.h>

__extension__ typedef _Float16 half_t;

/* ---- random numbers, the same on every rank --------------------------------
 */

static unsigned long long state;

void grad_seed(unsigned long long seed) {
  state = seed;
}

static unsigned bits(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33);
}

static int in(int lo, int hi) {
  return lo + (int)(bits() % (unsigned)(hi - lo + 1));
}

double grad_value(int salt, const int at[GRAD_DIMS]) {
  unsigned hash = (unsigned)salt * 2654435761u;
  for (int d = 0; d < GRAD_DIMS; d++)
    hash = (hash ^ (unsigned)at[d]) * 16777619u + 97;
  return (double)((int)((hash >> 8) % 33) - 16) / 16;
}

/* ---- tensors ----------------------------------------------------------------
 */

int grad_size_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

double grad_get(cudnnDataType_t type, const void *data, long i) {
  float wide;
  unsigned high;
  switch (type) {
  case CUDNN_DATA_DOUBLE:
    return ((const double *)data)[i];
  case CUDNN_DATA_FLOAT:
    return ((const float *)data)[i];
  case CUDNN_DATA_HALF:
    return (double)((const half_t *)data)[i];
  default:
    high = (unsigned)((const unsigned short *)data)[i] << 16;
    memcpy(&wide, &high, sizeof wide);
    return wide;
  }
}

static void put(cudnnDataType_t type, void *data, long i, double to) {
  float wide = (float)to;
  unsigned high;
  switch (type) {
  case CUDNN_DATA_DOUBLE:
    ((double *)data)[i] = to;
    break;
  case CUDNN_DATA_FLOAT:
    ((float *)data)[i] = wide;
    break;
  case CUDNN_DATA_HALF:
    ((half_t *)data)[i] = (half_t)to;
    break;
  default: /* of numbers with few bits */
    memcpy(&high, &wide, sizeof high);
    ((unsigned short *)data)[i] = (unsigned short)(high >> 16);
  }
}

void grad_tensor_make(const grad_conv_t *c, const int *first, const int *extent,
                      int gap, grad_tensor_t *t) {
  static const int orders[2][GRAD_DIMS] = {{0, 1, 2, 3, 4}, {0, 2, 3, 4, 1}};
  memcpy(t->first, first, sizeof t->first);
  memcpy(t->extent, extent, sizeof t->extent);
  t->type = c->type;
  t->span = 1;
  for (int i = GRAD_DIMS - 1; i >= 0; i--) {
    int d = orders[c->last][i];
    t->stride[d] = t->span;
    t->span = t->span * extent[d] + (i == GRAD_DIMS - 1 ? gap : 0);
  }
  size_t bytes = (size_t)t->span * (size_t)grad_size_of(t->type);
  t->host = calloc(1, bytes);
  CHECK(!t->host);
  CHECK(cudaMalloc((void **)&t->device, bytes));
}

void grad_tensor_free(grad_tensor_t *t) {
  free(t->host);
  CHECK(cudaFree(t->device));
}

int grad_next(const int extent[GRAD_DIMS], int at[GRAD_DIMS]) {
  for (int d = GRAD_DIMS - 1; d >= 0; d--) {
    if (++at[d] < extent[d])
      return 1;
    at[d] = 0;
  }
  return 0;
}

long grad_offset(const grad_tensor_t *t, const int at[GRAD_DIMS]) {
  long sum = 0;
  for (int d = 0; d < GRAD_DIMS; d++)
    sum += at[d] * t->stride[d];
  return sum;
}

void grad_tensor_fill(grad_tensor_t *t, int salt, double factor) {
  int at[GRAD_DIMS] = {0}, global[GRAD_DIMS];
  do {
    for (int d = 0; d < GRAD_DIMS; d++)
      global[d] = t->first[d] + at[d];
    put(t->type, t->host, grad_offset(t, at),
        factor * grad_value(salt, global));
  } while (grad_next(t->extent, at));
  CHECK(cudaMemcpy(t->device, t->host, (size_t)t->span * grad_size_of(t->type),
                   cudaMemcpyHostToDevice));
}

void grad_squeeze(const grad_conv_t *c, const int *from, int *to) {
  for (int d = 0, i = 0; d < GRAD_DIMS; d++)
    if (d != 2 || c->dims == 5)
      to[i++] = from[d];
}

cudnnTensorDescriptor_t grad_tensor_describe(const grad_conv_t *c,
                                             const grad_tensor_t *t) {
  cudnnTensorDescriptor_t desc;
  int extent[GRAD_DIMS], stride[GRAD_DIMS], wide[GRAD_DIMS];
  for (int d = 0; d < GRAD_DIMS; d++)
    wide[d] = (int)t->stride[d];
  grad_squeeze(c, t->extent, extent);
  grad_squeeze(c, wide, stride);
  CHECK(cudnnCreateTensorDescriptor(&desc));
  CHECK(cudnnSetTensorNdDescriptor(desc, t->type, c->dims, extent, stride));
  return desc;
}

/* ---- the whole gradients, in float64 ----------------------------------------
 */

long grad_dense(const int extent[GRAD_DIMS], const int at[GRAD_DIMS]) {
  long i = 0;
  for (int d = 0; d < GRAD_DIMS; d++)
    i = i * extent[d] + at[d];
  return i;
}

static long count(const int extent[GRAD_DIMS]) {
  long n = 1;
  for (int d = 0; d < GRAD_DIMS; d++)
    n *= extent[d];
  return n;
}

grad_exact_t grad_exact_make(const int extent[GRAD_DIMS]) {
  grad_exact_t e = {calloc((size_t)count(extent), sizeof(double)),
                    calloc((size_t)count(extent), sizeof(double))};
  CHECK(!e.sum || !e.terms);
  return e;
}

void grad_exact_free(grad_exact_t *e) {
  free(e->sum);
  free(e->terms);
}

static void exact_add(grad_exact_t *e, long at, double term) {
  e->sum[at] += term;
  e->terms[at] += fabs(term);
}

/* Where a tap on output `o` lies; 0 if in the padding. */
static int place(const grad_conv_t *c, const grad_task_t *task,
                 const int o[GRAD_DIMS], const int tap[GRAD_DIMS],
                 int x[GRAD_DIMS]) {
  x[0] = o[0];
  for (int d = 2; d < GRAD_DIMS; d++) {
    x[d] = o[d] * c->stride[d] - c->pad[d] + tap[d] * c->dilation[d];
    if (task->periodic && d == 3)
      x[d] = (x[d] % c->x[d] + c->x[d]) % c->x[d];
    if (x[d] < 0 || x[d] >= c->x[d])
      return 0;
  }
  return 1;
}

void grad_exact_fill(const grad_conv_t *c, const grad_task_t *task,
                     const int *first, const int *extent, grad_exact_t *ex,
                     grad_exact_t *ew, grad_exact_t *eb) {
  int at[GRAD_DIMS] = {0}, o[GRAD_DIMS], x[GRAD_DIMS], bias[GRAD_DIMS] = {0};
  do {
    for (int d = 0; d < GRAD_DIMS; d++)
      o[d] = first[d] + at[d];
    double dy = grad_value(SALT_Y, o);
    bias[1] = o[1];
    exact_add(eb, bias[1], c->alpha * dy);
    int tap[GRAD_DIMS] = {0},
        taps[GRAD_DIMS] = {1, 1, c->w[2], c->w[3], c->w[4]};
    int group = o[1] / (c->w[0] / c->groups);
    do {
      if (!place(c, task, o, tap, x))
        continue;
      for (int k = 0; k < c->w[1]; k++) {
        int w[GRAD_DIMS] = {o[1], k, tap[2], tap[3], tap[4]};
        for (int d = 2; d < GRAD_DIMS && c->mode == CUDNN_CONVOLUTION; d++)
          w[d] = c->w[d] - 1 - w[d];
        x[1] = group * c->w[1] + k;
        exact_add(ex, grad_dense(c->x, x),
                  c->alpha * dy * grad_value(SALT_W, w));
        exact_add(ew, grad_dense(c->w, w),
                  c->alpha * dy * grad_value(SALT_X, x));
      }
    } while (grad_next(taps, tap));
  } while (grad_next(extent, at));
}

/* ---- drawing ----------------------------------------------------------------
 */

static int parts_draw(int extent, int pieces, int first[GRAD_PIECES + 1]) {
  if (extent < pieces)
    return 0;
  for (int i = 0; i <= pieces; i++)
    first[i] = extent * i / pieces;
  for (int i = 1; i < pieces; i++)
    first[i] = in(first[i - 1] + 1, extent - (pieces - i));
  return 1;
}

/* By the owner of the window's centre; 0 where a piece is empty. */
static int parts_follow(const grad_conv_t *c, int d, int pieces,
                        const int x[GRAD_PIECES + 1], int y[GRAD_PIECES + 1]) {
  y[0] = 0;
  y[pieces] = c->y[d];
  for (int i = 1; i < pieces; i++) {
    int centre = d < 2 ? 0 : c->dilation[d] * (c->w[d] - 1) / 2;
    int pad = d < 2 ? 0 : c->pad[d], stride = d < 2 ? 1 : c->stride[d];
    int at = x[i] + pad - centre;
    y[i] = at <= 0 ? 0 : (at + stride - 1) / stride;
    y[i] = y[i] > c->y[d] ? c->y[d] : y[i];
  }
  for (int i = 0; i < pieces; i++)
    if (y[i] >= y[i + 1])
      return 0;
  return 1;
}

static int conv_try(const grad_task_t *task, grad_conv_t *c) {
  memset(c, 0, sizeof *c);
  c->dims = in(0, 3) || task->pieces[2] > 1 ? 4 : 5;
  if (task->pieces[2] > 1)
    c->dims = 5;
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                          CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF,
                                          CUDNN_DATA_BFLOAT16};
  c->type = types[in(0, 4)];
  c->mode = in(0, 2) ? CUDNN_CROSS_CORRELATION : CUDNN_CONVOLUTION;
  c->groups = in(0, 3) ? 1 : 2;
  c->last = in(0, 3) == 0;
  c->gap = in(0, 3) ? 0 : 1;
  c->alpha = in(0, 2) ? 1 : 0.5;
  c->beta = in(0, 1) ? 0 : -0.5 * in(1, 3);
  c->x[0] = task->pieces[0] - 1 + in(1, 2);
  c->w[1] = in(1, 3);
  c->x[1] = c->w[1] * c->groups;
  c->w[0] = c->y[1] = in(1, 3) * c->groups;
  c->y[0] = c->x[0];
  for (int d = 2; d < GRAD_DIMS; d++) {
    int there = d > 2 || c->dims == 5;
    c->w[d] = there ? in(1, 4) : 1;
    c->dilation[d] = there && in(0, 3) == 0 ? 2 : 1;
    c->stride[d] = there && in(0, 2) == 0 ? in(2, 3) : 1;
    c->pad[d] = there ? in(0, c->dilation[d] * (c->w[d] - 1) + in(0, 1)) : 0;
    c->x[d] = there ? in(task->pieces[d], c->dims == 5 ? 7 : 14) +
                          2 * (task->pieces[d] - 1)
                    : 1;
    int room = c->x[d] + 2 * c->pad[d] - c->dilation[d] * (c->w[d] - 1) - 1;
    if (room < 0)
      return 0;
    c->y[d] = room / c->stride[d] + 1;
  }
  for (int d = 0; d < GRAD_DIMS; d++)
    if (!parts_draw(c->x[d], task->pieces[d], c->x_first[d]) ||
        !parts_follow(c, d, task->pieces[d], c->x_first[d], c->y_first[d]))
      return 0;
  return 1;
}

void grad_conv_draw(const grad_task_t *task, grad_conv_t *c) {
  do
    (void)bits();
  while (!conv_try(task, c));
}
