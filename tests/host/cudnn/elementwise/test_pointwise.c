// SPDX-License-Identifier: Apache-2.0
// Pointwise entries through the API, on device memory of any strides, against
// double arithmetic element by element.
#include <cudnn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/tensor.h"
#include "tests/unit/harness.h"

enum { RANK = 5 };

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
  const void *alpha =
      y->type == CUDNN_DATA_DOUBLE ? (const void *)&c->alpha : &alpha_f;
  const void *alpha2 =
      y->type == CUDNN_DATA_DOUBLE ? (const void *)&c->alpha2 : &alpha2_f;
  const void *beta =
      y->type == CUDNN_DATA_DOUBLE ? (const void *)&c->beta : &beta_f;
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
        y->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
        nan));
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

/* Where `t` has the value that stands at `index`, repeated along extents of 1.
 */
static double value_at(const tensor_t *t, const int *index) {
  int at[8];
  for (int i = 0; i < RANK; i++)
    at[i] = t->dim[i] == 1 ? 0 : index[i];
  return t->value[tensor_at(t, at)];
}

static cudnnDataType_t draw_type(int kind) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_FLOAT,
                                          CUDNN_DATA_DOUBLE,   CUDNN_DATA_HALF,
                                          CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8};
  return types[case_range(0, kind == 3 ? 2 : kind >= 5 ? 4 : 5)];
}

static void check(int number) {
  case_seed((uint64_t)number);
  case_t c = draw(number % 7);
  cudnnDataType_t type = draw_type(c.kind), operand = type;
  if (c.kind == 4 && type != CUDNN_DATA_DOUBLE && case_range(0, 2) == 0)
    operand = CUDNN_DATA_FLOAT; /* types mix */
  int dim[RANK], small[RANK], wide = case_range(0, 5) == 0;
  for (int i = 0; i < RANK; i++) {
    dim[i] = case_range(0, 2) ? case_range(1, wide ? 2 : 5) : 1;
    if (wide && i == 4)
      dim[i] = case_range(500, 1200);
    small[i] = case_range(0, 1) ? 1 : dim[i];
  }
  tensor_t y, a, b, x;
  tensor_create(&y, type, RANK, dim, 40);
  tensor_create(&a, operand, RANK, c.kind == 0 ? small : dim, 40);
  tensor_create(&b, type, RANK, c.kind == 4 ? small : dim, 40);
  tensor_create(&x, type, RANK, dim, 40);
  bool in_place = c.kind == 2;
  OK(call(&c, &y, &a, &b, &x));
  double *want = calloc((size_t)y.count, sizeof *want);
  double *scale = calloc((size_t)y.count, sizeof *scale);
  bool whole = type == CUDNN_DATA_INT8;
  for (int64_t i = 0; i < y.count; i++) {
    int index[8];
    tensor_index(&y, i, index);
    double va = value_at(in_place ? &y : &a, index);
    double vb = value_at(&b, index);
    want[i] = expected(&c, va, vb, value_at(&x, index));
    scale[i] = 1 + fabs(want[i]);
    if (c.kind == 4 && !isnan(va) && !isnan(vb))
      scale[i] += fabs(c.alpha * va) + fabs(c.alpha2 * vb);
    if (c.beta != 0) {
      want[i] += c.beta * y.value[i];
      scale[i] += fabs(want[i]) + fabs(c.beta * y.value[i]);
    }
    if (whole)
      want[i] = isnan(want[i]) ? 0 : fmin(fmax(nearbyint(want[i]), -128), 127);
  }
  int64_t wrong = tensor_wrong(&y, want, scale, 8);
  ck_assert_msg(wrong == -1, "case %d kind %d mode %d value %ld: %s", number,
                c.kind, c.mode, wrong, tensor_text(&y));
  free(want);
  free(scale);
  tensor_destroy(&y);
  tensor_destroy(&a);
  tensor_destroy(&b);
  tensor_destroy(&x);
}

START_TEST(every_entry_equals_double_arithmetic) {
  OK(cudnnCreate(&handle));
  OK(cudnnCreateActivationDescriptor(&act));
  OK(cudnnCreateOpTensorDescriptor(&op));
  for (int i = 0; i < 7 * 300; i++)
    check(i);
  OK(cudnnDestroyActivationDescriptor(act));
  OK(cudnnDestroyOpTensorDescriptor(op));
  OK(cudnnDestroy(handle));
}
END_TEST

