// SPDX-License-Identifier: Apache-2.0
// Attention in the operations that cudnn-frontend makes of it, in the order of
// a new version (1.23) and of an old one (1.6), and as one operation.
#include "tests/clients/graphs/attention/compose.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define F32  CUDNN_DATA_FLOAT
#define I32  CUDNN_DATA_INT32
#define FLAG CUDNN_DATA_BOOLEAN

typedef struct {
  const case_t *c;
  draft_t *d;
  int64_t scores[DIMS], rows[DIMS]; // extents of this piece
  int length_q, length_kv;          // tensors; -1: none
  int scale;                        // -1: none
} compose_t;

// ---- in short --------------------------------------------------------------

static int in_memory(compose_t *m, int array) {
  return draft_array(m->d, &m->c->array[array], false);
}

static int turned(compose_t *m, int array) {
  return draft_array(m->d, &m->c->array[array], true);
}

static int scores_of(compose_t *m, cudnnDataType_t type) {
  return draft_virtual(m->d, type, m->scores, NULL);
}

static int rows_of(compose_t *m) {
  return draft_virtual(m->d, F32, m->rows, NULL);
}

static int pointwise(compose_t *m, cudnnPointwiseMode_t mode, int x, int b) {
  int y = scores_of(m, F32);
  draft_pointwise(m->d, mode, F32, x, b, -1, -1, y);
  return y;
}

static int integers(compose_t *m, cudnnPointwiseMode_t mode, int x, int b) {
  int y = scores_of(m, I32);
  draft_pointwise(m->d, mode, I32, x, b, -1, -1, y);
  return y;
}

static int flags(compose_t *m, cudnnPointwiseMode_t mode, int x, int b) {
  int y = scores_of(m, FLAG);
  draft_pointwise(m->d, mode, FLAG, x, b, -1, -1, y);
  return y;
}

static int index_along(compose_t *m, int scores, int axis, cudnnDataType_t type,
                       cudnnDataType_t compute) {
  int y = scores_of(m, type);
  draft_pointwise(m->d, CUDNN_POINTWISE_GEN_INDEX, compute, scores, -1, -1,
                  axis, y);
  return y;
}

static int chosen(compose_t *m, int scores, int mask, double other) {
  int y = scores_of(m, F32);
  draft_pointwise(m->d, CUDNN_POINTWISE_BINARY_SELECT, F32, scores,
                  draft_number(m->d, F32, other), mask, -1, y);
  return y;
}

// ---- masks -----------------------------------------------------------------

static bool is_old(const compose_t *m) {
  return m->c->order == OLD;
}

static double unseen(const compose_t *m) {
  return is_old(m) ? -(double)FLT_MAX : -(double)INFINITY;
}

static int padded(compose_t *m, int scores) {
  if (m->length_q < 0)
    return scores;
  int row = index_along(m, scores, ROWS, I32, I32);
  int column = index_along(m, scores, DEPTH, I32, I32), within, also;
  // The old one's forward compares to numbers.
  bool to_numbers = is_old(m) && m->c->kind == FORWARD;
  int (*compare)(compose_t *, cudnnPointwiseMode_t, int, int) =
      to_numbers ? integers : flags;
  within = compare(m, CUDNN_POINTWISE_CMP_LT, row, m->length_q);
  also = compare(m, CUDNN_POINTWISE_CMP_LT, column, m->length_kv);
  return chosen(m, scores, flags(m, CUDNN_POINTWISE_LOGICAL_AND, within, also),
                unseen(m));
}

// The lengths of this piece's sequences: of each batch, or for all.
static int keys_length(compose_t *m) {
  return m->length_kv >= 0 ? m->length_kv
                           : draft_number(m->d, I32, (double)m->scores[DEPTH]);
}

static int queries_length(compose_t *m) {
  return m->length_q >= 0 ? m->length_q
                          : draft_number(m->d, I32, (double)m->scores[ROWS]);
}

static int bounded_right(compose_t *m, int scores) {
  if (!m->c->has_right)
    return scores;
  int row = index_along(m, scores, ROWS, I32, is_old(m) ? I32 : F32);
  int column = is_old(m) ? -1 : index_along(m, scores, DEPTH, I32, F32);
  if (m->c->bottom) {
    row = integers(m, CUDNN_POINTWISE_ADD, row, keys_length(m));
    row = integers(m, CUDNN_POINTWISE_SUB, row, queries_length(m));
  }
  if (m->c->right)
    row = integers(m, CUDNN_POINTWISE_ADD, row,
                   draft_number(m->d, I32, (double)m->c->right));
  if (is_old(m))
    column = index_along(m, scores, DEPTH, I32, I32);
  return chosen(m, scores, flags(m, CUDNN_POINTWISE_CMP_GE, row, column),
                unseen(m));
}

