// SPDX-License-Identifier: Apache-2.0
// Graphs of attention node by node.
#include "tests/unit/graph/attention/compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(name) CUDNN_ATTR_OPERATION_##name

typedef struct arrays {
  const sdg_graph_t *graph;
  double **value;
} arrays_t;

int64_t compute_elements(const sdg_graph_tensor_t *tensor) {
  int64_t elements = 1;
  for (int d = 0; d < tensor->rank; d++)
    elements *= tensor->dim[d];
  return elements;
}

static void index_split(const sdg_graph_tensor_t *tensor, int64_t element,
                        int64_t at[4]) {
  for (int d = 3; d >= 0; d--) {
    at[d] = element % tensor->dim[d];
    element /= tensor->dim[d];
  }
}

// The element for index `at` of a tensor with extents `of`: the only one along
// a dimension of 1, and one for a group of several along others.
static double *element(const arrays_t *a, int t, const int64_t at[4],
                       const int64_t of[4]) {
  const sdg_graph_tensor_t *tensor = &a->graph->tensor[t];
  int64_t index = 0;
  for (int d = 0; d < 4; d++)
    index = index * tensor->dim[d] + at[d] * tensor->dim[d] / of[d];
  return &a->value[t][index];
}

// ---- ops -------------------------------------------------------------------

static bool pointwise(int mode, double x, double b, bool t, double *y) {
  switch (mode) {
#define MODE(name, value)                                                      \
  case CUDNN_POINTWISE_##name:                                                 \
    *y = value;                                                                \
    return true;
    MODE(IDENTITY, x)
    MODE(ADD, x + b)
    MODE(SUB, x - b)
    MODE(MUL, x * b)
    MODE(DIV, x / b)
    MODE(MAX, fmax(x, b))
    MODE(MIN, fmin(x, b))
    MODE(EXP, exp(x))
    MODE(LOG, log(x))
    MODE(CMP_EQ, x == b)
    MODE(CMP_NEQ, x != b)
    MODE(CMP_GT, x > b)
    MODE(CMP_GE, x >= b)
    MODE(CMP_LT, x < b)
    MODE(CMP_LE, x <= b)
    MODE(LOGICAL_AND, x != 0 && b != 0)
    MODE(LOGICAL_OR, x != 0 || b != 0)
    MODE(BINARY_SELECT, t ? x : b)
#undef MODE
  }
  return false;
}

static bool pointwise_compute(const arrays_t *a, const sdg_graph_node_t *node) {
  int mode = (int)sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_MODE, -1);
  int axis = (int)sdg_graph_integer(node, CUDNN_ATTR_POINTWISE_AXIS, -1);
  int x = sdg_graph_operand(node, AT(POINTWISE_XDESC));
  int b = sdg_graph_operand(node, AT(POINTWISE_BDESC));
  int t = sdg_graph_operand(node, AT(POINTWISE_TDESC));
  int y = sdg_graph_operand(node, AT(POINTWISE_YDESC));
  const sdg_graph_tensor_t *to = &a->graph->tensor[y];
  for (int64_t i = 0; i < compute_elements(to); i++) {
    int64_t at[4];
    index_split(to, i, at);
    if (mode == CUDNN_POINTWISE_GEN_INDEX && axis >= 0) {
      a->value[y][i] = (double)at[axis];
      continue;
    }
    if (!pointwise(mode, *element(a, x, at, to->dim),
                   b < 0 ? 0 : *element(a, b, at, to->dim),
                   t >= 0 && *element(a, t, at, to->dim) != 0, &a->value[y][i]))
      return false;
  }
  return true;
}

static bool reduction_compute(const arrays_t *a, const sdg_graph_node_t *node) {
  int x = sdg_graph_operand(node, AT(REDUCTION_XDESC));
  int y = sdg_graph_operand(node, AT(REDUCTION_YDESC));
  int64_t op = sdg_graph_integer(node, CUDNN_ATTR_REDUCTION_OPERATOR, -1);
  bool adds = op == CUDNN_REDUCE_TENSOR_ADD;
  const sdg_graph_tensor_t *from = &a->graph->tensor[x];
  if (!adds && op != CUDNN_REDUCE_TENSOR_MAX)
    return false;
  for (int64_t i = 0; i < compute_elements(&a->graph->tensor[y]); i++)
    a->value[y][i] = adds ? 0 : -(double)INFINITY;
  for (int64_t i = 0; i < compute_elements(from); i++) {
    int64_t at[4];
    index_split(from, i, at);
    double *to = element(a, y, at, from->dim);
    *to = adds ? *to + a->value[x][i] : fmax(*to, a->value[x][i]);
  }
  return true;
}