static void dropout_case(cudnnDataType_t type, float p) {
  enum { COUNT = 3 * 4 * 50 * 7 };
  cudnnDropoutDescriptor_t drop;
  size_t states_bytes, reserve_bytes;
  void *states, *reserve, *saved;
  OK(cudnnCreateDropoutDescriptor(&drop));
  tensor_t x, y, dx, again;
  tensor_create(&x, type, 4, (int[]){3, 4, 50, 7}, 0);
  for (int64_t i = 0; i < x.count; i++)
    x.value[i] = 1 + i % 3;
  tensor_upload(&x);
  tensor_create(&y, type, 4, x.dim, 0);
  tensor_create(&dx, type, 4, x.dim, 0);
  tensor_create_like(&again, &y);
  OK(cudnnDropoutGetStatesSize(handle, &states_bytes));
  OK(cudnnDropoutGetReserveSpaceSize(x.desc, &reserve_bytes));
  OK(cudaMalloc(&states, states_bytes));
  OK(cudaMalloc(&saved, states_bytes));
  OK(cudaMalloc(&reserve, reserve_bytes));
  OK(cudnnSetDropoutDescriptor(drop, handle, p, states, states_bytes, 1234));
  OK(cudaMemcpy(saved, states, states_bytes, cudaMemcpyDeviceToDevice));
  OK(cudnnDropoutForward(handle, drop, x.desc, x.device, y.desc, y.device,
                         reserve, reserve_bytes));
  OK(cudnnDropoutBackward(handle, drop, x.desc, x.device, dx.desc, dx.device,
                          reserve, reserve_bytes));
  tensor_download(&y);
  /* the gradient uses the same mask */
  ck_assert_int_eq(tensor_wrong(&dx, y.value, NULL, 0), -1);
  int kept = 0;
  double *want = malloc(COUNT * sizeof *want);
  for (int64_t i = 0; i < COUNT; i++) {
    kept += y.value[i] != 0;
    want[i] = y.value[i] == 0 ? 0 : x.value[i] / (1 - p);
  }
  ck_assert_int_eq(tensor_wrong(&y, want, NULL, 1), -1);
  double expected_kept = COUNT * (1 - p);
  ck_assert_msg(fabs(kept - expected_kept) <= 5 * sqrt(COUNT * p * (1 - p)),
                "%d kept", kept);
  /* another mask follows; from saved states, the same one */
  OK(cudnnDropoutForward(handle, drop, x.desc, x.device, again.desc,
                         again.device, reserve, reserve_bytes));
  if (p > 0 && p < 1)
    ck_assert_int_ge(tensor_wrong(&again, y.value, NULL, 0), 0);
  OK(cudnnRestoreDropoutDescriptor(drop, handle, p, saved, states_bytes, 1234));
  OK(cudnnDropoutForward(handle, drop, x.desc, x.device, again.desc,
                         again.device, reserve, reserve_bytes));
  ck_assert_int_eq(tensor_wrong(&again, y.value, NULL, 0), -1);
  ck_assert_int_eq(cudnnDropoutForward(handle, drop, x.desc, x.device, y.desc,
                                       y.device, reserve, reserve_bytes - 4),
                   CUDNN_STATUS_BAD_PARAM);
  free(want);
  OK(cudaFree(states));
  OK(cudaFree(saved));
  OK(cudaFree(reserve));
  tensor_destroy(&x);
  tensor_destroy(&y);
  tensor_destroy(&dx);
  tensor_destroy(&again);
  OK(cudnnDestroyDropoutDescriptor(drop));
}

START_TEST(dropout_repeats_its_mask_backward_and_from_saved_states) {
  OK(cudnnCreate(&handle));
  static const float p[] = {0, 0.25F, 0.5F, 1};
  for (int i = 0; i < 8; i++) {
    case_seed((uint64_t)i);
    dropout_case(i % 2 ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF, p[i / 2]);
  }
  OK(cudnnDestroy(handle));
}
END_TEST

