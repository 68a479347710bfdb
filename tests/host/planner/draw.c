// SPDX-License-Identifier: Apache-2.0
// Random operation graphs for the planners.
#include "tests/host/planner/draw.h"

#include <string.h>

#include "tests/host/cudnn/case.h"

#define ANY_OF(list) list[case_range(0, (int)(sizeof list / sizeof *list) - 1)]

static bool one_in(int n) {
  return case_range(1, n) == 1;
}

// ---- what a graph's tensors have in common ---------------------------------

typedef struct {
  cudnnDataType_t io, inner, math; // of memory, virtual tensors, arithmetic
  bool channels_last;
  int64_t alignment;
} style_t;
static style_t style;

static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT,    CUDNN_DATA_HALF,
                                        CUDNN_DATA_BFLOAT16, CUDNN_DATA_INT8,
                                        CUDNN_DATA_FP8_E4M3, CUDNN_DATA_DOUBLE};

static void style_draw(void) {
  int choice = case_range(0, 63);
  style.io = types[choice < 22   ? 0
                   : choice < 44 ? 1
                   : choice < 58 ? 2
                   : choice < 61 ? 3
                   : choice < 62 ? 4
                                 : 5];
  style.math = style.io == CUDNN_DATA_INT8     ? CUDNN_DATA_INT32
               : style.io == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                               : CUDNN_DATA_FLOAT;
  if (one_in(24))
    style.math = style.io;
  style.inner = one_in(4)                       ? style.io
                : style.io == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE
                                                : CUDNN_DATA_FLOAT;
  style.channels_last = !one_in(3);
  style.alignment = one_in(8) ? 0 : 16;
}

// Arithmetic of what is no convolution.
static cudnnDataType_t plain_math(void) {
  return style.io == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

static void lay_out(sdg_graph_tensor_t *t, bool channels_last) {
  int64_t at = 1;
  bool gaps = !t->is_virtual && one_in(40);
  for (int i = t->rank; i-- > 0;) {
    int d = !channels_last ? i : i == t->rank - 1 ? 1 : i == 0 ? 0 : i + 1;
    t->stride[d] = at;
    at *= t->dim[d] + (gaps && one_in(3));
  }
}

static int tensor(made_t *m, cudnnDataType_t type, int rank, const int64_t *dim,
                  bool is_virtual) {
  int index = made_virtual(m, type, rank, dim);
  sdg_graph_tensor_t *t = &m->graph.tensor[index];
  t->is_virtual = is_virtual;
  t->alignment =
      style.alignment ? style.alignment : (int64_t)sdg_graph_type_bytes(type);
  lay_out(t, style.channels_last != one_in(60));
  return index;
}

static cudnnDataType_t io_type(void) {
  return one_in(60) ? ANY_OF(types) : style.io;
}

static cudnnDataType_t inner_type(void) {
  return one_in(12) ? style.io : style.inner;
}

// A result: mostly virtual unless it is the last.
static int result(made_t *m, const sdg_graph_tensor_t *like, bool last) {
  const sdg_graph_tensor_t of = *like;
  bool is_virtual = !last && !one_in(8);
  return tensor(m, is_virtual ? inner_type() : io_type(), of.rank, of.dim,
                is_virtual);
}

// ---- pointwise operations --------------------------------------------------

static const cudnnPointwiseMode_t one[] = {
    CUDNN_POINTWISE_RELU_FWD,  CUDNN_POINTWISE_RELU_FWD,
    CUDNN_POINTWISE_TANH_FWD,  CUDNN_POINTWISE_SIGMOID_FWD,
    CUDNN_POINTWISE_ELU_FWD,   CUDNN_POINTWISE_GELU_FWD,
    CUDNN_POINTWISE_SWISH_FWD, CUDNN_POINTWISE_GELU_APPROX_TANH_FWD,
    CUDNN_POINTWISE_ABS,       CUDNN_POINTWISE_NEG,
    CUDNN_POINTWISE_EXP,       CUDNN_POINTWISE_LOG,
    CUDNN_POINTWISE_SQRT,      CUDNN_POINTWISE_RSQRT,
    CUDNN_POINTWISE_IDENTITY,  CUDNN_POINTWISE_SOFTPLUS_FWD,
    CUDNN_POINTWISE_ERF,       CUDNN_POINTWISE_SIN,
    CUDNN_POINTWISE_COS,       CUDNN_POINTWISE_TAN,
    CUDNN_POINTWISE_CEIL,      CUDNN_POINTWISE_FLOOR,
    CUDNN_POINTWISE_RECIPROCAL};
static const cudnnPointwiseMode_t two[] = {
    CUDNN_POINTWISE_ADD,         CUDNN_POINTWISE_ADD,
    CUDNN_POINTWISE_ADD,         CUDNN_POINTWISE_MUL,
    CUDNN_POINTWISE_MUL,         CUDNN_POINTWISE_SUB,
    CUDNN_POINTWISE_DIV,         CUDNN_POINTWISE_MAX,
    CUDNN_POINTWISE_MIN,         CUDNN_POINTWISE_ADD_SQUARE,
    CUDNN_POINTWISE_POW,         CUDNN_POINTWISE_RELU_BWD,
    CUDNN_POINTWISE_RELU_BWD,    CUDNN_POINTWISE_TANH_BWD,
    CUDNN_POINTWISE_SIGMOID_BWD, CUDNN_POINTWISE_ELU_BWD,
    CUDNN_POINTWISE_GELU_BWD,    CUDNN_POINTWISE_SOFTPLUS_BWD,
    CUDNN_POINTWISE_SWISH_BWD,   CUDNN_POINTWISE_GELU_APPROX_TANH_BWD,
    CUDNN_POINTWISE_MOD,         CUDNN_POINTWISE_ATAN2};

// Something to combine a tensor with: a bias of its channels, a number, a
// tensor of its extents (an existing one, now and then), or any broadcast.
static int partner(made_t *m, int of) {
  const sdg_graph_tensor_t like = m->graph.tensor[of];
  int64_t dim[CUDNN_DIM_MAX];
  int choice = case_range(0, 9);
  if (choice < 2)
    for (int i = 0; i < 8; i++) {
      int t = case_range(0, m->graph.tensor_count - 1);
      const sdg_graph_tensor_t *other = &m->graph.tensor[t];
      if (t != of && other->type != CUDNN_DATA_BOOLEAN &&
          memcmp(other->dim, like.dim, sizeof like.dim) == 0)
        return t;
    }
  for (int d = 0; d < like.rank; d++)
    dim[d] = choice < 5    ? (d == 1 ? like.dim[d] : 1)
             : choice == 5 ? 1
             : choice == 6 ? (one_in(2) ? like.dim[d] : 1)
                           : like.dim[d];
  int t = tensor(m, one_in(4) ? CUDNN_DATA_FLOAT : io_type(), like.rank, dim,
                 false);
  m->graph.tensor[t].is_by_value = choice == 5;
  return t;
}

static int compared(made_t *m, int x, bool last) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int mask = tensor(m, CUDNN_DATA_BOOLEAN, like.rank, like.dim, true);
  int b = partner(m, x);
  made_pointwise(m, CUDNN_POINTWISE_CMP_GT, plain_math(), x, b, -1, mask);
  int y = result(m, &like, last);
  made_pointwise(m, CUDNN_POINTWISE_BINARY_SELECT, plain_math(), x, b, mask, y);
  return y;
}

