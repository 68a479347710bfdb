// SPDX-License-Identifier: Apache-2.0
// Recurrent networks through the API: forward against the cells' definitions in
// doubles, gradients against differences of that.
#include "tests/host/cudnn/recurrent/net.h"

static void forward(net_t *n, bool trains) {
  values_t *v = &n->v;
  bool s = n->has_state;
  OK(cudnnRNNForward(
      handle, n->rnn,
      trains ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, NULL,
      n->x_desc, v->x.device, n->y_desc, v->y.device, n->h_desc,
      s ? v->hx.device : NULL, v->hy.device, n->c_desc, s ? v->cx.device : NULL,
      v->cy.device, v->w.bytes, v->w.device, 0, NULL,
      trains ? n->reserve_bytes : 0, trains ? n->reserve : NULL));
}

static void backward(net_t *n) {
  values_t *v = &n->v;
  bool s = n->has_state;
  OK(cudnnRNNBackwardData_v8(
      handle, n->rnn, NULL, n->y_desc, v->y.device, v->dy.device, n->x_desc,
      v->dx.device, n->h_desc, s ? v->hx.device : NULL, v->dhy.device,
      v->dhx.device, n->c_desc, s ? v->cx.device : NULL, v->dcy.device,
      v->dcx.device, v->w.bytes, v->w.device, 0, NULL, n->reserve_bytes,
      n->reserve));
  OK(cudnnRNNBackwardWeights_v8(
      handle, n->rnn, CUDNN_WGRAD_MODE_ADD, NULL, n->x_desc, v->x.device,
      n->h_desc, s ? v->hx.device : NULL, n->y_desc, v->y.device, v->dw.bytes,
      v->dw.device, 0, NULL, n->reserve_bytes, n->reserve));
}

/* ---- the definition ---- */

static double dot(const double *a, const tensor_t *t) {
  double sum = 0;
  for (int64_t i = 0; i < t->count; i++)
    sum += a[i] * t->value[i];
  return sum;
}

static double *zeros(int64_t count) {
  return calloc((size_t)count, sizeof(double));
}

/* Computes the scalar whose gradients are tested. */
static double loss(const net_t *n) {
  double *y = zeros(n->v.y.count), *h = zeros(n->v.hy.count);
  double *c = zeros(n->v.cy.count);
  define(n, y, h, c);
  double sum = dot(y, &n->v.dy) + dot(h, &n->v.dhy);
  if (n->cell == CUDNN_LSTM)
    sum += dot(c, &n->v.dcy);
  free(y);
  free(h);
  free(c);
  return sum;
}

static const char *text(const net_t *n) {
  static char line[200];
  snprintf(line, sizeof line,
           "type %d cell %d bias %d layout %d skips %d clips %d layers %d ways "
           "%d input %d hidden %d out %d time %d batch %d",
           (int)n->type, (int)n->cell, (int)n->bias, (int)n->layout, n->skips,
           n->clips, n->layers, n->ways, n->input, n->hidden, n->out, n->time,
           n->batch);
  return line;
}

static const cudnnDataType_t types[] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_FLOAT,
                                        CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};

