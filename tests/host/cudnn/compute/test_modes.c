// SPDX-License-Identifier: Apache-2.0
// Every mode of a pointwise node and every operator of a reduction, in every
// type, against loops over doubles.
#include <math.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

/* What a mode reads, and where its arguments may lie. */
typedef struct {
  cudnnPointwiseMode_t mode;
  const char *name;
  int operands; /* 3: with t */
  double low, high;
} mode_case_t;

#define MODE(name, ...)                                                        \
  { CUDNN_POINTWISE_##name, #name, __VA_ARGS__ }
static const mode_case_t modes[] = {
    MODE(ADD, 2, -2, 2),         MODE(ADD_SQUARE, 2, -2, 2),
    MODE(DIV, 2, 0.5, 2),        MODE(MAX, 2, -2, 2),
    MODE(MIN, 2, -2, 2),         MODE(MOD, 2, -2, 2),
    MODE(MUL, 2, -2, 2),         MODE(POW, 2, 0.1, 2),
    MODE(SUB, 2, -2, 2),         MODE(ATAN2, 2, -2, 2),
    MODE(ABS, 1, -2, 2),         MODE(CEIL, 1, -2, 2),
    MODE(COS, 1, -2, 2),         MODE(EXP, 1, -2, 2),
    MODE(FLOOR, 1, -2, 2),       MODE(LOG, 1, 0.1, 2),
    MODE(NEG, 1, -2, 2),         MODE(RSQRT, 1, 0.1, 2),
    MODE(SIN, 1, -2, 2),         MODE(SQRT, 1, 0, 2),
    MODE(TAN, 1, -1, 1),         MODE(ERF, 1, -2, 2),
    MODE(IDENTITY, 1, -2, 2),    MODE(RECIPROCAL, 1, 0.1, 2),
    MODE(RELU_FWD, 1, -2, 2),    MODE(TANH_FWD, 1, -2, 2),
    MODE(SIGMOID_FWD, 1, -2, 2), MODE(ELU_FWD, 1, -2, 2),
    MODE(GELU_FWD, 1, -2, 2),    MODE(SOFTPLUS_FWD, 1, -2, 2),
    MODE(SWISH_FWD, 1, -2, 2),   MODE(GELU_APPROX_TANH_FWD, 1, -2, 2),
    MODE(RELU_BWD, 2, -2, 2),    MODE(TANH_BWD, 2, -2, 2),
    MODE(SIGMOID_BWD, 2, -2, 2), MODE(ELU_BWD, 2, -2, 2),
    MODE(GELU_BWD, 2, -2, 2),    MODE(SOFTPLUS_BWD, 2, -2, 2),
    MODE(SWISH_BWD, 2, -2, 2),   MODE(GELU_APPROX_TANH_BWD, 2, -2, 2),
    MODE(CMP_EQ, 2, -2, 2),      MODE(CMP_NEQ, 2, -2, 2),
    MODE(CMP_GT, 2, -2, 2),      MODE(CMP_GE, 2, -2, 2),
    MODE(CMP_LT, 2, -2, 2),      MODE(CMP_LE, 2, -2, 2),
    MODE(LOGICAL_AND, 2, 0, 1),  MODE(LOGICAL_OR, 2, 0, 1),
    MODE(LOGICAL_NOT, 1, 0, 1),  MODE(BINARY_SELECT, 3, -2, 2),
};
enum { MODES = sizeof modes / sizeof *modes };

static bool is_comparison(const mode_case_t *mode) {
  return mode->mode >= CUDNN_POINTWISE_CMP_EQ &&
         mode->mode <= CUDNN_POINTWISE_CMP_LE;
}

static bool is_logical(const mode_case_t *mode) {
  return mode->mode >= CUDNN_POINTWISE_LOGICAL_AND &&
         mode->mode <= CUDNN_POINTWISE_LOGICAL_NOT;
}

/* Values of the mode's domain; coarse ones, so that comparisons find equals. */
static void fill(made_t *m, int tensor, const mode_case_t *mode) {
  double values[512];
  int64_t count = made_count(m, tensor);
  for (int64_t i = 0; i < count; i++) {
    values[i] = mode->low + (case_real() + 1) / 2 * (mode->high - mode->low);
    if (is_comparison(mode))
      values[i] = nearbyint(values[i]);
  }
  made_fill(m, tensor, values);
}

static void try_mode(const mode_case_t *mode, cudnnDataType_t type,
                     bool scaled) {
  const int64_t dim[] = {2, 3, 5, 3}, row[] = {1, 3, 1, 1};
  made_t m;
  made_create(&m);
  bool logical = is_logical(mode);
  cudnnDataType_t in = logical ? CUDNN_DATA_BOOLEAN : type;
  cudnnDataType_t out =
      logical || is_comparison(mode) ? CUDNN_DATA_BOOLEAN : type;
  cudnnDataType_t compute =
      type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  int x = made_real(&m, in, 4, dim, MADE_GAPS), b = -1, t = -1;
  fill(&m, x, mode);
  if (mode->operands > 1) {
    b = made_real(&m, in, 4, case_range(0, 1) ? row : dim, MADE_CHANNELS);
    fill(&m, b, mode);
  }
  if (mode->operands > 2)
    t = made_real(&m, CUDNN_DATA_BOOLEAN, 4, dim, MADE_DENSE);
  int y = made_real(&m, out, 4, dim, MADE_GAPS);
  sdg_graph_node_t *node = made_pointwise(&m, mode->mode, compute, x, b, t, y);
  if (scaled) {
    made_set_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 0.75);
    made_set_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, 1.25);
  }
  reference_run(&m, mode->name);
  made_destroy(&m);
}

