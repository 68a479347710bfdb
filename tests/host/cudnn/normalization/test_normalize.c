// SPDX-License-Identifier: Apache-2.0
// Normalisations with their own descriptors, whose bits equal those of batch
// normalisation; and divisive normalisation against its definition.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

#define IS(call, the_status) ck_assert_int_eq((int)(call), (int)(the_status))

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                        CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
static cudnnHandle_t handle;

/* x z y dy dx dz, then scale bias mean variance saved_mean saved_invstd dscale
 * dbias. */
enum { X, Z, Y, DY, DX, DZ, SCALE, BIAS, MEAN, VAR, SMEAN, SVAR, DS, DB, ALL };

static void create(tensor_t t[ALL], int seed, int *mode, int *ops) {
  case_seed((uint64_t)seed);
  int rank = case_range(4, 5), dim[5], params[5];
  cudnnDataType_t type = types[case_range(0, 3)];
  *mode = case_range(0, 1);
  *ops = case_range(0, 2);
  for (int i = 0; i < rank; i++) {
    dim[i] = case_range(1, 4);
    params[i] = i == 1 || (i > 1 && *mode == 0) ? dim[i] : 1;
  }
  cudnnDataType_t few = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
  for (int i = 0; i < ALL; i++)
    tensor_create(&t[i], i < SCALE ? type : few, rank, i < SCALE ? dim : params,
                  0);
  for (int i = BIAS; i < ALL; i++) {
    tensor_destroy(&t[i]); /* one layout for all: batch normalisation's */
    tensor_create_like(&t[i], &t[SCALE]);
  }
  for (int64_t i = 0; i < t[VAR].count; i++)
    t[VAR].value[i] = fabs(t[VAR].value[i]);
  tensor_upload(&t[VAR]);
}

static bool same(const tensor_t *a, const tensor_t *b) {
  void *x = malloc(a->bytes), *y = malloc(b->bytes);
  OK(cudaMemcpy(x, a->device, a->bytes, cudaMemcpyDeviceToHost));
  OK(cudaMemcpy(y, b->device, b->bytes, cudaMemcpyDeviceToHost));
  bool equal = a->bytes == b->bytes && memcmp(x, y, a->bytes) == 0;
  free(x);
  free(y);
  return equal;
}

static void *at(tensor_t *t) {
  return t->device;
}

static void train_both(tensor_t *a, tensor_t *b, int mode, int ops,
                       cudnnActivationDescriptor_t relu) {
  scalar_t one = scalar(a[X].type, 0.75), half = scalar(a[X].type, 0.5);
  OK(cudnnBatchNormalizationForwardTrainingEx(
      handle, mode, ops, &one, &half, a[X].desc, at(&a[X]), a[Z].desc,
      at(&a[Z]), a[Y].desc, at(&a[Y]), a[SCALE].desc, at(&a[SCALE]),
      at(&a[BIAS]), 0.25, at(&a[MEAN]), at(&a[VAR]), 1e-3, at(&a[SMEAN]),
      at(&a[SVAR]), relu, NULL, 0, NULL, 0));
  OK(cudnnNormalizationForwardTraining(
      handle, mode, ops, 0, &one, &half, b[X].desc, at(&b[X]), b[SCALE].desc,
      at(&b[SCALE]), at(&b[BIAS]), 0.25, b[MEAN].desc, at(&b[MEAN]),
      at(&b[VAR]), 1e-3, at(&b[SMEAN]), at(&b[SVAR]), relu, b[Z].desc,
      at(&b[Z]), b[Y].desc, at(&b[Y]), NULL, 0, NULL, 0, 1));
  OK(cudnnBatchNormalizationBackwardEx(
      handle, mode, ops, &one, &half, &half, &one, a[X].desc, at(&a[X]),
      a[Y].desc, at(&a[Y]), a[DY].desc, at(&a[DY]), a[DZ].desc, at(&a[DZ]),
      a[DX].desc, at(&a[DX]), a[SCALE].desc, at(&a[SCALE]), at(&a[BIAS]),
      at(&a[DS]), at(&a[DB]), 1e-3, at(&a[SMEAN]), at(&a[SVAR]), relu, NULL, 0,
      NULL, 0));
  OK(cudnnNormalizationBackward(
      handle, mode, ops, 1, &one, &half, &half, &one, b[X].desc, at(&b[X]),
      b[Y].desc, at(&b[Y]), b[DY].desc, at(&b[DY]), b[DZ].desc, at(&b[DZ]),
      b[DX].desc, at(&b[DX]), b[SCALE].desc, at(&b[SCALE]), at(&b[BIAS]),
      at(&b[DS]), at(&b[DB]), 1e-3, b[SMEAN].desc, at(&b[SMEAN]), at(&b[SVAR]),
      relu, NULL, 0, NULL, 0, 1));
}

