// SPDX-License-Identifier: Apache-2.0
// cublasLtMatmul and cublasLtMatrixTransform against their definitions in
// double, for any layout, type, epilogue and way to give the factors.
#include "tests/unit/harness.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/calls.h"

enum { LIMIT = 9, CELLS = 1024, ROUNDS = 250, BATCH = 2 };

static cublasLtHandle_t handle;

static void setup(void) {
  srand(9);
  OK(cublasLtCreate(&handle));
}

static void teardown(void) {
  OK(cublasLtDestroy(handle));
}

static int below(int limit) {
  return rand() % limit;
}

/* A batch of matrices in any layout. */
typedef struct matrix {
  cudaDataType type;
  int32_t order;
  int rows, columns, ld;
  int64_t stride;
  double value[CELLS];
  void *at; /* in device memory */
  cublasLtMatrixLayout_t layout;
} matrix_t;

__extension__ typedef _Float16 half_t;

static void put(void *at, cudaDataType type, int i, double value) {
  if (type == CUDA_R_64F)
    ((double *)at)[i] = value;
  else if (type == CUDA_R_32F)
    ((float *)at)[i] = (float)value;
  else if (type == CUDA_R_16F)
    ((half_t *)at)[i] = (half_t)value;
  else if (type == CUDA_R_32I)
    ((int32_t *)at)[i] = (int32_t)value;
  else
    ((int8_t *)at)[i] = (int8_t)value;
}

static double get(const void *at, cudaDataType type, int i) {
  if (type == CUDA_R_64F)
    return ((const double *)at)[i];
  if (type == CUDA_R_32F)
    return (double)((const float *)at)[i];
  if (type == CUDA_R_16F)
    return (double)((const half_t *)at)[i];
  if (type == CUDA_R_32I)
    return ((const int32_t *)at)[i];
  return ((const int8_t *)at)[i];
}

static void *upload(const double *value, cudaDataType type, int count) {
  double bytes[CELLS];
  void *at;
  for (int i = 0; i < count; i++)
    put(bytes, type, i, value[i]);
  OK(cudaMalloc(&at, sizeof bytes));
  OK(cudaMemcpy(at, bytes, sizeof bytes, cudaMemcpyHostToDevice));
  return at;
}

/* Small integers over 4, over 1 where only integers are. */
static double value_random(cudaDataType type) {
  int value = below(17) - 8;
  return type == CUDA_R_8I || type == CUDA_R_32I ? value : value / 4.0;
}