START_TEST(set_tensor_knows_every_size_of_element) {
  OK(cudnnCreate(&handle));
  static const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                          CUDNN_DATA_INT8, CUDNN_DATA_INT32,
                                          CUDNN_DATA_DOUBLE};
  static const size_t sizes[] = {2, 2, 1, 4, 8};
  for (int t = 0; t < 5; t++) {
    cudnnTensorDescriptor_t desc;
    OK(cudnnCreateTensorDescriptor(&desc));
    OK(cudnnSetTensor4dDescriptorEx(desc, types[t], 1, 1, 3, 2, 100, 100, 5,
                                    2));
    unsigned char memory[13 * 8], value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    memset(memory, 0xee, sizeof memory);
    void *device;
    OK(cudaMalloc(&device, sizeof memory));
    OK(cudaMemcpy(device, memory, sizeof memory, cudaMemcpyHostToDevice));
    /* Of halves the value is a float: these are 0x0201 in either type. */
    static const float halves[] = {0x1.008p-15F, 0x1.02p-123F};
    OK(cudnnSetTensor(handle, desc, device,
                      t < 2 ? (const void *)&halves[t] : value));
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

/* One step of XORWOW. */
static uint32_t next_number(uint32_t state[6]) {
  uint32_t *v = state + 1, t = v[0] ^ v[0] >> 2;
  memmove(v, v + 1, 4 * sizeof *v);
  v[4] ^= v[4] << 4 ^ t ^ t << 1;
  state[0] += 362437;
  return state[0] + v[4];
}

/* The states hold generators seeded like cuRAND's (their registers are computed
 * separately, by powers of an integer matrix). Generator i modulo their number
 * draws element i. */
START_TEST(dropout_draws_as_a_gpu_does) {
  OK(cudnnCreate(&handle));
  enum { GENERATORS = 21504, WORDS = 12, COUNT = 2 * GENERATORS + 77 };
  static const uint32_t first[6] = {0x8b74a321, 0xa9a614da, 0xb7d01220,
                                    0x7d7a648,  0xed8c79a0, 0xa2a286de};
  static const uint32_t second[6] = {0x8b74a321, 0x1a39a108, 0x8a898e30,
                                     0xba6d6caf, 0x769985f2, 0x47eb9ad6};
  static const uint32_t last[6] = {0x8b74a321, 0x9e9d2c05, 0xa3d54345,
                                   0x8bb9bf9f, 0xb207b2f5, 0xd8c22973};
  static uint32_t states[GENERATORS][WORDS], mask[COUNT / 32 + 1];
  size_t bytes, kept_bytes;
  cudnnDropoutDescriptor_t drop;
  OK(cudnnCreateDropoutDescriptor(&drop));
  OK(cudnnDropoutGetStatesSize(handle, &bytes));
  ck_assert_uint_eq(bytes, sizeof states);
  tensor_t x, y;
  tensor_create(&x, CUDNN_DATA_FLOAT, 4, (int[]){1, 1, 1, COUNT}, 0);
  tensor_create_like(&y, &x);
  OK(cudnnDropoutGetReserveSpaceSize(x.desc, &kept_bytes));
  ck_assert_uint_eq(kept_bytes, sizeof mask);
  void *device, *kept;
  OK(cudaMalloc(&device, bytes));
  OK(cudaMalloc(&kept, kept_bytes));
  OK(cudnnSetDropoutDescriptor(drop, handle, 0.3F, device, bytes,
                               0x1234abcd5678));
  OK(cudaMemcpy(states, device, bytes, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(states[0], first, sizeof first);
  ck_assert_mem_eq(states[1], second, sizeof second);
  ck_assert_mem_eq(states[GENERATORS - 1], last, sizeof last);
  OK(cudnnDropoutForward(handle, drop, x.desc, x.device, y.desc, y.device, kept,
                         kept_bytes));
  OK(cudaMemcpy(mask, kept, kept_bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++) {
    uint32_t number = next_number(states[i % GENERATORS]);
    float uniform = (float)number * 0x1p-32F + 0x1p-33F;
    ck_assert_int_eq(mask[i / 32] >> (i % 32) & 1, uniform > 0.3F);
  }
  OK(cudaFree(device));
  OK(cudaFree(kept));
  tensor_destroy(&x);
  tensor_destroy(&y);
  OK(cudnnDestroyDropoutDescriptor(drop));
  OK(cudnnDestroy(handle));
}
END_TEST

/* Without new states the old ones stay, with any probability. */
START_TEST(dropout_takes_what_a_gpu_takes) {
  OK(cudnnCreate(&handle));
  cudnnDropoutDescriptor_t drop;
  size_t bytes;
  tensor_t x, y;
  void *states, *kept, *have = NULL;
  OK(cudnnCreateDropoutDescriptor(&drop));
  OK(cudnnDropoutGetStatesSize(handle, &bytes));
  OK(cudaMalloc(&states, bytes));
  OK(cudaMalloc(&kept, 8));
  tensor_create(&x, CUDNN_DATA_FLOAT, 4, (int[]){1, 1, 1, 50}, 0);
  tensor_create_like(&y, &x);
#define FORWARD()                                                              \
  cudnnDropoutForward(handle, drop, x.desc, x.device, y.desc, y.device, kept, 8)
  OK(cudnnSetDropoutDescriptor(drop, handle, 0.5F, NULL, 0, 1));
  ck_assert_int_eq(FORWARD(), CUDNN_STATUS_BAD_PARAM);
  ck_assert_int_eq(
      cudnnSetDropoutDescriptor(drop, handle, 0.5F, states, bytes - 1, 1),
      CUDNN_STATUS_BAD_PARAM);
  static const float p[] = {-0.1F, 1.1F, 0, 1};
  for (int i = 0; i < 4; i++) {
    OK(cudnnSetDropoutDescriptor(drop, handle, p[i], states, bytes, 1));
    OK(cudnnSetDropoutDescriptor(drop, handle, p[i], NULL, 0, 1));
    OK(cudnnGetDropoutDescriptor(drop, handle, NULL, &have, NULL));
    ck_assert_ptr_eq(have, states);
    OK(FORWARD());
    double want[50];
    for (int j = 0; j < 50; j++)
      want[j] = i % 2 ? 0 : (double)((float)x.value[j] * (1 / (1 - p[i])));
    ck_assert_int_eq(tensor_wrong(&y, want, NULL, 0), -1);
  }
  tensor_destroy(&x);
  tensor_destroy(&y);
  tensor_create(&x, CUDNN_DATA_BFLOAT16, 4, (int[]){1, 1, 1, 50}, 0);
  tensor_create_like(&y, &x);
  ck_assert_int_eq(FORWARD(), CUDNN_STATUS_NOT_SUPPORTED);
  tensor_destroy(&x);
  tensor_destroy(&y);
  OK(cudaFree(states));
  OK(cudaFree(kept));
  OK(cudnnDestroyDropoutDescriptor(drop));
  OK(cudnnDestroy(handle));
}
END_TEST

/* Scales as float, rounds to even, saturates. There is no reverse transform. */
START_TEST(whole_numbers_are_activated) {
  OK(cudnnCreate(&handle));
  cudnnTensorDescriptor_t desc;
  cudnnActivationDescriptor_t how;
  OK(cudnnCreateTensorDescriptor(&desc));
  OK(cudnnCreateActivationDescriptor(&how));
  OK(cudnnSetTensor4dDescriptor(desc, CUDNN_TENSOR_NHWC, CUDNN_DATA_INT8, 2, 4,
                                4, 8));
  int8_t value[256], old[256], have[256], *x, *y;
  for (int i = 0; i < 256; i++) {
    value[i] = (int8_t)(i - 128);
    old[i] = (int8_t)(i * 37 % 61);
  }
  OK(cudaMalloc((void **)&x, sizeof value));
  OK(cudaMalloc((void **)&y, sizeof value));
  OK(cudaMemcpy(x, value, sizeof value, cudaMemcpyHostToDevice));
  for (int mode = 0; mode < 5; mode++) {
    float alpha = 2.5F, beta = mode % 2 ? 0.5F : 0, coefficient = 3;
    OK(cudnnSetActivationDescriptor(how, (cudnnActivationMode_t)mode, 0,
                                    (double)coefficient));
    OK(cudaMemcpy(y, old, sizeof old, cudaMemcpyHostToDevice));
    OK(cudnnActivationForward(handle, how, &alpha, desc, x, &beta, desc, y));
    OK(cudaMemcpy(have, y, sizeof have, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) {
      float v = value[i];
      float r = mode == 0   ? 1 / (1 + expf(-v))
                : mode == 1 ? fmaxf(v, 0)
                : mode == 2 ? tanhf(v)
                : mode == 3 ? fminf(fmaxf(v, 0), coefficient)
                            : (v > 0 ? v : coefficient * expm1f(v));
      r = nearbyintf(alpha * r + beta * old[i]);
      ck_assert_int_eq(have[i], (int)fminf(fmaxf(r, -128), 127));
    }
    ck_assert_int_eq(cudnnActivationBackward(handle, how, &alpha, desc, y, desc,
                                             y, desc, x, &beta, desc, y),
                     CUDNN_STATUS_NOT_SUPPORTED);
  }
  OK(cudaFree(x));
  OK(cudaFree(y));
  OK(cudnnDestroyActivationDescriptor(how));
  OK(cudnnDestroyTensorDescriptor(desc));
  OK(cudnnDestroy(handle));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host cudnn pointwise");
  TCase *cases = tcase_create("pointwise");
  tcase_set_timeout(cases, 100);
  tcase_add_test(cases, every_entry_equals_double_arithmetic);
  tcase_add_test(cases,
                 dropout_repeats_its_mask_backward_and_from_saved_states);
  tcase_add_test(cases, set_tensor_knows_every_size_of_element);
  tcase_add_test(cases, dropout_draws_as_a_gpu_does);
  tcase_add_test(cases, dropout_takes_what_a_gpu_takes);
  tcase_add_test(cases, whole_numbers_are_activated);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
