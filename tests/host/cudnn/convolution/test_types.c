// SPDX-License-Identifier: Apache-2.0
// Convolutions of half, bfloat16 and int8, forward and backward, against
// loops over doubles.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

typedef struct {
  cudnnHandle_t handle;
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  tensor_t x, w, y;
  int pad[3], stride[3], dilation[3], groups;
} case_t;

/* w's tensor descriptor is of no use, but its values and memory are. */
static void create(case_t *c, cudnnDataType_t type, cudnnDataType_t out,
                   cudnnDataType_t compute) {
  int rank = case_range(4, 5), x[5], w[5], y[5];
  c->groups = case_range(0, 2) ? 1 : 2;
  x[0] = case_range(1, 2);
  w[1] = case_range(1, 6);
  x[1] = w[1] * c->groups;
  w[0] = case_range(1, 6) * c->groups;
  for (int i = 0; i < rank - 2; i++) {
    x[2 + i] = case_range(5, 8);
    w[2 + i] = case_range(1, 3);
    c->pad[i] = case_range(0, 2);
    c->stride[i] = case_range(1, 2);
    c->dilation[i] = case_range(1, 2);
  }
  OK(cudnnSetFilterNdDescriptor(c->filter, type, CUDNN_TENSOR_NCHW, rank, w));
  OK(cudnnSetConvolutionNdDescriptor(c->conv, rank - 2, c->pad, c->stride,
                                     c->dilation, CUDNN_CROSS_CORRELATION,
                                     compute));
  OK(cudnnSetConvolutionGroupCount(c->conv, c->groups));
  tensor_create(&c->x, type, rank, x, 0);
  tensor_t like = {.type = type, .rank = rank};
  memcpy(like.dim, w, sizeof w);
  for (int i = rank - 1, at = 1; i >= 0; at *= w[i--])
    like.stride[i] = at;
  tensor_create_like(&c->w, &like);
  OK(cudnnGetConvolutionNdForwardOutputDim(c->conv, c->x.desc, c->filter, rank,
                                           y));
  tensor_create(&c->y, out, rank, y, 0);
}

static void destroy(case_t *c) {
  tensor_destroy(&c->x);
  tensor_destroy(&c->w);
  tensor_destroy(&c->y);
}

/* Adds a[i] * b[j] to sum[k] for every product of the convolution; i, j, k
 * stand for x, w and y in the order of `role`. */
static void products(const case_t *c, const tensor_t *const role[2], int out,
                     double *sum, double *terms) {
  const tensor_t *x = &c->x, *w = &c->w, *y = &c->y;
  for (int64_t i = 0; i < y->count; i++)
    for (int64_t j = 0; j < w->count; j++) {
      int yi[8], wi[8], xi[8];
      tensor_index(y, i, yi);
      tensor_index(w, j, wi);
      if (wi[0] != yi[1])
        continue;
      int group = yi[1] / (w->dim[0] / c->groups);
      xi[0] = yi[0];
      xi[1] = group * w->dim[1] + wi[1];
      bool inside = true;
      for (int d = 0; d < x->rank - 2; d++) {
        xi[2 + d] =
            yi[2 + d] * c->stride[d] - c->pad[d] + wi[2 + d] * c->dilation[d];
        inside &= xi[2 + d] >= 0 && xi[2 + d] < x->dim[2 + d];
      }
      if (!inside)
        continue;
      const int64_t at[] = {tensor_at(x, xi), j, i};
      int a = out == 0 ? 1 : 0, b = out == 2 ? 1 : 2;
      double term = role[0]->value[at[a]] * role[1]->value[at[b]];
      sum[at[out]] += term;
      terms[at[out]] += fabs(term);
    }
}

static void check(const case_t *c, const tensor_t *out, int which,
                  const tensor_t *a, const tensor_t *b, double alpha,
                  double beta, int number) {
  double *want = calloc((size_t)out->count, sizeof *want);
  double *scale = calloc((size_t)out->count, sizeof *scale);
  const tensor_t *const role[] = {a, b};
  products(c, role, which, want, scale);
  for (int64_t i = 0; i < out->count; i++) {
    want[i] = alpha * want[i] + beta * out->value[i];
    /* Sums are floats: their roundings are small beside the type's. */
    scale[i] = fabs(want[i]) + 1e-3 * scale[i];
    if (out->type == CUDNN_DATA_INT8)
      want[i] = fmin(fmax(nearbyint(want[i]), -128), 127);
  }
  int64_t wrong = tensor_wrong(out, want, scale, 1.5);
  ck_assert_msg(wrong == -1, "case %d, gradient %d, value %ld: %s", number,
                which, wrong, tensor_text(&c->x));
  free(want);
  free(scale);
}

