// SPDX-License-Identifier: Apache-2.0
// Batch normalisation and LRN through the API against their definitions in
// doubles.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/blended.h"

/* All arguments of a batch normalisation. */
typedef struct {
  cudnnBatchNormMode_t mode;
  cudnnBatchNormOps_t ops;
  double epsilon;
  tensor_t x, y, z, dy, dx, dz;
  tensor_t scale, bias, mean, variance, saved_mean, saved_invstd;
  tensor_t dscale, dbias;
} bn_t;

static int64_t set_of(const bn_t *b, int64_t i) {
  int at[8];
  tensor_index(&b->x, i, at);
  at[0] = 0;
  for (int d = 2; d < b->x.rank && b->mode != 0; d++)
    at[d] = 0;
  return tensor_at(&b->scale, at);
}

/* Draws a layout: the points of a channel are next to each other in every
 * image, or the channels of every point are; points have equal strides. */
static void rows_create(tensor_t *t, cudnnDataType_t type, int rank,
                        const int *dim, bool last) {
  for (;;) {
    tensor_create(t, type, rank, dim, 0);
    int64_t stride = last ? dim[1] : 1;
    int d = rank - 1;
    while (d >= 2 && (dim[d] == 1 || t->stride[d] == stride))
      stride *= dim[d--];
    if (d < 2 && (!last || t->stride[1] == 1))
      return;
    tensor_destroy(t);
  }
}

/* Every third case has rows longer than the vectors and blocks of sums, another
 * third has more channels than these. */
static void bn_create(bn_t *b, cudnnDataType_t type, int number) {
  int dim[5], rank = draw_shape(dim, 4), params[5];
  bool rows = number % 3 == 0, last = number % 3 == 1;
  dim[0] += 1;
  if (rows)
    dim[rank - 1] = number % 8 ? case_range(30, 130) : case_range(4000, 4300);
  if (last)
    dim[1] = case_range(2, 40);
  *b = (bn_t){.mode = case_range(0, 2), .ops = case_range(0, 2)};
  b->epsilon = 1e-3;
  for (int i = 0; i < rank; i++)
    params[i] = i == 1 || (i > 1 && b->mode == 0) ? dim[i] : 1;
  tensor_t *const whole[] = {&b->x, &b->y, &b->z, &b->dy, &b->dx, &b->dz};
  for (int i = 0; i < 6; i++)
    if (rows || last)
      rows_create(whole[i], type, rank, dim, last);
    else
      tensor_create(whole[i], type, rank, dim, 0);
  for (int64_t i = 0; i < b->x.count && case_range(0, 3) == 0; i++)
    b->x.value[i] += 1000; /* E[x^2] - E[x]^2 loses all digits */
  tensor_upload(&b->x);
  tensor_download(&b->x);
  tensor_t *const few[] = {&b->scale,    &b->bias,       &b->mean,
                           &b->variance, &b->saved_mean, &b->saved_invstd,
                           &b->dscale,   &b->dbias};
  cudnnTensorDescriptor_t derived;
  OK(cudnnCreateTensorDescriptor(&derived));
  OK(cudnnDeriveBNTensorDescriptor(derived, b->x.desc, b->mode));
  for (int i = 0; i < 8; i++) {
    cudnnDataType_t t = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    if (i == 0)
      tensor_create(few[i], t, rank, params, 0);
    else
      tensor_create_like(few[i], few[0]);
  }
  OK(cudnnDestroyTensorDescriptor(derived));
  for (int64_t i = 0; i < b->variance.count; i++)
    b->variance.value[i] = fabs(b->variance.value[i]);
  tensor_upload(&b->variance);
}

static void bn_destroy(bn_t *b) {
  tensor_t *const all[] = {&b->x,        &b->y,          &b->z,
                           &b->dy,       &b->dx,         &b->dz,
                           &b->scale,    &b->bias,       &b->mean,
                           &b->variance, &b->saved_mean, &b->saved_invstd,
                           &b->dscale,   &b->dbias};
  for (int i = 0; i < 14; i++)
    tensor_destroy(all[i]);
}

