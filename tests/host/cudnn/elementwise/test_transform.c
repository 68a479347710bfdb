// SPDX-License-Identifier: Apache-2.0
// Transforms of tensors and filters, and spatial transformers through
// the API.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static cudnnHandle_t handle;

/* Finds where value `index` of the source goes; false if it is cut off. */
static bool target(const tensor_t *out, const int *before, const int *index,
                   int *to) {
  for (int i = 0; i < out->rank; i++) {
    to[i] = index[i] + before[i];
    if (to[i] < 0 || to[i] >= out->dim[i])
      return false;
  }
  return true;
}

static void transform_case(int number, cudnnTensorTransformDescriptor_t how) {
  case_seed((uint64_t)number);
  int rank = case_range(4, 5), dim[5], before[5], after[5], made[5];
  for (int i = 0; i < rank; i++) {
    dim[i] = case_range(3, 6);
    before[i] = case_range(0, 2) ? 0 : case_range(-1, 2);
    after[i] = case_range(0, 2) ? 0 : case_range(-1, 2);
  }
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                          CUDNN_DATA_HALF, CUDNN_DATA_INT8};
  cudnnDataType_t type = types[number % 4], kind;
  OK(cudnnSetTensorTransformDescriptor(how, (uint32_t)rank, case_range(0, 1),
                                       before, after, NULL,
                                       CUDNN_TRANSFORM_FOLD));
  tensor_t x, y;
  tensor_create(&x, type, rank, dim, 0);
  cudnnTensorDescriptor_t dest;
  size_t bytes;
  int nb, strides[5];
  OK(cudnnCreateTensorDescriptor(&dest));
  OK(cudnnInitTransformDest(how, x.desc, dest, &bytes));
  OK(cudnnGetTensorNdDescriptor(dest, rank, &kind, &nb, made, strides));
  OK(cudnnDestroyTensorDescriptor(dest));
  tensor_create(&y, type, rank, made, 0);
  double beta = type == CUDNN_DATA_INT8 || number % 3 ? 0 : 0.5;
  scalar_t a = scalar(type, 1), b = scalar(type, beta);
  OK(cudnnTransformTensorEx(handle, how, &a, x.desc, x.device, &b, y.desc,
                            y.device));
  double *want = malloc((size_t)y.count * sizeof *want);
  for (int64_t i = 0; i < y.count; i++)
    want[i] = beta * y.value[i];
  for (int64_t i = 0; i < x.count; i++) {
    int index[8], to[8];
    tensor_index(&x, i, index);
    if (target(&y, before, index, to))
      want[tensor_at(&y, to)] += x.value[i];
  }
  int64_t wrong = tensor_wrong(&y, want, NULL, 1);
  ck_assert_msg(wrong == -1, "case %d value %ld: %s to %s", number, wrong,
                tensor_text(&x), tensor_text(&y));
  int odd[5];
  memcpy(odd, made, sizeof odd);
  odd[1]++;
  OK(cudnnSetTensorNdDescriptorEx(y.desc, 0, type, rank, odd));
  IS(cudnnTransformTensorEx(handle, how, &a, x.desc, x.device, &b, y.desc,
                            y.device),
     CUDNN_STATUS_BAD_PARAM);
  free(want);
  tensor_destroy(&x);
  tensor_destroy(&y);
}

START_TEST(tensors_are_padded) {
  cudnnTensorTransformDescriptor_t how;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateTensorTransformDescriptor(&how));
  for (int i = 0; i < 200; i++)
    transform_case(i, how);
  OK(cudnnDestroyTensorTransformDescriptor(how));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(filters_change_their_layout) {
  cudnnTensorTransformDescriptor_t how;
  cudnnFilterDescriptor_t from, to;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateTensorTransformDescriptor(&how));
  OK(cudnnCreateFilterDescriptor(&from));
  OK(cudnnCreateFilterDescriptor(&to));
  OK(cudnnSetTensorTransformDescriptor(how, 4, CUDNN_TENSOR_NHWC, NULL, NULL,
                                       NULL, CUDNN_TRANSFORM_FOLD));
  OK(cudnnSetFilter4dDescriptor(from, 0, CUDNN_TENSOR_NCHW, 2, 3, 2, 2));
  OK(cudnnSetFilter4dDescriptor(to, 0, CUDNN_TENSOR_NHWC, 2, 3, 2, 2));
  float values[24], one = 1, zero = 0;
  for (int i = 0; i < 24; i++)
    values[i] = (float)i;
  char *memory;
  OK(cudaMalloc((void **)&memory, 512));
  OK(cudaMemcpy(memory, values, sizeof values, cudaMemcpyHostToDevice));
  OK(cudnnTransformFilter(handle, how, &one, from, memory, &zero, to,
                          memory + 256));
  OK(cudaMemcpy(values, memory + 256, sizeof values, cudaMemcpyDeviceToHost));
  for (int k = 0; k < 2; k++)
    for (int c = 0; c < 3; c++)
      for (int i = 0; i < 4; i++)
        ck_assert(values[(k * 4 + i) * 3 + c] == (float)((k * 3 + c) * 4 + i));
  OK(cudaFree(memory));
  OK(cudnnDestroyFilterDescriptor(from));
  OK(cudnnDestroyFilterDescriptor(to));
  OK(cudnnDestroyTensorTransformDescriptor(how));
  OK(cudnnDestroy(handle));
}
END_TEST