static int bounded_left(compose_t *m, int scores, double other) {
  const case_t *c = m->c;
  if (!c->has_left)
    return scores;
  cudnnDataType_t type = is_old(m) ? F32 : I32;
  int row = index_along(m, scores, ROWS, type, F32);
  int column = index_along(m, scores, DEPTH, type, F32);
  if (c->bottom && c->lengths) {
    column = integers(m, CUDNN_POINTWISE_ADD, column,
                      draft_number(m->d, I32, (double)c->left));
    column = integers(m, CUDNN_POINTWISE_SUB, column, m->length_kv);
    column = integers(m, CUDNN_POINTWISE_ADD, column, m->length_q);
  } else {
    int64_t left =
        c->left - (c->bottom ? m->scores[DEPTH] - m->scores[ROWS] : 0);
    column = pointwise(m, CUDNN_POINTWISE_ADD, column,
                       draft_number(m->d, F32, (double)left));
  }
  return chosen(m, scores, flags(m, CUDNN_POINTWISE_CMP_GT, column, row),
                other);
}

// ---- forward ---------------------------------------------------------------

static int scored(compose_t *m, int q, int keys) {
  int scores = scores_of(m, F32);
  draft_matmul(m->d, q, keys, scores,
               (const int[]){m->length_q, m->length_kv, -1});
  if (m->scale >= 0)
    scores = pointwise(m, CUDNN_POINTWISE_MUL, scores, m->scale);
  if (m->c->bias)
    scores = pointwise(m, CUDNN_POINTWISE_ADD, scores, in_memory(m, BIAS));
  return padded(m, scores);
}

static void forward(compose_t *m) {
  draft_t *d = m->d;
  int q = in_memory(m, Q), keys = turned(m, K),
      v = m->c->values_are_queries ? q : in_memory(m, V);
  int scores = bounded_right(m, scored(m, q, keys));
  scores = bounded_left(m, scores, is_old(m) ? -0x1p30 : unseen(m));
  int most = m->c->sums ? in_memory(m, MOST) : rows_of(m);
  int sum = m->c->sums ? in_memory(m, SUM) : rows_of(m);
  draft_reduction(d, CUDNN_REDUCE_TENSOR_MAX, scores, most);
  int power = pointwise(m, CUDNN_POINTWISE_EXP,
                        pointwise(m, CUDNN_POINTWISE_SUB, scores, most), -1);
  draft_reduction(d, CUDNN_REDUCE_TENSOR_ADD, power, sum);
  // Statistics that nobody asked for are virtual.
  if (!m->c->sums) {
    int log = rows_of(m),
        stats = m->c->stats ? in_memory(m, STATS) : rows_of(m);
    draft_pointwise(d, CUDNN_POINTWISE_LOG, F32, sum, -1, -1, -1, log);
    draft_pointwise(d, CUDNN_POINTWISE_ADD, F32, most, log, -1, -1, stats);
  }
  int weights = scores_of(m, m->c->type);
  draft_pointwise(d, CUDNN_POINTWISE_DIV, F32, power, sum, -1, -1, weights);
  draft_matmul(d, weights, v, in_memory(m, O),
               (const int[]){m->length_q, -1, m->length_kv});
}

