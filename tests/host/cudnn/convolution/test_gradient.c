// SPDX-License-Identifier: Apache-2.0
// Both gradients of a convolution against loops over doubles; and the entries
// that reach them.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/convolution/engine/engine.h"
#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/convolution/loop.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static void gradient_case(int number, bool is_double, int channels,
                          int extent) {
  host_conv_t c;
  case_seed((uint64_t)number + 700000);
  case_create(&c, is_double, channels, extent);
  case_destroy(&c);
  cudnnDataType_t type = is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  int64_t xe[5] = {c.images, (int64_t)c.groups * c.c};
  int64_t ye[5] = {c.images, (int64_t)c.groups * c.k};
  int64_t we[5] = {(int64_t)c.groups * c.k, c.c};
  for (int i = 0; i < 3; i++) {
    xe[2 + i] = c.in[i];
    ye[2 + i] = c.out[i];
    we[2 + i] = c.window[i];
  }
  part_t x, w, y;
  part_create(&x, type, xe, c.x_stride);
  part_create(&w, type, we, c.w_stride);
  part_create(&y, type, ye, c.y_stride);
  c.x = x.data;
  c.w = w.data;
  c.y = y.data;
  c.bias = c.old = NULL;
  c.relu = false;
  loop_run(&c, &x, &w, &y);

  part_t before = x;
  before.data = part_clone(&x);
  ck_assert(host_conv_backward_data(&c));
  int64_t wrong = part_wrong(&x, &before, c.gamma, 25.0 * c.k);
  ck_assert_msg(wrong < 0, "data, case %d element %ld: %s", number, wrong,
                case_text(&c));
  memcpy(x.data, before.data,
         (size_t)x.span * (is_double ? sizeof(double) : sizeof(float)));
  free(before.data);

  before = w;
  before.data = part_clone(&w);
  ck_assert(host_conv_backward_weights(&c));
  double length = (double)c.images * (double)(c.out[0] * c.out[1] * c.out[2]);
  wrong = part_wrong(&w, &before, c.gamma, length);
  ck_assert_msg(wrong < 0, "weights, case %d element %ld: %s", number, wrong,
                case_text(&c));
  free(before.data);
  part_destroy(&x);
  part_destroy(&w);
  part_destroy(&y);
}

START_TEST(float_gradients_equal_the_loop) {
  for (int i = 0; i < 120; i++)
    gradient_case(i, false, i % 8 ? 9 : 40, 12);
}
END_TEST

START_TEST(double_gradients_equal_the_loop) {
  for (int i = 0; i < 60; i++)
    gradient_case(i + 1000, true, 9, 12);
}
END_TEST

/* More than one band, the last one shorter, in each engine. */
START_TEST(gradients_of_wide_rows_equal_the_loop) {
  for (int i = 0; i < 3; i++)
    gradient_case(i + 2000, false, 24, 120);
}
END_TEST

/* Infinities of x must not be multiplied by zeros that fill up a band. */
START_TEST(infinities_stay_where_they_are_used) {
  enum { SIDE = 64, C = 40 };
  host_conv_t c = {.images = 3,
                   .groups = 1,
                   .c = C,
                   .k = C,
                   .in = {1, 150, SIDE},
                   .out = {1, 50, SIDE},
                   .window = {1, 1, 1},
                   .stride = {1, 3, 1},
                   .dilation = {1, 1, 1},
                   .alpha = 1};
  const int64_t xs[5] = {C * 150 * SIDE, 150 * SIDE, 0, SIDE, 1};
  const int64_t ys[5] = {C * 50 * SIDE, 50 * SIDE, 0, SIDE, 1};
  const int64_t ws[5] = {C, 1, 1, 1, 1};
  memcpy(c.x_stride, xs, sizeof xs);
  memcpy(c.y_stride, ys, sizeof ys);
  memcpy(c.w_stride, ws, sizeof ws);
  float *x = malloc(3 * C * 150 * SIDE * sizeof *x);
  float *y = malloc(3 * C * 50 * SIDE * sizeof *y), w[C * C];
  for (int i = 0; i < 3 * C * 150 * SIDE; i++)
    x[i] = i / SIDE % 3 ? INFINITY : 1; /* rows that the stride skips */
  for (int i = 0; i < 3 * C * 50 * SIDE; i++)
    y[i] = 1;
  c.x = x;
  c.y = y;
  c.w = w;
  ck_assert(host_conv_backward_weights(&c));
  for (int i = 0; i < C * C; i++)
    ck_assert(w[i] == 3 * 50 * SIDE);
  free(x);
  free(y);
}
END_TEST

