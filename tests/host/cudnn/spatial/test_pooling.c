// SPDX-License-Identifier: Apache-2.0
// Pooling through the API against loops over doubles.
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

typedef struct {
  cudnnPoolingMode_t mode;
  cudnnNanPropagation_t nan;
  int rank, window[3], pad[3], stride[3];
} pool_t;

/* Finds the values of x under output `at`: their indices, and the divisor of an
 * average. */
static int under(const pool_t *p, const tensor_t *x, const int *at,
                 int64_t *found, double *out_count) {
  int count = 0, all = 1, taps = 1, tap[3];
  for (int i = 0; i < p->rank; i++)
    taps *= p->window[i];
  for (int t = 0; t < taps; t++) {
    int rest = t, index[5] = {at[0], at[1]};
    bool inside = true;
    for (int i = p->rank - 1; i >= 0; i--) {
      tap[i] = rest % p->window[i];
      rest /= p->window[i];
      index[2 + i] = at[2 + i] * p->stride[i] - p->pad[i] + tap[i];
      inside &= index[2 + i] >= 0 && index[2 + i] < x->dim[2 + i];
    }
    if (inside)
      found[count++] = tensor_at(x, index);
  }
  all = p->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? taps : count;
  *out_count = all;
  return count;
}

static int64_t best_of(const pool_t *p, const tensor_t *x, const int64_t *found,
                       int count) {
  int64_t best = -1;
  for (int i = 0; i < count; i++) {
    double v = x->value[found[i]];
    if (isnan(v) && p->nan == CUDNN_PROPAGATE_NAN)
      return found[i];
    if (!isnan(v) && (best < 0 || v > x->value[best]))
      best = found[i];
  }
  return best;
}

static bool is_max(const pool_t *p) {
  return p->mode == CUDNN_POOLING_MAX ||
         p->mode == CUDNN_POOLING_MAX_DETERMINISTIC;
}

static void draw(pool_t *p, int x[5], int y[5], cudnnPoolingDescriptor_t desc) {
  *p = (pool_t){.mode = case_range(0, 3),
                .nan = case_range(0, 1),
                .rank = case_range(2, 3)};
  x[0] = case_range(1, 2);
  x[1] = case_range(1, 4);
  for (int i = 0; i < p->rank; i++) {
    p->window[i] = case_range(1, 4);
    p->stride[i] = case_range(1, 5);
    p->pad[i] = case_range(0, 1) ? case_range(0, p->window[i] - 1) : 0;
    x[2 + i] = case_range(p->window[i], 11);
  }
  OK(cudnnSetPoolingNdDescriptor(desc, p->mode, p->nan, p->rank, p->window,
                                 p->pad, p->stride));
  cudnnTensorDescriptor_t t;
  OK(cudnnCreateTensorDescriptor(&t));
  OK(cudnnSetTensorNdDescriptorEx(t, 0, 0, p->rank + 2, x));
  OK(cudnnGetPoolingNdForwardOutputDim(desc, t, p->rank + 2, y));
  OK(cudnnDestroyTensorDescriptor(t));
}

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                        CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};

static double *copy(const tensor_t *t) {
  size_t bytes = (size_t)t->count * sizeof(double);
  return memcpy(malloc(bytes), t->value, bytes);
}

