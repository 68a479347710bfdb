// SPDX-License-Identifier: Apache-2.0
// Convolution forward through the API on device memory: results, statuses,
// order on streams.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

typedef struct {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x, y, z, bias;
  cudnnFilterDescriptor_t w;
  cudnnConvolutionDescriptor_t conv;
  cudnnActivationDescriptor_t act;
} objects_t;

static void objects_create(objects_t *o) {
  OK(cudnnCreate(&o->handle));
  OK(cudnnCreateTensorDescriptor(&o->x));
  OK(cudnnCreateTensorDescriptor(&o->y));
  OK(cudnnCreateTensorDescriptor(&o->z));
  OK(cudnnCreateTensorDescriptor(&o->bias));
  OK(cudnnCreateFilterDescriptor(&o->w));
  OK(cudnnCreateConvolutionDescriptor(&o->conv));
  OK(cudnnCreateActivationDescriptor(&o->act));
}

static void objects_destroy(objects_t *o) {
  OK(cudnnDestroyTensorDescriptor(o->x));
  OK(cudnnDestroyTensorDescriptor(o->y));
  OK(cudnnDestroyTensorDescriptor(o->z));
  OK(cudnnDestroyTensorDescriptor(o->bias));
  OK(cudnnDestroyFilterDescriptor(o->w));
  OK(cudnnDestroyConvolutionDescriptor(o->conv));
  OK(cudnnDestroyActivationDescriptor(o->act));
  OK(cudnnDestroy(o->handle));
}

/* Four dimensions where depth is 1, else five. */
static void set_tensor(cudnnTensorDescriptor_t t, const host_conv_t *c,
                       int channels, const int64_t extent[3],
                       const int64_t stride[5]) {
  bool flat = c->window[0] == 1 && c->in[0] == 1 && c->pad[0] == 0;
  int dim[5] = {c->images, channels},
      step[5] = {(int)stride[0], (int)stride[1]};
  for (int i = flat; i < 3; i++) {
    dim[2 + i - flat] = (int)extent[i];
    step[2 + i - flat] = (int)stride[2 + i];
  }
  OK(cudnnSetTensorNdDescriptor(
      t, c->is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, 5 - flat, dim,
      step));
}

/* The descriptors of a case, whose w is made dense first. */
static void describe(objects_t *o, host_conv_t *c) {
  bool flat = c->window[0] == 1 && c->in[0] == 1 && c->pad[0] == 0;
  bool last = case_range(0, 1);
  cudnnDataType_t type = c->is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  set_tensor(o->x, c, c->groups * c->c, c->in, c->x_stride);
  set_tensor(o->y, c, c->groups * c->k, c->out, c->y_stride);
  set_tensor(o->z, c, c->groups * c->k, c->out, c->old_stride);
  int ones[5] = {1, c->groups * c->k, 1, 1, 1}, step[5] = {ones[1], 1, 1, 1, 1};
  OK(cudnnSetTensorNdDescriptor(o->bias, type, 5 - flat, ones, step));
  int w[5] = {c->groups * c->k, c->c};
  int64_t at = last ? c->c : 1;
  for (int i = 2; i >= 0; i--) {
    c->w_stride[2 + i] = at;
    at *= c->window[i];
    if (i >= flat)
      w[2 + i - flat] = c->window[i];
  }
  c->w_stride[1] = last ? 1 : at;
  c->w_stride[0] = last ? at : at * c->c;
  OK(cudnnSetFilterNdDescriptor(
      o->w, type, last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, 5 - flat, w));
  OK(cudnnSetConvolutionNdDescriptor(
      o->conv, 3 - flat, c->pad + flat, c->stride + flat, c->dilation + flat,
      c->flip ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION, type));
  OK(cudnnSetConvolutionGroupCount(o->conv, c->groups));
}

static void *upload(const void *host, size_t bytes) {
  void *device;
  OK(cudaMalloc(&device, bytes));
  OK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return device;
}

