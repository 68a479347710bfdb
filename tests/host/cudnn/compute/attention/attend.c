// SPDX-License-Identifier: Apache-2.0
// Attention in the operations that cudnn-frontend makes of it, and as one
// operation.
#include "tests/host/cudnn/compute/attention/attend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/cudnn/case.h"
#include "tests/unit/harness.h"

#define F32 CUDNN_DATA_FLOAT

attend_t attend_draw(void) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                          CUDNN_DATA_FLOAT};
  attend_t a = {.io = types[case_range(0, 2)],
                .b = case_range(1, 3),
                .groups = case_range(1, 2),
                .rows = case_range(1, 13),
                .columns = case_range(1, 13),
                .d = case_range(1, 3) * 8,
                .d_v = case_range(1, 3) * 8,
                .causal = case_range(0, 1),
                .bottom = case_range(0, 1),
                .left = case_range(0, 1) ? case_range(1, 6) : 0,
                .lengths = case_range(0, 2) == 0,
                .bias = case_range(0, 2) == 0,
                .stats = case_range(0, 1),
                .layout = (made_layout_t)case_range(MADE_DENSE, MADE_GAPS)};
  a.heads = a.groups * case_range(1, 3);
  return a;
}

// ---- tensors ---------------------------------------------------------------

static int real(made_t *m, const attend_t *a, cudnnDataType_t type, int64_t h,
                int64_t s, int64_t d) {
  const int64_t dim[] = {a->b, h, s, d};
  return made_real(m, type, 4, dim, a->layout);
}

static int scores_of(made_t *m, const attend_t *a, cudnnDataType_t type) {
  const int64_t dim[] = {a->b, a->heads, a->rows, a->columns};
  return made_virtual(m, type, 4, dim);
}

static int rows_of(made_t *m, const attend_t *a) {
  const int64_t dim[] = {a->b, a->heads, a->rows, 1};
  return made_virtual(m, F32, 4, dim);
}

/* A matrix of each head with rows and columns exchanged, in its memory. */
static int turned(made_t *m, int of) {
  int t = made_alias(m, of);
  sdg_graph_tensor_t *to = &m->graph.tensor[t];
  const sdg_graph_tensor_t *from = &m->graph.tensor[of];
  for (int d = 2; d < 4; d++) {
    to->dim[d] = from->dim[5 - d];
    to->stride[d] = from->stride[5 - d];
  }
  return t;
}

/* From 1 to all, and in the first batch all. */
static int lengths(made_t *m, const attend_t *a, int64_t most) {
  const int64_t dim[] = {a->b, 1, 1, 1};
  int t = made_real(m, CUDNN_DATA_INT32, 4, dim, MADE_DENSE);
  double value[8];
  for (int64_t b = 0; b < a->b; b++)
    value[b] = (double)(b == 0 ? most : case_range(1, (int)most));
  made_fill(m, t, value);
  return t;
}

static attended_t inputs(made_t *m, const attend_t *a) {
  attended_t t = {.scale = -1,
                  .bias = -1,
                  .rows = -1,
                  .columns = -1,
                  .stats = -1,
                  .d_bias = -1};
  const int64_t bias[] = {1, a->heads, a->rows, a->columns};
  made_create(m);
  t.q = real(m, a, a->io, a->heads, a->rows, a->d);
  t.k = real(m, a, a->io, a->groups, a->columns, a->d);
  t.v = real(m, a, a->io, a->groups, a->columns, a->d_v);
  t.scale = made_number(m, F32, 4, 1 / sqrt((double)a->d));
  if (a->lengths) {
    t.rows = lengths(m, a, a->rows);
    t.columns = lengths(m, a, a->columns);
  }
  if (a->bias)
    t.bias = made_real(m, a->io, 4, bias, a->layout);
  return t;
}

// ---- scores ----------------------------------------------------------------

static void limit(sdg_graph_node_t *node, int rows, int columns, int depth) {
  const int tensor[] = {rows, columns, depth};
  for (int i = 0; i < 3; i++)
    if (tensor[i] >= 0) /* room for more operands is there */
      node->operand[node->operand_count++] = (sdg_graph_operand_t){
          (cudnnBackendAttributeName_t)(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC +
                                        i),
          tensor[i]};
}

static int pointwise(made_t *m, const attend_t *a, cudnnPointwiseMode_t mode,
                     int x, int b, int t, cudnnDataType_t type) {
  int y = scores_of(m, a, type);
  made_pointwise(m, mode, F32, x, b, t, y);
  return y;
}

