// SPDX-License-Identifier: Apache-2.0
// Tensors and nodes of a graph that is being made.
#include "rules/graph/attention/build.h"

#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 8, PARAMETERS = 3, ALIGNED = 16 };

#define AT(name) CUDNN_ATTR_OPERATION_##name

// ---- tensors ---------------------------------------------------------------

static int tensor_add(sdg_builder_t *b, cudnnDataType_t type,
                      const int64_t dim[4], const int64_t stride[4],
                      int64_t alignment) {
  sdg_graph_t *graph = b->out->graph;
  int t = graph->tensor_count++;
  graph->tensor[t] =
      (sdg_graph_tensor_t){.uid = t + 1,
                           .type = type,
                           .rank = 4,
                           .alignment = alignment,
                           .vector_count = 1,
                           .vector_dimension = -1,
                           .reordering = CUDNN_TENSOR_REORDERING_NONE};
  memcpy(graph->tensor[t].dim, dim, 4 * sizeof *dim);
  memcpy(graph->tensor[t].stride, stride, 4 * sizeof *stride);
  return t;
}

int sdg_build_packed(sdg_builder_t *b, cudnnDataType_t type,
                     const int64_t dim[4]) {
  const int64_t stride[] = {dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3],
                            1};
  return tensor_add(b, type, dim, stride, ALIGNED);
}

int sdg_build_virtual(sdg_builder_t *b, cudnnDataType_t type,
                      const int64_t dim[4]) {
  int t = sdg_build_packed(b, type, dim);
  b->out->graph->tensor[t].is_virtual = true;
  return t;
}

int sdg_build_score(sdg_builder_t *b, cudnnDataType_t type) {
  return sdg_build_virtual(b, type, b->scores);
}

int sdg_build_row(sdg_builder_t *b) {
  return sdg_build_virtual(b, CUDNN_DATA_FLOAT, b->rows);
}

int sdg_build_by_value(sdg_builder_t *b, cudnnDataType_t type) {
  int t = sdg_build_packed(b, type, (const int64_t[]){1, 1, 1, 1});
  b->out->graph->tensor[t].is_by_value = true;
  return t;
}

int sdg_build_real(sdg_builder_t *b, float value) {
  sdg_attention_state_t *out = b->out;
  out->value[out->numbers].f32 = value;
  return out->number[out->numbers++] = sdg_build_by_value(b, CUDNN_DATA_FLOAT);
}

int sdg_build_whole(sdg_builder_t *b, int64_t value) {
  sdg_attention_state_t *out = b->out;
  out->value[out->numbers].i32 = (int32_t)value;
  return out->number[out->numbers++] = sdg_build_by_value(b, CUDNN_DATA_INT32);
}

// The extents of a role's tensor, rows before columns.
void sdg_build_extents(const sdg_attention_shape_t *s,
                       sdg_composite_role_t role, int64_t out[4]) {
  int64_t heads = s->heads, rows = s->queries, columns = s->depth;
  switch (role) {
  case SDG_COMPOSITE_BIAS:
    memcpy(out, s->bias_dim, sizeof s->bias_dim);
    return;
  case SDG_COMPOSITE_LENGTH_Q:
  case SDG_COMPOSITE_LENGTH_KV:
    heads = rows = columns = 1;
    break;
  case SDG_COMPOSITE_K:
  case SDG_COMPOSITE_DK:
    heads = s->k_heads;
    rows = s->keys;
    break;
  case SDG_COMPOSITE_V:
  case SDG_COMPOSITE_DV:
    heads = s->v_heads;
    rows = s->keys;
    columns = s->v_depth;
    break;
  case SDG_COMPOSITE_O:
  case SDG_COMPOSITE_DO:
    columns = s->v_depth;
    break;
  case SDG_COMPOSITE_STATS:
    columns = 1;
    break;
  default:
    break;
  }
  memcpy(out, (const int64_t[]){s->batch, heads, rows, columns},
         4 * sizeof *out);
}

static bool is_turned(const sdg_attention_shape_t *s, int role) {
  return !s->unified &&
         (role == SDG_COMPOSITE_K || (role == SDG_COMPOSITE_V && s->backward));
}

// The tensors that the shape has.
void sdg_build_roles(sdg_builder_t *b) {
  for (int role = 0; role < SDG_COMPOSITE_ROLES; role++) {
    const sdg_attention_tensor_t *tensor = &b->shape->tensor[role];
    int64_t dim[4], stride[4];
    b->out->tensor[role] = -1;
    if (!tensor->there)
      continue;
    sdg_build_extents(b->shape, (sdg_composite_role_t)role, dim);
    memcpy(stride, tensor->stride, sizeof stride);
    if (is_turned(b->shape, role)) {
      int64_t rows = dim[2], step = stride[2];
      dim[2] = dim[3];
      stride[2] = stride[3];
      dim[3] = rows;
      stride[3] = step;
    }
    b->out->tensor[role] =
        tensor_add(b, tensor->type, dim, stride, tensor->alignment);
  }
}

