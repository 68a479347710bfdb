// SPDX-License-Identifier: Apache-2.0
// cuBLAS in all four types, with int and int64_t: every result against the
// definition, computed from full matrices in double.
#include "tests/host/matrix.h"

typedef cublasStatus_t (*gemm_t)(cublasHandle_t, cublasOperation_t,
                                 cublasOperation_t, int, int, int, const void *,
                                 const void *, int, const void *, int,
                                 const void *, void *, int);
typedef cublasStatus_t (*gemm64_t)(cublasHandle_t, cublasOperation_t,
                                   cublasOperation_t, int64_t, int64_t, int64_t,
                                   const void *, const void *, int64_t,
                                   const void *, int64_t, const void *, void *,
                                   int64_t);

START_TEST(products_of_all_types_match_the_definition) {
  for (int round = 0; round < ROUNDS; round++) {
    cudaDataType type = types[round % 4];
    int m = 1 + below(LIMIT), n = 1 + below(LIMIT), k = below(LIMIT);
    cublasOperation_t opa = op_random(), opb = op_random();
    matrix_t a = matrix_random(type, opa ? (k ? k : 1) : m);
    matrix_t b = matrix_random(type, opb ? n : (k ? k : 1));
    matrix_t c = matrix_random(type, m);
    scalar_t alpha = scalar_random(type), beta = scalar_random(type);
    number_t expected[CELLS];
    memcpy(expected, c.value, sizeof expected);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        number_t sum = 0;
        for (int p = 0; p < k; p++)
          sum += op_at(&a, opa, i, p) * op_at(&b, opb, p, j);
        expected[j * c.ld + i] =
            alpha.value * sum + beta.value * c.value[j * c.ld + i];
      }
    if (below(2))
      OK(FOUR(gemm, _v2, , gemm_t)(handle, opa, opb, m, n, k, alpha.bytes, a.at,
                                   a.ld, b.at, b.ld, beta.bytes, c.at, c.ld));
    else
      OK(FOUR(gemm, _v2, _64, gemm64_t)(handle, opa, opb, m, n, k, alpha.bytes,
                                        a.at, a.ld, b.at, b.ld, beta.bytes,
                                        c.at, c.ld));
    matrix_check(&c, expected);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);
  }
}
END_TEST

START_TEST(many_products_are_found_by_addresses_in_device_memory) {
  enum { MANY = 4 };
  matrix_t a[MANY], b[MANY], c[MANY];
  void *list[3][MANY], *at[3];
  double two = 2, one = 1;
  for (int i = 0; i < MANY; i++) {
    list[0][i] = (a[i] = matrix_random(CUDA_R_64F, 3)).at;
    list[1][i] = (b[i] = matrix_random(CUDA_R_64F, 3)).at;
    list[2][i] = (c[i] = matrix_random(CUDA_R_64F, 3)).at;
  }
  for (int i = 0; i < 3; i++) {
    OK(cudaMalloc(&at[i], sizeof list[i]));
    OK(cudaMemcpy(at[i], list[i], sizeof list[i], cudaMemcpyHostToDevice));
  }
  OK(cublasDgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &two,
                        (const double *const *)at[0], LD_MAX,
                        (const double *const *)at[1], LD_MAX, &one,
                        (double *const *)at[2], LD_MAX, MANY));
  for (int i = 0; i < MANY; i++) {
    number_t expected[CELLS];
    memcpy(expected, c[i].value, sizeof expected);
    for (int j = 0; j < 3; j++)
      for (int r = 0; r < 3; r++)
        for (int p = 0; p < 3; p++)
          expected[j * LD_MAX + r] +=
              2 * a[i].value[p * LD_MAX + r] * b[i].value[j * LD_MAX + p];
    matrix_check(&c[i], expected);
  }
  /* An invalid address is an error of the device. */
  list[0][1] = list;
  OK(cudaMemcpy(at[0], list[0], sizeof list[0], cudaMemcpyHostToDevice));
  OK(cublasDgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &two,
                        (const double *const *)at[0], LD_MAX,
                        (const double *const *)at[1], LD_MAX, &one,
                        (double *const *)at[2], LD_MAX, MANY));
  ck_assert_int_eq(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  OK(cudaDeviceReset());
}
END_TEST