START_TEST(normalisations_are_batch_normalisation) {
  cudnnActivationDescriptor_t relu;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateActivationDescriptor(&relu));
  OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, 0, 0));
  for (int i = 0; i < 40; i++) {
    tensor_t a[ALL], b[ALL];
    int mode, ops;
    size_t bytes = 77;
    create(a, i, &mode, &ops);
    create(b, i, &mode, &ops);
    OK(cudnnGetNormalizationForwardTrainingWorkspaceSize(
        handle, mode, ops, 0, b[X].desc, b[Z].desc, b[Y].desc, b[SCALE].desc,
        relu, b[MEAN].desc, &bytes, 1));
    OK(cudnnGetNormalizationBackwardWorkspaceSize(
        handle, mode, ops, 0, b[X].desc, b[Y].desc, b[DY].desc, b[DZ].desc,
        b[DX].desc, b[SCALE].desc, relu, b[MEAN].desc, &bytes, 1));
    OK(cudnnGetNormalizationTrainingReserveSpaceSize(handle, mode, ops, 0, relu,
                                                     b[X].desc, &bytes, 1));
    train_both(a, b, mode, ops, relu);
    for (int k = 0; k < ALL; k++)
      ck_assert_msg(same(&a[k], &b[k]), "case %d tensor %d", i, k);
    scalar_t one = scalar(a[X].type, 1), zero = scalar(a[X].type, 0);
    OK(cudnnBatchNormalizationForwardInference(
        handle, mode, &one, &zero, a[X].desc, at(&a[X]), a[Y].desc, at(&a[Y]),
        a[SCALE].desc, at(&a[SCALE]), at(&a[BIAS]), at(&a[MEAN]), at(&a[VAR]),
        1e-3));
#define INFER(ops, groups)                                                     \
  cudnnNormalizationForwardInference(                                          \
      handle, mode, ops, 0, &one, &zero, b[X].desc, at(&b[X]), b[SCALE].desc,  \
      at(&b[SCALE]), at(&b[BIAS]), b[MEAN].desc, at(&b[MEAN]), at(&b[VAR]),    \
      NULL, NULL, NULL, b[Y].desc, at(&b[Y]), 1e-3, groups)
    OK(INFER(0, 1));
    ck_assert(same(&a[Y], &b[Y]));
    IS(INFER(1, 1), CUDNN_STATUS_NOT_SUPPORTED);
    IS(INFER(0, 2), CUDNN_STATUS_NOT_SUPPORTED);
    IS(INFER(3, 1), CUDNN_STATUS_BAD_PARAM);
    for (int k = 0; k < ALL; k++) {
      tensor_destroy(&a[k]);
      tensor_destroy(&b[k]);
    }
  }
  OK(cudnnDestroyActivationDescriptor(relu));
  OK(cudnnDestroy(handle));
}
END_TEST

/* Whether j is among the n x n (x n) neighbours of i, in the same channel. */
static bool near(const tensor_t *x, int n, int64_t i, int64_t j) {
  int a[8], b[8];
  tensor_index(x, i, a);
  tensor_index(x, j, b);
  for (int d = 0; d < x->rank; d++) {
    int apart = b[d] - a[d], before = (n - 1) / 2;
    if (d < 2 ? apart != 0 : apart < -before || apart > n - 1 - before)
      return false;
  }
  return true;
}