// ---- nodes -----------------------------------------------------------------

sdg_graph_node_t *sdg_build_node(sdg_builder_t *b,
                                 cudnnBackendDescriptorType_t kind) {
  sdg_graph_t *graph = b->out->graph;
  sdg_graph_node_t *node = &graph->node[graph->node_count++];
  node->kind = kind;
  node->operand = calloc(OPERANDS, sizeof *node->operand);
  node->parameter = calloc(PARAMETERS, sizeof *node->parameter);
  b->failed |= !node->operand || !node->parameter;
  return node;
}

// Nothing if there is no tensor.
void sdg_build_operand(sdg_builder_t *b, sdg_graph_node_t *node,
                       cudnnBackendAttributeName_t name, int tensor) {
  if (!b->failed && tensor >= 0)
    node->operand[node->operand_count++] = (sdg_graph_operand_t){name, tensor};
}

void sdg_build_parameter(sdg_builder_t *b, sdg_graph_node_t *node,
                         cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t value) {
  if (!b->failed)
    node->parameter[node->parameter_count++] = (sdg_graph_parameter_t){
        .name = name, .type = type, .count = 1, .value = {{.integer = value}}};
}

int sdg_build_pointwise_in(sdg_builder_t *b, cudnnDataType_t in,
                           cudnnPointwiseMode_t mode, int x, int with, int y) {
  sdg_graph_node_t *node =
      sdg_build_node(b, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  sdg_build_parameter(b, node, CUDNN_ATTR_POINTWISE_MODE,
                      CUDNN_TYPE_POINTWISE_MODE, mode);
  sdg_build_parameter(b, node, CUDNN_ATTR_POINTWISE_MATH_PREC,
                      CUDNN_TYPE_DATA_TYPE, in);
  sdg_build_operand(b, node, AT(POINTWISE_XDESC), x);
  sdg_build_operand(b, node, AT(POINTWISE_BDESC), with);
  sdg_build_operand(b, node, AT(POINTWISE_YDESC), y);
  return y;
}

int sdg_build_pointwise(sdg_builder_t *b, cudnnPointwiseMode_t mode, int x,
                        int with, int y) {
  return sdg_build_pointwise_in(b, CUDNN_DATA_FLOAT, mode, x, with, y);
}

int sdg_build_truth(sdg_builder_t *b, cudnnPointwiseMode_t mode, int x,
                    int with) {
  return sdg_build_pointwise_in(b, CUDNN_DATA_BOOLEAN, mode, x, with,
                                sdg_build_score(b, CUDNN_DATA_BOOLEAN));
}

int sdg_build_reduction(sdg_builder_t *b, cudnnReduceTensorOp_t op, int x,
                        int y) {
  sdg_graph_node_t *node =
      sdg_build_node(b, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  sdg_build_parameter(b, node, CUDNN_ATTR_REDUCTION_OPERATOR,
                      CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  sdg_build_parameter(b, node, CUDNN_ATTR_REDUCTION_COMP_TYPE,
                      CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  sdg_build_operand(b, node, AT(REDUCTION_XDESC), x);
  sdg_build_operand(b, node, AT(REDUCTION_YDESC), y);
  return y;
}

int sdg_build_product(sdg_builder_t *b, int x, int y, int z,
                      sdg_build_lengths_t lengths) {
  sdg_graph_node_t *node =
      sdg_build_node(b, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  sdg_build_parameter(b, node, CUDNN_ATTR_MATMUL_COMP_TYPE,
                      CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  sdg_build_operand(b, node, AT(MATMUL_ADESC), x);
  sdg_build_operand(b, node, AT(MATMUL_BDESC), y);
  sdg_build_operand(b, node, AT(MATMUL_CDESC), z);
  sdg_build_operand(b, node, AT(MATMUL_GEMM_M_OVERRIDE_DESC), lengths.rows);
  sdg_build_operand(b, node, AT(MATMUL_GEMM_N_OVERRIDE_DESC), lengths.columns);
  sdg_build_operand(b, node, AT(MATMUL_GEMM_K_OVERRIDE_DESC), lengths.depth);
  return z;
}

// The tensor with its last two dimensions exchanged.
int sdg_build_turn(sdg_builder_t *b, int x, cudnnDataType_t type) {
  sdg_graph_tensor_t turned = b->out->graph->tensor[x];
  int64_t dim[] = {turned.dim[0], turned.dim[1], turned.dim[3], turned.dim[2]};
  int64_t stride[] = {turned.stride[0], turned.stride[1], turned.stride[3],
                      turned.stride[2]};
  int y = tensor_add(b, type, dim, stride, ALIGNED);
  b->out->graph->tensor[y].is_virtual = true;
  sdg_graph_node_t *node =
      sdg_build_node(b, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  sdg_build_operand(b, node, AT(RESHAPE_XDESC), x);
  sdg_build_operand(b, node, AT(RESHAPE_YDESC), y);
  return y;
}
