// SPDX-License-Identifier: Apache-2.0
// The cuBLAS work-alike against loops in double.
#include "tests/unit/harness.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/host/host.h"
#include "tests/calls.h"

__extension__ typedef _Float16 half_t;

enum { ROUNDS = 300 };

static cublasHandle_t handle;

static void setup(void) {
  srand(11);
  OK(cublasCreate(&handle));
}

static void teardown(void) {
  OK(cublasDestroy(handle));
}

static int below(int limit) {
  return rand() % limit;
}

/* Small integers over 8: exact in every type. */
static double value_random(void) {
  return (below(65) - 32) / 8.0;
}

static size_t bytes_of(cudaDataType type) {
  return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static void put(void *at, cudaDataType type, int i, double value) {
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  if (type == CUDA_R_64F)
    ((double *)at)[i] = value;
  else if (type == CUDA_R_32F)
    ((float *)at)[i] = narrow;
  else if (type == CUDA_R_16F)
    ((half_t *)at)[i] = (half_t)value;
  else
    ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
}

static double get(const void *at, cudaDataType type, int i) {
  if (type == CUDA_R_64F)
    return ((const double *)at)[i];
  if (type == CUDA_R_32F)
    return ((const float *)at)[i];
  if (type == CUDA_R_16F)
    return (double)((const half_t *)at)[i];
  uint32_t bits = (uint32_t)((const uint16_t *)at)[i] << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A device array and its model in double. */
typedef struct array {
  void *device;
  double *model;
  int count;
  cudaDataType type;
} array_t;

static array_t array_new(int count, cudaDataType type) {
  array_t array = {.count = count, .type = type};
  array.model = malloc((size_t)count * sizeof *array.model);
  OK(cudaMalloc(&array.device, (size_t)count * bytes_of(type)));
  void *at = host_memory_resolve(array.device, (size_t)count * bytes_of(type));
  for (int i = 0; i < count; i++) {
    array.model[i] = value_random();
    put(at, type, i, array.model[i]);
  }
  return array;
}

/* Within `eps` times the size of the terms. */
static void array_check(const array_t *array, double eps) {
  OK(cudaDeviceSynchronize());
  const void *at = host_memory_resolve(array->device, 1);
  for (int i = 0; i < array->count; i++)
    ck_assert_double_eq_tol(get(at, array->type, i), array->model[i],
                            eps * (1 + fabs(array->model[i])));
}

static void array_free(array_t *array) {
  OK(cudaFree(array->device));
  free(array->model);
}

static double eps_of(cudaDataType type) {
  switch ((int)type) {
  case CUDA_R_64F:
    return 1e-12;
  case CUDA_R_32F:
    return 1e-5;
  case CUDA_R_16F:
    return 1e-3;
  default:
    return 1e-2;
  }
}

/* alpha and beta of both precisions: float and double take the same value. */
static void product_check(cudaDataType type, cudaDataType type_c) {
  int m = 1 + below(20), n = 1 + below(20), k = 1 + below(20);
  int batch = 1 + below(3), ta = below(2), tb = below(2);
  int lda = (ta ? k : m) + below(4), ldb = (tb ? n : k) + below(4);
  int ldc = m + below(4);
  int sa = lda * (ta ? m : k) + below(5), sb = ldb * (tb ? k : n) + below(5);
  int sc = ldc * n + below(5);
  array_t a = array_new(sa * batch, type), b = array_new(sb * batch, type);
  array_t c = array_new(sc * batch, type_c);
  double alpha = value_random(), beta = below(3) ? value_random() : 0;
  float alpha32 = (float)alpha, beta32 = (float)beta;
  bool wide = type == CUDA_R_64F;
  OK(cublasGemmStridedBatchedEx(
      handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m,
      n, k, wide ? (void *)&alpha : &alpha32, a.device, type, lda, sa, b.device,
      type, ldb, sb, wide ? (void *)&beta : &beta32, c.device, type_c, ldc, sc,
      batch, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT));
  for (int l = 0; l < batch; l++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        double sum = 0, *to = &c.model[l * sc + j * ldc + i];
        for (int p = 0; p < k; p++)
          sum += a.model[l * sa + (ta ? i * lda + p : p * lda + i)] *
                 b.model[l * sb + (tb ? p * ldb + j : j * ldb + p)];
        *to = alpha * sum + beta * *to;
      }
  array_check(&c, eps_of(type_c));
  array_free(&a);
  array_free(&b);
  array_free(&c);
}

START_TEST(products_match_loops) {
  static const cudaDataType types[][2] = {
      {CUDA_R_32F, CUDA_R_32F},   {CUDA_R_64F, CUDA_R_64F},
      {CUDA_R_16F, CUDA_R_16F},   {CUDA_R_16F, CUDA_R_32F},
      {CUDA_R_16BF, CUDA_R_16BF}, {CUDA_R_16BF, CUDA_R_32F}};
  for (int round = 0; round < ROUNDS; round++)
    product_check(types[round % 6][0], types[round % 6][1]);
}
END_TEST

START_TEST(products_of_a_matrix_and_a_vector_match_loops) {
  for (int round = 0; round < ROUNDS; round++) {
    int m = 1 + below(20), n = 1 + below(20), flip = below(2);
    int lda = m + below(3), incx = 1 + below(3), incy = 1 + below(3);
    int from = flip ? m : n, to = flip ? n : m;
    array_t a = array_new(lda * n, CUDA_R_32F);
    array_t x = array_new(from * incx, CUDA_R_32F);
    array_t y = array_new(to * incy, CUDA_R_32F);
    float alpha = (float)value_random(), beta = (float)value_random();
    OK(cublasSgemv(handle, flip ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, &alpha,
                   a.device, lda, x.device, incx, &beta, y.device, incy));
    for (int i = 0; i < to; i++) {
      double sum = 0;
      for (int j = 0; j < from; j++)
        sum += a.model[flip ? i * lda + j : j * lda + i] * x.model[j * incx];
      y.model[i * incy] =
          (double)alpha * sum + (double)beta * y.model[i * incy];
    }
    array_check(&y, 1e-5);
    array_free(&a);
    array_free(&x);
    array_free(&y);
  }
}
END_TEST

START_TEST(vector_functions_match_loops) {
  for (int round = 0; round < ROUNDS; round++) {
    int n = 1 + below(50), incx = 1 + below(3), incy = 1 + below(3);
    array_t x = array_new(n * incx, CUDA_R_64F);
    array_t y = array_new(n * incy, CUDA_R_64F);
    double alpha = value_random(), dot = -1, norm = -1, sum = -1;
    double dots = 0, squares = 0, sums = 0;
    for (int i = 0; i < n; i++) {
      dots += x.model[i * incx] * y.model[i * incy];
      squares += x.model[i * incx] * x.model[i * incx];
      sums += fabs(x.model[i * incx]);
    }
    OK(cublasDdot(handle, n, x.device, incx, y.device, incy, &dot));
    OK(cublasDnrm2(handle, n, x.device, incx, &norm));
    OK(cublasDasum(handle, n, x.device, incx, &sum));
    ck_assert_double_eq_tol(dot, dots, 1e-10);
    ck_assert_double_eq_tol(norm, sqrt(squares), 1e-10);
    ck_assert_double_eq_tol(sum, sums, 1e-10);
    /* A negative increment of y starts at its end. */
    OK(cublasDaxpy(handle, n, &alpha, x.device, incx, y.device, -incy));
    for (int i = 0; i < n; i++)
      y.model[(n - 1 - i) * incy] += alpha * x.model[i * incx];
    OK(cublasDscal(handle, n, &alpha, x.device, incx));
    for (int i = 0; i < n; i++)
      x.model[i * incx] *= alpha;
    OK(cublasDswap(handle, n, x.device, incx, y.device, incy));
    for (int i = 0; i < n; i++) {
      double old = x.model[i * incx];
      x.model[i * incx] = y.model[i * incy];
      y.model[i * incy] = old;
    }
    array_check(&x, 1e-12);
    array_check(&y, 1e-12);
    array_free(&x);
    array_free(&y);
  }
}
END_TEST

START_TEST(scalars_may_lie_in_device_memory) {
  array_t x = array_new(4, CUDA_R_32F);
  array_t alpha = array_new(1, CUDA_R_32F);
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  OK(cublasSscal(handle, 4, alpha.device, x.device, 1));
  for (int i = 0; i < 4; i++)
    x.model[i] *= alpha.model[0];
  array_check(&x, 1e-6);
  float local = 1;
  ck_assert_int_eq(cublasSscal(handle, 4, &local, x.device, 1),
                   CUBLAS_STATUS_EXECUTION_FAILED);
  array_free(&x);
  array_free(&alpha);
}
END_TEST

START_TEST(a_zero_beta_forgets_what_was_there) {
  float one = 1, zero = 0, nan = NAN, *c, back;
  array_t a = array_new(1, CUDA_R_32F);
  OK(cudaMalloc((void **)&c, sizeof *c));
  OK(cublasSetVector(1, sizeof nan, &nan, 1, c, 1));
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a.device, 1,
                 a.device, 1, &zero, c, 1));
  OK(cublasGetVector(1, sizeof back, c, 1, &back, 1));
  ck_assert_double_eq_tol((double)back, a.model[0] * a.model[0], 1e-6);
  array_free(&a);
}
END_TEST