typedef cublasStatus_t (*geam_t)(cublasHandle_t, cublasOperation_t,
                                 cublasOperation_t, int, int, const void *,
                                 const void *, int, const void *, const void *,
                                 int, void *, int);
typedef cublasStatus_t (*dgmm_t)(cublasHandle_t, cublasSideMode_t, int, int,
                                 const void *, int, const void *, int, void *,
                                 int);

START_TEST(matrices_are_added_and_scaled) {
  for (int round = 0; round < ROUNDS; round++) {
    cudaDataType type = types[round % 4];
    int m = 1 + below(LIMIT), n = 1 + below(LIMIT);
    cublasOperation_t opa = op_random(), opb = op_random();
    matrix_t a = matrix_random(type, opa ? n : m);
    matrix_t b = matrix_random(type, opb ? n : m), c = matrix_random(type, m);
    scalar_t alpha = scalar_random(type), beta = scalar_random(type);
    number_t expected[CELLS];
    memcpy(expected, c.value, sizeof expected);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++)
        expected[j * c.ld + i] = alpha.value * op_at(&a, opa, i, j) +
                                 beta.value * op_at(&b, opb, i, j);
    OK(FOUR(geam, , , geam_t)(handle, opa, opb, m, n, alpha.bytes, a.at, a.ld,
                              beta.bytes, b.at, b.ld, c.at, c.ld));
    matrix_check(&c, expected);
    memcpy(c.value, expected, sizeof expected);
    bool right = below(2);
    int length = right ? n : m, step = below(3) - 1;
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        int at = right ? j : i;
        expected[j * c.ld + i] *= b.value[step > 0   ? at
                                          : step < 0 ? length - 1 - at
                                                     : 0];
      }
    OK(FOUR(dgmm, , , dgmm_t)(handle,
                              right ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT, m,
                              n, c.at, c.ld, b.at, step, c.at, c.ld));
    matrix_check(&c, expected);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);
  }
}
END_TEST

typedef cublasStatus_t (*gemv_t)(cublasHandle_t, cublasOperation_t, int, int,
                                 const void *, const void *, int, const void *,
                                 int, const void *, void *, int);
typedef cublasStatus_t (*trsv_t)(cublasHandle_t, cublasFillMode_t,
                                 cublasOperation_t, cublasDiagType_t, int,
                                 const void *, int, void *, int);

START_TEST(matrices_work_on_vectors) {
  for (int round = 0; round < ROUNDS; round++) {
    cudaDataType type = types[round % 4];
    int m = 1 + below(LIMIT), n = 1 + below(LIMIT);
    cublasOperation_t op = op_random();
    int rows = op ? n : m, columns = op ? m : n;
    matrix_t a = matrix_random(type, m), x = matrix_random(type, 1 + below(3));
    matrix_t y = matrix_random(type, 1 + below(3));
    scalar_t alpha = scalar_random(type), beta = scalar_random(type);
    number_t expected[CELLS];
    memcpy(expected, y.value, sizeof expected);
    for (int i = 0; i < rows; i++) {
      number_t sum = 0;
      for (int j = 0; j < columns; j++)
        sum += op_at(&a, op, i, j) * x.value[j * x.ld];
      expected[i * y.ld] = alpha.value * sum + beta.value * y.value[i * y.ld];
    }
    OK(FOUR(gemv, _v2, , gemv_t)(handle, op, m, n, alpha.bytes, a.at, a.ld,
                                 x.at, x.ld, beta.bytes, y.at, y.ld));
    matrix_check(&y, expected);
    matrix_free(&a);

    /* trmv, then trsv; from the vector's end where the increment is < 0. */
    bool lower = below(2), unit = below(2);
    cublasFillMode_t uplo =
        lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    cublasDiagType_t diag = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    int step = below(2) ? x.ld : -x.ld;
    a = matrix_random(type, n);
    for (int i = 0; i < CELLS; i++)
      a.value[i] /= 8;
    for (int i = 0; i < n; i++)
      a.value[i * a.ld + i] += 2;
    matrix_upload(&a);
    full_t ta = full_triangle(&a, lower, unit, op, n);
    memcpy(expected, x.value, sizeof expected);
    for (int i = 0; i < n; i++) {
      number_t sum = 0;
      for (int j = 0; j < n; j++)
        sum += *cell(&ta, i, j) * x.value[(step > 0 ? j : n - 1 - j) * x.ld];
      expected[(step > 0 ? i : n - 1 - i) * x.ld] = sum;
    }
    OK(FOUR(trmv, _v2, , trsv_t)(handle, uplo, op, diag, n, a.at, a.ld, x.at,
                                 step));
    matrix_check(&x, expected);
    OK(FOUR(trsv, _v2, , trsv_t)(handle, uplo, op, diag, n, a.at, a.ld, x.at,
                                 step));
    matrix_check(&x, x.value);
    matrix_free(&a);
    matrix_free(&x);
    matrix_free(&y);
  }
}
END_TEST

