// SPDX-License-Identifier: Apache-2.0
// Normalisations in operation graphs: against loops over doubles, and gradients
// against differences of the forward operation.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/norm/made_norm.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

enum { BLOCKS = 20, MODES = 5 };

static const cudnnBackendNormMode_t modes[MODES] = {
    CUDNN_LAYER_NORM, CUDNN_INSTANCE_NORM, CUDNN_BATCH_NORM, CUDNN_RMS_NORM,
    CUDNN_ADA_LAYER_NORM};

START_TEST(random_norms_compute_what_their_formulas_say) {
  for (int64_t i = 0, n = random_cases(50); i < n; i++) {
    uint64_t seed = (uint64_t)(_i + BLOCKS * i) + 17000000;
    case_seed(seed);
    made_t m;
    draw_norm(&m);
    m.part = case_range(0, 1) ? case_range(1, 100) : 0;
    char name[40];
    snprintf(name, sizeof name, "norm %lu", seed);
    reference_run(&m, name);
    made_destroy(&m);
  }
}
END_TEST

// ---- gradients -------------------------------------------------------------

static const int64_t extents[] = {3, 4, 2, 3};
enum { RANK = 4, ELEMENTS = 72 };

typedef struct {
  made_t m;
  made_norm_t norm;
  int64_t scale[RANK], statistics[RANK];
} graph_t;

static int doubles(graph_t *g, const int64_t *dim) {
  return made_real(&g->m, CUDNN_DATA_DOUBLE, RANK, dim, MADE_DENSE);
}

// All tensors are of doubles, so that differences are.
static void forward_make(graph_t *g, cudnnBackendNormMode_t mode) {
  made_create(&g->m);
  g->norm = made_norm_empty(mode, false);
  int *t = g->norm.tensor;
  made_norm_extents(mode, RANK, extents, g->scale, g->statistics);
  t[NORM_X] = doubles(g, extents);
  t[NORM_SCALE] = doubles(g, g->scale);
  t[NORM_BIAS] = doubles(g, g->scale);
  t[NORM_EPSILON] = made_number(&g->m, CUDNN_DATA_DOUBLE, RANK, 0.1);
  if (mode != CUDNN_RMS_NORM)
    t[NORM_MEAN] = doubles(g, g->statistics);
  t[NORM_INVERSE] = doubles(g, g->statistics);
  t[NORM_Y] = doubles(g, extents);
  made_norm(&g->m, &g->norm);
}

static double loss(graph_t *g, const double *dy) {
  double sum = 0;
  made_reset(&g->m);
  made_run(&g->m);
  double *y = made_values(&g->m, g->norm.tensor[NORM_Y], false);
  for (int i = 0; i < ELEMENTS; i++)
    sum += y[i] * dy[i];
  free(y);
  return sum;
}

// The gradient with respect to an operand, by differences of the loss.
static void check_gradient(graph_t *g, int operand, const double *dy,
                           const double *gradient) {
  const double step = 1e-4;
  double *values = made_values(&g->m, operand, true);
  for (int64_t i = 0; i < made_count(&g->m, operand); i++) {
    double keep = values[i], side[2];
    for (int k = 0; k < 2; k++) {
      values[i] = keep + (k ? step : -step);
      made_fill(&g->m, operand, values);
      side[k] = loss(g, dy);
    }
    values[i] = keep;
    made_fill(&g->m, operand, values);
    double slope = (side[1] - side[0]) / (2 * step);
    ck_assert_msg(fabs(slope - gradient[i]) < 1e-6 * (1 + fabs(slope)),
                  "operand %d, element %ld: %.9g, not %.9g", operand, (long)i,
                  gradient[i], slope);
  }
  free(values);
}

// The loop is over the modes.
START_TEST(gradients_are_those_of_differences) {
  static const made_norm_tensor_t same[] = {NORM_X, NORM_SCALE, NORM_MEAN,
                                            NORM_INVERSE};
  graph_t g, back = {0};
  case_seed((uint64_t)_i + 3);
  forward_make(&g, modes[_i]);
  made_run(&g.m);
  made_create(&back.m);
  back.norm = made_norm_empty(modes[_i], true);
  int *t = back.norm.tensor;
  for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
    int from = g.norm.tensor[same[k]];
    if (from < 0)
      continue;
    t[same[k]] = doubles(&back, g.m.graph.tensor[from].dim);
    double *values = made_values(&g.m, from, false);
    made_fill(&back.m, t[same[k]], values);
    free(values);
  }
  t[NORM_DY] = doubles(&back, extents);
  t[NORM_DX] = doubles(&back, extents);
  t[NORM_DSCALE] = doubles(&back, g.scale);
  t[NORM_DBIAS] = doubles(&back, g.scale);
  made_norm(&back.m, &back.norm);
  made_run(&back.m);
  double *dy = made_values(&back.m, t[NORM_DY], true);
  static const made_norm_tensor_t pairs[][2] = {
      {NORM_X, NORM_DX}, {NORM_SCALE, NORM_DSCALE}, {NORM_BIAS, NORM_DBIAS}};
  for (int k = 0; k < 3; k++) {
    double *gradient = made_values(&back.m, t[pairs[k][1]], false);
    check_gradient(&g, g.norm.tensor[pairs[k][0]], dy, gradient);
    free(gradient);
  }
  free(dy);
  made_destroy(&g.m);
  made_destroy(&back.m);
}
END_TEST