static void divisive_case(int number, cudnnLRNDescriptor_t lrn) {
  case_seed((uint64_t)number + 5000);
  int rank = case_range(4, 5), dim[5], n = case_range(1, 5);
  for (int i = 0; i < rank; i++)
    dim[i] = case_range(1, i < 2 ? 2 : 5);
  cudnnDataType_t type = types[case_range(0, 3)];
  double la = 1.5, lb = 0.75, lk = 2, alpha = 0.75, beta = 0.5;
  OK(cudnnSetLRNDescriptor(lrn, (unsigned)n, la, lb, lk));
  tensor_t x, dy, y, dx, m, dm;
  tensor_create(&x, type, rank, dim, 0);
  tensor_t *const like[] = {&dy, &y, &dx, &m, &dm};
  for (int i = 0; i < 5; i++)
    tensor_create_like(like[i], &x);
  bool has_means = case_range(0, 2) > 0;
  for (int64_t i = 0; i < m.count && !has_means; i++)
    m.value[i] = 0;
  scalar_t a = scalar(type, alpha), b = scalar(type, beta);
  const void *means = has_means ? m.device : NULL;
  OK(cudnnDivisiveNormalizationForward(handle, lrn, 0, &a, x.desc, x.device,
                                       means, x.device, x.device, &b, y.desc,
                                       y.device));
  OK(cudnnDivisiveNormalizationBackward(
      handle, lrn, 0, &a, x.desc, x.device, means, dy.device, x.device,
      x.device, &b, dx.desc, dx.device, has_means ? dm.device : NULL));
  double weight = la / pow(n, rank - 2);
  size_t bytes = (size_t)x.count * sizeof(double);
  double *s = malloc(bytes), *want = malloc(bytes), *grad = malloc(bytes);
  double *size = malloc(bytes), *grad_m = malloc(bytes);
  for (int64_t i = 0; i < x.count; i++) {
    s[i] = lk;
    for (int64_t j = 0; j < x.count; j++)
      if (near(&x, n, i, j))
        s[i] += weight * pow(x.value[j] - m.value[i], 2);
    want[i] = alpha * x.value[i] * pow(s[i], -lb) + beta * y.value[i];
    size[i] = 16; /* sums of some terms up to 2 */
  }
  for (int64_t i = 0; i < x.count; i++) {
    double sum = dy.value[i] * pow(s[i], -lb), sum_m = 0;
    for (int64_t j = 0; j < x.count; j++) {
      if (near(&x, n, j, i))
        sum -= 2 * weight * lb * dy.value[j] * x.value[j] * pow(s[j], -lb - 1) *
               (x.value[i] - m.value[j]);
      if (near(&x, n, i, j))
        sum_m += 2 * weight * lb * dy.value[i] * x.value[i] *
                 pow(s[i], -lb - 1) * (x.value[j] - m.value[i]);
    }
    grad[i] = alpha * sum + beta * dx.value[i];
    grad_m[i] = alpha * sum_m + beta * dm.value[i];
  }
  int64_t wrong = tensor_wrong(&y, want, size, 1);
  ck_assert_msg(wrong == -1, "case %d value %ld", number, wrong);
  wrong = tensor_wrong(&dx, grad, size, 1);
  ck_assert_msg(wrong == -1, "case %d gradient %ld", number, wrong);
  if (has_means)
    wrong = tensor_wrong(&dm, grad_m, size, 1);
  ck_assert_msg(wrong == -1, "case %d gradient of means %ld", number, wrong);
  free(grad_m);
  tensor_destroy(&m);
  tensor_destroy(&dm);
  IS(cudnnDivisiveNormalizationForward(handle, lrn, 1, &a, x.desc, x.device,
                                       NULL, x.device, x.device, &b, y.desc,
                                       y.device),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnDivisiveNormalizationForward(handle, lrn, 0, &a, x.desc, x.value,
                                       NULL, x.device, x.device, &b, y.desc,
                                       y.device),
     CUDNN_STATUS_EXECUTION_FAILED);
  free(s);
  free(want);
  free(grad);
  free(size);
  tensor_destroy(&x);
  tensor_destroy(&dy);
  tensor_destroy(&y);
  tensor_destroy(&dx);
}

START_TEST(divisive_normalisation_equals_its_definition) {
  cudnnLRNDescriptor_t lrn;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateLRNDescriptor(&lrn));
  for (int i = 0; i < 60; i++)
    divisive_case(i, lrn);
  OK(cudnnDestroyLRNDescriptor(lrn));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn normalisations");
  TCase *cases = tcase_create("normalisations");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, normalisations_are_batch_normalisation);
  tcase_add_test(cases, divisive_normalisation_equals_its_definition);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