static void check(objects_t *o, int number) {
  host_conv_t c;
  case_seed((uint64_t)number + 300000);
  case_create(&c, case_range(0, 3) == 0, 6, 9);
  bool fused = c.bias != NULL, alias = !fused || case_range(0, 1);
  if (!fused)
    c.relu = false;
  if (alias) {
    if (c.gamma != 0)
      case_load_old(&c); /* otherwise y is NaN and must not be read */
    memcpy(c.old_stride, c.y_stride, sizeof c.old_stride);
  }
  describe(o, &c);
  size_t x_bytes, w_bytes, y_bytes, z_bytes;
  OK(cudnnGetTensorSizeInBytes(o->x, &x_bytes));
  OK(cudnnGetTensorSizeInBytes(o->y, &y_bytes));
  OK(cudnnGetTensorSizeInBytes(o->z, &z_bytes));
  OK(cudnnGetFilterSizeInBytes(o->w, &w_bytes));
  size_t bias_bytes =
      (size_t)(c.groups * c.k) * (c.is_double ? sizeof(double) : sizeof(float));
  void *x = upload(c.x, x_bytes), *w = upload(c.w, w_bytes);
  void *y = upload(c.y, y_bytes);
  void *z = alias ? y : upload(c.old, z_bytes);
  void *bias = fused ? upload(c.bias, bias_bytes) : NULL;
  float alpha_f = (float)c.alpha, gamma_f = (float)c.gamma;
  if (!c.is_double) {
    c.alpha = alpha_f;
    c.gamma = gamma_f;
  }
  const void *alpha = c.is_double ? (const void *)&c.alpha : &alpha_f;
  const void *gamma = c.is_double ? (const void *)&c.gamma : &gamma_f;
  cudnnConvolutionFwdAlgo_t algo =
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  size_t workspace = 1;
  OK(cudnnGetConvolutionForwardWorkspaceSize(o->handle, o->x, o->w, o->conv,
                                             o->y, algo, &workspace));
  if (fused) {
    OK(cudnnSetActivationDescriptor(
        o->act, c.relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
        CUDNN_NOT_PROPAGATE_NAN, 0));
    OK(cudnnConvolutionBiasActivationForward(
        o->handle, alpha, o->x, x, o->w, w, o->conv, algo, NULL, workspace,
        gamma, o->z, z, o->bias, bias, o->act, o->y, y));
  } else {
    OK(cudnnConvolutionForward(o->handle, alpha, o->x, x, o->w, w, o->conv,
                               algo, NULL, workspace, gamma, o->y, y));
  }
  OK(cudaMemcpy(c.y, y, y_bytes, cudaMemcpyDeviceToHost));
  int64_t wrong = case_wrong(&c);
  ck_assert_msg(wrong < 0, "case %d element %ld fused %d alias %d: %s", number,
                wrong, fused, alias, case_text(&c));
  OK(cudaFree(x));
  OK(cudaFree(w));
  OK(cudaFree(y));
  if (!alias)
    OK(cudaFree(z));
  if (bias)
    OK(cudaFree(bias));
  case_destroy(&c);
}

START_TEST(plain_and_fused_equal_the_loop) {
  objects_t o;
  objects_create(&o);
  for (int i = 0; i < random_cases(800); i++)
    check(&o, i);
  objects_destroy(&o);
}
END_TEST

/* A 1-D signal: N C L 1 and N C 1 L give the same result. */
START_TEST(one_dimension_may_be_either_of_the_last_two) {
  objects_t o;
  objects_create(&o);
  float x[64], w[5] = {1, -2, 3, .5f, 4}, y[2][60], one = 1, zero = 0;
  for (int i = 0; i < 64; i++)
    x[i] = (float)(i * i % 17);
  void *dx = upload(x, sizeof x), *dw = upload(w, sizeof w);
  void *dy = upload(y[0], sizeof y[0]);
  for (int way = 0; way < 2; way++) {
    int h = way ? 64 : 1, k = way ? 5 : 1, out = way ? 60 : 1;
    OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1, 1, h, 64 / h));
    OK(cudnnSetFilter4dDescriptor(o.w, 0, 0, 1, 1, k, 5 / k));
    OK(cudnnSetTensor4dDescriptor(o.y, 0, 0, 1, 1, out, 60 / out));
    OK(cudnnSetConvolution2dDescriptor(o.conv, 0, 0, 1, 1, 1, 1,
                                       CUDNN_CROSS_CORRELATION, 0));
    OK(cudnnConvolutionForward(o.handle, &one, o.x, dx, o.w, dw, o.conv, 0,
                               NULL, 0, &zero, o.y, dy));
    OK(cudaMemcpy(y[way], dy, sizeof y[way], cudaMemcpyDeviceToHost));
  }
  ck_assert(memcmp(y[0], y[1], sizeof y[0]) == 0);
  ck_assert(y[0][0] == x[0] - 2 * x[1] + 3 * x[2] + .5f * x[3] + 4 * x[4]);
  objects_destroy(&o);
}
END_TEST

