// SPDX-License-Identifier: Apache-2.0
// Graphs with a product of matrices against loops over doubles.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/product.h"
#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/draw.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

enum { BLOCKS = 20 };

START_TEST(random_products_compute_what_their_nodes_say) {
  for (int64_t i = 0, n = random_cases(40); i < n; i++) {
    uint64_t seed = (uint64_t)(_i + BLOCKS * i) + 12000000;
    case_seed(seed);
    made_t m;
    draw_product(&m);
    m.part = case_range(0, 1) ? case_range(1, 300) : 0;
    char name[32];
    snprintf(name, sizeof name, "product %lu", seed);
    reference_run(&m, name);
    made_destroy(&m);
  }
}
END_TEST

/* All types, and those of sums that are larger than the operands'. */
START_TEST(products_of_all_types) {
  static const struct {
    cudnnDataType_t operand, compute, result;
  } types[] = {
      {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE},
      {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF},
      {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16},
      {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE},
      {CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_DATA_INT32},
      {CUDNN_DATA_INT8, CUDNN_DATA_INT32, CUDNN_DATA_FLOAT},
      {CUDNN_DATA_UINT8, CUDNN_DATA_INT32, CUDNN_DATA_INT8},
      {CUDNN_DATA_FP8_E4M3, CUDNN_DATA_FLOAT, CUDNN_DATA_BFLOAT16},
      {CUDNN_DATA_FP8_E5M2, CUDNN_DATA_FLOAT, CUDNN_DATA_FP8_E4M3},
  };
  for (int layout = MADE_DENSE; layout <= MADE_GAPS; layout++) {
    case_seed((uint64_t)(_i + 10 * layout));
    const int64_t a[] = {2, 3, 37, 300}, b[] = {2, 1, 300, 29},
                  c[] = {2, 3, 37, 29};
    made_t m;
    made_create(&m);
    int x = made_real(&m, types[_i].operand, 4, a, (made_layout_t)layout);
    int y = made_real(&m, types[_i].operand, 4, b, (made_layout_t)layout);
    int z = made_real(&m, types[_i].result, 4, c, (made_layout_t)layout);
    made_matmul(&m, types[_i].compute, x, y, z);
    reference_run(&m, "types");
    made_destroy(&m);
  }
}
END_TEST

/* The numbers of both 8-bit types, from their definition, and what lies between
 * them. */
START_TEST(numbers_of_8_bits_are_rounded_to_the_nearest) {
  cudnnDataType_t type = _i ? CUDNN_DATA_FP8_E5M2 : CUDNN_DATA_FP8_E4M3;
  int digits = _i ? 2 : 3, bias = _i ? 15 : 7, last = _i ? 0x7b : 0x7e;
  double before = 0, number;
  for (int bits = 0; bits <= last; bits++) {
    unsigned char at = (unsigned char)bits, rounded[3];
    int exponent = bits >> digits, rest = bits & ((1 << digits) - 1);
    double want = exponent
                      ? ldexp(rest + (1 << digits), exponent - bias - digits)
                      : ldexp(rest, 1 - bias - digits);
    host_elements_load(type, &at, 1, 1, &number);
    ck_assert_double_eq(number, want);
    double mid = (before + want) / 2, below = nextafter(mid, 0),
           above = nextafter(mid, INFINITY), values[] = {mid, below, -above};
    host_elements_store(type, rounded, 1, 3, 1, values, 0);
    int less = bits ? bits - 1 : 0;
    ck_assert_int_eq(rounded[0], bits % 2 ? less : bits);
    ck_assert_int_eq(rounded[1], less);
    ck_assert_int_eq(rounded[2], bits | 0x80);
    before = want;
  }
  double extremes[] = {INFINITY, -1e30, NAN}, back[3];
  unsigned char at[3];
  host_elements_store(type, at, 1, 3, 1, extremes, 0);
  host_elements_load(type, at, 1, 3, back);
  ck_assert_double_eq(back[0], before);
  ck_assert_double_eq(back[1], -before);
  ck_assert(isnan(back[2]));
}
END_TEST

/* A depth of 0 gives zeros, other extents of 0 nothing. */
START_TEST(extents_may_be_zero) {
  int64_t a[] = {2, 3, 5}, b[] = {2, 5, 4}, c[] = {2, 3, 4};
  if (_i == 0)
    a[2] = b[1] = 0;
  else if (_i == 1)
    a[1] = c[1] = 0;
  else
    b[2] = c[2] = 0;
  case_seed(1);
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 3, a, MADE_DENSE);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 3, b, MADE_DENSE);
  int z = made_real(&m, CUDNN_DATA_FLOAT, 3, c, MADE_DENSE);
  made_matmul(&m, CUDNN_DATA_FLOAT, x, y, z);
  reference_run(&m, "zero");
  made_destroy(&m);
}
END_TEST

/* One element is the same in a product of other extents and other leading
 * dimensions: its row, its column and the depth say all. */
