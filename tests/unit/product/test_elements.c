// SPDX-License-Identifier: Apache-2.0
// Products of matrices: where elements and scalars are.
#include "rules/product/rule.h"

#include "rules/vendor/vendor.h"
#include "tests/unit/product/gemm.h"

// Returns where a matrix has the element at these indices of the product.
static int64_t place_of(const sdg_matrix_t *matrix, const int64_t *at) {
  int64_t offset = 0;
  for (int d = 0; d < matrix->dims; d++)
    offset += at[matrix->dim[d]] * matrix->stride[d];
  return offset;
}

static void elements_check(const sdg_gemm_t *g) {
  sdg_product_t p;
  sdg_product_make(g, &p);
  REQUIRE(p.fits && p.sums && p.keeps == (g->beta == &one));
  REQUIRE(p.dims == (g->batched ? 4 : 3));
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t j = 0; j < g->n; j++)
        for (int64_t t = 0; t < g->k; t++) {
          const int64_t at[] = {i, j, t, b};
          int64_t a = g->op_a == CUBLAS_OP_N ? i + t * g->lda : t + i * g->lda;
          int64_t c = g->op_b == CUBLAS_OP_N ? t + j * g->ldb : j + t * g->ldb;
          REQUIRE(place_of(&p.matrix[SDG_FACTOR_1], at) == a + b * g->stride_a);
          REQUIRE(place_of(&p.matrix[SDG_FACTOR_2], at) == c + b * g->stride_b);
          REQUIRE(place_of(&p.matrix[SDG_RESULT], at) ==
                  i + j * g->ldc + b * g->stride_c);
        }
}

START_TEST(matrices_have_their_elements_where_blas_has_them) {
  sdg_library_set_finder(find);
  seed = 1;
  for (int64_t i = 0; i < random_cases(2000); i++) {
    sdg_gemm_t gemm = gemm_draw(i % 2 != 0);
    elements_check(&gemm);
  }
}
END_TEST

START_TEST(a_vector_is_a_row) {
  sdg_library_set_finder(find);
  for (int turn = 0; turn < 2; turn++) {
    sdg_gemm_t g = gemm_of(5, 7, 0);
    g.kind = SDG_GEMM_VECTOR;
    g.op_a = turn ? CUBLAS_OP_T : CUBLAS_OP_N;
    g.lda = 6;
    g.ldb = 2;
    g.ldc = 3;
    sdg_product_t p;
    sdg_product_make(&g, &p);
    REQUIRE(p.fits && p.extent[SDG_N] == 1);
    REQUIRE(p.extent[SDG_M] == (turn ? 7 : 5));
    REQUIRE(p.extent[SDG_K] == (turn ? 5 : 7));
    for (int64_t i = 0; i < p.extent[SDG_M]; i++)
      for (int64_t t = 0; t < p.extent[SDG_K]; t++) {
        const int64_t at[] = {i, 0, t, 0};
        REQUIRE(p.matrix[SDG_FACTOR_2].role == SDG_ROLE_A);
        REQUIRE(place_of(&p.matrix[SDG_FACTOR_2], at) ==
                (turn ? t + 6 * i : i + 6 * t));
        REQUIRE(place_of(&p.matrix[SDG_FACTOR_1], at) == 2 * t);
        REQUIRE(place_of(&p.matrix[SDG_RESULT], at) == 3 * i);
      }
    g.ldb = -1; // counted from the end
    sdg_product_make(&g, &p);
    REQUIRE(!p.fits && p.dims == 3);
  }
}
END_TEST

START_TEST(halves_are_read_as_numbers) {
  static const struct {
    uint16_t bits;
    double value;
  } rows[] = {{0, 0},
              {0x3c00, 1},
              {0xc000, -2},
              {0x3555, 0.333251953125},
              {0x7bff, 65504},
              {1, 5.9604644775390625e-8},
              {0x0400, 6.103515625e-05}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    REQUIRE(sdg_product_scalar(&rows[i].bits, CUDA_R_16F) == rows[i].value);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("matmul elements");
  TCase *cases = tcase_create("matmul elements");
  tcase_add_test(cases, matrices_have_their_elements_where_blas_has_them);
  tcase_add_test(cases, a_vector_is_a_row);
  tcase_add_test(cases, halves_are_read_as_numbers);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
