// SPDX-License-Identifier: Apache-2.0
// Folding and unfolding of tensors, and data gradients with strides through
// folded descriptors.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"
#include "tests/workspace.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static cudnnHandle_t handle;

typedef struct {
  int rank, before[5], after[5];
  unsigned fold[3]; /* 0: none */
  bool unfolds;
} how_t;

static int fold_at(const how_t *how, int i) {
  return how->fold[i - 2] ? (int)how->fold[i - 2] : 1;
}

/* Finds where the value at `index` goes; returns false if it is cut off. */
static bool target(const how_t *how, const tensor_t *x, const int *index,
                   const tensor_t *out, int *to) {
  int all = 1, block = 0;
  for (int i = 2; i < how->rank; i++)
    all *= fold_at(how, i);
  if (how->unfolds) {
    memcpy(to, index, (size_t)how->rank * sizeof *to);
    int front = how->before[1] < 0 ? -how->before[1] : 0;
    int back = how->after[1] < 0 ? -how->after[1] : 0;
    int channels = x->dim[1] / all - front - back;
    if (index[1] < front || index[1] >= front + channels * all)
      return false;
    to[1] = (index[1] - front) % channels + front;
    block = (index[1] - front) / channels;
    for (int i = how->rank - 1; i >= 2; i--) {
      to[i] = index[i] * fold_at(how, i) + block % fold_at(how, i);
      block /= fold_at(how, i);
    }
    for (int i = 0; i < how->rank; i++)
      to[i] += how->before[i];
  } else {
    to[0] = index[0] + how->before[0];
    for (int i = 2; i < how->rank; i++) {
      int at = index[i] + how->before[i];
      if (at < 0)
        return false;
      block = block * fold_at(how, i) + at % fold_at(how, i);
      to[i] = at / fold_at(how, i);
    }
    to[1] = how->before[1] + block * x->dim[1] + index[1];
  }
  for (int i = 0; i < how->rank; i++)
    if (to[i] < 0 || to[i] >= out->dim[i])
      return false;
  return true;
}

/* Padding behind a folded dimension may cut inside a block. */
static bool is_cut(const how_t *how, const tensor_t *x, const int *index) {
  for (int i = 0; i < how->rank && !how->unfolds; i++)
    if (index[i] >= x->dim[i] + how->after[i])
      return true;
  return false;
}

static void fold_case(int number, cudnnTensorTransformDescriptor_t desc) {
  case_seed((uint64_t)number);
  how_t how = {.rank = case_range(4, 5), .unfolds = number % 2};
  int dim[5], made[5], strides[5], nb;
  for (int i = 0; i < how.rank; i++) {
    dim[i] = case_range(3, i == 1 && how.unfolds ? 14 : 6);
    how.before[i] = case_range(0, 2) ? 0 : case_range(-1, 2);
    how.after[i] = case_range(0, 2) ? 0 : case_range(-1, 2);
    if (how.unfolds && i == 1) /* what is left of few channels is few */
      how.before[i] = abs(how.before[i]), how.after[i] = abs(how.after[i]);
    if (i >= 2)
      how.fold[i - 2] = (unsigned)case_range(0, 3);
  }
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                          CUDNN_DATA_HALF, CUDNN_DATA_INT8};
  cudnnDataType_t type = types[number / 2 % 4], kind;
  OK(cudnnSetTensorTransformDescriptor(
      desc, (uint32_t)how.rank, case_range(0, 1), how.before, how.after,
      how.fold, how.unfolds ? CUDNN_TRANSFORM_UNFOLD : CUDNN_TRANSFORM_FOLD));
  tensor_t x, y;
  tensor_create(&x, type, how.rank, dim, 0);
  cudnnTensorDescriptor_t dest;
  size_t bytes;
  OK(cudnnCreateTensorDescriptor(&dest));
  OK(cudnnInitTransformDest(desc, x.desc, dest, &bytes));
  OK(cudnnGetTensorNdDescriptor(dest, how.rank, &kind, &nb, made, strides));
  OK(cudnnDestroyTensorDescriptor(dest));
  tensor_create(&y, type, how.rank, made, 0);
  bool folds = false;
  for (int i = 2; i < how.rank && !how.unfolds; i++)
    folds |= fold_at(&how, i) > 1;
  double beta = folds || type == CUDNN_DATA_INT8 || number % 3 ? 0 : 0.5;
  scalar_t a = scalar(type, 1), b = scalar(type, beta);
  if (folds)
    IS(cudnnTransformTensorEx(handle, desc, &a, x.desc, x.device, &a, y.desc,
                              y.device),
       CUDNN_STATUS_NOT_SUPPORTED);
  OK(cudnnTransformTensorEx(handle, desc, &a, x.desc, x.device, &b, y.desc,
                            y.device));
  double *want = malloc((size_t)y.count * sizeof *want);
  for (int64_t i = 0; i < y.count; i++)
    want[i] = beta * y.value[i];
  for (int64_t i = 0; i < x.count; i++) {
    int index[8], to[8];
    tensor_index(&x, i, index);
    if (!is_cut(&how, &x, index) && target(&how, &x, index, &y, to))
      want[tensor_at(&y, to)] += x.value[i];
  }
  int64_t wrong = tensor_wrong(&y, want, NULL, 1);
  ck_assert_msg(wrong == -1, "case %d value %ld: %s to %s", number, wrong,
                tensor_text(&x), tensor_text(&y));
  free(want);
  tensor_destroy(&x);
  tensor_destroy(&y);
}

