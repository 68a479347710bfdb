// SPDX-License-Identifier: Apache-2.0
// Random operation graphs around other nodes than convolutions.
#include "tests/host/cudnn/compute/draw.h"

#include <stdlib.h>

#include "tests/host/cudnn/case.h"

/* Batch extents of an operand that divide c's. */
static int64_t shared(int64_t extent) {
  int choice = case_range(0, 3);
  return choice == 0 ? 1 : choice == 1 && extent % 2 == 0 ? extent / 2 : extent;
}

/* Extents of the matrices of c from memory, from 0 to more than they have. */
static void override(made_t *m, sdg_graph_node_t *node, int c) {
  sdg_graph_tensor_t of = m->graph.tensor[c];
  of.dim[of.rank - 2] = of.dim[of.rank - 1] = 1;
  for (int d = 0; d < of.rank - 2; d++)
    of.dim[d] = case_range(0, 1) ? of.dim[d] : 1;
  for (int i = 0; i < 3; i++) {
    if (case_range(0, 1))
      continue;
    int t = made_real(m, CUDNN_DATA_INT32, of.rank, of.dim, MADE_DENSE);
    int64_t count = made_count(m, t);
    double *value = calloc((size_t)count, sizeof *value);
    for (int64_t k = 0; k < count; k++)
      value[k] = case_range(0, 20);
    made_fill(m, t, value);
    free(value);
    node->operand[node->operand_count++] = (sdg_graph_operand_t){
        (cudnnBackendAttributeName_t)(CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC +
                                      i),
        t}; /* room for more operands is there */
  }
  if (case_range(0, 1))
    made_set_real(node, CUDNN_ATTR_MATMUL_PADDING_VALUE, case_real());
}

static int product(made_t *m, bool last) {
  int rank = case_range(2, 5), matrix = rank - 2, row = rank - 1;
  sdg_graph_tensor_t like = {.rank = rank};
  int64_t a[MADE_RANK], b[MADE_RANK];
  for (int d = 0; d < matrix; d++) {
    like.dim[d] = case_range(1, 4);
    a[d] = shared(like.dim[d]);
    b[d] = a[d] == like.dim[d] ? shared(like.dim[d]) : like.dim[d];
  }
  a[matrix] = like.dim[matrix] = case_range(1, 20);
  b[row] = like.dim[row] = case_range(1, 40);
  a[row] = b[matrix] = case_range(1, 12);
  int x = draw_input(m, rank, a), y = draw_input(m, rank, b);
  int c = draw_result(m, &like, last);
  sdg_graph_node_t *node = made_matmul(m, CUDNN_DATA_FLOAT, x, y, c);
  if (case_range(0, 3) == 0)
    override(m, node, c);
  return c;
}

void draw_product(made_t *m) {
  draw_around(m, product);
}

/* Pooling, or interpolation of whole and half elements. */
static made_resample_t resampling_of(int spatial) {
  static const cudnnResampleMode_t modes[] = {
      CUDNN_RESAMPLE_MAXPOOL, CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING,
      CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING, CUDNN_RESAMPLE_BILINEAR,
      CUDNN_RESAMPLE_NEAREST};
  made_resample_t how = {.mode = modes[case_range(0, 4)],
                         .padding = (cudnnPaddingMode_t)case_range(0, 2),
                         .backward = case_range(0, 2) == 0,
                         .nan = case_range(0, 1)};
  bool pools = how.mode > CUDNN_RESAMPLE_BILINEAR;
  if (how.padding == CUDNN_NEG_INF_PAD &&
      (!pools || how.mode == CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING))
    how.padding = CUDNN_EDGE_VAL_PAD;
  for (int d = 0; d < spatial; d++) {
    double unit = pools ? 1 : 0.5;
    how.window[d] = pools ? case_range(1, 4) : 2;
    how.stride[d] = unit * case_range(1, 4);
    how.pre[d] = unit * case_range(0, 4);
    how.post[d] = unit * case_range(0, 4);
  }
  return how;
}