static matrix_t matrix_random(cudaDataType type, int rows, int columns,
                              int32_t batch) {
  matrix_t m = {.type = type,
                .order = below(2) ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL,
                .rows = rows,
                .columns = columns};
  m.ld = (m.order == CUBLASLT_ORDER_COL ? rows : columns) + below(3);
  m.stride = m.ld * (m.order == CUBLASLT_ORDER_COL ? columns : rows) + below(3);
  for (int i = 0; i < CELLS; i++)
    m.value[i] = value_random(type);
  m.at = upload(m.value, type, CELLS);
  OK(cublasLtMatrixLayoutCreate(&m.layout, type, (uint64_t)rows,
                                (uint64_t)columns, m.ld));
  OK(cublasLtMatrixLayoutSetAttribute(m.layout, CUBLASLT_MATRIX_LAYOUT_ORDER,
                                      &m.order, sizeof m.order));
  OK(cublasLtMatrixLayoutSetAttribute(
      m.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
  OK(cublasLtMatrixLayoutSetAttribute(
      m.layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.stride,
      sizeof m.stride));
  return m;
}

static void matrix_free(matrix_t *m) {
  OK(cudaFree(m->at));
  OK(cublasLtMatrixLayoutDestroy(m->layout));
}

static int place(const matrix_t *m, int batch, int i, int j) {
  return (int)m->stride * batch +
         (m->order == CUBLASLT_ORDER_COL ? j * m->ld + i : i * m->ld + j);
}

static double op_at(const matrix_t *m, int32_t op, int batch, int i, int j) {
  return m->value[op ? place(m, batch, j, i) : place(m, batch, i, j)];
}

static void matrix_check(const matrix_t *m, const double *expected) {
  double bytes[CELLS];
  double room = m->type == CUDA_R_16F   ? 2e-3
                : m->type == CUDA_R_32F ? 1e-5
                                        : 1e-12;
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(bytes, m->at, sizeof bytes, cudaMemcpyDeviceToHost));
  for (int i = 0; i < CELLS; i++)
    ck_assert_double_le(fabs(get(bytes, m->type, i) - expected[i]),
                        room * (1 + fabs(expected[i])));
}

static const struct {
  cudaDataType ab, d, scale;
  cublasComputeType_t compute;
} kinds[] = {
    {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    {CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
};

static const cublasLtEpilogue_t epilogues[] = {
    CUBLASLT_EPILOGUE_DEFAULT,  CUBLASLT_EPILOGUE_RELU,
    CUBLASLT_EPILOGUE_BIAS,     CUBLASLT_EPILOGUE_RELU_BIAS,
    CUBLASLT_EPILOGUE_GELU,     CUBLASLT_EPILOGUE_GELU_BIAS,
    CUBLASLT_EPILOGUE_GELU_AUX,
};

static double after(cublasLtEpilogue_t epilogue, double x) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU)
    return x > 0 ? x : 0;
  if (epilogue & CUBLASLT_EPILOGUE_GELU)
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return x;
}

static void attribute(cublasLtMatmulDesc_t desc,
                      cublasLtMatmulDescAttributes_t id, const void *value,
                      size_t bytes) {
  OK(cublasLtMatmulDescSetAttribute(desc, id, value, bytes));
}

START_TEST(products_match_the_definition) {
  for (int round = 0; round < ROUNDS; round++) {
    int kind = round % (int)(sizeof kinds / sizeof kinds[0]);
    cudaDataType type = kinds[kind].d, scale = kinds[kind].scale;
    int m = 1 + below(LIMIT), n = 1 + below(LIMIT), k = 1 + below(LIMIT);
    int32_t opa = below(2), opb = below(2), mode = below(5);
    int32_t batch = 1 + below(BATCH);
    cublasLtEpilogue_t epilogue =
        kind == 4 ? CUBLASLT_EPILOGUE_DEFAULT : epilogues[below(7)];
    matrix_t a = matrix_random(kinds[kind].ab, opa ? k : m, opa ? m : k, batch);
    matrix_t b = matrix_random(kinds[kind].ab, opb ? n : k, opb ? k : n, batch);
    matrix_t c = matrix_random(type, m, n, batch);
    matrix_t d = matrix_random(type, m, n, batch);
    double alpha[LIMIT], beta[LIMIT], bias[2 * LIMIT], expected[CELLS];
    double aux[CELLS] = {0};
    for (int i = 0; i < LIMIT; i++) {
      alpha[i] = value_random(scale);
      beta[i] = below(3) ? value_random(scale) : 0;
    }
    for (int i = 0; i < 2 * LIMIT; i++)
      bias[i] = value_random(type);
    bool vector = mode >= 2, beta_vector = mode == 2;
    memcpy(expected, d.value, sizeof expected);
    for (int t = 0; t < batch; t++)
      for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
          double sum = 0;
          for (int p = 0; p < k; p++)
            sum += op_at(&a, opa, t, i, p) * op_at(&b, opb, t, p, j);
          sum = alpha[vector ? i : 0] * sum +
                (mode == 3 ? 0 : beta[beta_vector ? i : 0]) *
                    c.value[place(&c, t, i, j)];
          if (epilogue & CUBLASLT_EPILOGUE_BIAS)
            sum += bias[t * LIMIT + i];
          aux[t * 100 + j * m + i] = sum;
          expected[place(&d, t, i, j)] = after(epilogue, sum);
        }
    cublasLtMatmulDesc_t desc;
    OK(cublasLtMatmulDescCreate(&desc, kinds[kind].compute, scale));
    attribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &opa, sizeof opa);
    attribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &opb, sizeof opb);
    attribute(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, &mode, sizeof mode);
    attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    void *bias_at = upload(bias, type, 2 * LIMIT), *aux_at;
    int64_t bias_stride = LIMIT, aux_ld = m, aux_stride = 100;
    double zeros[CELLS] = {0};
    aux_at = upload(zeros, type, CELLS);
    attribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias_at,
              sizeof bias_at);
    attribute(desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &bias_stride,
              sizeof bias_stride);
    attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux_at,
              sizeof aux_at);
    attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld,
              sizeof aux_ld);
    attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &aux_stride,
              sizeof aux_stride);
    double host_alpha, host_beta;
    put(&host_alpha, scale, 0, alpha[0]);
    put(&host_beta, scale, 0, beta[0]);
    void *alpha_at = upload(alpha, scale, LIMIT);
    void *beta_at = upload(beta, scale, LIMIT);
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int found;
    OK(cublasLtMatmulPreferenceCreate(&preference));
    OK(cublasLtMatmulAlgoGetHeuristic(handle, desc, a.layout, b.layout,
                                      c.layout, d.layout, preference, 1,
                                      &result, &found));
    ck_assert_int_eq(found, 1);
    ck_assert_int_eq(result.state, CUBLAS_STATUS_SUCCESS);
    OK(cublasLtMatmul(handle, desc, mode == 0 ? (void *)&host_alpha : alpha_at,
                      a.at, a.layout, b.at, b.layout,
                      mode == 0 || mode == 4 ? (void *)&host_beta : beta_at,
                      c.at, c.layout, d.at, d.layout, &result.algo, NULL, 0,
                      NULL));
    matrix_check(&d, expected);
    if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX) {
      matrix_t kept = {.type = type, .at = aux_at};
      matrix_check(&kept, aux);
    }
    OK(cublasLtMatmulPreferenceDestroy(preference));
    OK(cublasLtMatmulDescDestroy(desc));
    void *const memory[] = {bias_at, aux_at, alpha_at, beta_at};
    for (int i = 0; i < 4; i++)
      OK(cudaFree(memory[i]));
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);
    matrix_free(&d);
  }
}
END_TEST

