// SPDX-License-Identifier: Apache-2.0
// The part of the probe about the descriptors by which a data gradient is
// folded over strides.
#include "tests/host/cudnn/descriptor/probe.h"

typedef struct {
  cudnnTensorDescriptor_t grad, diff, padded, folded, dest;
  cudnnFilterDescriptor_t w, folded_w;
  cudnnConvolutionDescriptor_t conv, folded_conv;
  cudnnTensorTransformDescriptor_t how[4];
} all_t;

static void create(all_t *a) {
  cudnnTensorDescriptor_t *const tensors[] = {&a->grad, &a->diff, &a->padded,
                                              &a->folded, &a->dest};
  for (int i = 0; i < 5; i++)
    cudnnCreateTensorDescriptor(tensors[i]);
  cudnnCreateFilterDescriptor(&a->w);
  cudnnCreateFilterDescriptor(&a->folded_w);
  cudnnCreateConvolutionDescriptor(&a->conv);
  cudnnCreateConvolutionDescriptor(&a->folded_conv);
  for (int i = 0; i < 4; i++)
    cudnnCreateTensorTransformDescriptor(&a->how[i]);
}

static void destroy(all_t *a) {
  cudnnTensorDescriptor_t const tensors[] = {a->grad, a->diff, a->padded,
                                             a->folded, a->dest};
  for (int i = 0; i < 5; i++)
    cudnnDestroyTensorDescriptor(tensors[i]);
  cudnnDestroyFilterDescriptor(a->w);
  cudnnDestroyFilterDescriptor(a->folded_w);
  cudnnDestroyConvolutionDescriptor(a->conv);
  cudnnDestroyConvolutionDescriptor(a->folded_conv);
  for (int i = 0; i < 4; i++)
    cudnnDestroyTensorTransformDescriptor(a->how[i]);
}

static void show_tensor(const char *label, cudnnTensorDescriptor_t t) {
  int nb = -7, dim[8] = {0}, stride[8] = {0};
  cudnnDataType_t ty = (cudnnDataType_t)-7;
  cudnnGetTensorNdDescriptor(t, 8, &ty, &nb, dim, stride);
  printf(" %s type %d nb %d", label, (int)ty, nb);
  list("d", dim, 5);
  list("s", stride, 5);
}

static void show(all_t *a) {
  int nb = -7, dim[8] = {0}, pads[6], strides[6], dilations[6], groups = -7;
  cudnnDataType_t ty = (cudnnDataType_t)-7;
  cudnnTensorFormat_t form = (cudnnTensorFormat_t)-7;
  cudnnGetFilterNdDescriptor(a->folded_w, 8, &ty, &form, &nb, dim);
  printf(" w type %d format %d nb %d", (int)ty, (int)form, nb);
  list("d", dim, 5);
  show_tensor("diff", a->padded);
  show_tensor("grad", a->folded);
  cudnnConvolutionMode_t mode = (cudnnConvolutionMode_t)-7;
  cudnnMathType_t math = (cudnnMathType_t)-7;
  cudnnReorderType_t reorder = (cudnnReorderType_t)-7;
  cudnnGetConvolutionNdDescriptor(a->folded_conv, 3, &nb, pads, strides,
                                  dilations, &mode, &ty);
  cudnnGetConvolutionGroupCount(a->folded_conv, &groups);
  cudnnGetConvolutionMathType(a->folded_conv, &math);
  cudnnGetConvolutionReorderType(a->folded_conv, &reorder);
  printf(" conv nb %d mode %d type %d groups %d math %d reorder %d", nb,
         (int)mode, (int)ty, groups, (int)math, (int)reorder);
  list("p", pads, nb);
  list("s", strides, nb);
  list("d", dilations, nb);
  for (int i = 0; i < 4; i++) {
    int before[8], after[8], fold[6], way = -7;
    cudnnGetTensorTransformDescriptor(a->how[i], 8, &form, before, after,
                                      (unsigned *)fold,
                                      (cudnnFoldingDirection_t *)&way);
    printf(" how %d format %d", way, (int)form);
    list("b", before, 8);
    list("a", after, 8);
    list("f", fold, 6);
  }
  cudnnTensorDescriptor_t const from[] = {a->diff, a->grad, a->folded};
  for (int i = 0; i < 3; i++) {
    size_t bytes = 77;
    int s = cudnnInitTransformDest(a->how[i + 1], from[i], a->dest, &bytes);
    printf(" init %d %zu", s, bytes);
    if (s == 0)
      show_tensor("dest", a->dest);
  }
}