static int resampling(made_t *m, bool last) {
  int rank = case_range(3, 5);
  made_resample_t how = resampling_of(rank - 2);
  sdg_graph_tensor_t x = {.rank = rank}, y = {.rank = rank};
  int64_t taps = 1;
  x.dim[0] = y.dim[0] = case_range(1, 2);
  x.dim[1] = y.dim[1] = case_range(1, 3);
  for (int d = 0; d < rank - 2; d++) {
    x.dim[2 + d] = case_range(1, rank == 5 ? 4 : 8);
    double room = (double)(x.dim[2 + d] - how.window[d]);
    if (room + how.pre[d] + how.post[d] < 0)
      how.post[d] = -room;
    y.dim[2 + d] =
        (int64_t)((room + how.pre[d] + how.post[d]) / how.stride[d]) + 1;
    taps *= how.window[d];
  }
  bool most = how.mode == CUDNN_RESAMPLE_MAXPOOL, told = case_range(0, 1);
  int index = -1, from = -1;
  if (!how.backward) {
    int in = draw_input(m, rank, x.dim), out = draw_result(m, &y, last);
    /* Behind y, which must not take its memory. */
    if (most && told)
      index = made_real(m, CUDNN_DATA_INT8, rank, y.dim, draw_layout());
    made_resample(m, &how, in, out, index, -1);
    return out;
  }
  int dy = draw_input(m, rank, y.dim), dx = draw_result(m, &x, last);
  if (most && told) {
    index = made_real(m, CUDNN_DATA_INT8, rank, y.dim, draw_layout());
    double *at = made_values(m, index, true);
    for (int64_t i = 0; i < made_count(m, index); i++)
      at[i] = case_range(0, (int)taps - 1);
    made_fill(m, index, at);
    free(at);
  } else if (most) {
    from = made_real(m, CUDNN_DATA_HALF, rank, x.dim, draw_layout());
  }
  made_resample(m, &how, dx, dy, index, from);
  return dx;
}

void draw_resampling(made_t *m) {
  draw_around(m, resampling);
}

/* x's elements: exchanged dimensions, two that become one, one that becomes
 * two. */
static int reshape(made_t *m, bool last) {
  int rank = case_range(2, 4);
  int64_t dim[MADE_RANK];
  for (int d = 0; d < rank; d++)
    dim[d] = case_range(1, 6);
  int x = draw_input(m, rank, dim);
  for (int i = 0; i < 3; i++) {
    int d = case_range(0, rank - 2), choice = case_range(0, 3);
    if (choice == 0) {
      int64_t keep = dim[d];
      dim[d] = dim[d + 1];
      dim[d + 1] = keep;
    } else if (choice == 1) {
      dim[d] *= dim[d + 1];
      dim[d + 1] = 1;
    } else if (choice == 2 && dim[d] % 2 == 0 && rank < MADE_RANK) {
      dim[d] /= 2;
      dim[rank++] = 2;
    }
  }
  sdg_graph_tensor_t like = {.rank = rank};
  for (int d = 0; d < rank; d++)
    like.dim[d] = dim[d];
  int y = draw_result(m, &like, last);
  sdg_graph_tensor_t *t = &m->graph.tensor[y];
  if (t->is_virtual && case_range(0, 1)) { /* the first dimension innermost */
    int64_t at = 1;
    for (int d = 0; d < rank; d++) {
      t->stride[d] = at;
      at *= dim[d];
    }
  }
  made_reshape(m, x, y);
  return y;
}

static int concat(made_t *m, bool last) {
  int rank = case_range(1, 4), axis = case_range(0, rank - 1);
  int count = case_range(1, 3), x[3];
  sdg_graph_tensor_t like = {.rank = rank};
  for (int d = 0; d < rank; d++)
    like.dim[d] = case_range(1, 6);
  like.dim[axis] = 0;
  for (int i = 0; i < count; i++) {
    int64_t dim[MADE_RANK];
    for (int d = 0; d < rank; d++)
      dim[d] = d == axis ? case_range(1, 5) : like.dim[d];
    x[i] = i < 2 ? draw_input(m, rank, dim)
                 : made_real(m, draw_type(), rank, dim, draw_layout());
    like.dim[axis] += dim[axis];
  }
  int y = draw_result(m, &like, last);
  made_concat(m, axis, count, x, y);
  return y;
}

static int move(made_t *m, bool last) {
  return case_range(0, 1) ? reshape(m, last) : concat(m, last);
}

void draw_move(made_t *m) {
  draw_around(m, move);
}

static int plain(made_t *m, bool last) {
  (void)last; /* the input is no result */
  int rank = case_range(1, MADE_RANK);
  int64_t dim[MADE_RANK];
  for (int d = 0; d < rank; d++)
    dim[d] = case_range(1, rank > 3 ? 6 : 20);
  return draw_input(m, rank, dim);
}

void draw_plain(made_t *m) {
  draw_around(m, plain);
}