START_TEST(a_captured_product_is_done_at_each_launch) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  float two = 2, half = 0.5f, *x, *y;
  OK(cudaStreamCreate(&stream));
  OK(cudaMalloc((void **)&x, sizeof *x));
  OK(cudaMalloc((void **)&y, sizeof *y));
  OK(cudaMemcpy(x, &two, sizeof *x, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(y, &two, sizeof *y, cudaMemcpyHostToDevice));
  OK(cublasSetStream(handle, stream));
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &half, x, 1, x, 1,
                 &half, y, 1));
  OK(cudaStreamEndCapture(stream, &graph));
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  OK(cudaGraphLaunch(exec, stream)); /* y = (2*2 + 2) / 2 = 3 */
  OK(cudaGraphLaunch(exec, stream)); /* (2*2 + 3) / 2 = 3.5 */
  OK(cudaGraphExecDestroy(exec));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(&two, y, sizeof *y, cudaMemcpyDeviceToHost));
  ck_assert_float_eq(two, 3.5f);
}
END_TEST

START_TEST(wrong_arguments_are_refused) {
  float one = 1, host[16] = {0};
  array_t a = array_new(16, CUDA_R_32F);
  ck_assert_int_eq(cublasSgemm(NULL, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one,
                               a.device, 4, a.device, 4, &one, a.device, 4),
                   CUBLAS_STATUS_NOT_INITIALIZED);
  ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one,
                               a.device, 3, a.device, 4, &one, a.device, 4),
                   CUBLAS_STATUS_INVALID_VALUE);
  ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one,
                               host, 4, a.device, 4, &one, a.device, 4),
                   CUBLAS_STATUS_EXECUTION_FAILED);
  ck_assert_int_eq(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 5, 4, &one,
                               a.device, 4, a.device, 4, &one, a.device, 4),
                   CUBLAS_STATUS_EXECUTION_FAILED);
  OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, 4, 4, &one, NULL, 4, NULL,
                 4, &one, NULL, 4));
  array_free(&a);
}
END_TEST

