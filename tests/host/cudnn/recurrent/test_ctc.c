// SPDX-License-Identifier: Apache-2.0
// CTC loss through the API against the sum over all paths.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

enum { BATCH = 3, MOST = 4 };

static cudnnHandle_t handle;

typedef struct {
  int times, alphabet, softmax, skips;
  int labels[BATCH][MOST], label_length[BATCH], input_length[BATCH];
  int at, only; /* paths emit symbol `only` at time `at`; -1: any */
  tensor_t x, dx;
} ctc_t;

/* Computes the probabilities from the network's last layer. */
static void probabilities(const ctc_t *c, const double *x, int t, int n,
                          double *p) {
  double sum = 0;
  for (int k = 0; k < c->alphabet; k++) {
    p[k] = x[(t * BATCH + n) * c->alphabet + k];
    sum += exp(p[k]);
  }
  for (int k = 0; k < c->alphabet; k++)
    p[k] = exp(p[k]) / sum;
}

/* Returns the sum of the probabilities of the paths from t on that spell the
 * rest. */
static double paths(const ctc_t *c, const double *x, int n, int t, int spelt,
                    int last) {
  if (t == c->input_length[n])
    return spelt == c->label_length[n];
  double p[8], sum = 0;
  probabilities(c, x, t, n, p);
  for (int k = 0; k < c->alphabet; k++) {
    int next = spelt;
    if (t == c->at && k != c->only)
      continue;
    if (k && k != last) {
      if (spelt == c->label_length[n] || c->labels[n][spelt] != k)
        continue;
      next++;
    }
    sum += p[k] * paths(c, x, n, t + 1, next, k);
  }
  return sum;
}

static double slope(const ctc_t *c, double *x, int n, int at) {
  double keep = x[at];
  x[at] = keep + 1e-5;
  double high = -log(paths(c, x, n, 0, 0, 0));
  x[at] = keep - 1e-5;
  double low = -log(paths(c, x, n, 0, 0, 0));
  x[at] = keep;
  return (high - low) / 2e-5;
}

/* The derivative with respect to the probability; p if no path contains it. */
static double share(const ctc_t *c, const double *x, int n, int t, int k) {
  ctc_t some = *c;
  some.at = t;
  some.only = k;
  double p[8], sum = paths(&some, x, n, 0, 0, 0);
  probabilities(c, x, t, n, p);
  return sum > 0 ? -sum / paths(c, x, n, 0, 0, 0) / p[k] : p[k];
}