START_TEST(every_mode_computes_in_every_type) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                          CUDNN_DATA_HALF,  CUDNN_DATA_BFLOAT16,
                                          CUDNN_DATA_INT8,  CUDNN_DATA_INT32};
  const mode_case_t *mode = &modes[_i];
  case_seed((uint64_t)_i);
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    /* Division by 0 is no number of theirs. */
    bool whole = k >= 4;
    if (whole && (mode->low > 0 || mode->mode == CUDNN_POINTWISE_MOD))
      continue;
    try_mode(mode, types[k], false);
  }
  if (mode->operands == 2 && mode->mode <= CUDNN_POINTWISE_SUB)
    try_mode(mode, CUDNN_DATA_FLOAT, true);
}
END_TEST

/* x and the gradient in front of an activation with parameters. */
static void try_parameter(cudnnPointwiseMode_t mode,
                          cudnnBackendAttributeName_t name, double value,
                          cudnnBackendAttributeName_t more, double other) {
  const int64_t dim[] = {2, 3, 5, 3};
  bool backward = mode >= CUDNN_POINTWISE_RELU_BWD;
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
  int dy = backward ? made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE) : -1;
  int y = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
  sdg_graph_node_t *node =
      made_pointwise(&m, mode, CUDNN_DATA_FLOAT, x, dy, -1, y);
  made_set_real(node, name, value);
  if (more != name)
    made_set_real(node, more, other);
  reference_run(&m, "parameter");
  made_destroy(&m);
}