enum { IMAGES = 2, CHANNELS = 3, HEIGHT = 4, WIDTH = 5, POINTS = 20 };

static double bilinear(const tensor_t *x, int n, int c, double u, double v) {
  double column = (u + 1) / 2 * (x->dim[3] - 1);
  double row = (v + 1) / 2 * (x->dim[2] - 1), sum = 0;
  for (int h = 0; h < x->dim[2]; h++)
    for (int w = 0; w < x->dim[3]; w++) {
      double weight =
          fmax(0, 1 - fabs(row - h)) * fmax(0, 1 - fabs(column - w));
      sum += weight * x->value[tensor_at(x, (int[]){n, c, h, w})];
    }
  return sum;
}

START_TEST(spatial_transformers_sample_and_give_gradients) {
  cudnnSpatialTransformerDescriptor_t st;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateSpatialTransformerDescriptor(&st));
  const int out[4] = {IMAGES, CHANNELS, HEIGHT, WIDTH};
  OK(cudnnSetSpatialTransformerNdDescriptor(st, CUDNN_SAMPLER_BILINEAR,
                                            CUDNN_DATA_DOUBLE, 4, out));
  enum { COUNT = IMAGES * POINTS * 2 };
  double theta[6 * IMAGES], grid[COUNT], dgrid[COUNT], dtheta[6 * IMAGES];
  char *memory;
  OK(cudaMalloc((void **)&memory, 8192));
  char *grid_at = memory + 1024, *dgrid_at = memory + 4096;
  for (int number = 0; number < 20; number++) {
    case_seed((uint64_t)number);
    const int in[4] = {IMAGES, CHANNELS, case_range(2, 6), case_range(2, 6)};
    tensor_t x, y, dy, dx;
    tensor_create(&x, CUDNN_DATA_DOUBLE, 4, in, 0);
    tensor_create(&y, CUDNN_DATA_DOUBLE, 4, out, 0);
    tensor_create(&dy, CUDNN_DATA_DOUBLE, 4, out, 0);
    tensor_create(&dx, CUDNN_DATA_DOUBLE, 4, in, 0);
    for (int i = 0; i < 6 * IMAGES; i++)
      theta[i] = 1.3 * case_real();
    OK(cudaMemcpy(memory, theta, sizeof theta, cudaMemcpyHostToDevice));
    OK(cudnnSpatialTfGridGeneratorForward(handle, st, memory, grid_at));
    OK(cudaMemcpy(grid, grid_at, sizeof grid, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) {
      int n = i / 2 / POINTS, h = i / 2 / WIDTH % HEIGHT, w = i / 2 % WIDTH;
      const double *t = theta + 6 * n + 3 * (i % 2);
      double u = -1 + 2.0 * w / (WIDTH - 1), v = -1 + 2.0 * h / (HEIGHT - 1);
      ck_assert(fabs(grid[i] - (t[0] * u + t[1] * v + t[2])) < 1e-12);
    }
    const double one = 1, zero = 0;
    OK(cudnnSpatialTfSamplerForward(handle, st, &one, x.desc, x.device, grid_at,
                                    &zero, y.desc, y.device));
    double want[IMAGES * CHANNELS * POINTS], scale[IMAGES * CHANNELS * POINTS];
    for (int64_t i = 0; i < y.count; i++) {
      int at[8];
      tensor_index(&y, i, at);
      const double *p = grid + 2 * (at[0] * POINTS + at[2] * WIDTH + at[3]);
      want[i] = bilinear(&x, at[0], at[1], p[0], p[1]);
      scale[i] = 8;
    }
    ck_assert_int_eq(tensor_wrong(&y, want, scale, 64), -1);
    OK(cudnnSpatialTfSamplerBackward(handle, st, &one, x.desc, x.device, &zero,
                                     dx.desc, dx.device, &one, dy.desc,
                                     dy.device, grid_at, &zero, dgrid_at));
    tensor_download(&dx);
    OK(cudaMemcpy(dgrid, dgrid_at, sizeof dgrid, cudaMemcpyDeviceToHost));
    /* sampling is linear in x: <y, dy> = <x, dx> */
    double left = 0, right = 0;
    for (int64_t i = 0; i < y.count; i++)
      left += want[i] * dy.value[i];
    for (int64_t i = 0; i < x.count; i++)
      right += x.value[i] * dx.value[i];
    ck_assert_msg(fabs(left - right) < 1e-9, "%g %g", left, right);
    /* sampling is smooth between the points of x */
    const double step = 1e-6;
    for (int i = 0; i < COUNT; i++) {
      int n = i / 2 / POINTS, h = i / 2 / WIDTH % HEIGHT, w = i / 2 % WIDTH;
      double slope = 0;
      for (int c = 0; c < CHANNELS; c++) {
        double p[2] = {grid[i & ~1], grid[i | 1]}, q[2] = {p[0], p[1]};
        p[i % 2] += step;
        q[i % 2] -= step;
        slope +=
            dy.value[tensor_at(&dy, (int[]){n, c, h, w})] *
            (bilinear(&x, n, c, p[0], p[1]) - bilinear(&x, n, c, q[0], q[1])) /
            (2 * step);
      }
      double place = (grid[i] + 1) / 2 * (in[i % 2 ? 2 : 3] - 1);
      if (fabs(place - nearbyint(place)) > 1e-4)
        ck_assert_msg(fabs(slope - dgrid[i]) < 1e-6, "%g %g", slope, dgrid[i]);
    }
    OK(cudnnSpatialTfGridGeneratorBackward(handle, st, dgrid_at, memory));
    OK(cudaMemcpy(dtheta, memory, sizeof dtheta, cudaMemcpyDeviceToHost));
    double sum = 0, linear = 0; /* <grid, dgrid> = <theta, dtheta> */
    for (int i = 0; i < COUNT; i++)
      sum += grid[i] * dgrid[i];
    for (int i = 0; i < 6 * IMAGES; i++)
      linear += theta[i] * dtheta[i];
    ck_assert(fabs(sum - linear) < 1e-9);
    tensor_destroy(&x);
    tensor_destroy(&y);
    tensor_destroy(&dy);
    tensor_destroy(&dx);
  }
  OK(cudaFree(memory));
  OK(cudnnDestroySpatialTransformerDescriptor(st));
  OK(cudnnDestroy(handle));
}
END_TEST