static void ctc_case(int number) {
  ctc_t c;
  case_seed((uint64_t)number);
  memset(&c, 0, sizeof c);
  c.at = -1;
  c.times = case_range(1, 5);
  c.alphabet = case_range(2, 4);
  c.softmax = case_range(0, 1);
  c.skips = case_range(0, 1);
  bool on_device = case_range(0, 1), is_double = case_range(0, 1);
  cudnnDataType_t type = is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  int flat[BATCH * MOST], count = 0;
  for (int n = 0; n < BATCH; n++) {
    c.label_length[n] = case_range(0, MOST);
    c.input_length[n] = case_range(1, c.times);
    for (int i = 0; i < c.label_length[n]; i++)
      flat[count++] = c.labels[n][i] = case_range(1, c.alphabet - 1);
  }
  int dim[] = {c.times, BATCH, c.alphabet};
  tensor_create(&c.x, type, 3, dim, 0);
  tensor_create(&c.dx, type, 3, dim, 0);
  double *x = malloc((size_t)c.x.count * sizeof *x);
  memcpy(x, c.x.value, (size_t)c.x.count * sizeof *x);
  for (int t = 0; t < c.times && !c.softmax; t++)
    for (int n = 0; n < BATCH; n++)
      probabilities(&c, x, t, n, c.x.value + (t * BATCH + n) * c.alphabet);
  tensor_upload(&c.x);
  cudnnCTCLossDescriptor_t loss;
  OK(cudnnCreateCTCLossDescriptor(&loss));
  OK(cudnnSetCTCLossDescriptor_v9(loss, type,
                                  c.softmax ? CUDNN_LOSS_NORMALIZATION_SOFTMAX
                                            : CUDNN_LOSS_NORMALIZATION_NONE,
                                  c.skips ? CUDNN_CTC_SKIP_OOB_GRADIENTS
                                          : CUDNN_CTC_ZERO_OOB_GRADIENTS,
                                  MOST));
  size_t unit = is_double ? 8 : 4, bytes = 77;
  char *costs, have[BATCH * 8];
  int *device;
  OK(cudaMalloc((void **)&costs, sizeof have));
  OK(cudaMalloc((void **)&device, (size_t)(count + 2 * BATCH) * sizeof(int)));
  OK(cudaMemcpy(device, c.label_length, sizeof c.label_length,
                cudaMemcpyHostToDevice));
  OK(cudaMemcpy(device + BATCH, c.input_length, sizeof c.input_length,
                cudaMemcpyHostToDevice));
  if (count)
    OK(cudaMemcpy(device + 2 * BATCH, flat, (size_t)count * sizeof(int),
                  cudaMemcpyHostToDevice));
  if (on_device) {
    OK(cudnnGetCTCLossWorkspaceSize_v8(handle, 0, loss, c.x.desc, c.dx.desc,
                                       &bytes));
    OK(cudnnCTCLoss_v8(handle, 0, loss, c.x.desc, c.x.device,
                       device + 2 * BATCH, device, device + BATCH, costs,
                       c.dx.desc, c.dx.device, bytes, NULL));
  } else {
    OK(cudnnGetCTCLossWorkspaceSize(handle, c.x.desc, c.dx.desc, flat,
                                    c.label_length, c.input_length, 1, loss,
                                    &bytes));
    OK(cudnnCTCLoss(handle, c.x.desc, c.x.device, flat, c.label_length,
                    c.input_length, costs, c.dx.desc, c.dx.device, 1, loss,
                    NULL, bytes));
  }
  OK(cudaMemcpy(have, costs, sizeof have, cudaMemcpyDeviceToHost));
  double *want = malloc((size_t)c.x.count * sizeof *want);
  double *size = malloc((size_t)c.x.count * sizeof *size);
  memcpy(want, c.dx.value, (size_t)c.x.count * sizeof *want);
  double tolerance = is_double ? 1e-9 : 1e-5;
  int longest = 0;
  for (int n = 0; n < BATCH; n++)
    if (c.input_length[n] > longest)
      longest = c.input_length[n];
  for (int n = 0; n < BATCH; n++) {
    double cost = -log(paths(&c, x, n, 0, 0, 0));
    double is = is_double ? ((double *)have)[n]
                          : (double)*(float *)(have + (size_t)n * unit);
    ck_assert_msg(isinf(cost) ? is == 0
                              : fabs(is - cost) <= tolerance * (1 + cost),
                  "case %d: cost %g, not %g", number, is, cost);
    for (int t = 0; t < c.times; t++)
      for (int k = 0; k < c.alphabet; k++) {
        int at = (t * BATCH + n) * c.alphabet + k;
        size[at] = is_double ? 1e7 : 8; /* differences are less exact */
        if (isinf(cost)) {
          want[at] = c.skips || t >= longest ? want[at] : 0;
          continue;
        }
        if (t >= c.input_length[n])
          continue;
        want[at] = c.softmax ? slope(&c, x, n, at) : share(&c, x, n, t, k);
        size[at] *= 1 + fabs(want[at]);
      }
  }
  int64_t wrong = tensor_wrong(&c.dx, want, size, 8);
  ck_assert_msg(wrong == -1, "case %d: gradient %ld", number, wrong);
  OK(cudaFree(costs));
  OK(cudaFree(device));
  OK(cudnnDestroyCTCLossDescriptor(loss));
  free(want);
  free(size);
  free(x);
  tensor_destroy(&c.x);
  tensor_destroy(&c.dx);
}

