// SPDX-License-Identifier: Apache-2.0
// Graphs in which several nodes stand for one operation.
#include "src/host/cudnn/compute/composite/composite.h"

#include <stdlib.h>
#include <string.h>

// Nodes and tensors that an operation may become, and what a node has.
enum { NODES = 24, OPERANDS = 6, PARAMETERS = 4 };

struct host_expansion {
  sdg_graph_t *graph;
  void **data;          // of its tensors
  cudnnDataType_t type; // of the composite that is expanded
  bool failed;          // memory is short; nothing more is added
};

const host_composite_t *host_composite(cudnnBackendDescriptorType_t kind) {
  static const host_composite_t *const all[] = {
      &host_norm_forward, &host_norm_backward, &host_norm_weights,
      &host_attention};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i]->kind == kind)
      return all[i];
  return NULL;
}

static int composites(const sdg_graph_t *graph) {
  int count = 0;
  for (int n = 0; n < graph->node_count; n++)
    count += host_composite(graph->node[n].kind) != NULL;
  return count;
}

bool host_has_composites(const sdg_graph_t *graph) {
  return composites(graph) > 0;
}

// ---- nodes -----------------------------------------------------------------

static sdg_graph_node_t *node_add(host_expansion_t *to,
                                  cudnnBackendDescriptorType_t kind,
                                  int operands, int parameters) {
  sdg_graph_node_t *node = &to->graph->node[to->graph->node_count];
  if (to->failed)
    return NULL;
  node->kind = kind;
  node->operand = calloc((size_t)operands + 1, sizeof *node->operand);
  node->parameter = calloc((size_t)parameters + 1, sizeof *node->parameter);
  to->graph->node_count++; // released with the graph also where it failed
  to->failed = !node->operand || !node->parameter;
  return to->failed ? NULL : node;
}

static void node_copy(host_expansion_t *to, const sdg_graph_node_t *from) {
  sdg_graph_node_t *node =
      node_add(to, from->kind, from->operand_count, from->parameter_count);
  if (!node)
    return;
  node->operand_count = from->operand_count;
  node->parameter_count = from->parameter_count;
  memcpy(node->operand, from->operand,
         (size_t)from->operand_count * sizeof *node->operand);
  memcpy(node->parameter, from->parameter,
         (size_t)from->parameter_count * sizeof *node->parameter);
}

// Nothing if there is no tensor.
static void operand_add(sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name, int tensor) {
  if (tensor != HOST_NONE)
    node->operand[node->operand_count++] = (sdg_graph_operand_t){name, tensor};
}

static void integer_add(sdg_graph_node_t *node,
                        cudnnBackendAttributeName_t name,
                        cudnnBackendAttributeType_t type, int64_t value) {
  sdg_graph_parameter_t *parameter = &node->parameter[node->parameter_count++];
  *parameter = (sdg_graph_parameter_t){.name = name, .type = type, .count = 1};
  parameter->value[0].integer = value;
}

static void real_add(sdg_graph_node_t *node, cudnnBackendAttributeName_t name,
                     double value) {
  sdg_graph_parameter_t *parameter = &node->parameter[node->parameter_count++];
  *parameter = (sdg_graph_parameter_t){
      .name = name, .type = CUDNN_TYPE_DOUBLE, .count = 1};
  parameter->value[0].real = value;
}

// ---- what composites add ---------------------------------------------------

const sdg_graph_tensor_t *host_expansion_tensor(const host_expansion_t *to,
                                                int tensor) {
  return &to->graph->tensor[tensor];
}

static int tensor_add(host_expansion_t *to, const sdg_graph_tensor_t *tensor,
                      void *data) {
  int index = to->graph->tensor_count++;
  to->graph->tensor[index] = *tensor;
  to->graph->tensor[index].uid = -1;
  to->data[index] = data;
  return index;
}

int host_expand_tensor(host_expansion_t *to, cudnnDataType_t type, int rank,
                       const int64_t *dim) {
  sdg_graph_tensor_t t = {.type = type,
                          .rank = rank,
                          .alignment = sizeof(double),
                          .vector_count = 1,
                          .vector_dimension = -1,
                          .reordering = CUDNN_TENSOR_REORDERING_NONE,
                          .is_virtual = true};
  int64_t stride = 1;
  for (int d = rank; d-- > 0; stride *= dim[d]) {
    t.dim[d] = dim[d];
    t.stride[d] = stride;
  }
  return tensor_add(to, &t, NULL);
}

int host_expand_view(host_expansion_t *to, int tensor, int rank,
                     const int64_t *dim, const int64_t *stride) {
  sdg_graph_tensor_t t = to->graph->tensor[tensor];
  t.rank = rank;
  memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
  memcpy(t.stride, stride, (size_t)rank * sizeof *stride);
  return tensor_add(to, &t, to->data[tensor]);
}

