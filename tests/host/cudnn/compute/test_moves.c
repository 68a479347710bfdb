// SPDX-License-Identifier: Apache-2.0
// Graphs that move elements, that have no window at all, or that make
// parameters of a normalisation, against loops over doubles.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/draw.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

enum { BLOCKS = 20 };

static void random_check(int block, void (*draw)(made_t *m), uint64_t first,
                         const char *what) {
  for (int64_t i = 0, n = random_cases(50); i < n; i++) {
    uint64_t seed = (uint64_t)(block + BLOCKS * i) + first;
    case_seed(seed);
    made_t m;
    draw(&m);
    m.part = case_range(0, 1) ? case_range(1, 100) : 0;
    char name[40];
    snprintf(name, sizeof name, "%s %lu", what, seed);
    reference_run(&m, name);
    made_destroy(&m);
  }
}

START_TEST(random_moves_compute_what_their_nodes_say) {
  random_check(_i, draw_move, 15000000, "move");
}
END_TEST

START_TEST(random_graphs_without_a_window_compute_what_their_nodes_say) {
  random_check(_i, draw_plain, 16000000, "plain");
}
END_TEST

/* Exchanged strides are a transposed matrix, whether it has memory or not. */
START_TEST(exchanged_strides_transpose) {
  const int64_t dim[] = {2, 3, 4}, turned[] = {2, 4, 3};
  case_seed(1);
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 3, dim, MADE_DENSE), in = x;
  if (_i) {
    in = made_virtual(&m, CUDNN_DATA_FLOAT, 3, dim);
    made_pointwise(&m, CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT, x, -1, -1,
                   in);
  }
  int y = made_virtual(&m, CUDNN_DATA_FLOAT, 3, turned);
  int out = made_real(&m, CUDNN_DATA_FLOAT, 3, turned, MADE_DENSE);
  m.graph.tensor[y].stride[1] = 1;
  m.graph.tensor[y].stride[2] = 4;
  made_reshape(&m, in, y);
  made_pointwise(&m, CUDNN_POINTWISE_IDENTITY, CUDNN_DATA_FLOAT, y, -1, -1,
                 out);
  made_run(&m);
  double *from = made_values(&m, x, true), *to = made_values(&m, out, false);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++)
      for (int k = 0; k < 3; k++)
        ck_assert_double_eq(to[(i * 4 + j) * 3 + k], from[(i * 3 + k) * 4 + j]);
  free(from);
  free(to);
  made_destroy(&m);
}
END_TEST

/* P' dO, as attention's gradients have it: the transposed matrix is read by a
 * product. */
START_TEST(a_product_reads_a_transposed_matrix) {
  const int64_t p[] = {2, 3, 20, 30}, turned[] = {2, 3, 30, 20},
                d[] = {2, 3, 20, 8}, v[] = {2, 3, 30, 8};
  case_seed((uint64_t)_i);
  made_t m;
  made_create(&m);
  int tp = made_real(&m, CUDNN_DATA_HALF, 4, p, MADE_DENSE);
  int td = made_real(&m, CUDNN_DATA_HALF, 4, d, MADE_DENSE);
  int active = made_virtual(&m, CUDNN_DATA_HALF, 4, p);
  int back = made_virtual(&m, CUDNN_DATA_HALF, 4, turned);
  int tv = made_real(&m, CUDNN_DATA_HALF, 4, v, MADE_DENSE);
  m.graph.tensor[back].stride[2] = 1;
  m.graph.tensor[back].stride[3] = 30;
  made_pointwise(&m, CUDNN_POINTWISE_SIGMOID_FWD, CUDNN_DATA_FLOAT, tp, -1, -1,
                 active);
  made_reshape(&m, active, back);
  made_matmul(&m, CUDNN_DATA_FLOAT, back, td, tv);
  m.part = _i ? 40 : 0;
  reference_run(&m, "transposed");
  made_destroy(&m);
}
END_TEST