START_TEST(an_element_of_a_product_depends_on_its_row_and_column) {
  case_seed((uint64_t)_i + 70);
  int64_t m = case_range(300, 500), n = case_range(200, 700);
  int64_t k = case_range(1, 700);
  double *a = malloc((size_t)(m * k) * sizeof *a);
  double *b = malloc((size_t)(k * n) * sizeof *b);
  double *c = malloc((size_t)(m * n) * sizeof *c), *part = malloc(m * n * 8);
  for (int64_t i = 0; i < m * k; i++)
    a[i] = case_real();
  for (int64_t i = 0; i < k * n; i++)
    b[i] = case_real();
  host_product_t p = {_i % 2, m, n, k, a, b, k, n, c};
  ck_assert(host_product_run(&p));
  for (int cut = 0; cut < 8; cut++) {
    int64_t row = case_range(0, (int)m - 1), column = case_range(0, (int)n - 1);
    p.m = case_range(1, (int)(m - row));
    p.n = case_range(1, (int)(n - column));
    p.a = a + row * k;
    p.b = b + column;
    p.c = part;
    ck_assert(host_product_run(&p));
    for (int64_t i = 0; i < p.m; i++)
      for (int64_t j = 0; j < p.n; j++)
        REQUIRE_MSG(
            memcmp(&part[i * p.n + j], &c[(row + i) * n + column + j], 8) == 0,
            "rows %ld+%ld, columns %ld+%ld, element %ld %ld", row, p.m, column,
            p.n, i, j);
  }
  free(a);
  free(b);
  free(c);
  free(part);
}
END_TEST

static int64_t resident_kilobytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* |q k / 8| v, whose large matrix is virtual: it is never in memory at once,
 * and neither are the rows that the default part of the result needs. */
START_TEST(a_large_matrix_between_products_is_computed_in_parts) {
  const int64_t rows = 2048, q[] = {1, rows, 16}, k[] = {1, 16, rows},
                s[] = {1, rows, rows};
  case_seed(3);
  made_t m;
  made_create(&m);
  int tq = made_real(&m, CUDNN_DATA_HALF, 3, q, MADE_DENSE);
  int tk = made_real(&m, CUDNN_DATA_HALF, 3, k, MADE_DENSE);
  int tv = made_real(&m, CUDNN_DATA_HALF, 3, q, MADE_DENSE);
  int scores = made_virtual(&m, CUDNN_DATA_FLOAT, 3, s);
  int scaled = made_virtual(&m, CUDNN_DATA_FLOAT, 3, s);
  int weights = made_virtual(&m, CUDNN_DATA_HALF, 3, s);
  int out = made_real(&m, CUDNN_DATA_FLOAT, 3, q, MADE_DENSE);
  int eighth = made_number(&m, CUDNN_DATA_FLOAT, 3, 0.125);
  made_matmul(&m, CUDNN_DATA_FLOAT, tq, tk, scores);
  made_pointwise(&m, CUDNN_POINTWISE_MUL, CUDNN_DATA_FLOAT, scores, eighth, -1,
                 scaled);
  made_pointwise(&m, CUDNN_POINTWISE_ABS, CUDNN_DATA_FLOAT, scaled, -1, -1,
                 weights);
  made_matmul(&m, CUDNN_DATA_FLOAT, weights, tv, out);
  int64_t before = resident_kilobytes();
  made_run(&m);
  int64_t grown = resident_kilobytes() - before;
  ck_assert_msg(grown < 84 * 1024, "%ld KiB", grown);
  made_destroy(&m);
}
END_TEST

START_TEST(what_is_not_computed_is_named) {
  const int64_t a[] = {2, 3, 5}, b[] = {2, 5, 4}, c[] = {2, 3, 4},
                several[] = {2, 3, 1};
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 3, a, MADE_DENSE);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 3, b, MADE_DENSE);
  int z = made_real(&m, CUDNN_DATA_FLOAT, 3, c, MADE_DENSE);
  int limit = made_real(&m, CUDNN_DATA_INT32, 3, several, MADE_DENSE);
  sdg_graph_node_t *node = made_matmul(&m, CUDNN_DATA_FLOAT, x, y, z);
  ck_assert_ptr_null(host_graph_lacks(&m.graph));
  if (_i == 0) /* room for the fourth operand is there */
    node->operand[node->operand_count++] = (sdg_graph_operand_t){
        CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, limit};
  else if (_i == 1)
    m.graph.tensor[y].dim[1] = 6;
  else
    m.graph.tensor[x].dim[0] = 3;
  ck_assert_ptr_nonnull(host_graph_lacks(&m.graph));
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_products");
  TCase *tests = tcase_create("products");
  tcase_add_loop_test(tests, random_products_compute_what_their_nodes_say, 0,
                      BLOCKS);
  tcase_add_loop_test(tests, products_of_all_types, 0, 11);
  tcase_add_loop_test(tests, numbers_of_8_bits_are_rounded_to_the_nearest, 0,
                      2);
  tcase_add_loop_test(tests, extents_may_be_zero, 0, 3);
  tcase_add_loop_test(
      tests, an_element_of_a_product_depends_on_its_row_and_column, 0, 6);
  tcase_add_test(tests, a_large_matrix_between_products_is_computed_in_parts);
  tcase_add_loop_test(tests, what_is_not_computed_is_named, 0, 3);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