// Operations one after the other; returns the last result.
static int chain(made_t *m, int x, int length, bool last) {
  for (int i = 0; i < length; i++) {
    const sdg_graph_tensor_t like = m->graph.tensor[x];
    bool ends = last && i == length - 1;
    if (one_in(30)) {
      x = compared(m, x, ends);
      continue;
    }
    bool is_unary = one_in(3);
    int b = is_unary ? -1 : partner(m, x);
    int y = result(m, &like, ends);
    sdg_graph_node_t *node = made_pointwise(
        m, is_unary ? ANY_OF(one) : ANY_OF(two), plain_math(), x, b, -1, y);
    if (one_in(48))
      made_set_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, 0.5);
    x = y;
  }
  return x;
}

// ---- convolutions ----------------------------------------------------------

static const cudnnBackendDescriptorType_t kinds[] = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
enum { X, W, Y };

static int out_of(cudnnBackendDescriptorType_t kind) {
  return kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? Y
         : kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
             ? X
             : W;
}

static void extents_draw(made_conv_t *conv, int rank, int64_t dim[3][8]) {
  static const int channels[] = {1, 2, 3, 4, 5, 8, 8, 16, 16, 24, 32, 32, 64};
  int64_t *x = dim[X], *w = dim[W], *y = dim[Y];
  int groups = one_in(5) ? 2 : 1;
  w[1] = ANY_OF(channels);
  w[0] = y[1] = ANY_OF(channels) * groups;
  if (one_in(16)) { // depthwise
    groups = (int)w[1];
    w[1] = 1;
    w[0] = y[1] = groups;
  }
  x[0] = y[0] = case_range(1, 4);
  x[1] = w[1] * groups;
  for (int d = 0; d < rank - 2; d++) {
    w[2 + d] = case_range(1, 4);
    int64_t dilation = one_in(6) ? 2 : 1, span = dilation * (w[2 + d] - 1) + 1;
    conv->dilation[d] = dilation;
    conv->stride[d] = one_in(4) ? case_range(2, 3) : 1;
    conv->pre[d] = one_in(3) ? 0 : case_range(0, (int)span - 1);
    conv->post[d] = one_in(3) ? case_range(0, (int)span - 1) : conv->pre[d];
    x[2 + d] = one_in(12) ? 1 : case_range(4, 20);
    if (x[2 + d] + conv->pre[d] + conv->post[d] < span)
      x[2 + d] = span;
    y[2 + d] =
        (x[2 + d] + conv->pre[d] + conv->post[d] - span) / conv->stride[d] + 1;
  }
}