/* A batch of two products of floats, 5 x 4 with k = 3. Parts that `epilogue`
 * does not name must not change. */
static void run_epilogue(uint32_t epilogue, const matrix_t *a,
                         const matrix_t *b, matrix_t *d, int32_t opa,
                         int32_t opb, void *bias, void *aux, int64_t aux_ld) {
  cublasLtMatmulDesc_t desc;
  float one = 1, zero = 0;
  int64_t bias_stride = LIMIT, aux_stride = 4 * aux_ld;
  OK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  attribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &opa, sizeof opa);
  attribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &opb, sizeof opb);
  attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  attribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
  attribute(desc, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &bias_stride,
            sizeof bias_stride);
  attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
  attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &aux_ld, sizeof aux_ld);
  attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &aux_stride,
            sizeof aux_stride);
  OK(cublasLtMatmul(handle, desc, &one, a->at, a->layout, b->at, b->layout,
                    &zero, d->at, d->layout, d->at, d->layout, NULL, NULL, 0,
                    NULL));
  OK(cublasLtMatmulDescDestroy(desc));
}

static double gelu_slope(double x) {
  double step = 1e-6;
  return (after(CUBLASLT_EPILOGUE_GELU, x + step) -
          after(CUBLASLT_EPILOGUE_GELU, x - step)) /
         (2 * step);
}

/* The backward epilogue uses what the forward one has stored; one run makes
 * both for the same product. */