static double magnitude_random(void) {
  double value = value_random();
  return below(4) ? value : ldexp(value, below(60) - 30);
}

/* A modified rotation H, by its flag. */
static void modified_fill(const double *param, double h[2][2]) {
  const double flag = param[0];
  h[0][0] = flag == -1 || flag == 1 ? param[1] : 1;
  h[1][0] = flag == -1 || flag == 0 ? param[2] : flag == 1 ? -1 : 0;
  h[0][1] = flag == -1 || flag == 0 ? param[3] : flag == 1 ? 1 : 0;
  h[1][1] = flag == -1 || flag == 1 ? param[4] : 1;
}

START_TEST(modified_rotations_make_the_second_element_zero) {
  int seen[4] = {0};
  for (int round = 0; round < 20 * ROUNDS; round++) {
    double d[2] = {fabs(magnitude_random()), fabs(magnitude_random())};
    double x = magnitude_random(), y = magnitude_random(), h[2][2];
    double was[2] = {d[0], d[1]}, x1 = x, param[5] = {7, 7, 7, 7, 7};
    OK(cublasDrotmg(handle, &d[0], &d[1], &x1, &y, param));
    modified_fill(param, h);
    seen[(int)param[0] + 2]++;
    double terms = fabs(h[1][0] * x) + fabs(h[1][1] * y);
    if (was[1] * y != 0)
      ck_assert_double_le(fabs(h[1][0] * x + h[1][1] * y), 1e-14 * terms);
    if (param[0] == -2)
      continue;
    ck_assert_double_le(fabs(h[0][0] * x + h[0][1] * y - x1),
                        1e-14 * (fabs(h[0][0] * x) + fabs(h[0][1] * y)));
    /* Lengths scaled by d stay: H' diag(new) H = diag(old). */
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2; j++) {
        double a = h[0][i] * d[0] * h[0][j], b = h[1][i] * d[1] * h[1][j];
        ck_assert_double_le(fabs(a + b - (i == j ? was[i] : 0)),
                            1e-14 * (fabs(a) + fabs(b)));
      }
    for (int i = 0; i < 2; i++)
      ck_assert(d[i] == 0 || (fabs(d[i]) > 0x1p-24 && fabs(d[i]) < 0x1p24));
  }
  ck_assert(seen[0] && seen[1] && seen[2] && seen[3]);
  /* A pair without such a rotation. */
  float d1 = -1, d2 = 1, x1 = 1, y1 = 1, param[5];
  OK(cublasSrotmg(handle, &d1, &d2, &x1, &y1, param));
  ck_assert(d1 == 0 && d2 == 0 && x1 == 0 && param[0] == -1 && param[1] == 0);
  ck_assert_int_eq(cublasSrotmg(handle, &d1, &d2, &x1, NULL, param),
                   CUBLAS_STATUS_INVALID_VALUE);
}
END_TEST

