// SPDX-License-Identifier: Apache-2.0
// The planner's rules for two products of matrices: for each one a graph within
// it, which is taken, and a graph beyond it, which is refused for that reason.
// NVIDIA's planner said the same of all of them.
#include <string.h>

#include "src/host/cudnn/plan/plan.h"
#include "tests/host/cudnn/compute/made.h"
#include "tests/unit/harness.h"

// 0 stands for relu(a b) d of halves in float: 2 x 3 matrices 32 x 64 by rows,
// 64 x 40 by columns, 40 x 64 by rows.
typedef struct {
  int rank, depth, last;                // 0: as above
  cudnnDataType_t type, second, result; // of all; of relu(a b) and d; of y
  cudnnDataType_t math;
  bool floats, second_floats, result_floats; // the three
  bool a_by_columns, b_by_rows, d_by_columns, y_by_columns;
  bool link_is_b; // d relu(a b)
  bool front, front_of_d, behind, sums, apart, third;
} graph_t;

static cudnnDataType_t type_of(const graph_t *g) {
  return g->floats ? CUDNN_DATA_FLOAT : g->type ? g->type : CUDNN_DATA_HALF;
}

static cudnnDataType_t second_of(const graph_t *g) {
  return g->second_floats ? CUDNN_DATA_FLOAT
         : g->second      ? g->second
                          : type_of(g);
}

static cudnnDataType_t result_of(const graph_t *g) {
  return g->result_floats ? CUDNN_DATA_FLOAT
         : g->result      ? g->result
                          : type_of(g);
}

static int matrix(made_t *m, const graph_t *g, cudnnDataType_t type, int rows,
                  int columns, bool by_columns, bool is_virtual) {
  int rank = g->rank ? g->rank : 4;
  const int64_t dim[] = {2, 3, rows, columns};
  int index = made_virtual(m, type, rank, dim + 4 - rank);
  sdg_graph_tensor_t *t = &m->graph.tensor[index];
  t->is_virtual = is_virtual;
  t->alignment = 16;
  if (by_columns) {
    t->stride[rank - 2] = 1;
    t->stride[rank - 1] = rows;
  }
  return index;
}

static int absolute(made_t *m, const graph_t *g, int x, int rows, int columns) {
  int y = matrix(m, g, m->graph.tensor[x].type, rows, columns, false, true);
  made_pointwise(m, CUDNN_POINTWISE_ABS, CUDNN_DATA_FLOAT, x, -1, -1, y);
  return y;
}

enum { SIDE = 32, MIDDLE = 40, OTHERS = 48 };

// relu(a b)
static int first(made_t *m, const graph_t *g, int middle) {
  cudnnDataType_t type = type_of(g);
  int depth = g->depth ? g->depth : 64;
  int a = matrix(m, g, type, SIDE, depth, g->a_by_columns, false);
  int b = matrix(m, g, type, depth, middle, !g->b_by_rows, false);
  if (g->front)
    a = absolute(m, g, a, SIDE, depth);
  int c = matrix(m, g, CUDNN_DATA_FLOAT, SIDE, middle, false, true);
  int x = matrix(m, g, second_of(g), SIDE, middle, false, !g->apart);
  made_matmul(m, g->math, a, b, c);
  made_pointwise(m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, c, -1, -1, x);
  if (g->sums) {
    int sum = matrix(m, g, CUDNN_DATA_FLOAT, SIDE, 1, false, false);
    made_reduction(m, CUDNN_REDUCE_TENSOR_MAX, CUDNN_DATA_FLOAT, c, sum);
  }
  return x;
}

static const char *verdict(const graph_t *g) {
  made_t m;
  made_create(&m);
  cudnnDataType_t type = type_of(g);
  int last = g->last ? g->last : 64, middle = g->link_is_b ? last : MIDDLE;
  int x = first(&m, g, middle);
  if (g->apart)
    x = matrix(&m, g, type, SIDE, middle, false, false);
  int rows = g->link_is_b ? OTHERS : middle,
      columns = g->link_is_b ? SIDE : last, left = g->link_is_b ? OTHERS : SIDE;
  int d = matrix(&m, g, second_of(g), rows, columns, g->d_by_columns, false);
  if (g->front_of_d)
    d = absolute(&m, g, d, rows, columns);
  bool ends = !g->behind && !g->third;
  int y = matrix(&m, g, result_of(g), left, last, g->y_by_columns, !ends);
  made_matmul(&m, g->math, g->link_is_b ? d : x, g->link_is_b ? x : d, y);
  if (g->behind)
    made_pointwise(&m, CUDNN_POINTWISE_RELU_FWD, CUDNN_DATA_FLOAT, y, -1, -1,
                   matrix(&m, g, type, left, last, false, false));
  if (g->third)
    made_matmul(&m, g->math, y, matrix(&m, g, type, last, 64, false, false),
                matrix(&m, g, type, left, 64, false, false));
  const char *text = host_plan_refuses(&m.graph);
  made_destroy(&m);
  return text;
}

// ---- the table -------------------------------------------------------------

#define BF16 .type = CUDNN_DATA_BFLOAT16

// clang-format off
static const struct {
  const char *rule; // how its text begins
  graph_t within, beyond;
} rows[] = {
    {"two products of matrices at most", {0}, {.third = true}},
    {"no reductions beside", {BF16}, {.sums = true}},
    {"two products of matrices of 4", {.link_is_b = true}, {.rank = 3}},
    {"two products of f16 or bf16", {.second = CUDNN_DATA_BFLOAT16}, {.floats = true}},
    {"two products of f16 or bf16", {BF16, .link_is_b = true}, {.second_floats = true}},
    {"two products with a result", {BF16, .result_floats = true}, {.result_floats = true}},
    {"two products with a result", {BF16, .result = CUDNN_DATA_HALF}, {.result = CUDNN_DATA_BFLOAT16}},
    {"two products computed", {.y_by_columns = true}, {.math = CUDNN_DATA_HALF}},
    {"two products one of which", {.link_is_b = true, BF16}, {.apart = true}},
    {"of two products, a first one", {.front_of_d = true}, {.front = true}},
    {"of two products, a first one", {0}, {.a_by_columns = true}},
    {"of two products, a first one", {0}, {.b_by_rows = true}},
    {"two products whose first sums", {0}, {.depth = 128}},
    {"two products whose first sums", {0}, {.last = 32}},
    {"of two products, a second b", {.d_by_columns = true, .link_is_b = true}, {.d_by_columns = true}},
    {"nothing behind", {0}, {.behind = true}},
};
// clang-format on
enum { ROWS_COUNT = sizeof rows / sizeof *rows };

START_TEST(a_graph_within_a_rule_is_taken) {
  const char *text = verdict(&rows[_i].within);
  ck_assert_msg(!text, "row %d (%s): %s", _i, rows[_i].rule, text);
}
END_TEST

START_TEST(a_graph_beyond_a_rule_is_refused_for_it) {
  const char *text = verdict(&rows[_i].beyond);
  ck_assert_msg(text &&
                    strncmp(text, rows[_i].rule, strlen(rows[_i].rule)) == 0,
                "row %d (%s): %s", _i, rows[_i].rule, text ? text : "taken");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudnn plan pair rules");
  TCase *tests = tcase_create("rules");
  tcase_add_loop_test(tests, a_graph_within_a_rule_is_taken, 0, ROWS_COUNT);
  tcase_add_loop_test(tests, a_graph_beyond_a_rule_is_refused_for_it, 0,
                      ROWS_COUNT);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
