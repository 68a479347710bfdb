// SPDX-License-Identifier: Apache-2.0
// Mutants of a graph.
#include "tests/unit/graph/composite/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(name) CUDNN_ATTR_OPERATION_##name

enum { ROOM = 4 }; // more operands, parameters, tensors and nodes

typedef struct mutation {
  const sdg_graph_t *from;
  mutate_each_t *each;
  void *of;
} mutation_t;

// ---- copies ----------------------------------------------------------------

static void *copied(const void *from, int count, size_t size) {
  void *to = calloc((size_t)count + ROOM, size);
  memcpy(to, from, (size_t)count * size);
  return to;
}

static sdg_graph_t *copy(const sdg_graph_t *from) {
  sdg_graph_t *to = calloc(1, sizeof *to);
  *to = *from;
  to->references = 1;
  to->tensor = copied(from->tensor, from->tensor_count, sizeof *to->tensor);
  to->node = copied(from->node, from->node_count, sizeof *to->node);
  for (int n = 0; n < from->node_count; n++) {
    sdg_graph_node_t *node = &to->node[n];
    node->operand =
        copied(node->operand, node->operand_count, sizeof *node->operand);
    node->parameter =
        copied(node->parameter, node->parameter_count, sizeof *node->parameter);
  }
  return to;
}

static void give(const mutation_t *m, sdg_graph_t *mutant, const char *what,
                 int n, int number, bool must) {
  char text[80];
  snprintf(text, sizeof text, "%s of node %d (%d)", what, n, number);
  if (sdg_graph_sort(mutant)) // otherwise it is no graph
    m->each(mutant, text, must, m->of);
  sdg_graph_release(mutant);
}

// ---- parameters ------------------------------------------------------------

static void integer_set(sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type, int64_t value) {
  int i = 0;
  while (i < node->parameter_count && node->parameter[i].name != name)
    i++;
  node->parameter[i] = (sdg_graph_parameter_t){
      .name = name, .type = type, .count = 1, .value = {{.integer = value}}};
  if (i == node->parameter_count)
    node->parameter_count++;
}

static void real_set(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                     double value) {
  integer_set(node, name, CUDNN_TYPE_DOUBLE, 0);
  for (int i = 0; i < node->parameter_count; i++)
    if (node->parameter[i].name == name)
      node->parameter[i].value[0].real = value;
}

// The same parameter with each of the values but the node's own.
static void integers_try(const mutation_t *m, int n,
                         cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, const int *values,
                         int count, const char *what, bool must) {
  for (int i = 0; i < count; i++) {
    if (sdg_graph_integer(&m->from->node[n], name, -1) == values[i])
      continue;
    sdg_graph_t *mutant = copy(m->from);
    integer_set(&mutant->node[n], name, type, values[i]);
    give(m, mutant, what, n, values[i], must);
  }
}

static void real_try(const mutation_t *m, int n,
                     cudnnBackendAttributeName_t name, double value,
                     const char *what) {
  sdg_graph_t *mutant = copy(m->from);
  real_set(&mutant->node[n], name, value);
  give(m, mutant, what, n, (int)value, true);
}

static void pointwise_try(const mutation_t *m, int n) {
  static const int two[] =
      {CUDNN_POINTWISE_ADD,         CUDNN_POINTWISE_SUB,
       CUDNN_POINTWISE_MUL,         CUDNN_POINTWISE_DIV,
       CUDNN_POINTWISE_MAX,         CUDNN_POINTWISE_MIN,
       CUDNN_POINTWISE_CMP_EQ,      CUDNN_POINTWISE_CMP_NEQ,
       CUDNN_POINTWISE_CMP_GT,      CUDNN_POINTWISE_CMP_GE,
       CUDNN_POINTWISE_CMP_LT,      CUDNN_POINTWISE_CMP_LE,
       CUDNN_POINTWISE_LOGICAL_AND, CUDNN_POINTWISE_LOGICAL_OR},
                   one[] = {CUDNN_POINTWISE_IDENTITY, CUDNN_POINTWISE_EXP,
                            CUDNN_POINTWISE_LOG, CUDNN_POINTWISE_TANH_FWD,
                            CUDNN_POINTWISE_GEN_INDEX},
                   axes[] = {0, 1, 2, 3}, types[] = {CUDNN_DATA_HALF};
  const sdg_graph_node_t *node = &m->from->node[n];
  bool has_two = sdg_graph_operand(node, AT(POINTWISE_BDESC)) >= 0;
  integers_try(m, n, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
               has_two ? two : one,
               has_two ? (int)(sizeof two / sizeof *two)
                       : (int)(sizeof one / sizeof *one),
               "another mode", false);
  if (sdg_graph_parameter(node, CUDNN_ATTR_POINTWISE_AXIS))
    integers_try(m, n, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axes, 4,
                 "another axis", false);
  integers_try(m, n, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
               types, 1, "arithmetic in f16", true);
  real_try(m, n, AT(POINTWISE_ALPHA1), 2, "alpha1");
  real_try(m, n, AT(POINTWISE_ALPHA2), 2, "alpha2");
}

static void parameters_try(const mutation_t *m, int n) {
  static const int reductions[] = {CUDNN_REDUCE_TENSOR_ADD,
                                   CUDNN_REDUCE_TENSOR_MAX,
                                   CUDNN_REDUCE_TENSOR_MIN,
                                   CUDNN_REDUCE_TENSOR_AVG,
                                   CUDNN_REDUCE_TENSOR_NORM1},
                   types[] = {CUDNN_DATA_HALF};
  switch ((int)m->from->node[n].kind) {
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    pointwise_try(m, n);
    break;
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    integers_try(m, n, CUDNN_ATTR_REDUCTION_OPERATOR,
                 CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, reductions, 5,
                 "another reduction", false);
    integers_try(m, n, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                 types, 1, "arithmetic in f16", true);
    break;
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    integers_try(m, n, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, types,
                 1, "arithmetic in f16", true);
    real_try(m, n, CUDNN_ATTR_MATMUL_PADDING_VALUE, 1, "padding");
    break;
  }
}

