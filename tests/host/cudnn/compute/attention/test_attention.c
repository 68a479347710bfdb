// SPDX-License-Identifier: Apache-2.0
// Attention, forward and backward, against loops over doubles.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/host/cudnn/case.h"
#include "tests/host/cudnn/compute/attention/attend.h"
#include "tests/host/cudnn/compute/draw.h"
#include "tests/host/cudnn/compute/reference.h"
#include "tests/unit/harness.h"

enum { BLOCKS = 20 };

static void check_random(int block, bool backward) {
  for (int64_t i = 0, n = random_cases(12); i < n; i++) {
    uint64_t seed = (uint64_t)(block + BLOCKS * i) + 31000000;
    case_seed(seed);
    made_t m;
    attend_t a = attend_draw();
    if (backward)
      (void)attend_backward(&m, &a);
    else
      (void)attend_forward(&m, &a);
    m.part = case_range(0, 1) ? case_range(1, 300) : 0;
    char name[32];
    snprintf(name, sizeof name, "attention %lu", seed);
    reference_run(&m, name);
    made_destroy(&m);
  }
}

START_TEST(random_attention_computes_what_its_nodes_say) {
  check_random(_i, false);
}
END_TEST

START_TEST(random_gradients_of_attention_are_what_their_nodes_say) {
  check_random(_i, true);
}
END_TEST

static void check_bits(const made_t *a, int ta, const made_t *b, int tb) {
  double *x = made_values(a, ta, false), *y = made_values(b, tb, false);
  REQUIRE_MSG(memcmp(x, y, (size_t)made_count(a, ta) * sizeof *x) == 0, "%s",
              made_text(a));
  free(x);
  free(y);
}

START_TEST(one_operation_gives_the_bits_of_many) {
  for (int64_t i = 0, n = random_cases(12); i < n; i++) {
    uint64_t seed = (uint64_t)(_i + BLOCKS * i) + 32000000;
    made_t many, one;
    case_seed(seed);
    attend_t a = attend_draw();
    a.causal = a.bias = false;
    a.left = 0;
    a.layout = (made_layout_t)(_i % 2);
    case_seed(seed + 1);
    attended_t first = attend_forward(&many, &a);
    case_seed(seed + 1);
    attended_t second = attend_as_one(&one, &a);
    ck_assert_ptr_null(host_graph_lacks(&one.graph));
    one.part = (int64_t)(seed % 50);
    made_run(&many);
    made_run(&one);
    check_bits(&many, first.o, &one, second.o);
    if (a.stats)
      check_bits(&many, first.stats, &one, second.stats);
    made_destroy(&many);
    made_destroy(&one);
  }
}
END_TEST

/* Behind the lengths there may be anything: results before them have the same
 * bits, and rows of queries behind them are zeros. */
START_TEST(what_lies_behind_the_lengths_does_not_matter) {
  const attend_t a = {.io = CUDNN_DATA_HALF,
                      .b = 3,
                      .heads = 2,
                      .groups = 1,
                      .rows = 9,
                      .columns = 11,
                      .d = 8,
                      .d_v = 8,
                      .lengths = true};
  made_t m;
  case_seed((uint64_t)_i + 9);
  attended_t t = _i ? attend_as_one(&m, &a) : attend_forward(&m, &a);
  made_run(&m);
  double *clean = made_values(&m, t.o, false);
  made_reset(&m);
  double *rows = made_values(&m, t.rows, true);
  double *columns = made_values(&m, t.columns, true);
  const int of[] = {t.q, t.k, t.v};
  for (int i = 0; i < 3; i++) {
    double *value = made_values(&m, of[i], true);
    const int64_t *dim = m.graph.tensor[of[i]].dim;
    for (int64_t k = 0; k < made_count(&m, of[i]); k++) {
      int64_t s = k / dim[3] % dim[2], b = k / dim[3] / dim[2] / dim[1];
      if ((double)s >= (i ? columns : rows)[b])
        value[k] = NAN;
    }
    made_fill(&m, of[i], value);
    free(value);
  }
  made_run(&m);
  double *dirty = made_values(&m, t.o, false);
  for (int64_t k = 0; k < made_count(&m, t.o); k++) {
    int64_t s = k / a.d_v % a.rows, b = k / a.d_v / a.rows / a.heads;
    ck_assert_double_eq(dirty[k], clean[k]);
    ck_assert((double)s < rows[b] || dirty[k] == 0);
  }
  free(clean);
  free(dirty);
  free(rows);
  free(columns);
  made_destroy(&m);
}
END_TEST

