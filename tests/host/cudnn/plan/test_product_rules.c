// SPDX-License-Identifier: Apache-2.0
// The planner's rules for products of matrices: for each one a graph within it,
// which is taken, and a graph beyond it, which is refused for that reason.
// NVIDIA's planner said the same of all of them.
#include "src/host/cudnn/plan/plan.h"
#include "tests/host/cudnn/compute/made.h"
#include "tests/host/cudnn/plan/judge.h"
#include "tests/unit/harness.h"

// ROWS: the last dimension innermost; COLUMNS: the one before; BATCHES: the
// first; GAPS: every other element of rows.
typedef enum { ROWS, COLUMNS, BATCHES, GAPS } order_t;
typedef enum { NOTHING, OF_A, OF_B, WRITTEN, PARTNERED } front_t; // RELU, ADD
// What is added to c: a tensor of its extents, a bias of a row's or a column's
// elements or of the batch's, one element.
typedef enum { NONE, FULL, ROW, COLUMN, BATCH } partner_t;

// 0 stands for the product of 4 matrices 32 x 64 of halves by rows with 64 x 32
// to floats, in float, without operations.
typedef struct {
  int rank, m, n, batch_a, batch_b; // 0: as above
  cudnnDataType_t a, b, c, math;    // a: 0 is half; b: as a
  order_t by_a, by_c, by_y, by_z;
  front_t front;
  partner_t partner;
  cudnnPointwiseMode_t unary; // behind the product; 0: none
  cudnnDataType_t plain_math, sum_type, sum_math;
  bool floats, maps, written, sums, rows_stay, scaled,
      reads_sum; // maps: by RELU
} graph_t;

static cudnnDataType_t type_of(cudnnDataType_t type, cudnnDataType_t missing) {
  return type ? type : missing;
}

static int tensor(made_t *m, cudnnDataType_t type, int rank, const int64_t *dim,
                  order_t order, bool is_virtual) {
  int index = made_virtual(m, type, rank, dim);
  sdg_graph_tensor_t *t = &m->graph.tensor[index];
  int64_t at = order == GAPS ? 2 : 1;
  for (int i = rank; i-- > 0;) {
    int d = order == COLUMNS && i >= rank - 2 ? 2 * rank - 3 - i
            : order == BATCHES                ? (i + 1) % rank
                                              : i;
    t->stride[d] = at;
    at *= dim[d];
  }
  t->is_virtual = is_virtual;
  t->alignment = 16;
  return index;
}

static int matrix(made_t *m, const graph_t *g, cudnnDataType_t type, int batch,
                  int rows, int columns, order_t order, bool is_virtual) {
  int rank = g->rank ? g->rank : 3;
  int64_t dim[MADE_RANK] = {1, 1, 1, 1, 1};
  if (rank > 2)
    dim[0] = batch;
  dim[rank - 2] = rows;
  dim[rank - 1] = columns;
  return tensor(m, type, rank, dim, order, is_virtual);
}

static int pointwise(made_t *m, const graph_t *g, int x, int b, int y) {
  sdg_graph_node_t *node = made_pointwise(m,
                                          b >= 0     ? CUDNN_POINTWISE_ADD
                                          : g->unary ? g->unary
                                                     : CUDNN_POINTWISE_RELU_FWD,
                                          g->plain_math, x, b, -1, y);
  if (g->scaled)
    made_set_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 0.5);
  return y;
}

// What is in front of an operand.
static int fronted(made_t *m, const graph_t *g, int x, order_t order) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int b = g->front == PARTNERED
              ? tensor(m, like.type, like.rank, like.dim, order, false)
              : -1;
  int y = tensor(m, like.type, like.rank, like.dim, ROWS, g->front != WRITTEN);
  return pointwise(m, g, x, b, y);
}

static void behind(made_t *m, const graph_t *g, int c, int batch, int rows,
                   int columns) {
  static const bool whole[] = {true, true, true};
  static const bool parts[][3] = {[ROW] = {false, false, true},
                                  [COLUMN] = {false, true, false},
                                  [BATCH] = {true, false, false}};
  if (g->maps || g->partner) {
    const bool *part = g->partner <= FULL ? whole : parts[g->partner];
    int b = g->partner ? matrix(m, g, CUDNN_DATA_FLOAT, part[0] ? batch : 1,
                                part[1] ? rows : 1, part[2] ? columns : 1,
                                g->by_z, false)
                       : -1;
    c = pointwise(
        m, g, c, b,
        matrix(m, g, CUDNN_DATA_FLOAT, batch, rows, columns, g->by_y, false));
  }
  if (!g->sums)
    return;
  int sum =
      matrix(m, g, g->sum_type, 1, g->rows_stay ? rows : 1, 1, ROWS, false);
  made_reduction(m, CUDNN_REDUCE_TENSOR_ADD, g->sum_math, c, sum);
  if (g->reads_sum)
    pointwise(m, g, sum, -1,
              matrix(m, g, CUDNN_DATA_FLOAT, 1, g->rows_stay ? rows : 1, 1,
                     ROWS, false));
}

static const char *verdict(const graph_t *g) {
  made_t m;
  made_create(&m);
  int batch = 4, rows = g->m ? g->m : 32, columns = g->n ? g->n : 32,
      depth = 64;
  cudnnDataType_t type =
      g->floats ? CUDNN_DATA_FLOAT : type_of(g->a, CUDNN_DATA_HALF);
  int a = matrix(&m, g, type, g->batch_a ? g->batch_a : batch, rows, depth,
                 g->by_a, false);
  int b = matrix(&m, g, type_of(g->b, type), g->batch_b ? g->batch_b : batch,
                 depth, columns, ROWS, false);
  if (g->front == OF_B)
    b = fronted(&m, g, b, ROWS);
  else if (g->front)
    a = fronted(&m, g, a, g->by_z);
  bool fused = g->maps || g->partner || g->sums;
  int c =
      matrix(&m, g, g->c, batch, rows, columns, g->by_c, fused && !g->written);
  made_matmul(&m, g->math, a, b, c);
  behind(&m, g, c, batch, rows, columns);
  const char *text = host_plan_refuses(&m.graph);
  made_destroy(&m);
  return text;
}