static void forward_case(int number, cudnnHandle_t handle,
                         cudnnPoolingDescriptor_t desc) {
  case_seed((uint64_t)number);
  pool_t p;
  int xd[5], yd[5];
  draw(&p, xd, yd, desc);
  cudnnDataType_t type = types[case_range(0, 3)];
  tensor_t x, y;
  tensor_create(&x, type, p.rank + 2, xd, case_range(0, 1) ? 15 : 0);
  tensor_create(&y, type, p.rank + 2, yd, 0);
  double alpha = case_range(0, 1) ? 1 : 0.75, beta = case_range(0, 1) * 0.5;
  scalar_t a = scalar(type, alpha), b = scalar(type, beta);
  double *want = copy(&y);
  if (beta == 0) { /* never read */
    for (int64_t i = 0; i < y.count; i++)
      y.value[i] = NAN;
    tensor_upload(&y);
  }
  OK(cudnnPoolingForward(handle, desc, &a, x.desc, x.device, &b, y.desc,
                         y.device));
  for (int64_t i = 0; i < y.count; i++) {
    int at[8];
    int64_t found[64];
    double divisor, sum = 0;
    tensor_index(&y, i, at);
    int count = under(&p, &x, at, found, &divisor);
    for (int j = 0; j < count; j++)
      sum += x.value[found[j]];
    int64_t best = best_of(&p, &x, found, count);
    double pooled = !is_max(&p) ? sum / divisor
                    : best < 0  ? -INFINITY
                                : x.value[best];
    want[i] = alpha * pooled + (beta == 0 ? 0 : beta * want[i]);
  }
  int64_t wrong = tensor_wrong(&y, want, NULL, 1);
  ck_assert_msg(wrong == -1, "case %d value %ld: %s", number, wrong,
                tensor_text(&x));
  free(want);
  tensor_destroy(&x);
  tensor_destroy(&y);
}

