// SPDX-License-Identifier: Apache-2.0
// The matrix of Im2Col: its elements, its product with a filter, refusals.
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static cudnnHandle_t handle;
static cudnnFilterDescriptor_t w_desc;
static cudnnConvolutionDescriptor_t conv;

typedef struct {
  int w[4], pad[2], stride[2], dilation[2], out[4];
  int columns;
  int64_t rows;
  cudnnConvolutionMode_t mode;
} shape_t;

/* Row and column of the matrix -> element of x; false for padding. */
static bool element(const shape_t *s, const tensor_t *x, int64_t row,
                    int column, int *at) {
  int tap[2] = {column / s->w[3] % s->w[2], column % s->w[3]};
  int64_t point[2] = {row / s->out[3] % s->out[2], row % s->out[3]};
  at[0] = (int)(row / s->out[3] / s->out[2]);
  at[1] = column / s->w[3] / s->w[2];
  for (int i = 0; i < 2; i++) {
    if (s->mode == CUDNN_CONVOLUTION)
      tap[i] = s->w[2 + i] - 1 - tap[i];
    at[2 + i] =
        (int)point[i] * s->stride[i] - s->pad[i] + tap[i] * s->dilation[i];
    if (at[2 + i] < 0 || at[2 + i] >= x->dim[2 + i])
      return false;
  }
  return true;
}

static void check_elements(const shape_t *s, const tensor_t *x,
                           const unsigned char *matrix) {
  unsigned char *memory = malloc(x->bytes);
  const unsigned char zero[8] = {0};
  OK(cudaMemcpy(memory, x->device, x->bytes, cudaMemcpyDeviceToHost));
  for (int64_t row = 0; row < s->rows; row++)
    for (int column = 0; column < s->columns; column++) {
      int at[4];
      const unsigned char *want = zero;
      if (element(s, x, row, column, at)) {
        size_t place = 0;
        for (int i = 0; i < 4; i++)
          place += (size_t)at[i] * (size_t)x->stride[i];
        want = memory + place * x->unit;
      }
      ck_assert(!memcmp(matrix, want, x->unit));
      matrix += x->unit;
    }
  free(memory);
}

static double value_at(const tensor_t *x, const unsigned char *matrix,
                       int64_t i) {
  return x->unit == 8 ? ((const double *)matrix)[i]
                      : ((const float *)matrix)[i];
}

/* A times the transpose of the filter, as it lies in memory, is y. */
static void check_product(const shape_t *s, const tensor_t *x,
                          const unsigned char *matrix) {
  tensor_t w, y;
  int flat[4] = {s->w[0] * s->columns, 1, 1, 1};
  OK(cudnnSetConvolution2dDescriptor(conv, s->pad[0], s->pad[1], s->stride[0],
                                     s->stride[1], s->dilation[0],
                                     s->dilation[1], s->mode, x->type));
  do { /* memory without gaps */
    tensor_create(&w, x->type, 4, flat, 0);
    if (w.stride[0] == 1)
      break;
    tensor_destroy(&w);
  } while (true);
  tensor_create(&y, x->type, 4, s->out, 0);
  double *want = malloc((size_t)y.count * sizeof *want);
  double *scale = malloc((size_t)y.count * sizeof *scale);
  for (int64_t row = 0; row < s->rows; row++)
    for (int k = 0; k < s->w[0]; k++) {
      double sum = 0;
      for (int i = 0; i < s->columns; i++)
        sum += value_at(x, matrix, row * s->columns + i) *
               w.value[k * s->columns + i];
      int points = s->out[2] * s->out[3];
      int64_t to = (row / points * s->out[1] + k) * points + row % points;
      want[to] = sum;
      scale[to] = 4 * s->columns;
    }
  scalar_t one = scalar(x->type, 1), zero = scalar(x->type, 0);
  OK(cudnnConvolutionForward(handle, &one, x->desc, x->device, w_desc, w.device,
                             conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
                             NULL, 0, &zero, y.desc, y.device));
  ck_assert_int_eq(tensor_wrong(&y, want, scale, 8), -1);
  free(want);
  free(scale);
  tensor_destroy(&w);
  tensor_destroy(&y);
}