START_TEST(rotations_make_the_second_element_zero) {
  for (int round = 0; round < ROUNDS; round++) {
    double a = magnitude_random(), b = magnitude_random(), r = a, z = b, c, s;
    OK(cublasDrotg(handle, &r, &z, &c, &s));
    double size = hypot(a, b), eps = 1e-14 * (1 + size);
    ck_assert_double_le(fabs(c * a + s * b - r), eps);
    ck_assert_double_le(fabs(c * b - s * a), eps);
    ck_assert_double_le(fabs(c * c + s * s - 1), 1e-14);
    ck_assert_double_le(fabs(fabs(r) - size), eps);
    /* c and s again, from the number that stands for them. */
    double again = fabs(z) < 1 ? z : z == 1 ? 1 : sqrt(1 - 1 / (z * z));
    ck_assert_double_le(fabs(fabs(again) - fabs(s)), 1e-7);
  }
  cuDoubleComplex a = {3, -4}, b = {0, 2}, s;
  double c;
  OK(cublasZrotg(handle, &a, &b, &c, &s));
  /* conj(s) a = c b, as they were; r has the direction of a. */
  ck_assert_double_le(fabs(3 * s.x - 4 * s.y), 1e-14);
  ck_assert_double_le(fabs(-4 * s.x - 3 * s.y - 2 * c), 1e-14);
  ck_assert_double_le(fabs(c * c + s.x * s.x + s.y * s.y - 1), 1e-14);
  ck_assert_double_le(fabs(hypot(a.x, a.y) - sqrt(29)), 1e-14);
  ck_assert_double_le(fabs(a.x * -4 - a.y * 3), 1e-13);
  a = (cuDoubleComplex){0, 0};
  OK(cublasZrotg(handle, &a, &b, &c, &s));
  ck_assert(c == 0 && s.x == 1 && s.y == 0 && a.x == 0 && a.y == 2);
}
END_TEST

static void modified_check(cudaDataType type, bool on_device, bool wide) {
  int n = 1 + below(40), incx = below(7) - 3, incy = 1 + below(3);
  incx = incx ? incx : 1;
  array_t x = array_new(n * abs(incx), type), y = array_new(n * incy, type);
  array_t param = array_new(5, type);
  void *at = host_memory_resolve(param.device, 1);
  double h[2][2];
  param.model[0] = below(4) - 2;
  put(at, type, 0, param.model[0]);
  modified_fill(param.model, h);
  const void *given = on_device ? param.device : at;
  OK(cublasSetPointerMode(handle, on_device ? CUBLAS_POINTER_MODE_DEVICE
                                            : CUBLAS_POINTER_MODE_HOST));
  if (wide)
    OK(type == CUDA_R_64F
           ? cublasDrotm_64(handle, n, x.device, incx, y.device, incy, given)
           : cublasSrotm_64(handle, n, x.device, incx, y.device, incy, given));
  else
    OK(type == CUDA_R_64F
           ? cublasDrotm(handle, n, x.device, incx, y.device, incy, given)
           : cublasSrotm(handle, n, x.device, incx, y.device, incy, given));
  OK(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
  for (int i = 0; i < n; i++) {
    double *a = &x.model[incx > 0 ? i * incx : (i - n + 1) * incx];
    double *b = &y.model[i * incy], was = *a;
    *a = h[0][0] * was + h[0][1] * *b;
    *b = h[1][0] * was + h[1][1] * *b;
  }
  array_check(&x, eps_of(type));
  array_check(&y, eps_of(type));
  array_free(&x);
  array_free(&y);
  array_free(&param);
}

START_TEST(modified_rotations_are_applied_by_their_flag) {
  for (int round = 0; round < ROUNDS; round++)
    modified_check(round % 2 ? CUDA_R_64F : CUDA_R_32F, round / 2 % 2,
                   round / 4 % 2);
  float x = 1;
  ck_assert_int_eq(cublasSrotm(handle, 1, &x, 1, &x, 1, NULL),
                   CUBLAS_STATUS_INVALID_VALUE);
  OK(cublasSrotm(handle, 0, NULL, 1, NULL, 1, &x));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cublas");
  TCase *tests = tcase_create("blas");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, products_match_loops);
  tcase_add_test(tests, products_of_a_matrix_and_a_vector_match_loops);
  tcase_add_test(tests, vector_functions_match_loops);
  tcase_add_test(tests, scalars_may_lie_in_device_memory);
  tcase_add_test(tests, a_zero_beta_forgets_what_was_there);
  tcase_add_test(tests, a_captured_product_is_done_at_each_launch);
  tcase_add_test(tests, wrong_arguments_are_refused);
  tcase_add_test(tests, modified_rotations_make_the_second_element_zero);
  tcase_add_test(tests, rotations_make_the_second_element_zero);
  tcase_add_test(tests, modified_rotations_are_applied_by_their_flag);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