START_TEST(activations_obey_their_parameters) {
  const struct {
    cudnnPointwiseMode_t forward, backward;
    cudnnBackendAttributeName_t name;
    double value;
    cudnnBackendAttributeName_t more;
    double other;
  } rows[] = {{CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD,
               CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 0.75,
               CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.125},
              {CUDNN_POINTWISE_RELU_FWD, CUDNN_POINTWISE_RELU_BWD,
               CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, -0.5,
               CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 0.5},
              {CUDNN_POINTWISE_ELU_FWD, CUDNN_POINTWISE_ELU_BWD,
               CUDNN_ATTR_POINTWISE_ELU_ALPHA, 0.5,
               CUDNN_ATTR_POINTWISE_ELU_ALPHA, 0},
              {CUDNN_POINTWISE_SOFTPLUS_FWD, CUDNN_POINTWISE_SOFTPLUS_BWD,
               CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 2,
               CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 0},
              {CUDNN_POINTWISE_SWISH_FWD, CUDNN_POINTWISE_SWISH_BWD,
               CUDNN_ATTR_POINTWISE_SWISH_BETA, 1.5,
               CUDNN_ATTR_POINTWISE_SWISH_BETA, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    case_seed(100 + i);
    try_parameter(rows[i].forward, rows[i].name, rows[i].value, rows[i].more,
                  rows[i].other);
    try_parameter(rows[i].backward, rows[i].name, rows[i].value, rows[i].more,
                  rows[i].other);
  }
}
END_TEST

/* As a mask is made: an index, and a comparison with a number by value. */
START_TEST(an_index_counts_along_its_axis) {
  const int64_t dim[] = {2, 3, 5, 7};
  case_seed(7);
  for (int k = 0; k < 8; k++) {
    made_t m;
    made_create(&m);
    m.part = k / 4 ? 6 : 0;
    int x = made_real(&m, CUDNN_DATA_HALF, 4, dim, MADE_DENSE);
    int at = made_real(&m, CUDNN_DATA_INT32, 4, dim, MADE_GAPS);
    int bound = made_number(&m, CUDNN_DATA_INT32, 4, 2);
    int low = made_number(&m, CUDNN_DATA_FLOAT, 4, -INFINITY);
    int mask = made_virtual(&m, CUDNN_DATA_BOOLEAN, 4, dim);
    int y = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
    sdg_graph_node_t *node = made_pointwise(&m, CUDNN_POINTWISE_GEN_INDEX,
                                            CUDNN_DATA_INT32, x, -1, -1, at);
    made_set_integer(node, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, k % 4);
    made_pointwise(&m, CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, at, bound,
                   -1, mask);
    made_pointwise(&m, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, x, low,
                   mask, y);
    reference_run(&m, "index");
    made_destroy(&m);
  }
}
END_TEST

START_TEST(every_operator_reduces_in_every_type) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE,
                                          CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
  static const int64_t from[][4] = {
      {3, 8, 5, 7}, {1, 1, 9, 33}, {2, 3, 4, 6}, {5, 1, 1, 1}};
  static const int64_t to[][4][4] = {
      {{1, 8, 1, 1}, {3, 4, 5, 7}, {1, 1, 1, 1}, {3, 8, 5, 7}},
      {{1, 1, 1, 1}, {1, 1, 9, 1}, {1, 1, 1, 33}, {1, 1, 3, 11}},
      {{2, 3, 2, 3}, {1, 1, 4, 6}, {2, 3, 4, 1}, {1, 3, 1, 2}},
      {{1, 1, 1, 1}, {5, 1, 1, 1}, {1, 1, 1, 1}, {5, 1, 1, 1}}};
  case_seed((uint64_t)_i + 300);
  for (int k = 0; k < 64; k++) {
    cudnnDataType_t type = types[k / 4 % 4];
    made_t m;
    made_create(&m);
    m.part = case_range(0, 1) ? case_range(1, 40) : 0;
    int x = made_real(&m, type, 4, from[k / 16], MADE_GAPS);
    int y = made_real(&m, type, 4, to[k / 16][k % 4], MADE_GAPS);
    double *values = made_values(&m, x, true);
    for (int64_t i = 0; i < made_count(&m, x); i++)
      if (case_range(0, 9) == 0)
        values[i] = 0;
    made_fill(&m, x, values);
    free(values);
    made_reduction(&m, (cudnnReduceTensorOp_t)_i,
                   k / 4 % 4 == 1 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, x, y);
    reference_run(&m, "reduction");
    made_destroy(&m);
  }
}
END_TEST