// ---- operands --------------------------------------------------------------

static bool reads(const sdg_graph_node_t *node, int i) {
  return !sdg_graph_writes(node, node->operand[i].name);
}

// Every operand becomes every other tensor; two operands change places.
static void operands_try(const mutation_t *m, int n) {
  const sdg_graph_node_t *node = &m->from->node[n];
  for (int i = 0; i < node->operand_count; i++) {
    if (!reads(node, i))
      continue;
    for (int t = 0; t < m->from->tensor_count; t++) {
      if (t == node->operand[i].tensor)
        continue;
      sdg_graph_t *mutant = copy(m->from);
      mutant->node[n].operand[i].tensor = t;
      give(m, mutant, "another operand", n, 100 * i + t, false);
    }
    for (int k = 0; k < i; k++) {
      if (!reads(node, k))
        continue;
      sdg_graph_t *mutant = copy(m->from);
      mutant->node[n].operand[i].tensor = node->operand[k].tensor;
      mutant->node[n].operand[k].tensor = node->operand[i].tensor;
      give(m, mutant, "exchanged operands", n, 10 * i + k, false);
    }
    sdg_graph_t *mutant = copy(m->from);
    mutant->node[n].operand[i] =
        mutant->node[n].operand[--mutant->node[n].operand_count];
    give(m, mutant, "an operand less", n, i, false);
  }
}

// What reads its result reads its x.
static void node_drop(const mutation_t *m, int n) {
  const sdg_graph_node_t *node = &m->from->node[n];
  for (int i = 0; i < node->operand_count; i++) {
    if (!reads(node, i))
      continue;
    sdg_graph_t *mutant = copy(m->from);
    int y = -1;
    for (int k = 0; k < node->operand_count; k++)
      if (!reads(node, k))
        y = node->operand[k].tensor;
    for (int o = 0; o < mutant->node_count; o++)
      for (int k = 0; k < mutant->node[o].operand_count; k++)
        if (o != n && mutant->node[o].operand[k].tensor == y)
          mutant->node[o].operand[k].tensor = node->operand[i].tensor;
    free(mutant->node[n].operand);
    free(mutant->node[n].parameter);
    memmove(&mutant->node[n], &mutant->node[n + 1],
            sizeof *mutant->node * (size_t)(--mutant->node_count - n));
    give(m, mutant, "absence", n, i, false);
  }
}

// One more op, whose result has memory.
static void node_repeat(const mutation_t *m, int n) {
  sdg_graph_t *mutant = copy(m->from);
  sdg_graph_node_t *node = &mutant->node[mutant->node_count++];
  *node = m->from->node[n];
  node->operand =
      copied(node->operand, node->operand_count, sizeof *node->operand);
  node->parameter =
      copied(node->parameter, node->parameter_count, sizeof *node->parameter);
  for (int i = 0; i < node->operand_count; i++)
    if (!reads(node, i)) {
      mutant->tensor[mutant->tensor_count] =
          mutant->tensor[node->operand[i].tensor];
      mutant->tensor[mutant->tensor_count].uid = 10000;
      mutant->tensor[mutant->tensor_count].is_virtual = false;
      node->operand[i].tensor = mutant->tensor_count++;
    }
  give(m, mutant, "repetition", n, 0, false);
}

// ---- tensors ---------------------------------------------------------------

static void tensor_try(const mutation_t *m, int t) {
  const sdg_graph_tensor_t *from = &m->from->tensor[t];
  sdg_graph_t *mutant = copy(m->from);
  mutant->tensor[t].is_virtual = !from->is_virtual;
  give(m, mutant, "the other kind of memory", -1, t, false);
  mutant = copy(m->from);
  mutant->tensor[t].is_by_value = !from->is_by_value;
  give(m, mutant, "the other side's memory", -1, t, false);
  mutant = copy(m->from);
  mutant->tensor[t].is_ragged = true;
  give(m, mutant, "raggedness", -1, t, true);
  mutant = copy(m->from);
  mutant->tensor[t].type = CUDNN_DATA_FP8_E4M3;
  give(m, mutant, "FP8", -1, t, true);
  for (int d = 0; d < from->rank; d++) {
    mutant = copy(m->from);
    mutant->tensor[t].dim[d] = from->dim[d] == 1 ? 2 : from->dim[d] / 2;
    give(m, mutant, "another extent", -1, 100 * d + t, false);
  }
}

// A transposition that is none: the result as its extents tell.
static void reshape_try(const mutation_t *m, int n) {
  const sdg_graph_node_t *node = &m->from->node[n];
  int y = sdg_graph_operand(node, AT(RESHAPE_YDESC));
  if (y < 0)
    return;
  sdg_graph_t *mutant = copy(m->from);
  sdg_graph_tensor_t *to = &mutant->tensor[y];
  int64_t stride = 1;
  for (int d = to->rank - 1; d >= 0; d--) {
    to->stride[d] = stride;
    stride *= to->dim[d];
  }
  give(m, mutant, "plain strides", n, y, false);
}

void mutate(const sdg_graph_t *graph, mutate_each_t *each, void *of) {
  mutation_t m = {graph, each, of};
  for (int n = 0; n < graph->node_count; n++) {
    parameters_try(&m, n);
    operands_try(&m, n);
    node_drop(&m, n);
    node_repeat(&m, n);
    reshape_try(&m, n);
  }
  for (int t = 0; t < graph->tensor_count; t++)
    tensor_try(&m, t);
}