int host_expand_number(host_expansion_t *to, int rank, const float *number) {
  static const int64_t one[CUDNN_DIM_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
  int tensor = host_expand_tensor(to, CUDNN_DATA_FLOAT, rank, one);
  to->graph->tensor[tensor].is_virtual = false;
  to->graph->tensor[tensor].is_by_value = true;
  to->data[tensor] = (void *)(uintptr_t)number;
  return tensor;
}

// Operands from a on in the order X, B, T; result: HOST_NEW or a tensor.
static sdg_graph_node_t *pointwise_add(host_expansion_t *to,
                                       cudnnPointwiseMode_t mode, double factor,
                                       int a, int b, int t, int *io_result) {
  const sdg_graph_tensor_t *x = &to->graph->tensor[a];
  if (*io_result == HOST_NEW) {
    int64_t dim[CUDNN_DIM_MAX];
    for (int d = 0; d < x->rank; d++) {
      int64_t other = b == HOST_NONE ? 1 : to->graph->tensor[b].dim[d];
      dim[d] = x->dim[d] == 1 ? other : x->dim[d];
    }
    *io_result = host_expand_tensor(to, to->type, x->rank, dim);
  }
  sdg_graph_node_t *node = node_add(
      to, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, OPERANDS, PARAMETERS);
  if (!node)
    return NULL;
  integer_add(node, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  integer_add(node, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
              to->type);
  real_add(node, CUDNN_ATTR_OPERATION_POINTWISE_ALPHA1, factor);
  operand_add(node, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
  operand_add(node, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  operand_add(node, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  operand_add(node, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *io_result);
  return node;
}

int host_expand_pointwise(host_expansion_t *to, cudnnPointwiseMode_t mode,
                          int a, int b, int result) {
  pointwise_add(to, mode, 1, a, b, HOST_NONE, &result);
  return result;
}

int host_expand_scaled(host_expansion_t *to, double factor, int a, int result) {
  pointwise_add(to, CUDNN_POINTWISE_IDENTITY, factor, a, HOST_NONE, HOST_NONE,
                &result);
  return result;
}

int host_expand_select(host_expansion_t *to, int a, int b, int t) {
  int result = HOST_NEW;
  pointwise_add(to, CUDNN_POINTWISE_BINARY_SELECT, 1, a, b, t, &result);
  return result;
}

void host_expand_index(host_expansion_t *to, int a, int axis, int result) {
  sdg_graph_node_t *node = pointwise_add(to, CUDNN_POINTWISE_GEN_INDEX, 1, a,
                                         HOST_NONE, HOST_NONE, &result);
  if (node)
    integer_add(node, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
}

int host_expand_reduction(host_expansion_t *to, cudnnReduceTensorOp_t op, int x,
                          const int64_t *dim, int result) {
  if (result == HOST_NEW)
    result = host_expand_tensor(to, to->type, to->graph->tensor[x].rank, dim);
  sdg_graph_node_t *node = node_add(
      to, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, OPERANDS, PARAMETERS);
  if (!node)
    return result;
  integer_add(node, CUDNN_ATTR_REDUCTION_OPERATOR,
              CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  integer_add(node, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
              to->type);
  operand_add(node, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  operand_add(node, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result);
  return result;
}

void host_expand_product(host_expansion_t *to, int a, int b, int c, int rows,
                         int columns, int terms) {
  sdg_graph_node_t *node = node_add(
      to, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, OPERANDS, PARAMETERS);
  if (!node)
    return;
  integer_add(node, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
              to->type);
  operand_add(node, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  operand_add(node, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  operand_add(node, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  operand_add(node, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, rows);
  operand_add(node, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, columns);
  operand_add(node, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, terms);
}

// ---- the graph -------------------------------------------------------------

bool host_expand(const sdg_graph_t *graph, void *const *data,
                 sdg_graph_t **out_graph, void ***out_data) {
  size_t more = (size_t)composites(graph) * NODES;
  size_t tensors = (size_t)graph->tensor_count + more;
  host_expansion_t to = {.graph = calloc(1, sizeof *to.graph)};
  if (!to.graph)
    return false;
  to.graph->references = 1;
  to.graph->node =
      calloc((size_t)graph->node_count + more, sizeof *to.graph->node);
  to.graph->tensor = calloc(tensors, sizeof *to.graph->tensor);
  to.data = calloc(tensors, sizeof *to.data);
  to.failed = !to.graph->node || !to.graph->tensor || !to.data;
  if (!to.failed) {
    memcpy(to.graph->tensor, graph->tensor,
           (size_t)graph->tensor_count * sizeof *graph->tensor);
    memcpy(to.data, data, (size_t)graph->tensor_count * sizeof *data);
    to.graph->tensor_count = graph->tensor_count;
  }
  for (int n = 0; n < graph->node_count && !to.failed; n++) {
    const host_composite_t *composite = host_composite(graph->node[n].kind);
    if (composite) {
      to.type = composite->type;
      composite->expand(&to, &graph->node[n]);
    } else {
      node_copy(&to, &graph->node[n]);
    }
  }
  if (to.failed) {
    sdg_graph_release(to.graph);
    free(to.data);
    return false;
  }
  *out_graph = to.graph;
  *out_data = to.data;
  return true;
}