START_TEST(statistics_are_sums_and_squares_of_channels) {
  const int64_t dim[] = {3, 5, 7, 9}, channels[] = {1, 5, 1, 1};
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF,
                                          CUDNN_DATA_BFLOAT16};
  case_seed(11);
  for (int k = 0; k < 3; k++) {
    made_t m;
    made_create(&m);
    int x = made_real(&m, types[k], 4, dim, MADE_CHANNELS);
    int sum = made_real(&m, CUDNN_DATA_FLOAT, 4, channels, MADE_DENSE);
    int squares = made_real(&m, CUDNN_DATA_FLOAT, 4, channels, MADE_DENSE);
    made_statistics(&m, CUDNN_DATA_FLOAT, x, sum, squares);
    reference_run(&m, "statistics");
    made_destroy(&m);
  }
}
END_TEST

/* NaN goes through what compares and what chooses. */
START_TEST(nan_is_not_lost) {
  const int64_t dim[] = {1, 1, 1, 3}, one[] = {1, 1, 1, 1};
  static const cudnnPointwiseMode_t two[] = {
      CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_DIV};
  static const cudnnReduceTensorOp_t sums[] = {
      CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_AVG,
      CUDNN_REDUCE_TENSOR_NORM1, CUDNN_REDUCE_TENSOR_NORM2};
  const double bad[] = {1, NAN, 2};
  for (int k = 0; k < 7; k++) {
    made_t m;
    made_create(&m);
    int x = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
    made_fill(&m, x, bad);
    int y = made_real(&m, CUDNN_DATA_FLOAT, 4, k < 3 ? dim : one, MADE_DENSE);
    if (k < 3)
      made_pointwise(&m, two[k], CUDNN_DATA_FLOAT, x, x, -1, y);
    else
      made_reduction(&m, sums[k - 3], CUDNN_DATA_FLOAT, x, y);
    made_run(&m);
    double *have = made_values(&m, y, false);
    ck_assert(isnan(have[k < 3 ? 1 : 0]));
    free(have);
    made_destroy(&m);
  }
}
END_TEST

START_TEST(relu_makes_nothing_of_an_infinity_below) {
  const int64_t dim[] = {1, 1, 1, 3};
  const double x_value[] = {-INFINITY, INFINITY, -1},
               dy_value[] = {1, -1, INFINITY};
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
  int dy = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
  made_fill(&m, x, x_value);
  made_fill(&m, dy, dy_value);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
  int dx = made_real(&m, CUDNN_DATA_FLOAT, 4, dim, MADE_DENSE);
  made_pointwise(&m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, x, -1, -1, y);
  made_pointwise(&m, CUDNN_POINTWISE_RELU_BWD, CUDNN_DATA_FLOAT, x, dy, -1, dx);
  made_run(&m);
  const double want[2][3] = {{0, INFINITY, 0}, {0, -1, 0}};
  for (int k = 0; k < 2; k++) {
    double *have = made_values(&m, k ? dx : y, false);
    for (int i = 0; i < 3; i++)
      ck_assert_msg(have[i] == want[k][i], "%d, %d: %g", k, i, have[i]);
    free(have);
  }
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_modes");
  TCase *tests = tcase_create("modes");
  tcase_add_loop_test(tests, every_mode_computes_in_every_type, 0, MODES);
  tcase_add_test(tests, activations_obey_their_parameters);
  tcase_add_test(tests, an_index_counts_along_its_axis);
  tcase_add_loop_test(tests, every_operator_reduces_in_every_type, 0,
                      CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS + 1);
  tcase_add_test(tests, statistics_are_sums_and_squares_of_channels);
  tcase_add_test(tests, nan_is_not_lost);
  tcase_add_test(tests, relu_makes_nothing_of_an_infinity_below);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