static void batchnorm_case(int number, cudnnActivationDescriptor_t relu) {
  case_seed((uint64_t)number + 20000);
  cudnnDataType_t type = types[case_range(0, 3)];
  bn_t b;
  bn_create(&b, type, number);
  int64_t n = b.x.count, sets = b.scale.count;
  double alpha = 0.75, beta = draw_beta(&b.y), factor = number % 2 ? 1 : 0.25;
  double share = number % 5 ? alpha : 0; /* of the result in y */
  scalar_t sa = scalar(type, alpha), sb = scalar(type, beta);
  scalar_t ss = scalar(type, share);
  double m = (double)(n / sets);
  if (factor == 1) { /* the old running statistics do not count */
    for (int64_t i = 0; i < sets; i++)
      b.mean.value[i] = NAN;
    tensor_upload(&b.mean);
  }
  OK(cudnnBatchNormalizationForwardTrainingEx(
      handle, b.mode, b.ops, &ss, &sb, b.x.desc, b.x.device, b.z.desc,
      b.z.device, b.y.desc, b.y.device, b.scale.desc, b.scale.device,
      b.bias.device, factor, b.mean.device, b.variance.device, b.epsilon,
      b.saved_mean.device, b.saved_invstd.device, relu, NULL, 0, NULL, 0));
  double *mean = zeros(sets), *var = zeros(sets), *want = zeros(n);
  double *scale = zeros(n), *p = zeros(sets), *invstd = zeros(sets);
  for (int64_t i = 0; i < n; i++)
    mean[set_of(&b, i)] += b.x.value[i] / m;
  for (int64_t i = 0; i < n; i++)
    var[set_of(&b, i)] += pow(b.x.value[i] - mean[set_of(&b, i)], 2) / m;
  for (int64_t s = 0; s < sets; s++) {
    invstd[s] = 1 / sqrt(var[s] + b.epsilon);
    p[s] = factor * mean[s] + (factor == 1 ? 0 : 0.75 * b.mean.value[s]);
  }
  check(&b.saved_mean, mean, NULL, 4, "saved mean", number);
  check(&b.saved_invstd, invstd, NULL, 64, "saved deviation", number);
  check(&b.mean, p, NULL, 4, "running mean", number);
  for (int64_t s = 0; s < sets; s++)
    p[s] = factor * var[s] * m / fmax(m - 1, 1) +
           (factor == 1 ? 0 : 0.75 * b.variance.value[s]);
  check(&b.variance, p, NULL, 64, "running variance", number);
  for (int64_t i = 0; i < n; i++) {
    int64_t s = set_of(&b, i);
    double v = b.scale.value[s] * (b.x.value[i] - mean[s]) * invstd[s];
    scale[i] = fabs(v) + fabs(b.bias.value[s]) + fabs(b.z.value[i]) + 1e-6;
    v += b.bias.value[s];
    if (b.ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
      v += b.z.value[i];
    if (b.ops != CUDNN_BATCHNORM_OPS_BN && v < 0)
      v = 0;
    want[i] = blend(share, v, beta, b.y.value[i]);
    scale[i] += fabs(want[i]);
  }
  double slack = type == CUDNN_DATA_DOUBLE ? 10 : 2;
  check(&b.y, want, scale, slack, "batch normalisation", number);

  tensor_download(&b.y);
  tensor_download(&b.saved_mean);
  tensor_download(&b.saved_invstd);
  double beta2 = draw_beta(&b.dx);
  scalar_t data_beta = scalar(type, beta2), param_beta = scalar(type, 0.5);
  bool saved = number % 3 != 0;
  OK(cudnnBatchNormalizationBackwardEx(
      handle, b.mode, b.ops, &sa, &data_beta, &sa, &param_beta, b.x.desc,
      b.x.device, b.y.desc, b.y.device, b.dy.desc, b.dy.device, b.dz.desc,
      b.dz.device, b.dx.desc, b.dx.device, b.scale.desc, b.scale.device,
      b.bias.device, b.dscale.device, b.dbias.device, b.epsilon,
      saved ? b.saved_mean.device : NULL, saved ? b.saved_invstd.device : NULL,
      relu, NULL, 0, NULL, 0));
  double *dz = zeros(n), *sum = zeros(sets), *product = zeros(sets);
  double *terms = zeros(sets);
  for (int64_t i = 0; i < n; i++) {
    int64_t s = set_of(&b, i);
    bool through = b.ops == CUDNN_BATCHNORM_OPS_BN || b.y.value[i] > 0;
    dz[i] = through ? b.dy.value[i] : 0;
    double hat = (b.x.value[i] - mean[s]) * invstd[s];
    sum[s] += dz[i];
    product[s] += dz[i] * hat;
    terms[s] += fabs(dz[i]) * (1 + fabs(hat));
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t s = set_of(&b, i);
    double hat = (b.x.value[i] - mean[s]) * invstd[s];
    double outer = b.scale.value[s] * invstd[s];
    double v = outer * (dz[i] - sum[s] / m - hat * product[s] / m);
    want[i] = blend(alpha, v, beta2, b.dx.value[i]);
    scale[i] = fabs(want[i]) + fabs(b.dx.value[i]) +
               fabs(outer) * (fabs(dz[i]) + terms[s] * (1 + fabs(hat)));
    if (isnan(scale[i]))
      scale[i] = fabs(outer) * (fabs(dz[i]) + terms[s] * (1 + fabs(hat)));
  }
  slack = type == CUDNN_DATA_DOUBLE ? 10 : 800;
  check(&b.dx, want, scale, slack, "data gradient", number);
  if (b.ops == CUDNN_BATCHNORM_OPS_BN_ADD_ACTIVATION)
    check(&b.dz, dz, NULL, 0, "added gradient", number);
  for (int64_t s = 0; s < sets; s++) {
    product[s] = alpha * product[s] + 0.5 * b.dscale.value[s];
    sum[s] = alpha * sum[s] + 0.5 * b.dbias.value[s];
    terms[s] += fabs(b.dscale.value[s]) + fabs(b.dbias.value[s]);
  }
  check(&b.dscale, product, terms, slack, "scale gradient", number);
  check(&b.dbias, sum, terms, 2, "bias gradient", number);
  double *const all[] = {mean, var,    want, scale,   p,
                         dz,   invstd, sum,  product, terms};
  for (int i = 0; i < 10; i++)
    free(all[i]);
  bn_destroy(&b);
}

START_TEST(batch_normalisation_trains) {
  cudnnActivationDescriptor_t relu;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateActivationDescriptor(&relu));
  OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, 0, 0));
  for (int i = 0; i < 120; i++)
    batchnorm_case(i, relu);
  OK(cudnnDestroyActivationDescriptor(relu));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(batch_normalisation_infers) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 40; i++) {
    case_seed((uint64_t)i + 30000);
    cudnnDataType_t type = types[case_range(0, 3)];
    bn_t b;
    bn_create(&b, type, i);
    double beta = draw_beta(&b.y);
    scalar_t sa = scalar(type, 2), sb = scalar(type, beta);
    OK(cudnnBatchNormalizationForwardInference(
        handle, b.mode, &sa, &sb, b.x.desc, b.x.device, b.y.desc, b.y.device,
        b.scale.desc, b.scale.device, b.bias.device, b.mean.device,
        b.variance.device, b.epsilon));
    double *want = zeros(b.x.count), *scale = zeros(b.x.count);
    for (int64_t j = 0; j < b.x.count; j++) {
      int64_t s = set_of(&b, j);
      double v = b.scale.value[s] * (b.x.value[j] - b.mean.value[s]) /
                 sqrt(b.variance.value[s] + b.epsilon);
      want[j] = blend(2, v + b.bias.value[s], beta, b.y.value[j]);
      scale[j] = 2 * fabs(v) + 2 * fabs(b.bias.value[s]) + fabs(want[j]);
    }
    check(&b.y, want, scale, 4, "inference", i);
    IS(cudnnBatchNormalizationForwardInference(
           handle, b.mode, &sa, &sb, b.x.desc, b.x.device, b.y.desc, b.y.device,
           b.x.desc, b.scale.device, b.bias.device, b.mean.device,
           b.variance.device, b.epsilon),
       CUDNN_STATUS_BAD_PARAM);
    IS(cudnnBatchNormalizationForwardInference(
           handle, b.mode, &sa, &sb, b.x.desc, b.x.device, b.y.desc, b.y.device,
           b.scale.desc, b.scale.device, b.bias.device, b.mean.device,
           b.variance.device, -1),
       CUDNN_STATUS_BAD_PARAM);
    free(want);
    free(scale);
    bn_destroy(&b);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

/* Forward by the formula; backward by the derivative of it. */
static void lrn_case(int number, cudnnLRNDescriptor_t desc) {
  case_seed((uint64_t)number + 40000);
  int dim[5], rank = draw_shape(dim, 4), n = case_range(1, 7);
  dim[1] = case_range(1, 9);
  cudnnDataType_t type = types[case_range(0, 3)];
  double la = 1.5, lb = 0.75, lk = 2, beta, alpha = 0.75;
  OK(cudnnSetLRNDescriptor(desc, (unsigned)n, la, lb, lk));
  tensor_t x, y, dy, dx;
  tensor_create(&x, type, rank, dim, 0);
  tensor_create(&y, type, rank, dim, 0);
  tensor_create(&dy, type, rank, dim, 0);
  tensor_create(&dx, type, rank, dim, 0);
  beta = draw_beta(&y);
  scalar_t sa = scalar(type, alpha), sb = scalar(type, beta);
  OK(cudnnLRNCrossChannelForward(handle, desc, 0, &sa, x.desc, x.device, &sb,
                                 y.desc, y.device));
  double *want = zeros(x.count), *s = zeros(x.count), *scale = zeros(x.count);
  double *grad = zeros(x.count);
  for (int64_t i = 0; i < x.count; i++) {
    int at[8];
    tensor_index(&x, i, at);
    int c = at[1];
    s[i] = lk;
    for (int o = -((n - 1) / 2); o <= n - 1 - (n - 1) / 2; o++)
      if (c + o >= 0 && c + o < dim[1]) {
        at[1] = c + o;
        s[i] += la / n * pow(x.value[tensor_at(&x, at)], 2);
      }
    want[i] = blend(alpha, x.value[i] * pow(s[i], -lb), beta, y.value[i]);
  }
  check(&y, want, NULL, 2, "LRN", number);
  beta = draw_beta(&dx);
  sb = scalar(type, beta);
  OK(cudnnLRNCrossChannelBackward(handle, desc, 0, &sa, y.desc, y.device,
                                  dy.desc, dy.device, x.desc, x.device, &sb,
                                  dx.desc, dx.device));
  for (int64_t i = 0; i < x.count; i++) {
    int at[8];
    tensor_index(&x, i, at);
    int c = at[1];
    for (int o = -((n - 1) / 2); o <= n - 1 - (n - 1) / 2; o++) {
      if (c + o < 0 || c + o >= dim[1])
        continue;
      at[1] = c + o;
      int64_t j = tensor_at(&x, at); /* y_i depends on x_j */
      double d = dy.value[i] * x.value[i] * -lb * pow(s[i], -lb - 1) * la / n *
                 2 * x.value[j];
      if (j == i)
        d += dy.value[i] * pow(s[i], -lb);
      grad[j] += d;
      scale[j] += fabs(d);
    }
  }
  for (int64_t i = 0; i < x.count; i++) {
    want[i] = blend(alpha, grad[i], beta, dx.value[i]);
    scale[i] +=
        fabs(want[i]) + fabs(dy.value[i]) + (beta == 0 ? 0 : fabs(dx.value[i]));
  }
  check(&dx, want, scale, 4, "LRN backward", number);
  free(want);
  free(s);
  free(scale);
  free(grad);
  tensor_destroy(&x);
  tensor_destroy(&y);
  tensor_destroy(&dy);
  tensor_destroy(&dx);
}

START_TEST(lrn_equals_its_definition) {
  cudnnLRNDescriptor_t desc;
  OK(cudnnCreate(&handle));
  OK(cudnnCreateLRNDescriptor(&desc));
  for (int i = 0; i < 80; i++)
    lrn_case(i, desc);
  OK(cudnnDestroyLRNDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn norms");
  TCase *cases = tcase_create("norms");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, batch_normalisation_trains);
  tcase_add_test(cases, batch_normalisation_infers);
  tcase_add_test(cases, lrn_equals_its_definition);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