START_TEST(bad_calls_return_the_vendors_status) {
  objects_t o;
  objects_create(&o);
  float one = 1, zero = 0, host[64] = {0};
  void *x = upload(host, sizeof host), *w = upload(host, 9 * sizeof *host);
  void *y = upload(host, sizeof host);
  OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1, 1, 8, 8));
  OK(cudnnSetTensor4dDescriptor(o.y, 0, 0, 1, 1, 8, 8));
  OK(cudnnSetFilter4dDescriptor(o.w, 0, 0, 1, 1, 3, 3));
  OK(cudnnSetConvolution2dDescriptor(o.conv, 1, 1, 1, 1, 1, 1, 0, 0));
#define FORWARD(handle, xd, xp, wd, wp, algo, yd, yp)                          \
  cudnnConvolutionForward(handle, &one, xd, xp, wd, wp, o.conv, algo, NULL, 0, \
                          &zero, yd, yp)
  OK(FORWARD(o.handle, o.x, x, o.w, w, 0, o.y, y));
  IS(FORWARD(NULL, o.x, x, o.w, w, 0, o.y, y), CUDNN_STATUS_BAD_PARAM);
  IS(FORWARD(o.handle, NULL, x, o.w, w, 0, o.y, y), CUDNN_STATUS_BAD_PARAM);
  IS(FORWARD(o.handle, o.x, NULL, o.w, w, 0, o.y, y), CUDNN_STATUS_BAD_PARAM);
  IS(FORWARD(o.handle, o.x, x, o.w, w, 99, o.y, y), CUDNN_STATUS_BAD_PARAM);
  IS(FORWARD(o.handle, o.x, x, o.w, w, 3, o.y, y), CUDNN_STATUS_NOT_SUPPORTED);
  /* not device memory, not all of it, and no longer */
  IS(FORWARD(o.handle, o.x, host, o.w, w, 0, o.y, y),
     CUDNN_STATUS_EXECUTION_FAILED);
  OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1 << 20, 1, 8, 8));
  OK(cudnnSetTensor4dDescriptor(o.y, 0, 0, 1 << 20, 1, 8, 8));
  IS(FORWARD(o.handle, o.x, x, o.w, w, 0, o.y, y),
     CUDNN_STATUS_EXECUTION_FAILED);
  OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1, 1, 8, 8));
  size_t bytes;
  OK(cudnnSetTensor4dDescriptor(o.y, 0, 0, 1, 1, 7, 8));
  IS(FORWARD(o.handle, o.x, x, o.w, w, 0, o.y, y), CUDNN_STATUS_NOT_SUPPORTED);
  IS(cudnnGetConvolutionForwardWorkspaceSize(o.handle, o.x, o.w, o.conv, o.y, 0,
                                             &bytes),
     CUDNN_STATUS_BAD_PARAM);
  OK(cudnnSetTensor4dDescriptor(o.y, 0, 0, 1, 1, 8, 8));
  OK(cudnnSetTensor4dDescriptor(o.x, 0, CUDNN_DATA_HALF, 1, 1, 8, 8));
  IS(FORWARD(o.handle, o.x, x, o.w, w, 0, o.y, y), CUDNN_STATUS_NOT_SUPPORTED);
  OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1, 2, 8, 8));
  IS(FORWARD(o.handle, o.x, x, o.w, w, 0, o.y, y), CUDNN_STATUS_BAD_PARAM);
  char text[256] = "";
  cudnnGetLastErrorString(text, sizeof text);
  ck_assert_msg(strstr(text, "BAD_PARAM") != NULL, "%s", text);
  OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1, 1, 8, 8));
  OK(cudaFree(x));
  IS(FORWARD(o.handle, o.x, x, o.w, w, 0, o.y, y),
     CUDNN_STATUS_EXECUTION_FAILED);
  IS(cudnnMakeFusedOpsPlan(o.handle, NULL, NULL, NULL),
     CUDNN_STATUS_NOT_SUPPORTED);
  objects_destroy(&o);
}
END_TEST