START_TEST(loss_and_gradient_are_those_of_all_paths) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 80; i++)
    ctc_case(i);
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(wrong_arguments_are_refused) {
  OK(cudnnCreate(&handle));
  tensor_t x;
  case_seed(1);
  tensor_create(&x, CUDNN_DATA_FLOAT, 3, (int[]){3, 1, 4}, 0);
  cudnnCTCLossDescriptor_t loss;
  OK(cudnnCreateCTCLossDescriptor(&loss));
  OK(cudnnSetCTCLossDescriptor(loss, CUDNN_DATA_FLOAT));
  float *cost;
  OK(cudaMalloc((void **)&cost, sizeof *cost));
#define LOSS(label, input, probs)                                              \
  cudnnCTCLoss(handle, x.desc, probs, (int[]){label}, (int[]){1},              \
               (int[]){input}, cost, NULL, NULL, 0, loss, NULL, 0)
  OK(LOSS(3, 3, x.device));
  IS(LOSS(4, 3, x.device), CUDNN_STATUS_BAD_PARAM);
  IS(LOSS(0, 3, x.device), CUDNN_STATUS_BAD_PARAM);
  IS(LOSS(1, 4, x.device), CUDNN_STATUS_BAD_PARAM);
  IS(LOSS(1, 3, NULL), CUDNN_STATUS_BAD_PARAM);
  IS(LOSS(1, 3, x.value), CUDNN_STATUS_EXECUTION_FAILED);
  int host[3] = {1, 1, 1};
  IS(cudnnCTCLoss_v8(handle, 0, loss, x.desc, x.device, host, host, host, cost,
                     NULL, NULL, 0, NULL),
     CUDNN_STATUS_EXECUTION_FAILED);
  IS(cudnnCTCLoss(handle, x.desc, x.device, host, host, host, cost, NULL,
                  x.device, 0, loss, NULL, 0),
     CUDNN_STATUS_BAD_PARAM);
  OK(cudaDeviceSynchronize());
  OK(cudaFree(cost));
  OK(cudnnDestroyCTCLossDescriptor(loss));
  tensor_destroy(&x);
  OK(cudnnDestroy(handle));
}
END_TEST

/* Impossible symbols or lengths in device memory are found when work runs. */
START_TEST(impossible_labels_on_the_device_cost_nan) {
  OK(cudnnCreate(&handle));
  tensor_t x;
  case_seed(1);
  tensor_create(&x, CUDNN_DATA_FLOAT, 3, (int[]){3, 1, 4}, 0);
  cudnnCTCLossDescriptor_t loss;
  OK(cudnnCreateCTCLossDescriptor(&loss));
  OK(cudnnSetCTCLossDescriptor(loss, CUDNN_DATA_FLOAT));
  const int bad[][3] = {{9, 1, 3}, {-1, 1, 3}, {1, 1, 7}, {1, -1, 3}};
  for (int i = 0; i < 4; i++) {
    int *device;
    float *cost, is = 0;
    OK(cudaMalloc((void **)&device, sizeof bad[i]));
    OK(cudaMalloc((void **)&cost, sizeof is));
    OK(cudaMemcpy(device, bad[i], sizeof bad[i], cudaMemcpyHostToDevice));
    OK(cudnnCTCLoss_v8(handle, 0, loss, x.desc, x.device, device, device + 1,
                       device + 2, cost, NULL, NULL, 0, NULL));
    OK(cudaMemcpy(&is, cost, sizeof is, cudaMemcpyDeviceToHost));
    ck_assert_msg(isnan(is), "%d: %g", i, (double)is);
    OK(cudaFree(device));
    OK(cudaFree(cost));
  }
  OK(cudnnDestroyCTCLossDescriptor(loss));
  tensor_destroy(&x);
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn ctc");
  TCase *cases = tcase_create("ctc");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, loss_and_gradient_are_those_of_all_paths);
  tcase_add_test(cases, wrong_arguments_are_refused);
  tcase_add_test(cases, impossible_labels_on_the_device_cost_nan);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