static int64_t resident_kilobytes(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* 4 Mi scores: each of the large matrices is 32 MiB in doubles. */
START_TEST(scores_of_a_long_sequence_are_never_whole) {
  const attend_t a = {.io = CUDNN_DATA_HALF,
                      .b = 1,
                      .heads = 1,
                      .groups = 1,
                      .rows = 2048,
                      .columns = 2048,
                      .d = 16,
                      .d_v = 16,
                      .causal = true,
                      .stats = true};
  made_t m;
  case_seed(3);
  if (_i)
    (void)attend_backward(&m, &a);
  else
    (void)attend_forward(&m, &a);
  int64_t before = resident_kilobytes();
  made_run(&m);
  int64_t grown = resident_kilobytes() - before;
  ck_assert_msg(grown < 100 * 1024, "%ld KiB", grown);
  made_destroy(&m);
}
END_TEST

/* A sum over rows that another node reads, in parts of any size. */
START_TEST(a_reduction_of_rows_is_read_in_the_same_graph) {
  static const cudnnReduceTensorOp_t ops[] = {
      CUDNN_REDUCE_TENSOR_ADD, CUDNN_REDUCE_TENSOR_MAX, CUDNN_REDUCE_TENSOR_AVG,
      CUDNN_REDUCE_TENSOR_NORM2};
  for (int part = 0; part < 60; part += 7) {
    const int64_t all[] = {3, 2, 5, 12}, rows[] = {3, 2, 5, _i % 2 ? 1 : 4};
    made_t m;
    case_seed((uint64_t)_i);
    made_create(&m);
    m.part = part;
    int x = made_real(&m, CUDNN_DATA_FLOAT, 4, all, MADE_GAPS);
    int sum = _i < 4 ? made_virtual(&m, CUDNN_DATA_FLOAT, 4, rows)
                     : made_real(&m, CUDNN_DATA_FLOAT, 4, rows, MADE_GAPS);
    int y = made_real(&m, CUDNN_DATA_FLOAT, 4, rows, MADE_CHANNELS);
    int z = made_real(&m, CUDNN_DATA_FLOAT, 4, all, MADE_CHANNELS);
    made_reduction(&m, ops[_i % 4], CUDNN_DATA_FLOAT, x, sum);
    made_pointwise(&m, CUDNN_POINTWISE_TANH_FWD, CUDNN_DATA_FLOAT, sum, -1, -1,
                   y);
    made_pointwise(&m, CUDNN_POINTWISE_SUB, CUDNN_DATA_FLOAT, x, _i % 2 ? y : x,
                   -1, z);
    reference_run(&m, "rows");
    made_destroy(&m);
  }
}
END_TEST

START_TEST(what_is_not_computed_of_attention_is_named) {
  static const struct {
    cudnnBackendAttributeName_t name;
    const char *text;
  } lacks[] = {
      {CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC, "mask of blocks"},
      {CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, "paged"},
      {CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC, "paged"},
      {CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, "extents"},
  };
  attend_t a = attend_draw();
  a.lengths = a.stats = false;
  a.d = 16;
  made_t m;
  attended_t t = attend_as_one(&m, &a);
  sdg_graph_node_t *node = &m.graph.node[0];
  ck_assert_ptr_null(host_graph_lacks(&m.graph));
  node->operand[node->operand_count++] =
      (sdg_graph_operand_t){lacks[_i].name, t.q};
  const char *text = host_graph_lacks(&m.graph);
  ck_assert_msg(text && strstr(text, lacks[_i].text), "%s",
                text ? text : "nothing");
  made_destroy(&m);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("compute_attention");
  TCase *tests = tcase_create("attention");
  tcase_add_loop_test(tests, random_attention_computes_what_its_nodes_say, 0,
                      BLOCKS);
  tcase_add_loop_test(
      tests, random_gradients_of_attention_are_what_their_nodes_say, 0, BLOCKS);
  tcase_add_loop_test(tests, one_operation_gives_the_bits_of_many, 0, BLOCKS);
  tcase_add_loop_test(tests, what_lies_behind_the_lengths_does_not_matter, 0,
                      2);
  tcase_add_loop_test(tests, scores_of_a_long_sequence_are_never_whole, 0, 2);
  tcase_add_loop_test(tests, a_reduction_of_rows_is_read_in_the_same_graph, 0,
                      8);
  tcase_add_loop_test(tests, what_is_not_computed_of_attention_is_named, 0, 4);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