START_TEST(complex_vectors_and_indices) {
  cudaDataType type = CUDA_C_64F;
  matrix_t x = matrix_random(type, 1), y = matrix_random(type, 1);
  int n = 30, first = 0;
  cuDoubleComplex result;
  double norm, sum = 0, absolute = 0, c = 0.6, found;
  number_t plain = 0, conjugated = 0;
  for (int i = 0; i < n; i++) {
    number_t a = x.value[i], b = y.value[i];
    plain += a * b;
    conjugated += conj(a) * b;
    sum += creal(a * conj(a));
    absolute += fabs(creal(a)) + fabs(cimag(a));
    number_t best = x.value[first];
    if (fabs(creal(a)) + fabs(cimag(a)) > fabs(creal(best)) + fabs(cimag(best)))
      first = i;
  }
  OK(cublasZdotu(handle, n, x.at, 1, y.at, 1, &result));
  ck_assert_double_le(cabs(CMPLX(result.x, result.y) - plain), 1e-10);
  OK(cublasZdotc(handle, n, x.at, 1, y.at, 1, &result));
  ck_assert_double_le(cabs(CMPLX(result.x, result.y) - conjugated), 1e-10);
  OK(cublasDznrm2(handle, n, x.at, 1, &norm));
  ck_assert_double_le(fabs(norm - sqrt(sum)), 1e-10);
  OK(cublasDzasum(handle, n, x.at, 1, &found));
  ck_assert_double_le(fabs(found - absolute), 1e-10);
  int index;
  int64_t index64;
  OK(cublasIzamax(handle, n, x.at, 1, &index));
  ck_assert_int_eq(index, first + 1);
  OK(cublasIzamax_64(handle, n, x.at, 1, &index64));
  ck_assert_int_eq((int)index64, first + 1);
  OK(cublasIzamax(handle, 0, x.at, 1, &index));
  ck_assert_int_eq(index, 0);
  cuDoubleComplex s = {0.64, -0.48};
  number_t cs = CMPLX(s.x, s.y);
  OK(cublasZrot(handle, 1, x.at, 1, y.at, 1, &c, &s));
  number_t before_x = x.value[0], before_y = y.value[0];
  x.value[0] = c * before_x + cs * before_y;
  y.value[0] = c * before_y - conj(cs) * before_x;
  matrix_check(&x, x.value);
  matrix_check(&y, y.value);
  matrix_free(&x);
  matrix_free(&y);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cublas_matrix");
  TCase *tests = tcase_create("matrix");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, products_of_all_types_match_the_definition);
  tcase_add_test(tests, matrices_are_added_and_scaled);
  tcase_add_test(tests, matrices_work_on_vectors);
  tcase_add_test(tests, complex_vectors_and_indices);
  tcase_add_test(tests, many_products_are_found_by_addresses_in_device_memory);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