START_TEST(epilogues_give_gradients) {
  static const uint32_t pairs[][2] = {
      {CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_DRELU},
      {CUBLASLT_EPILOGUE_RELU_AUX_BIAS, CUBLASLT_EPILOGUE_DRELU_BGRAD},
      {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_DGELU},
      {CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DGELU_BGRAD},
      {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BGRADA},
      {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BGRADB}};
  enum { M = 5, N = 4, K = 3 };
  for (int round = 0; round < 48; round++) {
    const uint32_t *pair = pairs[round % 6];
    int32_t opa = below(2), opb = below(2);
    matrix_t a = matrix_random(CUDA_R_32F, opa ? K : M, opa ? M : K, BATCH);
    matrix_t b = matrix_random(CUDA_R_32F, opb ? N : K, opb ? K : N, BATCH);
    matrix_t y = matrix_random(CUDA_R_32F, M, N, BATCH);
    matrix_t dx = matrix_random(CUDA_R_32F, M, N, BATCH);
    double bias[CELLS], expected[CELLS], forward[CELLS], gradient[CELLS];
    for (int i = 0; i < CELLS; i++)
      gradient[i] = bias[i] = value_random(CUDA_R_32F);
    bool bits = pair[1] & 8, biased = pair[0] & CUBLASLT_EPILOGUE_BIAS;
    matrix_t bias_of = {.type = CUDA_R_32F,
                        .at = upload(bias, CUDA_R_32F, CELLS)};
    void *aux;
    OK(cudaMalloc(&aux, 4096));
    run_epilogue(pair[0], &a, &b, &y, opa, opb, bias_of.at, aux,
                 bits ? 128 : 8);
    run_epilogue(pair[1], &a, &b, &dx, opa, opb, bias_of.at, aux,
                 bits ? 128 : 8);
    memcpy(forward, y.value, sizeof forward);
    memcpy(expected, dx.value, sizeof expected);
    for (int t = 0; t < BATCH; t++) {
      bool rows = pair[1] & 16 || pair[1] == CUBLASLT_EPILOGUE_BGRADA;
      bool columns = pair[1] == CUBLASLT_EPILOGUE_BGRADB;
      for (int i = 0; i < (rows ? M : columns ? N : 0); i++)
        gradient[t * LIMIT + i] = 0;
      for (int p = 0; p < K; p++) {
        for (int i = 0; i < M && pair[1] == CUBLASLT_EPILOGUE_BGRADA; i++)
          gradient[t * LIMIT + i] += op_at(&a, opa, t, i, p);
        for (int j = 0; j < N && columns; j++)
          gradient[t * LIMIT + j] += op_at(&b, opb, t, p, j);
      }
      for (int j = 0; j < N; j++)
        for (int i = 0; i < M; i++) {
          double sum = 0;
          for (int p = 0; p < K; p++)
            sum += op_at(&a, opa, t, i, p) * op_at(&b, opb, t, p, j);
          double in = sum + (biased ? bias[t * LIMIT + i] : 0);
          double slope = bits ? in > 0 : pair[1] & 64 ? gelu_slope(in) : 1;
          forward[place(&y, t, i, j)] = after(pair[0], in);
          expected[place(&dx, t, i, j)] = sum * slope;
          if (pair[1] & 16)
            gradient[t * LIMIT + i] += sum * slope;
        }
    }
    matrix_check(&y, forward);
    matrix_check(&dx, expected);
    matrix_check(&bias_of, gradient);
    OK(cudaFree(bias_of.at));
    OK(cudaFree(aux));
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&y);
    matrix_free(&dx);
  }
}
END_TEST