static void one(compose_t *m) {
  draft_t *d = m->d;
  build_t op = build_create(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  BUILD_GIVE(op, OPERATION_SDPA_FWD_QDESC, d->tensor[in_memory(m, Q)]);
  BUILD_GIVE(op, OPERATION_SDPA_FWD_KDESC, d->tensor[in_memory(m, K)]);
  BUILD_GIVE(op, OPERATION_SDPA_FWD_VDESC, d->tensor[in_memory(m, V)]);
  BUILD_GIVE(op, OPERATION_SDPA_FWD_ODESC, d->tensor[in_memory(m, O)]);
  if (m->scale >= 0)
    BUILD_GIVE(op, OPERATION_SDPA_FWD_SCALEDESC, d->tensor[m->scale]);
  if (m->c->stats)
    BUILD_GIVE(op, OPERATION_SDPA_FWD_STATSDESC,
               d->tensor[in_memory(m, STATS)]);
  if (m->c->lengths) {
    BUILD_GIVE(op, OPERATION_SDPA_FWD_SEQ_LEN_QDESC, d->tensor[m->length_q]);
    BUILD_GIVE(op, OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, d->tensor[m->length_kv]);
  }
  CHECK(cudnnBackendFinalize(op));
  draft_add(d, op, NULL, 0, -1);
}

// ---- backward --------------------------------------------------------------

// Rows and columns of scores exchanged, in the type of arrays.
static int exchanged(compose_t *m, int scores) {
  const int64_t *s = m->scores, dim[] = {s[BATCH], s[HEADS], s[DEPTH], s[ROWS]},
                stride[] = {s[HEADS] * s[ROWS] * s[DEPTH], s[ROWS] * s[DEPTH],
                            1, s[DEPTH]};
  int y = draft_virtual(m->d, m->c->type, dim, stride);
  draft_reshape(m->d, scores, y);
  return y;
}

// The gradient of keys or values: each head's, summed over those that share
// them.
static void gathered(compose_t *m, int weights, int other, int array) {
  const array_t *to = &m->c->array[array];
  int all = in_memory(m, array), result = all;
  if (to->dim[HEADS] != m->scores[HEADS]) {
    int64_t dim[DIMS];
    memcpy(dim, to->dim, sizeof dim);
    dim[HEADS] = m->scores[HEADS];
    all = draft_virtual(m->d, m->c->type, dim, NULL);
  }
  draft_matmul(m->d, exchanged(m, weights), other, all,
               (const int[]){m->length_kv, -1, m->length_q});
  if (all != result)
    draft_reduction(m->d, CUDNN_REDUCE_TENSOR_ADD, all, result);
}

// The sum of dO O of each row.
static int delta_of(compose_t *m, int d_o, int one_number) {
  const int64_t *dim = m->c->array[D_O].dim,
                stride[] = {dim[HEADS] * dim[ROWS] * dim[DEPTH],
                            dim[ROWS] * dim[DEPTH], dim[HEADS] * dim[DEPTH], 1};
  int product = draft_virtual(m->d, F32, dim, stride), sum = rows_of(m);
  draft_pointwise(m->d, CUDNN_POINTWISE_MUL, F32, d_o, in_memory(m, O), -1, -1,
                  product);
  draft_reduction(m->d, CUDNN_REDUCE_TENSOR_ADD, product, sum);
  int delta = is_old(m) ? rows_of(m) : in_memory(m, DELTA);
  draft_pointwise(m->d, CUDNN_POINTWISE_MUL, F32, sum, one_number, -1, -1,
                  delta);
  return delta;
}

// The old order subtracts statistics after the right bound.
static int weighed(compose_t *m, int scores, int stats) {
  if (is_old(m)) {
    scores = pointwise(m, CUDNN_POINTWISE_SUB, bounded_right(m, scores), stats);
    scores = padded(m, scores); // again
  } else
    scores = bounded_right(m, pointwise(m, CUDNN_POINTWISE_SUB, scores, stats));
  return pointwise(m, CUDNN_POINTWISE_EXP, bounded_left(m, scores, unseen(m)),
                   -1);
}

static void d_q_add(compose_t *m, int slope, int keys_turned) {
  draft_t *d = m->d;
  const array_t *k = &m->c->array[K];
  int keys = draft_virtual(d, m->c->type, k->dim, k->stride);
  draft_reshape(d, keys_turned, keys);
  int d_q = in_memory(m, D_Q),
      sum = m->c->direct ? d_q : in_memory(m, GATHERED);
  draft_matmul(d, slope, keys, sum,
               (const int[]){m->length_q, -1, m->length_kv});
  if (!m->c->direct)
    draft_pointwise(d, CUDNN_POINTWISE_IDENTITY, F32, sum, -1, -1, -1, d_q);
}

static void backward(compose_t *m) {
  draft_t *d = m->d;
  int q = in_memory(m, Q), keys = turned(m, K), values = turned(m, V);
  int d_o = in_memory(m, D_O), stats = in_memory(m, STATS);
  int one_number = draft_number(d, F32, 1);
  int delta = delta_of(m, d_o, one_number);
  int weights = weighed(m, scored(m, q, keys), stats);
  gathered(m, weights, d_o, D_V);
  int slope = scores_of(m, F32);
  draft_matmul(d, d_o, values, slope,
               (const int[]){m->length_q, m->length_kv, -1});
  if (is_old(m))
    slope = pointwise(m, CUDNN_POINTWISE_MUL, slope, one_number);
  slope = pointwise(m, CUDNN_POINTWISE_SUB, slope, delta);
  slope = pointwise(m, CUDNN_POINTWISE_MUL, slope, weights);
  if (m->c->d_bias)
    draft_reduction(d, CUDNN_REDUCE_TENSOR_ADD, slope, in_memory(m, D_BIAS));
  if (m->scale >= 0)
    slope = pointwise(m, CUDNN_POINTWISE_MUL, slope, m->scale);
  gathered(m, slope, q, D_K);
  d_q_add(m, slope, keys);
}

made_t graph_make(cudnnHandle_t handle, const case_t *c, draft_t *draft) {
  const int64_t *q = c->array[Q].dim, *k = c->array[K].dim;
  compose_t m = {.c = c,
                 .d = draft,
                 .scores = {q[BATCH], q[HEADS], q[ROWS], k[ROWS]},
                 .rows = {q[BATCH], q[HEADS], q[ROWS], 1},
                 .length_q = -1,
                 .length_kv = -1};
  memset(draft, 0, sizeof *draft);
  m.scale = !c->scaled           ? -1
            : c->scale_in_memory ? in_memory(&m, SCALE)
                                 : draft_number(draft, F32, c->scale);
  if (c->lengths) {
    m.length_q = in_memory(&m, LENGTHS_Q);
    m.length_kv = in_memory(&m, LENGTHS_KV);
  }
  if (c->kind == FORWARD)
    forward(&m);
  else if (c->kind == BACKWARD)
    backward(&m);
  else
    one(&m);
  uint64_t seed = c->order == SHUFFLED ? c->seed + 1 : 0;
  return (made_t){draft_graph(draft, handle, seed), draft->uid, draft->pointer,
                  draft->by_value, draft->count};
}