START_TEST(bias_gradient_is_the_sum_over_all_but_channels) {
  cudnnHandle_t handle;
  OK(cudnnCreate(&handle));
  const cudnnDataType_t types[] = {0, 1, 2, 9};
  for (int i = 0; i < 40; i++) {
    case_seed((uint64_t)i);
    int rank = case_range(4, 5), dim[5], one[5] = {1, 1, 1, 1, 1};
    for (int d = 0; d < rank; d++)
      dim[d] = case_range(1, 6);
    one[1] = dim[1];
    cudnnDataType_t type = types[case_range(0, 3)];
    tensor_t dy, db;
    tensor_create(&dy, type, rank, dim, 0);
    tensor_create(&db, type, rank, one, 0);
    scalar_t a = scalar(type, 0.5), b = scalar(type, 2);
    double *want = calloc((size_t)dim[1], sizeof *want);
    double *terms = calloc((size_t)dim[1], sizeof *terms);
    for (int64_t j = 0; j < dy.count; j++) {
      int at[8];
      tensor_index(&dy, j, at);
      want[at[1]] += 0.5 * dy.value[j];
      terms[at[1]] += fabs(dy.value[j]);
    }
    for (int j = 0; j < dim[1]; j++)
      want[j] += 2 * db.value[j];
    OK(cudnnConvolutionBackwardBias(handle, &a, dy.desc, dy.device, &b, db.desc,
                                    db.device));
    ck_assert_msg(tensor_wrong(&db, want, terms, 1) == -1, "%s",
                  tensor_text(&dy));
    free(want);
    free(terms);
    tensor_destroy(&dy);
    tensor_destroy(&db);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

/* All ones, so that taps can be counted by hand. */
START_TEST(entries_reach_the_gradients) {
  cudnnHandle_t handle;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateFilterDescriptor(&w));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  tensor_t x, y;
  tensor_create(&x, 0, 4, (int[]){2, 3, 8, 8}, 0);
  tensor_create(&y, 0, 4, (int[]){2, 4, 4, 4}, 0);
  OK(cudnnSetFilter4dDescriptor(w, 0, 0, 4, 3, 3, 3));
  OK(cudnnSetConvolution2dDescriptor(conv, 1, 1, 2, 2, 1, 1, 1, 0));
  const float one = 1, zero = 0;
  float ones[108], got[108];
  for (int i = 0; i < 108; i++)
    ones[i] = 1;
  void *dw;
  OK(cudaMalloc(&dw, sizeof ones));
  OK(cudaMemcpy(dw, ones, sizeof ones, cudaMemcpyHostToDevice));
  for (int64_t i = 0; i < y.count; i++)
    y.value[i] = 1;
  tensor_upload(&y);
  int count = 0, returned = 0;
  size_t bytes = 1;
  cudnnConvolutionBwdDataAlgoPerf_t data[9];
  cudnnConvolutionBwdFilterAlgoPerf_t filter[9];
  OK(cudnnGetConvolutionBackwardDataAlgorithmMaxCount(handle, &count));
  OK(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w, y.desc, conv,
                                                 x.desc, 9, &returned, data));
  ck_assert_int_eq(returned, count);
  OK(data[0].status);
  OK(cudnnGetConvolutionBackwardDataWorkspaceSize(
      handle, w, y.desc, conv, x.desc, data[0].algo, &bytes));
  OK(cudnnFindConvolutionBackwardDataAlgorithm(handle, w, y.desc, conv, x.desc,
                                               9, &returned, data));
  OK(cudnnFindConvolutionBackwardDataAlgorithmEx(
      handle, w, dw, y.desc, y.device, conv, x.desc, x.device, 9, &returned,
      data, NULL, 0));
  ck_assert(data[0].time >= 0);
  OK(cudnnConvolutionBackwardData(handle, &one, w, dw, y.desc, y.device, conv,
                                  data[0].algo, NULL, 0, &zero, x.desc,
                                  x.device));
  double *want = malloc((size_t)x.count * sizeof *want);
  for (int64_t i = 0; i < x.count; i++) {
    int at[8];
    tensor_index(&x, i, at);
    /* one tap reaches even rows, two reach odd rows but the last */
    int rows = at[2] % 2 && at[2] < 7 ? 2 : 1;
    int columns = at[3] % 2 && at[3] < 7 ? 2 : 1;
    want[i] = 4 * rows * columns;
  }
  ck_assert_int_eq(tensor_wrong(&x, want, NULL, 0), -1);
  free(want);
  for (int64_t i = 0; i < x.count; i++)
    x.value[i] = 1;
  tensor_upload(&x);
  OK(cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle, &count));
  OK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x.desc, y.desc, conv,
                                                   w, 9, &returned, filter));
  ck_assert_int_eq(returned, count);
  OK(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      handle, x.desc, y.desc, conv, w, filter[0].algo, &bytes));
  OK(cudnnFindConvolutionBackwardFilterAlgorithm(handle, x.desc, y.desc, conv,
                                                 w, 2, &returned, filter));
  ck_assert_int_eq(returned, 2);
  OK(cudnnConvolutionBackwardFilter(handle, &one, x.desc, x.device, y.desc,
                                    y.device, conv, filter[0].algo, NULL, 0,
                                    &one, w, dw));
  OK(cudaMemcpy(got, dw, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 108; i++) {
    int rows = i / 3 % 3 ? 4 : 3, columns = i % 3 ? 4 : 3;
    ck_assert(got[i] == (float)(1 + 2 * rows * columns));
  }
  IS(cudnnConvolutionBackwardData(handle, &one, w, dw, y.desc, y.device, conv,
                                  77, NULL, 0, &zero, x.desc, x.device),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnConvolutionBackwardData(handle, &one, w, ones, y.desc, y.device, conv,
                                  1, NULL, 0, &zero, x.desc, x.device),
     CUDNN_STATUS_EXECUTION_FAILED);
  IS(cudnnConvolutionBackwardFilter(handle, &one, x.desc, x.device, x.desc,
                                    x.device, conv, 1, NULL, 0, &one, w, dw),
     CUDNN_STATUS_NOT_SUPPORTED);
  OK(cudaFree(dw));
  tensor_destroy(&x);
  tensor_destroy(&y);
  OK(cudnnDestroyFilterDescriptor(w));
  OK(cudnnDestroyConvolutionDescriptor(conv));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn gradients");
  TCase *cases = tcase_create("gradients");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, float_gradients_equal_the_loop);
  tcase_add_test(cases, double_gradients_equal_the_loop);
  tcase_add_test(cases, gradients_of_wide_rows_equal_the_loop);
  tcase_add_test(cases, infinities_stay_where_they_are_used);
  tcase_add_test(cases, bias_gradient_is_the_sum_over_all_but_channels);
  tcase_add_test(cases, entries_reach_the_gradients);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