// dx = eq_dy_scale dy + eq_x_scale x + eq_bias, as one graph: what follows the
// operation reads its results.
START_TEST(three_numbers_of_each_channel_make_dx) {
  graph_t g = {0};
  case_seed(9);
  made_create(&g.m);
  g.norm = made_norm_empty(CUDNN_BATCH_NORM, true);
  int *t = g.norm.tensor, number[5];
  made_norm_extents(CUDNN_BATCH_NORM, RANK, extents, g.scale, g.statistics);
  for (int i = NORM_X; i <= NORM_INVERSE; i++)
    if (i != NORM_BIAS && i != NORM_EPSILON)
      t[i] = doubles(&g, i == NORM_X ? extents : g.scale);
  t[NORM_DY] = doubles(&g, extents);
  t[NORM_DX] = doubles(&g, extents);
  t[NORM_DSCALE] = doubles(&g, g.scale);
  t[NORM_DBIAS] = doubles(&g, g.scale);
  made_norm(&g.m, &g.norm);
  for (int i = 0; i < 5; i++)
    number[i] = doubles(&g, g.scale);
  made_weights(&g.m, (const int[]){t[NORM_X], t[NORM_DY], t[NORM_MEAN],
                                   t[NORM_INVERSE], t[NORM_SCALE], number[0],
                                   number[1], number[2], number[3], number[4]});
  made_run(&g.m);
  double *x = made_values(&g.m, t[NORM_X], false);
  double *dy = made_values(&g.m, t[NORM_DY], false);
  double *dx = made_values(&g.m, t[NORM_DX], false);
  double *dscale = made_values(&g.m, t[NORM_DSCALE], false);
  double *dbias = made_values(&g.m, t[NORM_DBIAS], false), *of[5];
  for (int i = 0; i < 5; i++)
    of[i] = made_values(&g.m, number[i], false);
  for (int i = 0; i < ELEMENTS; i++) {
    int c = i / 6 % 4;
    double value = of[2][c] * dy[i] + of[3][c] * x[i] + of[4][c];
    ck_assert_double_eq_tol(value, dx[i], 1e-9);
    ck_assert_double_eq_tol(of[0][c], dscale[c], 1e-9);
    ck_assert_double_eq_tol(of[1][c], dbias[c], 1e-9);
  }
  for (int i = 0; i < 5; i++)
    free(of[i]);
  free(x);
  free(dy);
  free(dx);
  free(dscale);
  free(dbias);
  made_destroy(&g.m);
}
END_TEST

// ---- what is not computed --------------------------------------------------

START_TEST(norms_that_are_not_computed_are_named) {
  static const int64_t other[] = {1, 3, 1, 1};
  graph_t g;
  case_seed(4);
  forward_make(&g, CUDNN_BATCH_NORM);
  sdg_graph_node_t *node = &g.m.graph.node[0];
  ck_assert_ptr_null(host_graph_lacks(&g.m.graph));
  switch (_i) {
  case 0:
    node->parameter[0].value[0].integer = CUDNN_GROUP_NORM;
    break;
  case 1: // statistics of other extents
    memcpy(g.m.graph.tensor[g.norm.tensor[NORM_INVERSE]].dim, other,
           sizeof other);
    break;
  case 2: // a scale of other extents
    memcpy(g.m.graph.tensor[g.norm.tensor[NORM_SCALE]].dim, other,
           sizeof other);
    break;
  case 3: // running statistics without a factor
    node->operand[3].name =
        CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC;
    node->operand[4].name =
        CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC;
    break;
  case 4: // inference with a mean alone
    node->parameter[1].value[0].integer = CUDNN_NORM_FWD_INFERENCE;
    node->operand[5].name = CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC;
    break;
  }
  ck_assert_ptr_nonnull(host_graph_lacks(&g.m.graph));
  made_destroy(&g.m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_norms");
  TCase *tests = tcase_create("norms");
  tcase_add_loop_test(tests, random_norms_compute_what_their_formulas_say, 0,
                      BLOCKS);
  tcase_add_loop_test(tests, gradients_are_those_of_differences, 0, MODES);
  tcase_add_test(tests, three_numbers_of_each_channel_make_dx);
  tcase_add_loop_test(tests, norms_that_are_not_computed_are_named, 0, 5);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
