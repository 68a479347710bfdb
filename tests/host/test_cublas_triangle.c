// SPDX-License-Identifier: Apache-2.0
// Triangular, symmetric and Hermitian matrices of cuBLAS in all four types,
// against the definition, computed from full matrices in double.
#include "tests/host/matrix.h"

typedef cublasStatus_t (*trmm_t)(cublasHandle_t, cublasSideMode_t,
                                 cublasFillMode_t, cublasOperation_t,
                                 cublasDiagType_t, int, int, const void *,
                                 const void *, int, const void *, int, void *,
                                 int);
typedef cublasStatus_t (*trsm_t)(cublasHandle_t, cublasSideMode_t,
                                 cublasFillMode_t, cublasOperation_t,
                                 cublasDiagType_t, int, int, const void *,
                                 const void *, int, void *, int);

/* trsm reverses trmm. */
START_TEST(triangles_multiply_and_divide) {
  for (int round = 0; round < ROUNDS; round++) {
    cudaDataType type = types[round % 4];
    int m = 1 + below(LIMIT), n = 1 + below(LIMIT);
    bool right = below(2), lower = below(2), unit = below(2);
    cublasOperation_t op = op_random();
    int order = right ? n : m;
    cublasSideMode_t side = right ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT;
    cublasFillMode_t uplo =
        lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    cublasDiagType_t diag = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    matrix_t a = matrix_random(type, order), b = matrix_random(type, m);
    for (int i = 0; i < CELLS; i++) /* well conditioned */
      a.value[i] /= 8;
    for (int i = 0; i < order; i++)
      a.value[i * a.ld + i] += 2;
    matrix_upload(&a);
    scalar_t alpha = scalar_random(type), back = alpha;
    full_t ta = full_triangle(&a, lower, unit, op, order);
    full_t fb = full_op(&b, CUBLAS_OP_N, m, n);
    full_t product = right ? full_product(&fb, &ta, m, n, n)
                           : full_product(&ta, &fb, m, n, m);
    number_t expected[CELLS];
    memcpy(expected, b.value, sizeof expected);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++)
        expected[j * b.ld + i] = alpha.value * *cell(&product, i, j);
    OK(FOUR(trmm, _v2, , trmm_t)(handle, side, uplo, op, diag, m, n,
                                 alpha.bytes, a.at, a.ld, b.at, b.ld, b.at,
                                 b.ld));
    matrix_check(&b, expected);
    if (alpha.value != 0) {
      number_put(back.bytes, type, 0, 1 / alpha.value);
      OK(FOUR(trsm, _v2, , trsm_t)(handle, side, uplo, op, diag, m, n,
                                   back.bytes, a.at, a.ld, b.at, b.ld));
      matrix_check(&b, b.value);
    }
    matrix_free(&a);
    matrix_free(&b);
  }
}
END_TEST

typedef cublasStatus_t (*symm_t)(cublasHandle_t, cublasSideMode_t,
                                 cublasFillMode_t, int, int, const void *,
                                 const void *, int, const void *, int,
                                 const void *, void *, int);
typedef cublasStatus_t (*syrk_t)(cublasHandle_t, cublasFillMode_t,
                                 cublasOperation_t, int, int, const void *,
                                 const void *, int, const void *, void *, int);

START_TEST(symmetric_and_hermitian_matrices_match_the_definition) {
  for (int round = 0; round < ROUNDS; round++) {
    cudaDataType type = types[round % 4];
    int m = 1 + below(LIMIT), n = 1 + below(LIMIT), k = 1 + below(LIMIT);
    bool right = below(2), lower = below(2);
    bool hermitian = is_complex(type) && below(2);
    cublasFillMode_t uplo =
        lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    matrix_t a = matrix_random(type, right ? n : m);
    matrix_t b = matrix_random(type, m), c = matrix_random(type, m);
    scalar_t alpha = scalar_random(type), beta = scalar_random(type);
    full_t fa = full_half(&a, lower, hermitian, right ? n : m);
    full_t fb = full_op(&b, CUBLAS_OP_N, m, n);
    full_t product = right ? full_product(&fb, &fa, m, n, n)
                           : full_product(&fa, &fb, m, n, m);
    number_t expected[CELLS];
    memcpy(expected, c.value, sizeof expected);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++)
        expected[j * c.ld + i] = alpha.value * *cell(&product, i, j) +
                                 beta.value * c.value[j * c.ld + i];
    symm_t symm = FOUR(symm, _v2, , symm_t);
    if (hermitian)
      symm = (symm_t)(type == CUDA_C_32F ? (void (*)(void))cublasChemm
                                         : (void (*)(void))cublasZhemm);
    OK(symm(handle, right ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT, uplo, m, n,
            alpha.bytes, a.at, a.ld, b.at, b.ld, beta.bytes, c.at, c.ld));
    matrix_check(&c, expected);
    matrix_free(&a);
    matrix_free(&b);
    matrix_free(&c);

    cublasOperation_t op = below(2)     ? CUBLAS_OP_N
                           : !hermitian ? CUBLAS_OP_T
                                        : CUBLAS_OP_C;
    cudaDataType real = !hermitian           ? type
                        : type == CUDA_C_32F ? CUDA_R_32F
                                             : CUDA_R_64F;
    a = matrix_random(type, op ? k : n);
    c = matrix_random(type, n);
    alpha = scalar_random(real);
    beta = scalar_random(real);
    fa = full_op(&a, op, n, k);
    full_t ft = {.rows = k};
    for (int j = 0; j < n; j++)
      for (int i = 0; i < k; i++)
        *cell(&ft, i, j) =
            hermitian ? conj(*cell(&fa, j, i)) : *cell(&fa, j, i);
    product = full_product(&fa, &ft, n, n, k);
    memcpy(expected, c.value, sizeof expected);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < n; i++)
        if (lower ? i >= j : i <= j) {
          number_t value = alpha.value * *cell(&product, i, j) +
                           beta.value * c.value[j * c.ld + i];
          expected[j * c.ld + i] = hermitian && i == j ? creal(value) : value;
        }
    syrk_t syrk = FOUR(syrk, _v2, , syrk_t);
    if (hermitian)
      syrk = (syrk_t)(type == CUDA_C_32F ? (void (*)(void))cublasCherk
                                         : (void (*)(void))cublasZherk);
    OK(syrk(handle, uplo, op, n, k, alpha.bytes, a.at, a.ld, beta.bytes, c.at,
            c.ld));
    matrix_check(&c, expected);
    matrix_free(&a);
    matrix_free(&c);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cublas_triangle");
  TCase *tests = tcase_create("cublas_triangle");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, triangles_multiply_and_divide);
  tcase_add_test(tests, symmetric_and_hermitian_matrices_match_the_definition);
  tcase_set_timeout(tests, 60);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