// ---- the table -------------------------------------------------------------

#define I8   .a = CUDNN_DATA_INT8, .math = CUDNN_DATA_INT32
#define FP8  .a = CUDNN_DATA_FP8_E4M3
#define F32  .floats = true
#define BF16 .a = CUDNN_DATA_BFLOAT16

// clang-format off
static const struct {
  const char *rule; // how its text begins
  graph_t within, beyond;
} rows[] = {
    {"products of matrices of 3", {0}, {.rank = 4}},
    {"products of matrices of 3", {F32}, {F32, .rank = 2}},
    {"products of matrices of 3", {.maps = true}, {.rank = 4, .maps = true}},
    {"products whose a and b", {.batch_a = 1}, {.batch_a = 2}},
    {"products whose a and b", {.batch_b = 1}, {.batch_a = 1, .batch_b = 1}},
    {"products of two f32", {BF16}, {BF16, .b = CUDNN_DATA_HALF}},
    {"products of two f32", {FP8, .b = CUDNN_DATA_FP8_E5M2}, {.b = CUDNN_DATA_INT8}},
    {"products of two f32", {F32, .c = CUDNN_DATA_DOUBLE}, {.a = CUDNN_DATA_DOUBLE}},
    {"products computed in", {.math = CUDNN_DATA_HALF}, {BF16, .math = CUDNN_DATA_HALF}},
    {"products computed in", {I8}, {.a = CUDNN_DATA_INT8}},
    {"products computed in", {FP8}, {FP8, .math = CUDNN_DATA_HALF}},
    {"products computed in", {I8, .c = CUDNN_DATA_INT8}, {.math = CUDNN_DATA_INT32}},
    {"around products", {.maps = true}, {.maps = true, .plain_math = CUDNN_DATA_HALF}},
    {"around products", {.maps = true, .unary = CUDNN_POINTWISE_ABS, .plain_math = CUDNN_DATA_INT32}, {.maps = true, .plain_math = CUDNN_DATA_INT32}},
    {"around products", {.maps = true, .unary = CUDNN_POINTWISE_IDENTITY, .plain_math = CUDNN_DATA_HALF}, {.maps = true, .unary = CUDNN_POINTWISE_LOGICAL_NOT}},
    {"around products", {.maps = true, .unary = CUDNN_POINTWISE_LOGICAL_NOT, .plain_math = CUDNN_DATA_BOOLEAN}, {.maps = true, .unary = CUDNN_POINTWISE_ABS, .plain_math = CUDNN_DATA_BOOLEAN}},
    {"around products", {.sums = true}, {.sums = true, .sum_math = CUDNN_DATA_HALF}},
    {"pointwise operations whose alpha1", {.partner = ROW}, {.partner = ROW, .scaled = true}},
    {"results of reductions", {.sums = true, .rows_stay = true}, {.sums = true, .sum_type = CUDNN_DATA_HALF}},
    {"no operation that reads", {.maps = true, .sums = true}, {.sums = true, .reads_sum = true}},
    {"no result in memory in front", {.front = OF_A}, {.front = WRITTEN}},
    {"no result in memory in front", {I8, .front = OF_B}, {I8, .front = WRITTEN}},
    {"products of matrices whose rows", {.by_a = COLUMNS}, {.by_a = BATCHES}},
    {"products of matrices whose rows", {.front = PARTNERED, .by_z = COLUMNS}, {.front = PARTNERED, .by_z = GAPS}},
    {"products of matrices whose rows", {.front = OF_A, .by_a = COLUMNS}, {.front = OF_A, .by_a = GAPS}},
    {"behind products, matrices whose", {.by_c = GAPS}, {I8, .by_c = GAPS}},
    {"behind products, matrices whose", {.maps = true, .by_y = BATCHES}, {FP8, .maps = true, .by_y = BATCHES}},
    {"behind products, matrices whose", {F32, .n = 31, .by_c = GAPS}, {.n = 31, .by_c = GAPS}},
    {"behind products, matrices all", {.partner = FULL, .by_y = COLUMNS, .by_z = COLUMNS}, {.partner = FULL, .by_y = COLUMNS}},
    {"behind products, matrices all", {.partner = COLUMN, .by_y = COLUMNS}, {.partner = FULL, .by_z = COLUMNS}},
    {"behind products, matrices all", {.maps = true, .by_c = COLUMNS}, {.maps = true, .written = true, .by_c = COLUMNS}},
    {"products of one row or column", {FP8, .m = 1, .maps = true}, {FP8, .m = 1, .by_c = COLUMNS, .maps = true}},
    {"products of one row or column", {.n = 1, .maps = true}, {.n = 1, .maps = true, .by_y = COLUMNS}},
    {"products of one row or column", {.m = 1, .by_c = COLUMNS, .maps = true}, {.m = 1, .by_c = COLUMNS, .partner = BATCH}},
};
// clang-format on
enum { ROWS_COUNT = sizeof rows / sizeof *rows };

static const char *judge(int row, bool beyond, const char **out_rule) {
  *out_rule = rows[row].rule;
  return verdict(beyond ? &rows[row].beyond : &rows[row].within);
}

int main(void) {
  return harness_run(
      judge_suite("cudnn plan product rules", judge, ROWS_COUNT));
}