START_TEST(algorithms_are_listed_working_ones_first) {
  objects_t o;
  objects_create(&o);
  OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1, 4, 16, 16));
  OK(cudnnSetTensor4dDescriptor(o.y, 0, 0, 1, 6, 8, 8));
  OK(cudnnSetFilter4dDescriptor(o.w, 0, 0, 6, 4, 3, 3));
  OK(cudnnSetConvolution2dDescriptor(o.conv, 1, 1, 2, 2, 1, 1, 0, 0));
  int count = 0, returned = 0;
  OK(cudnnGetConvolutionForwardAlgorithmMaxCount(o.handle, &count));
  cudnnConvolutionFwdAlgoPerf_t perf[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
  ck_assert_int_le(count, CUDNN_CONVOLUTION_FWD_ALGO_COUNT);
  for (int way = 0; way < 2; way++) {
    if (way)
      OK(cudnnFindConvolutionForwardAlgorithm(o.handle, o.x, o.w, o.conv, o.y,
                                              count, &returned, perf));
    else
      OK(cudnnGetConvolutionForwardAlgorithm_v7(o.handle, o.x, o.w, o.conv, o.y,
                                                count, &returned, perf));
    ck_assert_int_eq(returned, count);
    OK(perf[0].status);
    bool works = true;
    for (int i = 0; i < returned; i++) {
      size_t bytes;
      ck_assert(works || perf[i].status != CUDNN_STATUS_SUCCESS);
      works = perf[i].status == CUDNN_STATUS_SUCCESS;
      IS(cudnnGetConvolutionForwardWorkspaceSize(o.handle, o.x, o.w, o.conv,
                                                 o.y, perf[i].algo, &bytes),
         perf[i].status);
    }
  }
  OK(cudnnGetConvolutionForwardAlgorithm_v7(o.handle, o.x, o.w, o.conv, o.y, 1,
                                            &returned, perf));
  ck_assert_int_eq(returned, 1);
  objects_destroy(&o);
}
END_TEST

/* Sets, scales, convolves and copies x without waiting; a second stream
 * continues after an event. */
START_TEST(work_runs_in_the_order_of_streams_and_events) {
  objects_t o;
  objects_create(&o);
  cudaStream_t one_stream, other;
  cudaEvent_t ready;
  OK(cudaStreamCreateWithFlags(&one_stream, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaEventCreate(&ready));
  enum { SIDE = 96, COUNT = SIDE * SIDE };
  static float host[8 * COUNT];
  float one = 1, zero = 0, weights[8 * 8 * 9];
  for (int i = 0; i < 8 * 8 * 9; i++)
    weights[i] = 1;
  void *w = upload(weights, sizeof weights);
  void *x = upload(host, sizeof host), *y = upload(host, sizeof host);
  OK(cudnnSetTensor4dDescriptor(o.x, 0, 0, 1, 8, SIDE, SIDE));
  OK(cudnnSetFilter4dDescriptor(o.w, 0, 0, 8, 8, 3, 3));
  OK(cudnnSetConvolution2dDescriptor(o.conv, 1, 1, 1, 1, 1, 1, 0, 0));
  OK(cudnnSetStream(o.handle, one_stream));
  for (int round = 1; round <= 20; round++) {
    float value = (float)round, two = 2;
    OK(cudnnSetStream(o.handle, one_stream));
    OK(cudnnSetTensor(o.handle, o.x, x, &value));
    OK(cudnnScaleTensor(o.handle, o.x, x, &two));
    OK(cudnnConvolutionForward(o.handle, &one, o.x, x, o.w, w, o.conv, 0, NULL,
                               0, &zero, o.x, y));
    OK(cudaEventRecord(ready, one_stream));
    OK(cudaStreamWaitEvent(other, ready, 0));
    OK(cudnnSetStream(o.handle, other));
    value = -1; /* alpha and values are read at the call */
    OK(cudnnAddTensor(o.handle, &one, o.x, x, &one, o.x, y));
    OK(cudaMemcpyAsync(host, y, sizeof host, cudaMemcpyDeviceToHost, other));
    OK(cudaStreamSynchronize(other));
    for (int c = 0; c < 8; c++) {
      ck_assert(host[c * COUNT + SIDE + 1] == (float)(round * 2 * (72 + 1)));
      ck_assert(host[c * COUNT] == (float)(round * 2 * (32 + 1)));
    }
    OK(cudaStreamSynchronize(one_stream));
  }
  OK(cudaEventDestroy(ready));
  OK(cudaStreamDestroy(one_stream));
  OK(cudaStreamDestroy(other));
  OK(cudnnSetStream(o.handle, NULL));
  objects_destroy(&o);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn forward");
  TCase *cases = tcase_create("forward");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, plain_and_fused_equal_the_loop);
  tcase_add_test(cases, one_dimension_may_be_either_of_the_last_two);
  tcase_add_test(cases, bad_calls_return_the_vendors_status);
  tcase_add_test(cases, algorithms_are_listed_working_ones_first);
  tcase_add_test(cases, work_runs_in_the_order_of_streams_and_events);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