// Returns the result. `before`: the most operations in front of each input.
static int window(made_t *m, int before, bool last) {
  int rank = one_in(8) ? 3 : one_in(4) ? 5 : 4;
  int64_t dim[3][8] = {0};
  made_conv_t conv = {.kind = ANY_OF(kinds),
                      .compute = style.math,
                      .flip = one_in(16),
                      .alpha = one_in(24) ? 0.5 : 1};
  extents_draw(&conv, rank, dim);
  int out = out_of(conv.kind), at[3];
  for (int i = 0; i < 3; i++)
    if (i != out) {
      at[i] = tensor(m, io_type(), rank, dim[i], false);
      if (before > 0 && (i == X || one_in(6)))
        at[i] = chain(m, at[i], case_range(1, before), false);
    }
  const sdg_graph_tensor_t like = {.rank = rank};
  sdg_graph_tensor_t of = like;
  memcpy(of.dim, dim[out], sizeof of.dim);
  at[out] = result(m, &of, last);
  if (last && one_in(16))
    conv.beta = 0.5;
  made_conv(m, &conv, at[X], at[W], at[Y]);
  return at[out];
}

// ---- sums ------------------------------------------------------------------

static int reduction(made_t *m, int x) {
  static const cudnnReduceTensorOp_t ops[] = {
      CUDNN_REDUCE_TENSOR_ADD,  CUDNN_REDUCE_TENSOR_ADD,
      CUDNN_REDUCE_TENSOR_MIN,  CUDNN_REDUCE_TENSOR_MAX,
      CUDNN_REDUCE_TENSOR_AMAX, CUDNN_REDUCE_TENSOR_MUL};
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int64_t dim[CUDNN_DIM_MAX];
  int form = case_range(0, 3);
  for (int d = 0; d < like.rank; d++)
    dim[d] = form == 0   ? 1
             : form == 1 ? (d == 1 ? like.dim[d] : 1)
             : form == 2 ? (d < 2 ? like.dim[d] : 1)
             : one_in(2) ? like.dim[d]
                         : 1;
  int y = tensor(m, one_in(16) ? style.io : CUDNN_DATA_FLOAT, like.rank, dim,
                 false);
  made_reduction(m, ANY_OF(ops), plain_math(), x, y);
  return y;
}

static int statistics(made_t *m, int x) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int64_t dim[CUDNN_DIM_MAX];
  for (int d = 0; d < like.rank; d++)
    dim[d] = d == 1 ? like.dim[d] : 1;
  int sum = tensor(m, CUDNN_DATA_FLOAT, like.rank, dim, false);
  int squares = tensor(m, CUDNN_DATA_FLOAT, like.rank, dim, false);
  made_statistics(m, CUDNN_DATA_FLOAT, x, sum, squares);
  return sum;
}

// ---- graphs ----------------------------------------------------------------

void planner_draw(made_t *m, uint64_t seed) {
  case_seed(seed);
  made_create(m);
  style_draw();
  int sums = one_in(4) ? case_range(1, 2) : 0, x;
  int length = one_in(3) ? 0 : case_range(1, 4);
  bool gathers = one_in(10); // statistics
  bool last = sums + gathers == 0 || one_in(2);
  if (one_in(10)) {
    int64_t dim[] = {case_range(1, 4), 8 * case_range(1, 4), case_range(1, 9),
                     case_range(1, 9)};
    x = tensor(m, io_type(), 4, dim, false);
    length++;
  } else {
    x = window(m, one_in(4) ? 3 : 0, last && length == 0);
  }
  x = chain(m, x, length, last);
  int end = x;
  for (int i = 0; i < sums; i++)
    end = reduction(m, x);
  if (gathers)
    end = statistics(m, x);
  if (sums + gathers && one_in(12)) // what reads a sum
    (void)chain(m, end, 1, true);
  if (one_in(40)) // a second convolution
    (void)window(m, 0, true);
}