/* Padding of y is the fill symbol, zero here. */
START_TEST(forward_equals_the_definition) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 80; i++) {
    net_t n;
    case_seed((uint64_t)i);
    create(&n, types[i % 4], 0);
    double *y = zeros(n.v.y.count), *h = zeros(n.v.hy.count);
    double *c = zeros(n.v.cy.count), *ones = zeros(n.v.y.count + 999);
    define(&n, y, h, c);
    for (int64_t j = 0; j < n.v.y.count + 999; j++)
      ones[j] = 8; /* sums of some terms of about 1 */
    bool trains = case_range(0, 1);
    forward(&n, trains);
    double factor = n.type == CUDNN_DATA_DOUBLE ? 100 : 8;
    ck_assert_msg(tensor_wrong(&n.v.y, y, ones, factor) == -1, "y %s",
                  text(&n));
    ck_assert_msg(tensor_wrong(&n.v.hy, h, ones, factor) == -1, "hy %s",
                  text(&n));
    if (n.cell == CUDNN_LSTM)
      ck_assert_msg(tensor_wrong(&n.v.cy, c, ones, factor) == -1, "cy %s",
                    text(&n));
    free(y);
    free(h);
    free(c);
    free(ones);
    destroy(&n);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

/* After the end of a sequence nothing depends on x. */
static void check_gradient(net_t *n, tensor_t *of, tensor_t *gradient,
                           const double *before, const char *name) {
  const double small = 1e-6;
  for (int k = 0; k < 6; k++) {
    int at = case_range(0, (int)of->count - 1);
    double keep = of->value[at];
    of->value[at] = keep + small;
    double high = loss(n);
    of->value[at] = keep - small;
    double low = loss(n);
    of->value[at] = keep;
    double want = (high - low) / (2 * small);
    double have = gradient->value[at] - (before ? before[at] : 0);
    ck_assert_msg(fabs(have - want) <= 1e-6 * (1 + fabs(want)),
                  "%s[%d] is %g, not %g: %s", name, at, have, want, text(n));
  }
}

/* If a kink is closer than the step, the difference is meaningless. */
START_TEST(gradients_equal_differences_of_the_definition) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 50; i++) {
    net_t n;
    case_seed((uint64_t)i + 1000);
    create(&n, CUDNN_DATA_DOUBLE, 0);
    values_t *v = &n.v;
    double *before = zeros(v->dw.count);
    memcpy(before, v->dw.value, (size_t)v->dw.count * sizeof *before);
    forward(&n, true);
    backward(&n);
    tensor_download(&v->dx);
    tensor_download(&v->dhx);
    tensor_download(&v->dcx);
    tensor_download(&v->dw);
    check_gradient(&n, &v->x, &v->dx, NULL, "dx");
    check_gradient(&n, &v->w, &v->dw, before, "dw");
    if (n.has_state)
      check_gradient(&n, &v->hx, &v->dhx, NULL, "dhx");
    if (n.has_state && n.cell == CUDNN_LSTM)
      check_gradient(&n, &v->cx, &v->dcx, NULL, "dcx");
    free(before);
    destroy(&n);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

/* Rounding of sums of products of values of about 1. */
static void check_close(const tensor_t *t, const tensor_t *exact,
                        const char *name, const net_t *n) {
  double most = 1, unit = t->type == CUDNN_DATA_FLOAT  ? 0x1p-23
                          : t->type == CUDNN_DATA_HALF ? 0x1p-10
                                                       : 0x1p-7;
  for (int64_t i = 0; i < t->count; i++)
    most = fmax(most, fabs(exact->value[i]));
  for (int64_t i = 0; i < t->count; i++)
    ck_assert_msg(fabs(t->value[i] - exact->value[i]) <= 64 * unit * most,
                  "%s[%ld] is %g, not %g: %s", name, i, t->value[i],
                  exact->value[i], text(n));
}

START_TEST(all_types_have_the_gradients_of_double) {
  OK(cudnnCreate(&handle));
  for (int i = 0; i < 30; i++) {
    net_t n, exact;
    case_seed((uint64_t)i + 2000);
    create(&n, types[1 + i % 3], 0);
    case_seed((uint64_t)i + 2000);
    create(&exact, CUDNN_DATA_DOUBLE, 0);
    tensor_t *const from[] = {&n.v.x,  &n.v.hx,  &n.v.cx,  &n.v.w,
                              &n.v.dy, &n.v.dhy, &n.v.dcy, &n.v.dw};
    tensor_t *const to[] = {&exact.v.x,   &exact.v.hx, &exact.v.cx,
                            &exact.v.w,   &exact.v.dy, &exact.v.dhy,
                            &exact.v.dcy, &exact.v.dw};
    for (int j = 0; j < 8; j++) {
      memcpy(to[j]->value, from[j]->value,
             (size_t)to[j]->count * sizeof(double));
      tensor_upload(to[j]);
    }
    net_t *const nets[] = {&n, &exact};
    for (int j = 0; j < 2; j++) {
      forward(nets[j], true);
      backward(nets[j]);
      tensor_download(&nets[j]->v.dx);
      tensor_download(&nets[j]->v.dhx);
      tensor_download(&nets[j]->v.dw);
    }
    check_close(&n.v.dx, &exact.v.dx, "dx", &n);
    check_close(&n.v.dhx, &exact.v.dhx, "dhx", &n);
    check_close(&n.v.dw, &exact.v.dw, "dw", &n);
    destroy(&n);
    destroy(&exact);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

/* The forward call itself, always with the same masks. */
static double api_loss(net_t *n) {
  values_t *v = &n->v;
  OK(cudnnSetDropoutDescriptor(n->drop, handle, (float)n->dropout, n->states,
                               n->states_bytes, 5));
  forward(n, true);
  tensor_download(&v->y);
  tensor_download(&v->hy);
  return dot(v->y.value, &v->dy) + dot(v->hy.value, &v->dhy);
}

START_TEST(gradients_with_dropout_equal_differences) {
  OK(cudnnCreate(&handle));
  int zero = 0, all = 0;
  for (int i = 0; i < 12; i++) {
    net_t n;
    case_seed((uint64_t)i + 3000);
    create(&n, CUDNN_DATA_DOUBLE, 0.4);
    values_t *v = &n.v;
    memset(v->dcy.value, 0, (size_t)v->dcy.count * sizeof(double));
    memset(v->dw.value, 0, (size_t)v->dw.count * sizeof(double));
    tensor_upload(&v->dcy);
    tensor_upload(&v->dw);
    api_loss(&n);
    backward(&n);
    tensor_download(&v->dx);
    tensor_download(&v->dw);
    tensor_t *const of[] = {&v->x, &v->w}, *const d[] = {&v->dx, &v->dw};
    for (int k = 0; k < 10; k++) {
      tensor_t *t = of[k % 2];
      int at = case_range(0, (int)t->count - 1);
      double keep = t->value[at];
      t->value[at] = keep + 1e-6;
      tensor_upload(t);
      double high = api_loss(&n);
      t->value[at] = keep - 1e-6;
      tensor_upload(t);
      double low = api_loss(&n);
      t->value[at] = keep;
      tensor_upload(t);
      double want = (high - low) / 2e-6, have = d[k % 2]->value[at];
      ck_assert_msg(fabs(have - want) <= 1e-6 * (1 + fabs(want)),
                    "%g, not %g: %s", have, want, text(&n));
      zero += have == 0;
      all++;
    }
    destroy(&n);
  }
  ck_assert_int_lt(zero, all * 3 / 4);
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(wrong_arguments_are_refused) {
  OK(cudnnCreate(&handle));
  case_seed(7);
  net_t n;
  create(&n, CUDNN_DATA_FLOAT, 0);
  values_t *v = &n.v;
#define FORWARD(x, y, weights, kept)                                           \
  cudnnRNNForward(handle, n.rnn, CUDNN_FWD_MODE_TRAINING, NULL, n.x_desc, x,   \
                  n.y_desc, y, n.h_desc, NULL, NULL, n.c_desc, NULL, NULL,     \
                  weights, v->w.device, 0, NULL, kept, n.reserve)
  OK(FORWARD(v->x.device, v->y.device, v->w.bytes, n.reserve_bytes));
  IS(FORWARD(NULL, v->y.device, v->w.bytes, n.reserve_bytes),
     CUDNN_STATUS_BAD_PARAM);
  IS(FORWARD(v->x.device, v->y.device, v->w.bytes - 1, n.reserve_bytes),
     CUDNN_STATUS_BAD_PARAM);
  IS(FORWARD(v->x.device, v->y.device, v->w.bytes, n.reserve_bytes - 1),
     CUDNN_STATUS_BAD_PARAM);
  IS(FORWARD(v->x.value, v->y.device, v->w.bytes, n.reserve_bytes),
     CUDNN_STATUS_EXECUTION_FAILED);
  IS(cudnnRNNForward(NULL, n.rnn, CUDNN_FWD_MODE_INFERENCE, NULL, n.x_desc,
                     v->x.device, n.y_desc, v->y.device, n.h_desc, NULL, NULL,
                     n.c_desc, NULL, NULL, v->w.bytes, v->w.device, 0, NULL, 0,
                     NULL),
     CUDNN_STATUS_BAD_PARAM);
  IS(cudnnRNNBackwardWeights_v8(handle, n.rnn, CUDNN_WGRAD_MODE_SET, NULL,
                                n.x_desc, v->x.device, n.h_desc, NULL, n.y_desc,
                                v->y.device, v->dw.bytes, v->dw.device, 0, NULL,
                                n.reserve_bytes, n.reserve),
     CUDNN_STATUS_NOT_SUPPORTED);
  OK(cudaDeviceSynchronize());
  destroy(&n);
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn rnn");
  TCase *cases = tcase_create("rnn");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, forward_equals_the_definition);
  tcase_add_test(cases, gradients_equal_differences_of_the_definition);
  tcase_add_test(cases, all_types_have_the_gradients_of_double);
  tcase_add_test(cases, gradients_with_dropout_equal_differences);
  tcase_add_test(cases, wrong_arguments_are_refused);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
