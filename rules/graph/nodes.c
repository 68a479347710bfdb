// SPDX-License-Identifier: Apache-2.0
// Tensors and ops through cuDNN's backend API.
#include "rules/graph/nodes.h"

typedef sdg_graph_descriptors_t maker_t;

// ---- tensors ---------------------------------------------------------------

cudnnBackendDescriptor_t sdg_graph_tensor_make(maker_t *m,
                                               const sdg_graph_tensor_t *tensor,
                                               const sdg_graph_shape_t *shape,
                                               int rank, int64_t uid) {
  cudnnBackendDescriptor_t d =
      sdg_graph_make(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
#define SET(name, type, count, at)                                             \
  sdg_graph_set(m, d, CUDNN_ATTR_TENSOR_##name, CUDNN_TYPE_##type, count, at)
  SET(DATA_TYPE, DATA_TYPE, 1, &shape->type);
  SET(DIMENSIONS, INT64, rank ? rank : tensor->rank, shape->dim);
  SET(STRIDES, INT64, rank ? rank : tensor->rank, shape->stride);
  SET(UNIQUE_ID, INT64, 1, &uid);
  SET(BYTE_ALIGNMENT, INT64, 1, &shape->alignment);
  if (shape->is_virtual)
    SET(IS_VIRTUAL, BOOLEAN, 1, &shape->is_virtual);
  if (tensor->is_by_value)
    SET(IS_BY_VALUE, BOOLEAN, 1, &tensor->is_by_value);
#undef SET
  sdg_graph_finalize(m, d);
  return d;
}

// ---- ops -------------------------------------------------------------------

// The descriptor that an op's parameters are in, and how the op refers to it.
// Statistics have theirs in the op.
typedef struct home {
  cudnnBackendDescriptorType_t op, kind;
  cudnnBackendAttributeName_t first, last; // of the parameters in it
  cudnnBackendAttributeName_t refers;
} home_t;

static const home_t homes[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
     CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
     CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
     CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, CUDNN_BACKEND_MATMUL_DESCRIPTOR,
     CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_ATTR_MATMUL_PADDING_VALUE,
     CUDNN_ATTR_OPERATION_MATMUL_DESC},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE,
     CUDNN_ATTR_POINTWISE_AXIS, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
     CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, CUDNN_ATTR_RESAMPLE_MODE,
     CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC},
    {CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR,
     CUDNN_BACKEND_RESAMPLE_DESCRIPTOR, CUDNN_ATTR_RESAMPLE_MODE,
     CUDNN_ATTR_RESAMPLE_PADDING_MODE, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     CUDNN_BACKEND_REDUCTION_DESCRIPTOR, CUDNN_ATTR_REDUCTION_OPERATOR,
     CUDNN_ATTR_REDUCTION_IS_DETERMINISTIC,
     CUDNN_ATTR_OPERATION_REDUCTION_DESC},
};

static const home_t *home_find(cudnnBackendDescriptorType_t op) {
  for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
    if (homes[i].op == op)
      return &homes[i];
  return NULL;
}

// Sets a parameter as the program did, but for paddings.
static void parameter_set(maker_t *m, cudnnBackendDescriptor_t d,
                          const sdg_graph_window_t *window,
                          const sdg_graph_parameter_t *parameter) {
  sdg_graph_values_t value;
  sdg_graph_values(parameter, &value);
  const void *at = &value;
  switch (window ? (int)parameter->name : -1) {
  case CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS:
  case CUDNN_ATTR_RESAMPLE_PRE_PADDINGS:
    at = window->pre;
    break;
  case CUDNN_ATTR_CONVOLUTION_POST_PADDINGS:
  case CUDNN_ATTR_RESAMPLE_POST_PADDINGS:
    at = window->post;
    break;
  }
  sdg_graph_set(m, d, parameter->name, parameter->type, parameter->count, at);
}

// A plan's JSON does not have the number of spatial dimensions.
static void spatial_set(maker_t *m, cudnnBackendDescriptor_t d,
                        const sdg_graph_window_t *window,
                        const sdg_graph_node_t *node) {
  int64_t spatial = window->spatial;
  if (!sdg_graph_parameter(node, window->spatial_name))
    sdg_graph_set(m, d, window->spatial_name, CUDNN_TYPE_INT64, 1, &spatial);
}

cudnnBackendDescriptor_t
sdg_graph_node_make(maker_t *m, const sdg_graph_node_t *node,
                    const sdg_graph_window_t *window,
                    const cudnnBackendDescriptor_t *operand) {
  const home_t *home = home_find(node->kind);
  cudnnBackendDescriptor_t parameters =
      home ? sdg_graph_make(m, home->kind) : NULL;
  cudnnBackendDescriptor_t op = sdg_graph_make(m, node->kind);
  for (int i = 0; i < node->parameter_count; i++) {
    const sdg_graph_parameter_t *parameter = &node->parameter[i];
    bool inside =
        home && parameter->name >= home->first && parameter->name <= home->last;
    parameter_set(m, inside ? parameters : op, window, parameter);
  }
  if (window)
    spatial_set(m, parameters, window, node);
  if (home) {
    sdg_graph_finalize(m, parameters);
    sdg_graph_set(m, op, home->refers, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                  &parameters);
  }
  for (int i = 0; i < node->operand_count; i++)
    sdg_graph_set(m, op, node->operand[i].name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  1, &operand[i]);
  sdg_graph_finalize(m, op);
  return op;
}

cudnnBackendDescriptor_t sdg_graph_of_ops(maker_t *m, int64_t ops,
                                          const cudnnBackendDescriptor_t *op) {
  cudnnBackendDescriptor_t graph =
      sdg_graph_make(m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  sdg_graph_set(m, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
                CUDNN_TYPE_BACKEND_DESCRIPTOR, ops, op);
  sdg_graph_set(m, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
                1, &m->handle);
  sdg_graph_finalize(m, graph);
  return graph;
}