static int index_along(made_t *m, const attend_t *a, int scores, int axis) {
  int y = scores_of(m, a, CUDNN_DATA_INT32);
  sdg_graph_node_t *node =
      made_pointwise(m, CUDNN_POINTWISE_GEN_INDEX, F32, scores, -1, -1, y);
  made_set_integer(node, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  return y;
}

static int chosen(made_t *m, const attend_t *a, int scores, int mask) {
  return pointwise(m, a, CUDNN_POINTWISE_BINARY_SELECT, scores,
                   made_number(m, F32, 4, -INFINITY), mask, F32);
}

static int masked(made_t *m, const attend_t *a, const attended_t *t,
                  int scores) {
  const cudnnDataType_t flag = CUDNN_DATA_BOOLEAN, i32 = CUDNN_DATA_INT32;
  int row = -1, column = -1;
  if (a->lengths || a->causal || a->left) {
    row = index_along(m, a, scores, 2);
    column = index_along(m, a, scores, 3);
  }
  if (a->lengths) {
    int within =
        pointwise(m, a, CUDNN_POINTWISE_CMP_LT, row, t->rows, -1, flag);
    int also =
        pointwise(m, a, CUDNN_POINTWISE_CMP_LT, column, t->columns, -1, flag);
    scores = chosen(
        m, a, scores,
        pointwise(m, a, CUDNN_POINTWISE_LOGICAL_AND, within, also, -1, flag));
  }
  if (a->causal) {
    int from = row;
    if (a->bottom) {
      int columns =
          a->lengths ? t->columns : made_number(m, i32, 4, (double)a->columns);
      int rows = a->lengths ? t->rows : made_number(m, i32, 4, (double)a->rows);
      from = pointwise(m, a, CUDNN_POINTWISE_ADD, from, columns, -1, i32);
      from = pointwise(m, a, CUDNN_POINTWISE_SUB, from, rows, -1, i32);
    }
    scores =
        chosen(m, a, scores,
               pointwise(m, a, CUDNN_POINTWISE_CMP_GE, from, column, -1, flag));
  }
  if (a->left) {
    int to = pointwise(m, a, CUDNN_POINTWISE_ADD, column,
                       made_number(m, F32, 4, (double)a->left), -1, F32);
    scores = chosen(m, a, scores,
                    pointwise(m, a, CUDNN_POINTWISE_CMP_GT, to, row, -1, flag));
  }
  return scores;
}

static int scaled(made_t *m, const attend_t *a, const attended_t *t, int keys) {
  int scores = scores_of(m, a, F32);
  limit(made_matmul(m, F32, t->q, keys, scores), t->rows, t->columns, -1);
  scores = pointwise(m, a, CUDNN_POINTWISE_MUL, scores, t->scale, -1, F32);
  if (a->bias)
    scores = pointwise(m, a, CUDNN_POINTWISE_ADD, scores, t->bias, -1, F32);
  return scores;
}

// ---- graphs ----------------------------------------------------------------

attended_t attend_forward(made_t *m, const attend_t *a) {
  attended_t t = inputs(m, a);
  t.o = real(m, a, a->io, a->heads, a->rows, a->d_v);
  t.stats = a->stats ? real(m, a, F32, a->heads, a->rows, 1) : -1;
  int scores = masked(m, a, &t, scaled(m, a, &t, turned(m, t.k)));
  int most = rows_of(m, a), sum = rows_of(m, a);
  made_reduction(m, CUDNN_REDUCE_TENSOR_MAX, F32, scores, most);
  int less = pointwise(m, a, CUDNN_POINTWISE_SUB, scores, most, -1, F32);
  int power = pointwise(m, a, CUDNN_POINTWISE_EXP, less, -1, -1, F32);
  made_reduction(m, CUDNN_REDUCE_TENSOR_ADD, F32, power, sum);
  if (a->stats) {
    int log = rows_of(m, a);
    made_pointwise(m, CUDNN_POINTWISE_LOG, F32, sum, -1, -1, log);
    made_pointwise(m, CUDNN_POINTWISE_ADD, F32, most, log, -1, t.stats);
  }
  int weights = pointwise(m, a, CUDNN_POINTWISE_DIV, power, sum, -1, a->io);
  limit(made_matmul(m, F32, weights, t.v, t.o), t.rows, -1, t.columns);
  return t;
}

attended_t attend_as_one(made_t *m, const attend_t *a) {
  attended_t t = inputs(m, a);
  t.o = real(m, a, a->io, a->heads, a->rows, a->d_v);
  t.stats = a->stats ? real(m, a, F32, a->heads, a->rows, 1) : -1;
  const int tensor[] = {t.q, t.k, t.v, t.o, t.stats, t.scale};
  sdg_graph_node_t *node = made_matmul(m, F32, t.q, t.k, t.o);
  node->kind = CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
  node->operand_count = node->parameter_count = 0;
  for (int i = 0; i < 6; i++)
    if (tensor[i] >= 0)
      node->operand[node->operand_count++] = (sdg_graph_operand_t){
          (cudnnBackendAttributeName_t)(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC +
                                        i),
          tensor[i]};
  if (a->stats)
    m->written[t.stats] = true;
  if (a->lengths) {
    node->operand[node->operand_count++] = (sdg_graph_operand_t){
        CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, t.rows};
    node->operand[node->operand_count++] = (sdg_graph_operand_t){
        CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, t.columns};
  }
  return t;
}

/* Rows and columns of scores exchanged, in the io type. */
static int exchanged(made_t *m, const attend_t *a, int scores) {
  const int64_t dim[] = {a->b, a->heads, a->columns, a->rows};
  int y = made_virtual(m, a->io, 4, dim);
  m->graph.tensor[y].stride[2] = 1;
  m->graph.tensor[y].stride[3] = a->columns;
  made_reshape(m, scores, y);
  return y;
}

/* The gradient of keys or values: that of each head, summed in groups. */
static void gather(made_t *m, const attend_t *a, const attended_t *t,
                   int weights, int other, int to) {
  int all = to;
  if (a->heads != a->groups) {
    int64_t dim[] = {a->b, a->heads, a->columns, m->graph.tensor[to].dim[3]};
    all = made_virtual(m, a->io, 4, dim);
  }
  limit(made_matmul(m, F32, exchanged(m, a, weights), other, all), t->columns,
        -1, t->rows);
  if (all != to)
    made_reduction(m, CUDNN_REDUCE_TENSOR_ADD, F32, all, to);
}

attended_t attend_backward(made_t *m, const attend_t *a) {
  const int64_t matrix[] = {a->b, a->heads, a->rows, a->d_v};
  attended_t t = inputs(m, a);
  t.o = real(m, a, a->io, a->heads, a->rows, a->d_v);
  t.d_o = real(m, a, a->io, a->heads, a->rows, a->d_v);
  t.stats = real(m, a, F32, a->heads, a->rows, 1);
  t.d_q = real(m, a, a->io, a->heads, a->rows, a->d);
  t.d_k = real(m, a, a->io, a->groups, a->columns, a->d);
  t.d_v = real(m, a, a->io, a->groups, a->columns, a->d_v);
  int delta = real(m, a, F32, a->heads, a->rows, 1);
  int gathered = real(m, a, F32, a->heads, a->rows, a->d);
  int terms = made_virtual(m, F32, 4, matrix), sum = rows_of(m, a);
  made_pointwise(m, CUDNN_POINTWISE_MUL, F32, t.d_o, t.o, -1, terms);
  made_reduction(m, CUDNN_REDUCE_TENSOR_ADD, F32, terms, sum);
  made_pointwise(m, CUDNN_POINTWISE_MUL, F32, sum, made_number(m, F32, 4, 1),
                 -1, delta);
  int turned_keys = turned(m, t.k);
  int scores = pointwise(m, a, CUDNN_POINTWISE_SUB,
                         scaled(m, a, &t, turned_keys), t.stats, -1, F32);
  int weights = pointwise(m, a, CUDNN_POINTWISE_EXP, masked(m, a, &t, scores),
                          -1, -1, F32);
  gather(m, a, &t, weights, t.d_o, t.d_v);
  int slope = scores_of(m, a, F32);
  limit(made_matmul(m, F32, t.d_o, turned(m, t.v), slope), t.rows, t.columns,
        -1);
  slope = pointwise(m, a, CUDNN_POINTWISE_SUB, slope, delta, -1, F32);
  slope = pointwise(m, a, CUDNN_POINTWISE_MUL, slope, weights, -1, F32);
  if (a->bias) {
    const int64_t dim[] = {1, a->heads, a->rows, a->columns};
    t.d_bias = made_real(m, a->io, 4, dim, a->layout);
    made_reduction(m, CUDNN_REDUCE_TENSOR_ADD, F32, slope, t.d_bias);
  }
  slope = pointwise(m, a, CUDNN_POINTWISE_MUL, slope, t.scale, -1, F32);
  gather(m, a, &t, slope, t.q, t.d_k);
  int keys = made_virtual(m, a->io, 4, m->graph.tensor[t.k].dim);
  memcpy(m->graph.tensor[keys].stride, m->graph.tensor[t.k].stride,
         sizeof m->graph.tensor[keys].stride);
  made_reshape(m, turned_keys, keys);
  limit(made_matmul(m, F32, slope, keys, gathered), t.rows, -1, t.columns);
  made_pointwise(m, CUDNN_POINTWISE_IDENTITY, F32, gathered, -1, -1, t.d_q);
  return t;
}
