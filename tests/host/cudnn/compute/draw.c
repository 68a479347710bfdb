// SPDX-License-Identifier: Apache-2.0
// Random operation graphs of at most one convolution.
#include "tests/host/cudnn/compute/draw.h"

#include <string.h>

#include "tests/host/cudnn/case.h"

static const cudnnBackendDescriptorType_t kinds[] = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR};

/* Modes without poles and jumps: those would make the bounds of errors
 * useless. */
static const cudnnPointwiseMode_t one[] = {
    CUDNN_POINTWISE_ABS,         CUDNN_POINTWISE_COS,
    CUDNN_POINTWISE_NEG,         CUDNN_POINTWISE_SIN,
    CUDNN_POINTWISE_ERF,         CUDNN_POINTWISE_IDENTITY,
    CUDNN_POINTWISE_RELU_FWD,    CUDNN_POINTWISE_TANH_FWD,
    CUDNN_POINTWISE_SIGMOID_FWD, CUDNN_POINTWISE_ELU_FWD,
    CUDNN_POINTWISE_GELU_FWD,    CUDNN_POINTWISE_SOFTPLUS_FWD,
    CUDNN_POINTWISE_SWISH_FWD,   CUDNN_POINTWISE_GELU_APPROX_TANH_FWD};
static const cudnnPointwiseMode_t two[] = {
    CUDNN_POINTWISE_ADD,       CUDNN_POINTWISE_ADD_SQUARE,
    CUDNN_POINTWISE_MAX,       CUDNN_POINTWISE_MIN,
    CUDNN_POINTWISE_MUL,       CUDNN_POINTWISE_SUB,
    CUDNN_POINTWISE_TANH_BWD,  CUDNN_POINTWISE_SIGMOID_BWD,
    CUDNN_POINTWISE_GELU_BWD,  CUDNN_POINTWISE_SOFTPLUS_BWD,
    CUDNN_POINTWISE_SWISH_BWD, CUDNN_POINTWISE_GELU_APPROX_TANH_BWD};
static const cudnnReduceTensorOp_t sums[] = {
    CUDNN_REDUCE_TENSOR_ADD,  CUDNN_REDUCE_TENSOR_MIN,
    CUDNN_REDUCE_TENSOR_MAX,  CUDNN_REDUCE_TENSOR_AMAX,
    CUDNN_REDUCE_TENSOR_AVG,  CUDNN_REDUCE_TENSOR_NORM1,
    CUDNN_REDUCE_TENSOR_NORM2};
#define ANY_OF(list) list[case_range(0, (int)(sizeof list / sizeof *list) - 1)]

cudnnDataType_t draw_type(void) {
  static const cudnnDataType_t types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
                                          CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16};
  return ANY_OF(types);
}

made_layout_t draw_layout(void) {
  return (made_layout_t)case_range(MADE_DENSE, MADE_GAPS);
}

/* An input of these extents that no result overwrites yet, or -1. */
static int overwritable(const made_t *m, const sdg_graph_tensor_t *like) {
  int found = -1;
  for (int t = 0; t < m->graph.tensor_count; t++) {
    const sdg_graph_tensor_t *input = &m->graph.tensor[t];
    bool apart = made_count(m, t) == 1; /* its elements */
    for (int d = 0; d < input->rank; d++)
      apart |= input->dim[d] > 1 && input->stride[d] > 0;
    if (m->memory_of[t] >= 0 && !m->written[t] && !input->is_by_value &&
        apart && input->rank == like->rank &&
        memcmp(input->dim, like->dim, (size_t)like->rank * sizeof *like->dim) ==
            0)
      found = t;
    for (int k = 0; k < m->graph.tensor_count; k++)
      if (found >= 0 && m->written[k] && m->memory_of[k] == m->memory_of[found])
        found = -1;
  }
  return found;
}

int draw_result(made_t *m, const sdg_graph_tensor_t *like, bool last) {
  const sdg_graph_tensor_t of = *like;
  int input = case_range(0, 3) ? -1 : overwritable(m, &of);
  if (!last && case_range(0, 3))
    return made_virtual(m, draw_type(), of.rank, of.dim);
  return input >= 0 ? made_alias(m, input)
                    : made_real(m, draw_type(), of.rank, of.dim, draw_layout());
}

/* Something to combine a tensor with: a tensor of its extents that exists, a
 * number by value, or a new tensor, some of whose extents are 1. */
static int partner(made_t *m, int of) {
  const sdg_graph_tensor_t like = m->graph.tensor[of];
  int choice = case_range(0, 3);
  if (choice == 0)
    return made_number(m, CUDNN_DATA_FLOAT, like.rank, case_real());
  if (choice == 1)
    for (int i = 0; i < 8; i++) {
      int t = case_range(0, m->graph.tensor_count - 1);
      const sdg_graph_tensor_t *other = &m->graph.tensor[t];
      if (t != of && other->type != CUDNN_DATA_BOOLEAN &&
          other->rank == like.rank &&
          memcmp(other->dim, like.dim, (size_t)like.rank * sizeof *like.dim) ==
              0)
        return t;
    }
  int64_t dim[MADE_RANK];
  for (int d = 0; d < like.rank; d++)
    dim[d] = case_range(0, 1) ? like.dim[d] : 1;
  return made_real(m, draw_type(), like.rank, dim,
                   case_range(0, 5) ? draw_layout() : MADE_ONE);
}

