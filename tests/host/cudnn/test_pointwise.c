// SPDX-License-Identifier: Apache-2.0
// Pointwise entries through the API, on device memory of any strides, against
// double arithmetic element by element.
#include <cudnn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/unit/harness.h"

#define OK(call) ck_assert_int_eq((int)(call), 0)

enum { RANK = 5, GAP = -777 };

/* A tensor on the device with a copy of its whole memory on the host. */
typedef struct {
  cudnnTensorDescriptor_t desc;
  bool is_double;
  int dim[RANK], stride[RANK];
  size_t elements, bytes;
  void *device;
  char *host;
} tensor_t;

static double get(const tensor_t *t, size_t i) {
  return t->is_double ? ((double *)t->host)[i] : ((float *)t->host)[i];
}

static void put(tensor_t *t, size_t i, double value) {
  if (t->is_double)
    ((double *)t->host)[i] = value;
  else
    ((float *)t->host)[i] = (float)value;
}

static size_t at(const tensor_t *t, const int index[RANK]) {
  size_t sum = 0;
  for (int i = 0; i < RANK; i++)
    sum += (size_t)(t->dim[i] == 1 ? 0 : index[i] * t->stride[i]);
  return sum;
}

static void tensor_create(tensor_t *t, bool is_double, const int dim[RANK]) {
  t->is_double = is_double;
  memcpy(t->dim, dim, sizeof t->dim);
  int order[RANK] = {0, 1, 2, 3, 4}, step = 1, gap = case_range(0, 2) == 0;
  for (int i = RANK - 1; i > 0 && case_range(0, 1); i--) {
    int j = case_range(0, i), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
  for (int i = RANK - 1; i >= 0; i--) {
    t->stride[order[i]] = step;
    step = step * dim[order[i]] + (gap ? case_range(0, 2) : 0);
  }
  OK(cudnnCreateTensorDescriptor(&t->desc));
  OK(cudnnSetTensorNdDescriptor(
      t->desc, is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, RANK, t->dim,
      t->stride));
  OK(cudnnGetTensorSizeInBytes(t->desc, &t->bytes));
  t->elements = t->bytes / (is_double ? 8 : 4);
  t->host = malloc(t->bytes);
  for (size_t i = 0; i < t->elements; i++)
    put(t, i, case_range(0, 40) ? 2 * case_real() : NAN);
  OK(cudaMalloc(&t->device, t->bytes));
  OK(cudaMemcpy(t->device, t->host, t->bytes, cudaMemcpyHostToDevice));
}

static void tensor_destroy(tensor_t *t) {
  OK(cudnnDestroyTensorDescriptor(t->desc));
  OK(cudaFree(t->device));
  free(t->host);
}

static bool next(const int dim[RANK], int index[RANK]) {
  int i = RANK - 1;
  while (i >= 0 && ++index[i] == dim[i])
    index[i--] = 0;
  return i >= 0;
}

typedef struct {
  int kind; /* 0 add, 1 transform, 2 scale, 3 set, 4 op, 5 fwd, 6 bwd */
  int mode; /* of op or activation */
  bool nan;
  double alpha, alpha2, beta, coefficient, slope;
} case_t;

static double activation(const case_t *c, double x) {
  switch (c->mode) {
  case CUDNN_ACTIVATION_SIGMOID:
    return 1 / (1 + exp(-x));
  case CUDNN_ACTIVATION_RELU:
    return isnan(x) ? (c->nan ? x : 0) : x > 0 ? x : 0;
  case CUDNN_ACTIVATION_TANH:
    return tanh(x);
  case CUDNN_ACTIVATION_CLIPPED_RELU:
    return isnan(x) ? (c->nan ? x : 0) : fmin(fmax(x, 0), c->coefficient);
  case CUDNN_ACTIVATION_ELU:
    return x > 0 ? x : c->coefficient * expm1(x);
  default:
    return x / (1 + exp(-c->slope * x));
  }
}

static double gradient(const case_t *c, double y, double dy, double x) {
  double s = 1 / (1 + exp(-c->slope * x));
  switch (c->mode) {
  case CUDNN_ACTIVATION_SIGMOID:
    return dy * y * (1 - y);
  case CUDNN_ACTIVATION_RELU:
    return isnan(x) ? (c->nan ? x : 0) : x > 0 ? dy : 0;
  case CUDNN_ACTIVATION_TANH:
    return dy * (1 - y * y);
  case CUDNN_ACTIVATION_CLIPPED_RELU:
    return isnan(x) ? (c->nan ? x : 0) : x > 0 && x < c->coefficient ? dy : 0;
  case CUDNN_ACTIVATION_ELU:
    return x > 0 ? dy : dy * (y + c->coefficient);
  default:
    return dy * (s + c->slope * x * s * (1 - s));
  }
}

static double operation(const case_t *c, double a, double b) {
  a *= c->alpha;
  b *= c->alpha2;
  bool poison = c->nan && (isnan(a) || isnan(b));
  switch (c->mode) {
  case CUDNN_OP_TENSOR_ADD:
    return a + b;
  case CUDNN_OP_TENSOR_MUL:
    return a * b;
  case CUDNN_OP_TENSOR_MIN:
    return poison ? NAN : fmin(a, b);
  case CUDNN_OP_TENSOR_MAX:
    return poison ? NAN : fmax(a, b);
  case CUDNN_OP_TENSOR_SQRT:
    return sqrt(a);
  default:
    return 1 - a;
  }
}

static double expected(const case_t *c, double a, double b, double x) {
  switch (c->kind) {
  case 3:
    return c->alpha;
  case 4:
    return operation(c, a, b);
  case 5:
    return c->alpha * activation(c, a);
  case 6:
    return c->alpha * gradient(c, a, b, x);
  default:
    return c->alpha * a;
  }
}

static cudnnHandle_t handle;
static cudnnActivationDescriptor_t act;
static cudnnOpTensorDescriptor_t op;

static cudnnStatus_t call(const case_t *c, tensor_t *y, tensor_t *a,
                          tensor_t *b, tensor_t *x) {
  float alpha_f = (float)c->alpha, alpha2_f = (float)c->alpha2,
        beta_f = (float)c->beta;
  const void *alpha = y->is_double ? (const void *)&c->alpha : &alpha_f;
  const void *alpha2 = y->is_double ? (const void *)&c->alpha2 : &alpha2_f;
  const void *beta = y->is_double ? (const void *)&c->beta : &beta_f;
  cudnnNanPropagation_t nan =
      c->nan ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN;
  switch (c->kind) {
  case 0:
    return cudnnAddTensor(handle, alpha, a->desc, a->device, beta, y->desc,
                          y->device);
  case 1:
    return cudnnTransformTensor(handle, alpha, a->desc, a->device, beta,
                                y->desc, y->device);
  case 2:
    return cudnnScaleTensor(handle, y->desc, y->device, alpha);
  case 3:
    return cudnnSetTensor(handle, y->desc, y->device, alpha);
  case 4:
    OK(cudnnSetOpTensorDescriptor(
        op, (cudnnOpTensorOp_t)c->mode,
        y->is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, nan));
    return cudnnOpTensor(handle, op, alpha, a->desc, a->device, alpha2, b->desc,
                         b->device, beta, y->desc, y->device);
  }
  OK(cudnnSetActivationDescriptor(act, (cudnnActivationMode_t)c->mode, nan,
                                  c->coefficient));
  OK(cudnnSetActivationDescriptorSwishBeta(act, c->slope));
  if (c->kind == 5)
    return cudnnActivationForward(handle, act, alpha, a->desc, a->device, beta,
                                  y->desc, y->device);
  return cudnnActivationBackward(handle, act, alpha, a->desc, a->device,
                                 b->desc, b->device, x->desc, x->device, beta,
                                 y->desc, y->device);
}

static case_t draw(int kind) {
  case_t c = {.kind = kind, .nan = case_range(0, 1)};
  c.mode = kind == 4   ? case_range(0, 5)
           : kind >= 5 ? (case_range(0, 5) + 6) % 7
                       : 0;
  if (kind >= 5 && c.mode == CUDNN_ACTIVATION_IDENTITY)
    c.mode = CUDNN_ACTIVATION_SWISH;
  c.alpha = case_range(0, 1) ? 1 : (float)case_real();
  c.alpha2 = case_range(0, 1) ? 1 : (float)case_real();
  c.beta = case_range(0, 1) || kind == 2 || kind == 3 ? 0 : (float)case_real();
  c.coefficient = fabs(case_real());
  c.slope = 1 + case_real();
  return c;
}

static void check(int number) {
  case_seed((uint64_t)number);
  bool is_double = case_range(0, 2) == 0;
  case_t c = draw(number % 7);
  int dim[RANK], small[RANK], wide = case_range(0, 5) == 0;
  for (int i = 0; i < RANK; i++) {
    dim[i] = case_range(0, 2) ? case_range(1, wide ? 2 : 5) : 1;
    if (wide && i == 4)
      dim[i] = case_range(500, 1200);
    small[i] = case_range(0, 1) ? 1 : dim[i];
  }
  tensor_t y, a, b, x;
  tensor_create(&y, is_double, dim);
  tensor_create(&a, is_double, c.kind == 0 ? small : dim);
  tensor_create(&b, is_double, c.kind == 4 ? small : dim);
  tensor_create(&x, is_double, dim);
  bool in_place = c.kind == 2;
  OK(call(&c, &y, &a, &b, &x));
  char *now = malloc(y.bytes);
  OK(cudaMemcpy(now, y.device, y.bytes, cudaMemcpyDeviceToHost));
  tensor_t have = y;
  have.host = now;
  char *seen = calloc(y.elements, 1);
  double eps = is_double ? 4e-16 : 2.4e-7;
  int index[RANK] = {0};
  do {
    size_t i = at(&y, index);
    double va = get(in_place ? &y : &a, in_place ? i : at(&a, index));
    double vb = get(&b, at(&b, index));
    double want = expected(&c, va, vb, get(&x, at(&x, index)));
    double scale = 1 + fabs(want);
    if (c.kind == 4 && !isnan(va) && !isnan(vb))
      scale += fabs(c.alpha * va) + fabs(c.alpha2 * vb);
    if (c.beta != 0) {
      want += c.beta * get(&y, i);
      scale += fabs(want) + fabs(c.beta * get(&y, i));
    }
    double got = get(&have, i);
    REQUIRE_MSG(isnan(want) ? isnan(got) : fabs(got - want) <= 8 * eps * scale,
                "case %d kind %d mode %d: %g, not %g", number, c.kind, c.mode,
                got, want);
    seen[i] = 1;
  } while (next(dim, index));
  size_t bytes = y.bytes / y.elements;
  for (size_t i = 0; i < y.elements; i++)
    REQUIRE_MSG(seen[i] ||
                    memcmp(now + i * bytes, y.host + i * bytes, bytes) == 0,
                "case %d writes between its elements", number);
  free(seen);
  free(now);
  tensor_destroy(&y);
  tensor_destroy(&a);
  tensor_destroy(&b);
  tensor_destroy(&x);
}

START_TEST(every_entry_equals_double_arithmetic) {
  OK(cudnnCreate(&handle));
  OK(cudnnCreateActivationDescriptor(&act));
  OK(cudnnCreateOpTensorDescriptor(&op));
  for (int i = 0; i < random_cases(7 * 400); i++)
    check(i);
  OK(cudnnDestroyActivationDescriptor(act));
  OK(cudnnDestroyOpTensorDescriptor(op));
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(set_tensor_knows_every_size_of_element) {
  OK(cudnnCreate(&handle));
  static const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_INT8,
                                          CUDNN_DATA_INT32, CUDNN_DATA_DOUBLE};
  static const size_t sizes[] = {2, 1, 4, 8};
  for (int t = 0; t < 4; t++) {
    cudnnTensorDescriptor_t desc;
    OK(cudnnCreateTensorDescriptor(&desc));
    OK(cudnnSetTensor4dDescriptorEx(desc, types[t], 1, 1, 3, 2, 100, 100, 5,
                                    2));
    unsigned char memory[13 * 8], value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    memset(memory, 0xee, sizeof memory);
    void *device;
    OK(cudaMalloc(&device, sizeof memory));
    OK(cudaMemcpy(device, memory, sizeof memory, cudaMemcpyHostToDevice));
    OK(cudnnSetTensor(handle, desc, device, value));
    OK(cudaMemcpy(memory, device, sizeof memory, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < 13; i++) {
      bool element = i % 5 == 0 || i % 5 == 2;
      for (size_t b = 0; b < sizes[t]; b++)
        ck_assert_int_eq(memory[i * sizes[t] + b], element ? b + 1 : 0xee);
    }
    OK(cudaFree(device));
    OK(cudnnDestroyTensorDescriptor(desc));
  }
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn pointwise");
  TCase *cases = tcase_create("pointwise");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, every_entry_equals_double_arithmetic);
  tcase_add_test(cases, set_tensor_knows_every_size_of_element);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