START_TEST(matrices_change_their_layout) {
  for (int round = 0; round < ROUNDS; round++) {
    cudaDataType from = round % 2 ? CUDA_R_32F : CUDA_R_16F;
    int m = 1 + below(LIMIT), n = 1 + below(LIMIT);
    int32_t opa = below(2), opb = below(2), batch = 1 + below(BATCH);
    matrix_t a = matrix_random(from, opa ? n : m, opa ? m : n, batch);
    matrix_t b = matrix_random(from, opb ? n : m, opb ? m : n, batch);
    matrix_t c = matrix_random(CUDA_R_32F, m, n, batch);
    bool one = below(2); /* no B */
    float alpha = (float)value_random(from), beta = (float)value_random(from);
    double expected[CELLS];
    memcpy(expected, c.value, sizeof expected);
    for (int t = 0; t < batch; t++)
      for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
          expected[place(&c, t, i, j)] =
              (double)alpha * op_at(&a, opa, t, i, j) +
              (one ? 0 : (double)beta * op_at(&b, opb, t, i, j));
    cublasLtMatrixTransformDesc_t desc;
    OK(cublasLtMatrixTransformDescCreate(&desc, CUDA_R_32F));
    OK(cublasLtMatrixTransformDescSetAttribute(
        desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, &opa, sizeof opa));
    OK(cublasLtMatrixTransformDescSetAttribute(
        desc, CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, &opb, sizeof opb));
    OK(cublasLtMatrixTransform(handle, desc, &alpha, a.at, a.layout, &beta,
                               one ? NULL : b.at, one ? NULL : b.layout, c.at,
                               c.layout, NULL));
    matrix_check(&c, expected);
    OK(cublasLtMatrixTransformDescDestroy(desc));
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);
  }
}
END_TEST

START_TEST(unsupported_products_are_refused) {
  matrix_t a = matrix_random(CUDA_R_32F, 4, 4, 1);
  matrix_t wide = matrix_random(CUDA_R_32F, 5, 4, 1);
  cublasLtMatmulDesc_t desc;
  float one = 1;
  int32_t order = CUBLASLT_ORDER_COL32;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DRELU;
  OK(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
#define PRODUCT(handle, b, d)                                                  \
  cublasLtMatmul(handle, desc, &one, a.at, a.layout, a.at, b, &one, a.at,      \
                 a.layout, d, a.layout, NULL, NULL, 0, NULL)
  OK(PRODUCT(handle, a.layout, wide.at));
  ck_assert_int_eq(PRODUCT(NULL, a.layout, wide.at),
                   CUBLAS_STATUS_NOT_INITIALIZED);
  ck_assert_int_eq(PRODUCT(handle, NULL, wide.at), CUBLAS_STATUS_INVALID_VALUE);
  ck_assert_int_eq(PRODUCT(handle, wide.layout, wide.at),
                   CUBLAS_STATUS_INVALID_VALUE);
  ck_assert_int_eq(PRODUCT(handle, a.layout, &one),
                   CUBLAS_STATUS_EXECUTION_FAILED);
  attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  ck_assert_int_eq(PRODUCT(handle, a.layout, wide.at),
                   CUBLAS_STATUS_INVALID_VALUE); /* no leading dimension */
  epilogue = (cublasLtEpilogue_t)0x1000;
  attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  ck_assert_int_eq(PRODUCT(handle, a.layout, wide.at),
                   CUBLAS_STATUS_NOT_SUPPORTED);
  epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  attribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
  OK(cublasLtMatrixLayoutSetAttribute(a.layout, CUBLASLT_MATRIX_LAYOUT_ORDER,
                                      &order, sizeof order));
  ck_assert_int_eq(PRODUCT(handle, a.layout, wide.at),
                   CUBLAS_STATUS_NOT_SUPPORTED);
  OK(cublasLtMatmulDescDestroy(desc));
  matrix_free(&a);
  matrix_free(&wide);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cublaslt");
  TCase *tests = tcase_create("lt");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, products_match_the_definition);
  tcase_add_test(tests, epilogues_give_gradients);
  tcase_add_test(tests, matrices_change_their_layout);
  tcase_add_test(tests, unsupported_products_are_refused);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