/* Samples x at a grid of y's size; `st` may be NULL. */
static cudnnStatus_t sample(cudnnSpatialTransformerDescriptor_t st,
                            const tensor_t *x, const tensor_t *y,
                            const void *grid) {
  const double one = 1, zero = 0;
  return cudnnSpatialTfSamplerForward(handle, st, &one, x->desc, x->device,
                                      grid, &zero, y->desc, y->device);
}

START_TEST(samplers_refuse_a_transformer_of_other_tensors) {
  cudnnSpatialTransformerDescriptor_t st;
  void *grid;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateSpatialTransformerDescriptor(&st));
  OK(cudaMalloc(&grid, 4096));
  OK(cudaMemset(grid, 0, 4096));
  const int in[5] = {2, 3, 5, 6, 1}, out[5] = {2, 3, 4, 4, 1};
  const int taller[4] = {2, 3, 5, 4}, fewer[4] = {2, 2, 5, 6};
  tensor_t x, y, half, flat, few;
  tensor_create(&x, CUDNN_DATA_FLOAT, 4, in, 0);
  tensor_create(&y, CUDNN_DATA_FLOAT, 4, out, 0);
  tensor_create(&half, CUDNN_DATA_HALF, 4, out, 0);
  tensor_create(&flat, CUDNN_DATA_FLOAT, 5, out, 0);
  tensor_create(&few, CUDNN_DATA_FLOAT, 4, fewer, 0);
#define SET(type, rank, extents)                                               \
  OK(cudnnSetSpatialTransformerNdDescriptor(st, CUDNN_SAMPLER_BILINEAR, type,  \
                                            rank, extents))
  IS(sample(st, &x, &y, grid), CUDNN_STATUS_NOT_SUPPORTED); /* never set */
  IS(sample(NULL, &x, &y, grid), CUDNN_STATUS_BAD_PARAM);
  SET(CUDNN_DATA_FLOAT, 5, out);
  IS(sample(st, &x, &y, grid), CUDNN_STATUS_NOT_SUPPORTED);
  SET(CUDNN_DATA_DOUBLE, 4, out);
  IS(sample(st, &x, &y, grid), CUDNN_STATUS_BAD_PARAM);
  SET(CUDNN_DATA_FLOAT, 4, taller);
  IS(sample(st, &x, &y, grid), CUDNN_STATUS_BAD_PARAM);
  SET(CUDNN_DATA_FLOAT, 4, out);
#undef SET
  IS(sample(st, &x, &half, grid), CUDNN_STATUS_BAD_PARAM);
  IS(sample(st, &x, &flat, grid), CUDNN_STATUS_NOT_SUPPORTED);
  IS(sample(st, &few, &y, grid), CUDNN_STATUS_BAD_PARAM);
  IS(sample(st, &x, &y, NULL), CUDNN_STATUS_BAD_PARAM);
  OK(sample(st, &x, &y, grid));
  tensor_t *all[] = {&x, &y, &half, &flat, &few};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    tensor_destroy(all[i]);
  OK(cudaFree(grid));
  OK(cudnnDestroySpatialTransformerDescriptor(st));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn transforms");
  TCase *cases = tcase_create("transforms");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, tensors_are_padded);
  tcase_add_test(cases, filters_change_their_layout);
  tcase_add_test(cases, spatial_transformers_sample_and_give_gradients);
  tcase_add_test(cases, samplers_refuse_a_transformer_of_other_tensors);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