/* Draws small shapes, which need not fit each other. Vectorised types are left
 * out. */
static void fill(all_t *a) {
  static const int types[] = {0, 1, 2, 3, 9};
  int groups = draw(6) ? 1 : range(2, 4), rank = draw(20) ? 4 : range(3, 5);
  int ty = types[draw(5)], other = draw(8) ? ty : types[draw(5)];
  int grad[5], w[5], diff[5], stride[5], pads[3], strides[3], dilations[3];
  grad[0] = range(1, 4);
  grad[1] = groups * range(1, draw(3) ? 5 : 20);
  w[0] = groups * range(1, 10);
  w[1] = draw(8) ? grad[1] / groups : range(1, 5);
  diff[0] = draw(8) ? grad[0] : range(1, 5);
  diff[1] = draw(8) ? w[0] : range(1, 5);
  for (int i = 0; i < 3; i++) {
    w[2 + i] = range(1, 5);
    pads[i] = draw(8) ? range(0, w[2 + i] - 1) : range(0, 7);
    strides[i] = range(1, draw(4) ? 3 : 6);
    dilations[i] = draw(6) ? 1 : range(2, 3);
    int span = dilations[i] * (w[2 + i] - 1) + 1;
    int low = span - 2 * pads[i] > 1 ? span - 2 * pads[i] : 1;
    grad[2 + i] = range(low, low + 15);
    diff[2 + i] = draw(8) ? (grad[2 + i] + 2 * pads[i] - span) / strides[i] + 1
                          : range(1, 9);
    if (!draw(20)) /* larger than what it lies in */
      w[2 + i] = range(1, 40);
  }
  for (int i = rank - 1, all = 1; i >= 0; all *= grad[i--])
    stride[i] = draw(3) ? all * (draw(8) ? 1 : range(1, 3)) : range(1, 4);
  if (draw(2) || rank != 4)
    cudnnSetTensorNdDescriptorEx(a->grad, range(0, 1), ty, rank, grad);
  else
    cudnnSetTensorNdDescriptor(a->grad, ty, rank, grad, stride);
  int part = draw(20) ? rank : range(3, 5);
  cudnnSetFilterNdDescriptor(a->w, ty, range(0, 1), rank, w);
  cudnnSetTensorNdDescriptorEx(a->diff, range(0, 1), other, part, diff);
  cudnnSetConvolutionNdDescriptor(a->conv, draw(20) ? 2 : 3, pads, strides,
                                  dilations, range(0, 1), range(0, 2));
  cudnnSetConvolutionGroupCount(a->conv, groups);
  cudnnSetConvolutionMathType(a->conv, draw(4) ? 0 : range(0, 3));
  cudnnSetConvolutionReorderType(a->conv, range(0, 1));
  cudnnSetConvolutionMathType(a->folded_conv, range(0, 3));
  printf(" type %d %d rank %d groups %d", ty, other, rank, groups);
  list("x", grad, rank);
  list("w", w, rank);
  list("y", diff, rank);
  list("p", pads, 2);
  list("s", strides, 2);
  list("l", dilations, 2);
}

static void one(int number) {
  all_t a;
  start(12, number);
  create(&a);
  printf("fold %d", number);
  fill(&a);
  int form = draw(10) ? range(0, 1) : range(-1, 4);
  void *at[11] = {a.w,        a.diff,   a.conv,        a.grad,
                  a.folded_w, a.padded, a.folded_conv, a.folded,
                  a.how[0],   a.how[1], a.how[2]};
  if (!draw(12))
    at[draw(11)] = NULL;
  int s = cudnnGetFoldedConvBackwardDataDescriptors(
      NULL, at[0], at[1], at[2], at[3], (cudnnTensorFormat_t)form, at[4], at[5],
      at[6], at[7], at[8], at[9], at[10], draw(12) ? a.how[3] : NULL);
  printf(" to %d -> %d", form, s);
  if (s == 0)
    show(&a);
  printf("\n");
  destroy(&a);
}

void probe_folds(int cases) {
  for (int i = 0; i <= cases; i++)
    one(i);
}