// The override of a batch, or the extent.
static int64_t extent_of(const arrays_t *a, const sdg_graph_node_t *node,
                         cudnnBackendAttributeName_t name, int64_t batch,
                         int64_t extent) {
  int t = sdg_graph_operand(node, name);
  return t < 0 ? extent : (int64_t)a->value[t][batch];
}

static bool product_compute(const arrays_t *a, const sdg_graph_node_t *node) {
  int x = sdg_graph_operand(node, AT(MATMUL_ADESC));
  int y = sdg_graph_operand(node, AT(MATMUL_BDESC));
  int z = sdg_graph_operand(node, AT(MATMUL_CDESC));
  const sdg_graph_tensor_t *to = &a->graph->tensor[z];
  int64_t depth = a->graph->tensor[x].dim[3];
  if (a->graph->tensor[y].dim[2] != depth ||
      a->graph->tensor[x].dim[2] != to->dim[2] ||
      a->graph->tensor[y].dim[3] != to->dim[3])
    return false;
  for (int64_t i = 0; i < compute_elements(to); i++) {
    int64_t at[4];
    index_split(to, i, at);
    a->value[z][i] = 0;
    if (at[2] >= extent_of(a, node, AT(MATMUL_GEMM_M_OVERRIDE_DESC), at[0],
                           to->dim[2]) ||
        at[3] >= extent_of(a, node, AT(MATMUL_GEMM_N_OVERRIDE_DESC), at[0],
                           to->dim[3]))
      continue;
    int64_t terms =
        extent_of(a, node, AT(MATMUL_GEMM_K_OVERRIDE_DESC), at[0], depth);
    for (int64_t k = 0; k < terms; k++) {
      const int64_t left[] = {at[0], at[1], at[2], k},
                    right[] = {at[0], at[1], k, at[3]},
                    left_of[] = {to->dim[0], to->dim[1], to->dim[2], depth},
                    right_of[] = {to->dim[0], to->dim[1], depth, to->dim[3]};
      a->value[z][i] +=
          *element(a, x, left, left_of) * *element(a, y, right, right_of);
    }
  }
  return true;
}

static int64_t place_of(const sdg_graph_tensor_t *tensor, int64_t element) {
  int64_t at[4], place = 0;
  index_split(tensor, element, at);
  for (int d = 0; d < 4; d++)
    place += at[d] * tensor->stride[d];
  return place;
}

// The same memory with other extents and strides.
static bool reshape_compute(const arrays_t *a, const sdg_graph_node_t *node) {
  enum { PLACES = 1 << 20 };
  int x = sdg_graph_operand(node, AT(RESHAPE_XDESC));
  int y = sdg_graph_operand(node, AT(RESHAPE_YDESC));
  const sdg_graph_tensor_t *from = &a->graph->tensor[x],
                           *to = &a->graph->tensor[y];
  double *memory = calloc(PLACES, sizeof *memory);
  bool fits = true;
  for (int64_t i = 0; i < compute_elements(from); i++)
    if (place_of(from, i) < PLACES)
      memory[place_of(from, i)] = a->value[x][i];
  for (int64_t i = 0; i < compute_elements(to); i++) {
    fits &= place_of(to, i) < PLACES;
    a->value[y][i] = fits ? memory[place_of(to, i)] : (double)NAN;
  }
  free(memory);
  return fits;
}

static bool node_compute(const arrays_t *a, const sdg_graph_node_t *node) {
  for (int i = 0; i < node->operand_count; i++) {
    int t = node->operand[i].tensor;
    if (a->graph->tensor[t].rank != 4)
      return false;
    if (sdg_graph_writes(node, node->operand[i].name) && !a->value[t])
      a->value[t] = calloc((size_t)compute_elements(&a->graph->tensor[t]),
                           sizeof(double));
    if (!a->value[t])
      return false;
  }
  switch ((int)node->kind) {
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    return pointwise_compute(a, node);
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    return reduction_compute(a, node);
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    return product_compute(a, node);
  case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
    return reshape_compute(a, node);
  }
  return false;
}

bool compute_graph(const sdg_graph_t *graph, double *value[COMPUTE_TENSORS]) {
  arrays_t a = {graph, value};
  for (int n = 0; n < graph->node_count; n++)
    if (!node_compute(&a, &graph->node[n]))
      return false;
  return true;
}
