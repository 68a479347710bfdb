// SPDX-License-Identifier: Apache-2.0
// Graphs that cuDNN has compiled kernels for.
#include "src/host/cudnn/plan/patterns.h"

#include <string.h>

#define NODE(f, n) (&(f)->graph->node[n])

static int64_t mode_of(const sdg_graph_node_t *node) {
  return sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1);
}

static cudnnDataType_t math_of(const sdg_graph_node_t *node) {
  return (cudnnDataType_t)sdg_graph_integer(
      node,
      host_node_is_pointwise(node) ? CUDNN_ATTR_POINTWISE_MATH_PREC
                                   : CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
      CUDNN_DATA_FLOAT);
}

// The node that alone reads a tensor, or -1.
static int only_reader(const host_facts_t *f, int tensor) {
  int found = -1;
  for (int n = 0; n < f->graph->node_count; n++)
    if (host_node_reads(NODE(f, n), tensor)) {
      if (found >= 0)
        return -1;
      found = n;
    }
  return found;
}

// The operand of an addition or product that is not `tensor`; -1.
static int other_of(const sdg_graph_node_t *node, int tensor) {
  int x = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  int b = sdg_graph_operand(node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  return x == tensor && b != tensor ? b : b == tensor ? x : -1;
}

static bool is_of_channels(const sdg_graph_tensor_t *t, int64_t channels) {
  for (int d = 0; d < t->rank; d++)
    if (t->dim[d] != (d == 1 ? channels : 1))
      return false;
  return true;
}

static int index_of(const host_facts_t *f, const sdg_graph_tensor_t *t) {
  return (int)(t - f->graph->tensor);
}

static int result_of(const host_facts_t *f, int n) {
  return index_of(f, host_node_result(f->graph, NODE(f, n)));
}

// ---- a convolution alone ---------------------------------------------------

bool host_pattern_is_alone(const host_facts_t *f) {
  cudnnDataType_t type = f->x ? f->x->type : CUDNN_DATA_FLOAT;
  if (f->graph->node_count != 1 || !f->conv || f->w->type != type ||
      f->y->type != type)
    return false;
  cudnnDataType_t math = math_of(f->conv);
  switch ((int)type) {
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_BFLOAT16:
    return math == CUDNN_DATA_FLOAT;
  case CUDNN_DATA_HALF:
    return math == CUDNN_DATA_FLOAT || math == CUDNN_DATA_HALF;
  case CUDNN_DATA_DOUBLE:
    return math == CUDNN_DATA_DOUBLE;
  case CUDNN_DATA_INT8:
    return math == CUDNN_DATA_INT32 && f->kind == HOST_CONV_FORWARD;
  }
  return false;
}

// ---- bias and activation ---------------------------------------------------

static bool is_activation(int64_t mode) {
  return mode == CUDNN_POINTWISE_RELU_FWD || mode == CUDNN_POINTWISE_TANH_FWD ||
         mode == CUDNN_POINTWISE_SIGMOID_FWD || mode == CUDNN_POINTWISE_ELU_FWD;
}

// The next operation of a chain whose only link is the virtual float tensor
// *tensor, which becomes the operation's result; -1 at the end.
static int next_of(const host_facts_t *f, int *tensor) {
  const sdg_graph_tensor_t *t = &f->graph->tensor[*tensor];
  int n = only_reader(f, *tensor);
  if (n < 0 || !t->is_virtual || t->type != CUDNN_DATA_FLOAT ||
      !host_node_is_pointwise(NODE(f, n)) ||
      math_of(NODE(f, n)) != CUDNN_DATA_FLOAT)
    return -1;
  *tensor = result_of(f, n);
  return n;
}

bool host_pattern_is_bias(const host_facts_t *f) {
  if (f->kind != HOST_CONV_FORWARD || f->convolutions != 1 ||
      math_of(f->conv) != CUDNN_DATA_FLOAT ||
      (f->x->type != CUDNN_DATA_FLOAT && f->x->type != CUDNN_DATA_HALF &&
       f->x->type != CUDNN_DATA_BFLOAT16) ||
      f->w->type != f->x->type || f->x->is_virtual || f->w->is_virtual ||
      sdg_graph_real(f->conv, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                     1) != 1)
    return false;
  const sdg_graph_tensor_t *added = NULL;
  int at = index_of(f, f->y), from = at, nodes = 1;
  int n = next_of(f, &at);
  int other = n < 0 || mode_of(NODE(f, n)) != CUDNN_POINTWISE_ADD
                  ? -1
                  : other_of(NODE(f, n), from);
  if (other >= 0 && !is_of_channels(&f->graph->tensor[other], f->y->dim[1])) {
    const sdg_graph_tensor_t *z = &f->graph->tensor[other];
    if (!host_tensor_same(z, f->y) || z->is_virtual || z->type != f->x->type)
      return false;
    added = z;
    from = at;
    nodes++;
    n = next_of(f, &at);
    other = n < 0 || mode_of(NODE(f, n)) != CUDNN_POINTWISE_ADD
                ? -1
                : other_of(NODE(f, n), from);
  }
  if (other < 0)
    return false;
  const sdg_graph_tensor_t *bias = &f->graph->tensor[other];
  if (!is_of_channels(bias, f->y->dim[1]) || bias->type != f->x->type ||
      bias->is_by_value || bias->is_virtual)
    return false;
  nodes++;
  n = next_of(f, &at);
  if (n >= 0 && !is_activation(mode_of(NODE(f, n))))
    return false;
  nodes += n >= 0;
  const sdg_graph_tensor_t *end = &f->graph->tensor[at];
  return nodes == f->graph->node_count && !end->is_virtual &&
         end->type == f->x->type &&
         (!added || memcmp(added->stride, end->stride,
                           (size_t)end->rank * sizeof *end->stride) == 0);
}

// ---- scale, bias and RELU in front -----------------------------------------

// Whether `tensor` is RELU(x * scale + bias) of a tensor with memory, by the
// graph's first three operations.
static bool is_scaled(const host_facts_t *f, const sdg_graph_tensor_t *tensor) {
  static const cudnnPointwiseMode_t modes[] = {
      CUDNN_POINTWISE_MUL, CUDNN_POINTWISE_ADD, CUDNN_POINTWISE_RELU_FWD};
  int at = index_of(f, tensor);
  for (int i = 3; i-- > 0;) {
    const sdg_graph_tensor_t *t = &f->graph->tensor[at];
    int n = host_facts_writer(f, at);
    if (n < 0 || mode_of(NODE(f, n)) != modes[i] || only_reader(f, at) < 0 ||
        !t->is_virtual || math_of(NODE(f, n)) != CUDNN_DATA_FLOAT)
      return false;
    at = sdg_graph_operand(NODE(f, n), CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    int b = sdg_graph_operand(NODE(f, n), CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    if (i < 2 &&
        (b < 0 || !is_of_channels(&f->graph->tensor[b], tensor->dim[1])))
      return false;
  }
  return !f->graph->tensor[at].is_virtual &&
         f->graph->tensor[at].type == CUDNN_DATA_HALF;
}

bool host_pattern_is_statistics(const host_facts_t *f) {
  const sdg_graph_t *graph = f->graph;
  if (f->kind != HOST_CONV_FORWARD || f->convolutions != 1 ||
      graph->node_count != 5 || f->sums != 1 ||
      !host_node_is_statistics(NODE(f, 4)) || f->w->type != CUDNN_DATA_HALF ||
      f->y->type != CUDNN_DATA_HALF || f->y->is_virtual ||
      !host_node_reads(NODE(f, 4), index_of(f, f->y)))
    return false;
  const sdg_graph_parameter_t *pre =
      sdg_graph_parameter(f->conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  const sdg_graph_parameter_t *post =
      sdg_graph_parameter(f->conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  for (int d = 0; pre && post && d < pre->count && d < post->count; d++)
    if (pre->value[d].integer != post->value[d].integer)
      return false;
  return f->x->rank == 4 && f->x->dim[1] % 8 == 0 && f->w->dim[0] % 8 == 0 &&
         host_facts_groups(f) == 1 && host_tensor_is_last(f->w) &&
         host_tensor_is_last(f->y) && is_scaled(f, f->x);
}

bool host_pattern_is_filter(const host_facts_t *f) {
  return f->kind == HOST_CONV_FILTER && f->convolutions == 1 &&
         f->graph->node_count == 4 && f->y->type == CUDNN_DATA_HALF &&
         f->w->type == CUDNN_DATA_HALF && host_tensor_is_packed(f->y) &&
         host_tensor_is_packed(f->w) && is_scaled(f, f->x);
}
