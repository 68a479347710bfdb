// SPDX-License-Identifier: Apache-2.0
// Transforms of tensors and filters, Im2Col and spatial transformers through
// the API.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define OK(call)             ck_assert_int_eq((int)(call), 0)
#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static cudnnHandle_t handle;

/* Where value `index` of the source goes; false if padding cuts it off. */
static bool target(const tensor_t *out, bool unfold, const int *before,
                   const unsigned *fold, const int *index, int *to) {
  int block = 1, place = 0, rank = out->rank;
  for (int i = 2; i < rank; i++)
    block *= (int)fold[i - 2];
  to[0] = index[0] + before[0];
  if (unfold) {
    place = index[1] % block;
    to[1] = index[1] / block + before[1];
    for (int i = rank - 1; i >= 2; i--) {
      to[i] =
          index[i] * (int)fold[i - 2] + place % (int)fold[i - 2] + before[i];
      place /= (int)fold[i - 2];
    }
  } else {
    for (int i = 2; i < rank; i++) {
      int at = index[i] + before[i], f = (int)fold[i - 2];
      if (at < 0)
        return false;
      to[i] = at / f;
      place = place * f + at % f;
    }
    if (index[1] + before[1] < 0)
      return false;
    to[1] = (index[1] + before[1]) * block + place;
  }
  for (int i = 0; i < rank; i++)
    if (to[i] < 0 || to[i] >= out->dim[i])
      return false;
  return true;
}

static void transform_case(int number, cudnnTensorTransformDescriptor_t how) {
  case_seed((uint64_t)number);
  int rank = case_range(4, 5), dim[5], before[5], after[5], made[5];
  unsigned fold[3];
  bool unfold = case_range(0, 1);
  for (int i = 0; i < rank; i++) {
    dim[i] = case_range(3, 6);
    before[i] = case_range(0, 2) ? 0 : case_range(-1, 2);
    after[i] = case_range(0, 2) ? 0 : case_range(-1, 2);
    if (i > 1)
      fold[i - 2] = (unsigned)case_range(1, 3);
  }
  if (unfold) /* whole blocks, more than padding can cut */
    dim[1] =
        case_range(2, 3) * (int)(fold[0] * fold[1] * (rank > 4 ? fold[2] : 1));
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                          CUDNN_DATA_HALF, CUDNN_DATA_INT8};
  cudnnDataType_t type = types[number % 4], kind;
  OK(cudnnSetTensorTransformDescriptor(how, (uint32_t)rank, case_range(0, 1),
                                       before, after, fold, unfold));
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
    if (target(&y, unfold, before, fold, index, to))
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

START_TEST(tensors_are_padded_and_folded) {
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

/* Its product with the filter is the convolution. */
START_TEST(columns_times_filter_is_the_convolution) {
  cudnnFilterDescriptor_t filter;
  cudnnConvolutionDescriptor_t conv;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateFilterDescriptor(&filter));
  OK(cudnnCreateConvolutionDescriptor(&conv));
  for (int number = 0; number < 30; number++) {
    case_seed((uint64_t)number);
    int xd[4], wd[4], yd[4];
    for (int i = 0; i < 4; i++) {
      xd[i] = case_range(1, 7) + (i > 1 ? 4 : 0);
      wd[i] = case_range(1, 3);
    }
    wd[1] = xd[1];
    OK(cudnnSetFilter4dDescriptor(filter, 1, 0, wd[0], wd[1], wd[2], wd[3]));
    OK(cudnnSetConvolution2dDescriptor(
        conv, case_range(0, 2), case_range(0, 2), case_range(1, 2),
        case_range(1, 2), case_range(1, 2), 1, number % 2, CUDNN_DATA_DOUBLE));
    tensor_t x, w, y;
    tensor_create(&x, CUDNN_DATA_DOUBLE, 4, xd, 0);
    OK(cudnnGetConvolution2dForwardOutputDim(conv, x.desc, filter, yd, yd + 1,
                                             yd + 2, yd + 3));
    tensor_t like = {.type = CUDNN_DATA_DOUBLE, .rank = 4};
    memcpy(like.dim, wd, sizeof wd);
    for (int i = 3, at = 1; i >= 0; at *= wd[i--])
      like.stride[i] = at;
    tensor_create_like(&w, &like);
    tensor_create(&y, CUDNN_DATA_DOUBLE, 4, yd, 0);
    const double one = 1, zero = 0;
    int rows = wd[1] * wd[2] * wd[3], outputs = yd[2] * yd[3];
    size_t bytes = sizeof(double) * (size_t)(xd[0] * rows * outputs);
    double *columns = malloc(bytes);
    void *device;
    OK(cudaMalloc(&device, bytes));
    OK(cudnnIm2Col(handle, x.desc, x.device, filter, conv, device));
    OK(cudaMemcpy(columns, device, bytes, cudaMemcpyDeviceToHost));
    OK(cudnnConvolutionForward(handle, &one, x.desc, x.device, filter, w.device,
                               conv, 0, NULL, 0, &zero, y.desc, y.device));
    double *want = calloc((size_t)y.count, sizeof *want);
    double *scale = calloc((size_t)y.count, sizeof *scale);
    for (int64_t i = 0; i < y.count; i++) {
      int at[8];
      tensor_index(&y, i, at);
      for (int r = 0; r < rows; r++) {
        double term =
            w.value[at[1] * rows + r] *
            columns[(at[0] * rows + r) * outputs + at[2] * yd[3] + at[3]];
        want[i] += term;
        scale[i] += fabs(term);
      }
    }
    ck_assert_int_eq(tensor_wrong(&y, want, scale, 16), -1);
    free(want);
    free(scale);
    free(columns);
    OK(cudaFree(device));
    tensor_destroy(&x);
    tensor_destroy(&w);
    tensor_destroy(&y);
  }
  OK(cudnnDestroyFilterDescriptor(filter));
  OK(cudnnDestroyConvolutionDescriptor(conv));
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
    /* and smooth between the points of x */
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

int main(void) {
  Suite *suite = suite_create("host cudnn transforms");
  TCase *cases = tcase_create("transforms");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, tensors_are_padded_and_folded);
  tcase_add_test(cases, filters_change_their_layout);
  tcase_add_test(cases, columns_times_filter_is_the_convolution);
  tcase_add_test(cases, spatial_transformers_sample_and_give_gradients);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