/* An input that lies where the result has it stays. */
START_TEST(a_joined_tensor_may_be_in_place) {
  const int64_t half[] = {2, 3}, all[] = {4, 3};
  case_seed(2);
  made_t m;
  made_create(&m);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 2, all, MADE_DENSE);
  int x[] = {made_alias(&m, y),
             made_real(&m, CUDNN_DATA_FLOAT, 2, half, MADE_DENSE)};
  m.graph.tensor[x[0]].dim[0] = 2;
  sdg_graph_node_t *node = made_concat(&m, 0, 2, x, y);
  made_set_integer(node, CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX,
                   CUDNN_TYPE_INT64, 0);
  reference_run(&m, "in place");
  made_destroy(&m);
}
END_TEST

/* All results, or the scale and the bias alone; in inference, of the running
 * statistics. The loop is over 0: training, 1: with few results, 2: inference.
 */
START_TEST(parameters_of_a_normalisation_follow_from_sums) {
  enum { CHANNELS = 17, COUNT = 50 };
  const int64_t dim[] = {1, CHANNELS, 1, 1};
  static const bool outputs[][MADE_FINALIZE] = {{[6] = true,
                                                 [7] = true,
                                                 [8] = true,
                                                 [9] = true,
                                                 [10] = true,
                                                 [11] = true},
                                                {[8] = true, [10] = true},
                                                {[10] = true, [11] = true}};
  case_seed((uint64_t)_i + 5);
  made_t m;
  made_create(&m);
  int tensor[MADE_FINALIZE];
  for (int i = 0; i < MADE_FINALIZE; i++) {
    bool output = i >= 6 && i < 12;
    tensor[i] = -1;
    if (i < 12 && (!output || outputs[_i][i]))
      tensor[i] = made_real(&m, i % 2 ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16,
                            4, dim, MADE_DENSE);
  }
  tensor[12] = made_number(&m, CUDNN_DATA_INT64, 4, COUNT);
  tensor[13] = made_number(&m, CUDNN_DATA_FLOAT, 4, 1e-3);
  tensor[14] = made_number(&m, CUDNN_DATA_FLOAT, 4, 0.25);
  double squares[CHANNELS], variance[CHANNELS];
  for (int i = 0; i < CHANNELS; i++) {
    squares[i] = COUNT * (1 + fabs(case_real()));
    variance[i] = 0.5 + fabs(case_real());
  }
  made_fill(&m, tensor[1], squares);
  made_fill(&m, tensor[5], variance);
  made_finalize(&m,
                _i == 2 ? CUDNN_BN_FINALIZE_STATISTICS_INFERENCE
                        : CUDNN_BN_FINALIZE_STATISTICS_TRAINING,
                tensor);
  m.part = _i ? 5 : 0;
  reference_run(&m, "finalize");
  made_destroy(&m);
}
END_TEST

START_TEST(what_is_not_computed_is_named) {
  const int64_t dim[] = {4, 3}, other[] = {2, 5};
  made_t m;
  made_create(&m);
  int x = made_real(&m, CUDNN_DATA_FLOAT, 2, dim, MADE_DENSE);
  int y = made_real(&m, CUDNN_DATA_FLOAT, 2, _i == 0 ? other : dim, MADE_DENSE);
  if (_i < 2)
    made_reshape(&m, x, y);
  else
    made_concat(&m, _i == 2 ? 0 : 2, 2, (const int[]){x, x}, y);
  if (_i == 1)
    m.graph.tensor[x].stride[0] = 1; /* elements that share memory */
  ck_assert_ptr_nonnull(host_graph_lacks(&m.graph));
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_moves");
  TCase *tests = tcase_create("moves");
  tcase_add_loop_test(tests, random_moves_compute_what_their_nodes_say, 0,
                      BLOCKS);
  tcase_add_loop_test(
      tests, random_graphs_without_a_window_compute_what_their_nodes_say, 0,
      BLOCKS);
  tcase_add_loop_test(tests, exchanged_strides_transpose, 0, 2);
  tcase_add_loop_test(tests, a_product_reads_a_transposed_matrix, 0, 2);
  tcase_add_test(tests, a_joined_tensor_may_be_in_place);
  tcase_add_loop_test(tests, parameters_of_a_normalisation_follow_from_sums, 0,
                      3);
  tcase_add_loop_test(tests, what_is_not_computed_is_named, 0, 4);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