/* x where it is larger than b, otherwise b: two nodes. */
static int chosen(made_t *m, int x, bool last) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int b = partner(m, x);
  int mask = made_virtual(m, CUDNN_DATA_BOOLEAN, like.rank, like.dim);
  int y = draw_result(m, &like, last);
  made_pointwise(m, CUDNN_POINTWISE_CMP_GT, CUDNN_DATA_FLOAT, x, b, -1, mask);
  made_pointwise(m, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, x, b, mask,
                 y);
  return y;
}

/* Nodes one after the other; returns the last result. */
static int chain(made_t *m, int x, int length, bool last) {
  for (int i = 0; i < length; i++) {
    const sdg_graph_tensor_t like = m->graph.tensor[x];
    bool ends = last && i == length - 1;
    int choice = case_range(0, 5);
    if (choice == 0) {
      x = chosen(m, x, ends);
      continue;
    }
    int b = choice < 4 ? partner(m, x) : -1, y = draw_result(m, &like, ends);
    sdg_graph_node_t *node = made_pointwise(
        m, b < 0 ? ANY_OF(one) : ANY_OF(two), CUDNN_DATA_FLOAT, x, b, -1, y);
    if (case_range(0, 3) == 0)
      made_set_real(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, case_real());
    x = y;
  }
  return x;
}

int draw_input(made_t *m, int rank, const int64_t *dim) {
  int x = made_real(m, draw_type(), rank, dim, draw_layout());
  return chain(m, x, case_range(0, 3), false);
}

/* Returns the result of a convolution of any kind. */
static int window(made_t *m, bool last) {
  int rank = case_range(3, 5), groups = case_range(0, 2) ? 1 : 2;
  made_conv_t conv = {.kind = ANY_OF(kinds),
                      .compute = CUDNN_DATA_FLOAT,
                      .flip = case_range(0, 1),
                      .alpha = case_range(0, 1) ? 1 : case_real()};
  int64_t dim[3][MADE_RANK] = {0}, *x = dim[0], *w = dim[1], *y = dim[2];
  w[1] = case_range(1, 4);
  y[1] = w[0] = case_range(1, 4) * groups;
  x[0] = y[0] = case_range(1, 3);
  x[1] = w[1] * groups;
  for (int d = 0; d < rank - 2; d++) {
    w[2 + d] = case_range(1, 3);
    conv.pre[d] = case_range(0, 3);
    conv.post[d] = case_range(0, 3);
    conv.stride[d] = case_range(0, 1) ? 1 : case_range(1, 4);
    conv.dilation[d] = case_range(1, 2);
    int64_t span = conv.dilation[d] * (w[2 + d] - 1) + 1;
    x[2 + d] = case_range(1, 8);
    if (x[2 + d] + conv.pre[d] + conv.post[d] < span)
      x[2 + d] = span;
    y[2 + d] =
        (x[2 + d] + conv.pre[d] + conv.post[d] - span) / conv.stride[d] + 1;
  }
  int out = conv.kind == kinds[0] ? 2 : conv.kind == kinds[1] ? 1 : 0;
  int tensor[3];
  for (int i = 0; i < 3; i++)
    if (i != out)
      tensor[i] = draw_input(m, rank, dim[i]);
  const sdg_graph_tensor_t like = {
      .rank = rank,
      .dim = {dim[out][0], dim[out][1], dim[out][2], dim[out][3], dim[out][4]}};
  tensor[out] = draw_result(m, &like, last);
  if (!m->graph.tensor[tensor[out]].is_virtual && case_range(0, 1))
    conv.beta = case_real();
  made_conv(m, &conv, tensor[0], tensor[1], tensor[2]);
  return tensor[out];
}

static void sum(made_t *m, int x) {
  const sdg_graph_tensor_t like = m->graph.tensor[x];
  int64_t dim[MADE_RANK];
  for (int d = 0; d < like.rank; d++)
    dim[d] = case_range(0, 2) == 0                      ? like.dim[d]
             : like.dim[d] % 2 == 0 && case_range(0, 1) ? like.dim[d] / 2
                                                        : 1;
  int y = made_real(m, CUDNN_DATA_FLOAT, like.rank, dim, draw_layout());
  made_reduction(m, ANY_OF(sums), CUDNN_DATA_FLOAT, x, y);
}

void draw_around(made_t *m, int (*core)(made_t *m, bool last)) {
  made_create(m);
  int length = case_range(0, 4), reductions = case_range(0, 3) ? 0 : 2, x;
  bool last = reductions == 0 || case_range(0, 1);
  if (case_range(0, 5)) {
    x = core(m, last && length == 0);
  } else {
    int64_t dim[] = {case_range(1, 3), case_range(1, 5), case_range(1, 9),
                     case_range(1, 9)};
    x = draw_input(m, 4, dim);
    length++;
  }
  x = chain(m, x, length, last);
  for (int i = 0; i < reductions; i++)
    sum(m, x);
}

void draw_graph(made_t *m) {
  draw_around(m, window);
}