START_TEST(forward_equals_the_loop) {
  cudnnHandle_t handle;
  cudnnPoolingDescriptor_t desc;
  OK(cudnnCreate(&handle));
  OK(cudnnCreatePoolingDescriptor(&desc));
  for (int i = 0; i < 300; i++)
    forward_case(i, handle, desc);
  OK(cudnnDestroyPoolingDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

static void backward_case(int number, cudnnHandle_t handle,
                          cudnnPoolingDescriptor_t desc) {
  case_seed((uint64_t)number + 5000);
  pool_t p;
  int xd[5], yd[5];
  draw(&p, xd, yd, desc);
  cudnnDataType_t type = types[case_range(0, 3)];
  tensor_t x, y, dy, dx;
  tensor_create(&x, type, p.rank + 2, xd, case_range(0, 1) ? 15 : 0);
  for (int64_t i = 0; i < x.count && case_range(0, 2); i++)
    x.value[i] = floor(x.value[i]); /* ties */
  tensor_upload(&x);
  tensor_create(&y, type, p.rank + 2, yd, 0);
  tensor_create(&dy, type, p.rank + 2, yd, 0);
  tensor_create(&dx, type, p.rank + 2, xd, 0);
  double alpha = case_range(0, 1) ? 1 : 0.75, beta = case_range(0, 1) * 0.5;
  scalar_t a = scalar(type, alpha), b = scalar(type, beta), one, zero;
  one = scalar(type, 1);
  zero = scalar(type, 0);
  OK(cudnnPoolingForward(handle, desc, &one, x.desc, x.device, &zero, y.desc,
                         y.device));
  OK(cudnnPoolingBackward(handle, desc, &a, y.desc, y.device, dy.desc,
                          dy.device, x.desc, x.device, &b, dx.desc, dx.device));
  double *want = calloc((size_t)dx.count, sizeof *want);
  double *scale = calloc((size_t)dx.count, sizeof *scale);
  for (int64_t i = 0; i < y.count; i++) {
    int at[8];
    int64_t found[64];
    double divisor;
    tensor_index(&y, i, at);
    int count = under(&p, &x, at, found, &divisor);
    if (is_max(&p)) {
      found[0] = best_of(&p, &x, found, count);
      count = found[0] >= 0;
      divisor = 1;
    }
    for (int j = 0; j < count; j++) {
      want[found[j]] += alpha * dy.value[i] / divisor;
      scale[found[j]] += fabs(dy.value[i]);
    }
  }
  for (int64_t i = 0; i < dx.count; i++) {
    want[i] += beta * dx.value[i];
    scale[i] += fabs(dx.value[i]);
  }
  int64_t wrong = tensor_wrong(&dx, want, scale, 1);
  ck_assert_msg(wrong == -1, "case %d value %ld: %s", number, wrong,
                tensor_text(&dx));
  free(want);
  free(scale);
  tensor_destroy(&x);
  tensor_destroy(&y);
  tensor_destroy(&dy);
  tensor_destroy(&dx);
}

START_TEST(backward_equals_the_loop) {
  cudnnHandle_t handle;
  cudnnPoolingDescriptor_t desc;
  OK(cudnnCreate(&handle));
  OK(cudnnCreatePoolingDescriptor(&desc));
  for (int i = 0; i < 300; i++)
    backward_case(i, handle, desc);
  OK(cudnnDestroyPoolingDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(integers_round_to_nearest) {
  cudnnHandle_t handle;
  cudnnPoolingDescriptor_t desc;
  cudnnTensorDescriptor_t x, y;
  OK(cudnnCreate(&handle));
  OK(cudnnCreatePoolingDescriptor(&desc));
  OK(cudnnCreateTensorDescriptor(&x));
  OK(cudnnCreateTensorDescriptor(&y));
  OK(cudnnSetPooling2dDescriptor(
      desc, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 0, 1, 3, 0, 0, 1, 3));
  OK(cudnnSetTensor4dDescriptor(x, 0, CUDNN_DATA_INT8, 1, 1, 1, 9));
  OK(cudnnSetTensor4dDescriptor(y, 0, CUDNN_DATA_INT8, 1, 1, 1, 3));
  const int8_t in[9] = {1, 1, 3, -1, -1, -3, 127, 127, 127};
  int8_t out[3];
  void *memory;
  OK(cudaMalloc(&memory, 64));
  OK(cudaMemcpy(memory, in, sizeof in, cudaMemcpyHostToDevice));
  const float two = 2, zero = 0;
  OK(cudnnPoolingForward(handle, desc, &two, x, memory, &zero, y,
                         (char *)memory + 32));
  OK(cudaMemcpy(out, (char *)memory + 32, sizeof out, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(out[0], 3);
  ck_assert_int_eq(out[1], -3);
  ck_assert_int_eq(out[2], 127);
  OK(cudaFree(memory));
  OK(cudnnDestroyTensorDescriptor(x));
  OK(cudnnDestroyTensorDescriptor(y));
  OK(cudnnDestroyPoolingDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(bad_calls_return_the_vendors_status) {
  cudnnHandle_t handle;
  cudnnPoolingDescriptor_t desc;
  OK(cudnnCreate(&handle));
  OK(cudnnCreatePoolingDescriptor(&desc));
  OK(cudnnSetPooling2dDescriptor(desc, 0, 0, 2, 2, 0, 0, 2, 2));
  tensor_t x, y, other;
  tensor_create(&x, 0, 4, (int[]){1, 2, 8, 8}, 0);
  tensor_create(&y, 0, 4, (int[]){1, 2, 4, 4}, 0);
  tensor_create(&other, 0, 4, (int[]){1, 2, 4, 5}, 0);
  const float one = 1;
  int host[4];
  IS(cudnnPoolingForward(NULL, desc, &one, x.desc, x.device, &one, y.desc,
                         y.device),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnPoolingForward(handle, desc, &one, x.desc, NULL, &one, y.desc,
                         y.device),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnPoolingForward(handle, desc, &one, x.desc, x.device, &one, other.desc,
                         other.device),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnPoolingForward(handle, desc, &one, x.desc, host, &one, y.desc,
                         y.device),
     CUDNN_STATUS_EXECUTION_FAILED);
  OK(cudnnSetPooling2dDescriptor(desc, 0, 0, 2, 2, 2, 0, 2, 2));
  OK(cudnnSetTensor4dDescriptor(y.desc, 0, 0, 1, 2, 6, 4));
  IS(cudnnPoolingForward(handle, desc, &one, x.desc, x.device, &one, y.desc,
                         y.device),
     CUDNN_STATUS_NOT_SUPPORTED);
  tensor_destroy(&x);
  tensor_destroy(&y);
  tensor_destroy(&other);
  OK(cudnnDestroyPoolingDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn pooling");
  TCase *cases = tcase_create("pooling");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, forward_equals_the_loop);
  tcase_add_test(cases, backward_equals_the_loop);
  tcase_add_test(cases, integers_round_to_nearest);
  tcase_add_test(cases, bad_calls_return_the_vendors_status);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