START_TEST(tensors_fold_and_unfold) {
  cudnnTensorTransformDescriptor_t desc;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateTensorTransformDescriptor(&desc));
  for (int i = 0; i < 600; i++)
    fold_case(i, desc);
  OK(cudnnDestroyTensorTransformDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

typedef struct {
  cudnnDataType_t type;
  cudnnConvolutionMode_t mode;
  cudnnTensorFormat_t w_format, format; /* format: of what is folded */
  int x[4], w[4], y[4], groups;
  int pad[2], stride[2], dilation[2];
  double alpha, beta;
} gradient_t;

/* The gradients that folding supports; fold.c says why others are not. */
static gradient_t draw(int number) {
  case_seed((uint64_t)number);
  gradient_t g = {.type = number % 2 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                  .mode = CUDNN_CROSS_CORRELATION,
                  .w_format = (cudnnTensorFormat_t)case_range(0, 1),
                  .format = (cudnnTensorFormat_t)case_range(0, 1),
                  .groups = 1,
                  .alpha = 1.5,
                  .beta = case_range(0, 1) ? 0.5 : 0};
  for (int i = 0; i < 2; i++) {
    g.w[2 + i] = case_range(1, 5);
    g.stride[i] = case_range(1, 3);
    g.pad[i] = case_range(0, 4);
    g.dilation[i] = g.stride[i] == 1 ? case_range(1, 2) : 1;
    int span = g.dilation[i] * (g.w[2 + i] - 1) + 1;
    int least = span - 2 * g.pad[i];
    g.x[2 + i] =
        case_range(least > 1 ? least : 1, 14 + (least > 1 ? least : 1));
    g.y[2 + i] = (g.x[2 + i] + 2 * g.pad[i] - span) / g.stride[i] + 1;
  }
  if (g.stride[0] * g.stride[1] == 1 && case_range(0, 1))
    g.mode = CUDNN_CONVOLUTION;
  g.x[0] = g.y[0] = case_range(1, 3);
  g.w[0] = case_range(1, 17);
  g.w[1] = case_range(1, 9);
  /* Folding mixes the channels of groups. */
  if (g.stride[0] * g.stride[1] == 1 && case_range(0, 1)) {
    g.groups = 2;
    g.w[0] = 16;
    g.w[1] = 8;
  }
  g.x[1] = g.w[1] * g.groups;
  g.y[1] = g.w[0];
  return g;
}

static int64_t w_place(const gradient_t *g, int k, int c, int r, int s) {
  return g->w_format == CUDNN_TENSOR_NHWC
             ? (((int64_t)k * g->w[2] + r) * g->w[3] + s) * g->w[1] + c
             : (((int64_t)k * g->w[1] + c) * g->w[2] + r) * g->w[3] + s;
}

/* want += alpha * the gradient; scale += its parts' absolute values. */
static void add_gradient(const gradient_t *g, const double *w,
                         const tensor_t *dy, const tensor_t *dx, double *want,
                         double *scale) {
  int each = g->w[0] / g->groups, at[8];
  for (int64_t i = 0; i < dy->count; i++) {
    tensor_index(dy, i, at);
    for (int c = 0; c < g->w[1]; c++)
      for (int r = 0; r < g->w[2]; r++)
        for (int s = 0; s < g->w[3]; s++) {
          bool flips = g->mode == CUDNN_CONVOLUTION;
          int h = at[2] * g->stride[0] - g->pad[0] + r * g->dilation[0];
          int v = at[3] * g->stride[1] - g->pad[1] + s * g->dilation[1];
          if (h < 0 || h >= g->x[2] || v < 0 || v >= g->x[3])
            continue;
          int channel = at[1] / each * g->w[1] + c;
          int64_t to = tensor_at(dx, (int[]){at[0], channel, h, v});
          double part = g->alpha * dy->value[i] *
                        w[w_place(g, at[1], c, flips ? g->w[2] - 1 - r : r,
                                  flips ? g->w[3] - 1 - s : s)];
          want[to] += part;
          scale[to] += fabs(part);
        }
  }
}

/* Returns whether point `at` of dimension i is in a block that no window
 * reaches. */
static bool is_left_out(const gradient_t *g, int i, int at) {
  int used = g->stride[i] * (g->y[2 + i] - 1) - g->pad[i] + g->w[2 + i];
  if (g->dilation[i] > 1 || used > g->x[2 + i])
    return false;
  return at >= (used + g->stride[i] - 1) / g->stride[i] * g->stride[i];
}

static void *fresh(size_t bytes) {
  void *memory;
  OK(cudaMalloc(&memory, bytes));
  OK(cudaMemset(memory, 0xff, bytes)); /* NaN */
  return memory;
}

typedef struct {
  cudnnFilterDescriptor_t w, folded_w;
  cudnnConvolutionDescriptor_t conv, folded_conv;
  cudnnTensorDescriptor_t padded_dy, folded_dx;
  cudnnTensorTransformDescriptor_t w_fold, dy_pad, dx_fold, dx_unfold;
} parts_t;

static void run(const gradient_t *g, const parts_t *p, const double *w,
                const tensor_t *dy, const tensor_t *dx) {
  size_t w_bytes, folded_w_bytes, dy_bytes, dx_bytes;
  OK(cudnnGetFilterSizeInBytes(p->w, &w_bytes));
  OK(cudnnGetFilterSizeInBytes(p->folded_w, &folded_w_bytes));
  OK(cudnnGetTensorSizeInBytes(p->padded_dy, &dy_bytes));
  OK(cudnnGetTensorSizeInBytes(p->folded_dx, &dx_bytes));
  void *w_at = fresh(w_bytes), *folded_w = fresh(folded_w_bytes);
  void *padded_dy = fresh(dy_bytes), *folded_dx = fresh(dx_bytes);
  size_t count = w_bytes / dy->unit;
  float *small = malloc(count * sizeof *small);
  for (size_t i = 0; i < count; i++)
    small[i] = (float)w[i];
  OK(cudaMemcpy(w_at, dy->unit == 8 ? (const void *)w : (const void *)small,
                w_bytes, cudaMemcpyHostToDevice));
  scalar_t one = scalar(g->type, 1), zero = scalar(g->type, 0);
  scalar_t alpha = scalar(g->type, g->alpha), beta = scalar(g->type, g->beta);
  OK(cudnnTransformFilter(handle, p->w_fold, &one, p->w, w_at, &zero,
                          p->folded_w, folded_w));
  OK(cudnnTransformTensorEx(handle, p->dy_pad, &one, dy->desc, dy->device,
                            &zero, p->padded_dy, padded_dy));
  if (g->beta != 0)
    OK(cudnnTransformTensorEx(handle, p->dx_fold, &one, dx->desc, dx->device,
                              &zero, p->folded_dx, folded_dx));
  OK(cudnnConvolutionBackwardData(
      handle, &alpha, p->folded_w, folded_w, p->padded_dy, padded_dy,
      p->folded_conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, workspace(),
      WORKSPACE_BYTES, &beta, p->folded_dx, folded_dx));
  OK(cudnnTransformTensorEx(handle, p->dx_unfold, &one, p->folded_dx, folded_dx,
                            &zero, dx->desc, dx->device));
  free(small);
  OK(cudaFree(w_at));
  OK(cudaFree(folded_w));
  OK(cudaFree(padded_dy));
  OK(cudaFree(folded_dx));
}

static void gradient_case(int number, const parts_t *p) {
  gradient_t g = draw(number);
  tensor_t dy, dx;
  tensor_create(&dy, g.type, 4, g.y, 0);
  tensor_create(&dx, g.type, 4, g.x, 0);
  OK(cudnnSetFilter4dDescriptor(p->w, g.type, g.w_format, g.w[0], g.w[1],
                                g.w[2], g.w[3]));
  OK(cudnnSetConvolution2dDescriptor(p->conv, g.pad[0], g.pad[1], g.stride[0],
                                     g.stride[1], g.dilation[0], g.dilation[1],
                                     g.mode, g.type));
  OK(cudnnSetConvolutionGroupCount(p->conv, g.groups));
  OK(cudnnGetFoldedConvBackwardDataDescriptors(
      handle, p->w, dy.desc, p->conv, dx.desc, g.format, p->folded_w,
      p->padded_dy, p->folded_conv, p->folded_dx, p->w_fold, p->dy_pad,
      p->dx_fold, p->dx_unfold));
  int count = g.w[0] * g.w[1] * g.w[2] * g.w[3];
  double *w = malloc((size_t)count * sizeof *w);
  for (int i = 0; i < count; i++)
    w[i] = (float)case_real();
  double *want = malloc((size_t)dx.count * sizeof *want);
  double *scale = malloc((size_t)dx.count * sizeof *scale);
  for (int64_t i = 0; i < dx.count; i++) {
    int at[8];
    tensor_index(&dx, i, at);
    bool out = is_left_out(&g, 0, at[2]) || is_left_out(&g, 1, at[3]);
    want[i] = out ? 0 : g.beta * dx.value[i];
    scale[i] = 1 + fabs(want[i]);
  }
  add_gradient(&g, w, &dy, &dx, want, scale);
  run(&g, p, w, &dy, &dx);
  int64_t wrong = tensor_wrong(&dx, want, scale, 64);
  ck_assert_msg(wrong == -1, "case %d value %ld: %s from %s", number, wrong,
                tensor_text(&dx), tensor_text(&dy));
  free(w);
  free(want);
  free(scale);
  tensor_destroy(&dy);
  tensor_destroy(&dx);
}

START_TEST(folded_descriptors_give_the_gradient_over_strides) {
  parts_t p;
  cudnnTensorTransformDescriptor_t *const transforms[] = {
      &p.w_fold, &p.dy_pad, &p.dx_fold, &p.dx_unfold};
  OK(cudnnCreate(&handle));
  OK(cudnnCreateFilterDescriptor(&p.w));
  OK(cudnnCreateFilterDescriptor(&p.folded_w));
  OK(cudnnCreateConvolutionDescriptor(&p.conv));
  OK(cudnnCreateConvolutionDescriptor(&p.folded_conv));
  OK(cudnnCreateTensorDescriptor(&p.padded_dy));
  OK(cudnnCreateTensorDescriptor(&p.folded_dx));
  for (int i = 0; i < 4; i++)
    OK(cudnnCreateTensorTransformDescriptor(transforms[i]));
  for (int i = 0; i < 300; i++)
    gradient_case(i, &p);
  for (int i = 0; i < 4; i++)
    OK(cudnnDestroyTensorTransformDescriptor(*transforms[i]));
  OK(cudnnDestroyTensorDescriptor(p.padded_dy));
  OK(cudnnDestroyTensorDescriptor(p.folded_dx));
  OK(cudnnDestroyConvolutionDescriptor(p.conv));
  OK(cudnnDestroyConvolutionDescriptor(p.folded_conv));
  OK(cudnnDestroyFilterDescriptor(p.w));
  OK(cudnnDestroyFilterDescriptor(p.folded_w));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn folding");
  TCase *cases = tcase_create("folding");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, tensors_fold_and_unfold);
  tcase_add_test(cases, folded_descriptors_give_the_gradient_over_strides);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