static void matrix_case(int number) {
  case_seed((uint64_t)number);
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                          CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
  cudnnDataType_t type = types[number % 4];
  int dim[4] = {case_range(1, 3), case_range(1, 4), 0, 0};
  shape_t s = {.mode = number / 4 % 2 ? CUDNN_CONVOLUTION
                                      : CUDNN_CROSS_CORRELATION};
  s.w[0] = case_range(1, 5);
  s.w[1] = dim[1];
  for (int i = 0; i < 2; i++) {
    s.w[2 + i] = case_range(1, 4);
    s.pad[i] = case_range(0, 3);
    s.stride[i] = case_range(1, 3);
    s.dilation[i] = case_range(1, 2);
    int least = s.dilation[i] * (s.w[2 + i] - 1) + 1 - 2 * s.pad[i];
    dim[2 + i] = (least > 1 ? least : 1) + case_range(0, 6);
  }
  tensor_t x;
  tensor_create(&x, type, 4, dim, 0);
  OK(cudnnSetFilter4dDescriptor(w_desc, type, CUDNN_TENSOR_NCHW, s.w[0], s.w[1],
                                s.w[2], s.w[3]));
  OK(cudnnSetConvolution2dDescriptor(conv, s.pad[0], s.pad[1], s.stride[0],
                                     s.stride[1], s.dilation[0], s.dilation[1],
                                     s.mode, CUDNN_DATA_FLOAT));
  OK(cudnnGetConvolution2dForwardOutputDim(conv, x.desc, w_desc, &s.out[0],
                                           &s.out[1], &s.out[2], &s.out[3]));
  s.rows = (int64_t)s.out[0] * s.out[2] * s.out[3];
  s.columns = s.w[1] * s.w[2] * s.w[3];
  size_t bytes = (size_t)s.rows * (size_t)s.columns * x.unit;
  unsigned char *matrix = malloc(bytes + 8);
  void *device;
  OK(cudaMalloc(&device, bytes + 8));
  OK(cudaMemset(device, 0x5a, bytes + 8));
  OK(cudnnIm2Col(handle, x.desc, x.device, w_desc, conv, device));
  OK(cudaMemcpy(matrix, device, bytes + 8, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < 8; i++)
    ck_assert_int_eq(matrix[bytes + i], 0x5a);
  check_elements(&s, &x, matrix);
  if (x.unit > 2)
    check_product(&s, &x, matrix);
  OK(cudaFree(device));
  free(matrix);
  tensor_destroy(&x);
}

static void setup(void) {
  OK(cudnnCreate(&handle));
  OK(cudnnCreateFilterDescriptor(&w_desc));
  OK(cudnnCreateConvolutionDescriptor(&conv));
}

static void teardown(void) {
  OK(cudnnDestroyConvolutionDescriptor(conv));
  OK(cudnnDestroyFilterDescriptor(w_desc));
  OK(cudnnDestroy(handle));
}

START_TEST(rows_are_windows_and_the_product_is_the_convolution) {
  for (int i = 0; i < 400; i++)
    matrix_case(i);
}
END_TEST

START_TEST(formats_without_a_documented_matrix_are_refused) {
  tensor_t x;
  tensor_create(&x, CUDNN_DATA_FLOAT, 4, (const int[]){1, 4, 5, 5}, 0);
  void *to;
  OK(cudaMalloc(&to, 1 << 16));
  OK(cudnnSetFilter4dDescriptor(w_desc, 0, CUDNN_TENSOR_NCHW, 2, 4, 3, 3));
  OK(cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, 1, 0));
  OK(cudnnIm2Col(handle, x.desc, x.device, w_desc, conv, to));
  IS(cudnnIm2Col(NULL, x.desc, x.device, w_desc, conv, to),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnIm2Col(handle, x.desc, NULL, w_desc, conv, to),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnIm2Col(handle, x.desc, x.device, w_desc, conv, NULL),
     CUDNN_STATUS_BAD_PARAM);
  OK(cudnnSetConvolutionGroupCount(conv, 2));
  IS(cudnnIm2Col(handle, x.desc, x.device, w_desc, conv, to),
     CUDNN_STATUS_NOT_SUPPORTED);
  OK(cudnnSetConvolutionGroupCount(conv, 1));
  OK(cudnnSetFilter4dDescriptor(w_desc, 0, CUDNN_TENSOR_NHWC, 2, 4, 3, 3));
  IS(cudnnIm2Col(handle, x.desc, x.device, w_desc, conv, to),
     CUDNN_STATUS_NOT_SUPPORTED);
  OK(cudnnSetFilter4dDescriptor(w_desc, 0, CUDNN_TENSOR_NCHW, 2, 3, 3, 3));
  IS(cudnnIm2Col(handle, x.desc, x.device, w_desc, conv, to),
     CUDNN_STATUS_BAD_PARAM);
  tensor_destroy(&x);
  tensor_create(&x, CUDNN_DATA_INT8, 4, (const int[]){1, 4, 5, 5}, 0);
  OK(cudnnSetFilter4dDescriptor(w_desc, CUDNN_DATA_INT8, CUDNN_TENSOR_NCHW, 2,
                                4, 3, 3));
  IS(cudnnIm2Col(handle, x.desc, x.device, w_desc, conv, to),
     CUDNN_STATUS_NOT_SUPPORTED);
  tensor_destroy(&x);
  OK(cudaFree(to));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn im2col");
  TCase *cases = tcase_create("im2col");
  tcase_set_timeout(cases, 100);
  tcase_add_checked_fixture(cases, setup, teardown);
  tcase_add_test(cases, rows_are_windows_and_the_product_is_the_convolution);
  tcase_add_test(cases, formats_without_a_documented_matrix_are_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