static void run_case(case_t *c, int number) {
  static const cudnnDataType_t mixes[][3] = {
      {CUDNN_DATA_HALF, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_BFLOAT16, CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_INT8, CUDNN_DATA_INT8, CUDNN_DATA_INT32},
      {CUDNN_DATA_INT8, CUDNN_DATA_FLOAT, CUDNN_DATA_INT32}};
  const cudnnDataType_t *mix = mixes[number % 4];
  case_seed((uint64_t)number + 60000);
  create(c, mix[0], mix[1], mix[2]);
  const float alpha = 0.25F, beta = number % 3 ? 0 : 0.5F;
  size_t bytes = 1;
  OK(cudnnGetConvolutionForwardWorkspaceSize(c->handle, c->x.desc, c->filter,
                                             c->conv, c->y.desc, 0, &bytes));
  OK(cudnnConvolutionForward(c->handle, &alpha, c->x.desc, c->x.device,
                             c->filter, c->w.device, c->conv, 0, NULL, bytes,
                             &beta, c->y.desc, c->y.device));
  check(c, &c->y, 2, &c->x, &c->w, alpha, beta, number);
  if (mix[0] == CUDNN_DATA_INT8) {
    IS(cudnnConvolutionBackwardData(c->handle, &alpha, c->filter, c->w.device,
                                    c->y.desc, c->y.device, c->conv, 1, NULL, 0,
                                    &beta, c->x.desc, c->x.device),
       CUDNN_STATUS_NOT_SUPPORTED);
    destroy(c);
    return;
  }
  tensor_download(&c->y); /* serves as dy */
  tensor_t x = c->x;
  OK(cudnnConvolutionBackwardFilter(c->handle, &alpha, c->x.desc, c->x.device,
                                    c->y.desc, c->y.device, c->conv,
                                    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, NULL,
                                    0, &beta, c->filter, c->w.device));
  check(c, &c->w, 1, &x, &c->y, alpha, beta, number);
  tensor_download(&c->w);
  OK(cudnnConvolutionBackwardData(c->handle, &alpha, c->filter, c->w.device,
                                  c->y.desc, c->y.device, c->conv,
                                  CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, NULL, 0,
                                  &beta, c->x.desc, c->x.device));
  check(c, &c->x, 0, &c->w, &c->y, alpha, beta, number);
  destroy(c);
}

START_TEST(convolutions_of_every_type_equal_the_loop) {
  case_t c;
  OK(cudnnCreate(&c.handle));
  OK(cudnnCreateFilterDescriptor(&c.filter));
  OK(cudnnCreateConvolutionDescriptor(&c.conv));
  for (int i = 0; i < 120; i++)
    run_case(&c, i);
  OK(cudnnDestroyFilterDescriptor(c.filter));
  OK(cudnnDestroyConvolutionDescriptor(c.conv));
  OK(cudnnDestroy(c.handle));
}
END_TEST

/* 2 x 3 and 4 x 5 and 127 x 127 x 9: bias, activation, saturation. */
START_TEST(fused_convolutions_of_int8_saturate) {
  cudnnHandle_t handle;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t act;
  cudnnTensorDescriptor_t x, bias;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateFilterDescriptor(&w));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  OK(cudnnCreateActivationDescriptor(&act));
  OK(cudnnCreateTensorDescriptor(&x));
  OK(cudnnCreateTensorDescriptor(&bias));
  OK(cudnnSetTensor4dDescriptor(x, 0, CUDNN_DATA_INT8, 1, 1, 1, 4));
  OK(cudnnSetTensor4dDescriptor(bias, 0, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
  OK(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_INT8, 0, 1, 1, 1, 1));
  OK(cudnnSetConvolution2dDescriptor(conv, 0, 0, 1, 1, 1, 1, 1,
                                     CUDNN_DATA_INT32));
  OK(cudnnSetActivationDescriptor(act, CUDNN_ACTIVATION_RELU, 0, 0));
  int8_t values[8] = {2, -4, 127, 1, 3};
  float shift = 1.5F, alpha = 0.5F, zero = 0;
  char *memory;
  OK(cudaMalloc((void **)&memory, 256));
  OK(cudaMemcpy(memory, values, sizeof values, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(memory + 64, &shift, sizeof shift, cudaMemcpyHostToDevice));
  OK(cudnnConvolutionBiasActivationForward(
      handle, &alpha, x, memory, w, memory + 4, conv,
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, NULL, 0, &zero, x,
      memory + 128, bias, memory + 64, act, x, memory + 128));
  OK(cudaMemcpy(values, memory + 128, 4, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(values[0], 4); /* 4.5 to even */
  ck_assert_int_eq(values[1], 0);
  ck_assert_int_eq(values[2], 127);
  ck_assert_int_eq(values[3], 3);
  OK(cudaFree(memory));
  OK(cudnnDestroyTensorDescriptor(x));
  OK(cudnnDestroyTensorDescriptor(bias));
  OK(cudnnDestroyFilterDescriptor(w));
  OK(cudnnDestroyConvolutionDescriptor(conv));
  OK(cudnnDestroyActivationDescriptor(act));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn types");
  TCase *cases = tcase_create("types");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, convolutions_of_every_type_equal_the_loop);
  tcase_add_test(cases, fused_convolutions_of_int8_saturate);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
