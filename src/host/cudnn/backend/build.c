// SPDX-License-Identifier: Apache-2.0
// From the descriptors of an operation graph to plain data.
#include "src/host/cudnn/backend/check.h"
#include "src/host/cudnn/plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { NO_UID = -1, ENGINES = 128 };

static sdg_graph_tensor_t describe(host_object_t *object) {
  host_extents_t extents = host_extents(object);
  sdg_graph_tensor_t tensor = {
      .uid = host_object_integer(object, CUDNN_ATTR_TENSOR_UNIQUE_ID, NO_UID),
      .type = (cudnnDataType_t)host_object_integer(
          object, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT),
      .rank = extents.rank,
      .alignment =
          host_object_integer(object, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1),
      .vector_count =
          host_object_integer(object, CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1),
      .vector_dimension = host_object_integer(
          object, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, -1),
      .reordering = (cudnnBackendTensorReordering_t)host_object_integer(
          object, CUDNN_ATTR_TENSOR_REORDERING_MODE,
          CUDNN_TENSOR_REORDERING_NONE),
      .is_virtual =
          host_object_integer(object, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0,
      .is_by_value =
          host_object_integer(object, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0,
      .is_ragged = host_object_child(
                       object, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC) != NULL,
  };
  for (int i = 0; i < extents.rank; i++) {
    tensor.dim[i] = extents.dim[i];
    tensor.stride[i] = host_list_at(object, CUDNN_ATTR_TENSOR_STRIDES, i, 0);
  }
  return tensor;
}

// Descriptors with one uid are one tensor, and have to say the same of it.
static bool alike(const sdg_graph_tensor_t *a, const sdg_graph_tensor_t *b) {
  if (a->type != b->type || a->rank != b->rank ||
      a->is_virtual != b->is_virtual || a->is_by_value != b->is_by_value)
    return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i] || a->stride[i] != b->stride[i])
      return false;
  return true;
}

static cudnnStatus_t add_tensor(sdg_graph_t *graph, host_object_t *object,
                                int *out) {
  REFUSE_IF(!object || !object->finalized, CUDNN_STATUS_BAD_PARAM);
  sdg_graph_tensor_t tensor = describe(object);
  *out = sdg_graph_find(graph, tensor.uid);
  if (*out >= 0) {
    REFUSE_IF(!alike(&graph->tensor[*out], &tensor), CUDNN_STATUS_BAD_PARAM);
    return CUDNN_STATUS_SUCCESS;
  }
  *out = graph->tensor_count++;
  graph->tensor[*out] = tensor;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_operands(sdg_graph_t *graph, sdg_graph_node_t *node,
                                  cudnnBackendAttributeName_t name,
                                  const host_value_t *value) {
  for (int64_t i = 0; i < value->count; i++) {
    int tensor = 0;
    cudnnStatus_t status = add_tensor(graph, value->slot[i].object, &tensor);
    if (status)
      return status;
    node->operand[node->operand_count++] =
        (sdg_graph_operand_t){.name = name, .tensor = tensor};
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_parameter(sdg_graph_node_t *node,
                                   cudnnBackendAttributeName_t name,
                                   const host_value_t *value) {
  REFUSE_IF(value->count > CUDNN_DIM_MAX, CUDNN_STATUS_BAD_PARAM);
  sdg_graph_parameter_t *parameter = &node->parameter[node->parameter_count++];
  *parameter = (sdg_graph_parameter_t){
      .name = name, .type = value->type, .count = (int)value->count};
  bool real =
      value->type == CUDNN_TYPE_FLOAT || value->type == CUDNN_TYPE_DOUBLE;
  bool whole = value->type == CUDNN_TYPE_FRACTION;
  for (int i = 0; i < parameter->count && whole; i++)
    whole = value->slot[i].fraction.denominator == 1;
  for (int i = 0; i < parameter->count; i++) {
    const host_slot_t *slot = &value->slot[i];
    if (real)
      parameter->value[i].real = slot->real;
    else if (value->type != CUDNN_TYPE_FRACTION)
      parameter->value[i].integer = slot->integer;
    else if (whole)
      parameter->value[i].integer = slot->fraction.numerator;
    else
      parameter->value[i].real =
          (double)slot->fraction.numerator / (double)slot->fraction.denominator;
  }
  if (whole)
    parameter->type = CUDNN_TYPE_INT64;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t add_values(sdg_graph_t *graph, sdg_graph_node_t *node,
                                host_object_t *object);

// Those of the descriptor that an operation refers to, which may have changed
// since, if the program has not finalized it.
static cudnnStatus_t add_settings(sdg_graph_t *graph, sdg_graph_node_t *node,
                                  host_object_t *settings) {
  cudnnStatus_t status =
      settings->finalized ? CUDNN_STATUS_SUCCESS : host_object_check(settings);
  return status ? status : add_values(graph, node, settings);
}

// Operands and parameters of the operation.
static cudnnStatus_t add_values(sdg_graph_t *graph, sdg_graph_node_t *node,
                                host_object_t *object) {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < object->value_count && !status; i++) {
    const host_value_t *value = &object->value[i];
    const host_attribute_t *attribute = &object->attribute[i];
    if (value->count == 0)
      continue;
    if (value->type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
      status = add_parameter(node, attribute->name, value);
    else if (attribute->child == CUDNN_BACKEND_TENSOR_DESCRIPTOR)
      status = add_operands(graph, node, attribute->name, value);
    else
      status = add_settings(graph, node, value->slot[0].object);
  }
  return status;
}

// The most operands and parameters that add_values may add.
static int room(const host_object_t *object) {
  int sum = 0;
  for (int i = 0; i < object->value_count; i++) {
    const host_value_t *value = &object->value[i];
    if (value->count > 0 && value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
      for (int64_t j = 0; j < value->count; j++)
        sum += 1 +
               (value->slot[j].object ? value->slot[j].object->value_count : 0);
    else
      sum++;
  }
  return sum;
}

static cudnnStatus_t add_node(sdg_graph_t *graph, host_object_t *op) {
  // NVIDIA's library refuses it in every graph.
  REFUSE_IF(op->kind == CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR,
            CUDNN_STATUS_BAD_PARAM);
  size_t most = (size_t)room(op) + 1;
  sdg_graph_node_t *node = &graph->node[graph->node_count++];
  node->kind = op->kind;
  node->operand = calloc(most, sizeof *node->operand);
  node->parameter = calloc(most, sizeof *node->parameter);
  REFUSE_IF(!node->operand || !node->parameter,
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  cudnnStatus_t status = add_values(graph, node, op);
  if (!status)
    status = host_object_check(op);
  if (status)
    return status;
  // A mode that there is not makes an operation, but no graph.
  REFUSE_IF(op->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR &&
                !host_pointwise_is_known(sdg_graph_integer(
                    node, CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD)),
            CUDNN_STATUS_NOT_INITIALIZED);
  bool writes = false; // an operation without tensors does not
  for (int i = 0; i < node->operand_count; i++)
    writes |= sdg_graph_writes(node, node->operand[i].name);
  REFUSE_IF(!writes, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// A tensor has at most one producer.
static cudnnStatus_t check_producers(const sdg_graph_t *graph) {
  for (int t = 0; t < graph->tensor_count; t++) {
    int producers = 0;
    for (int n = 0; n < graph->node_count; n++) {
      const sdg_graph_node_t *node = &graph->node[n];
      for (int i = 0; i < node->operand_count; i++)
        producers += node->operand[i].tensor == t &&
                     sdg_graph_writes(node, node->operand[i].name);
    }
    REFUSE_IF(producers > 1, CUDNN_STATUS_BAD_PARAM);
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t build(sdg_graph_t *graph, const host_value_t *ops) {
  size_t most = 0;
  for (int64_t i = 0; i < ops->count; i++)
    most += (size_t)room(ops->slot[i].object);
  graph->references = 1;
  graph->node = calloc((size_t)ops->count, sizeof *graph->node);
  graph->tensor = calloc(most + 1, sizeof *graph->tensor);
  REFUSE_IF(!graph->node || !graph->tensor,
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  for (int64_t i = 0; i < ops->count; i++) {
    REFUSE_IF(ops->slot[i].object->hasty, CUDNN_STATUS_BAD_PARAM);
    cudnnStatus_t status = add_node(graph, ops->slot[i].object);
    if (status)
      return status;
  }
  cudnnStatus_t status = check_producers(graph);
  if (status)
    return status;
  REFUSE_IF(!sdg_graph_sort(graph), CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// Programs that try every engine count up to this number.
static int64_t engines(const sdg_graph_t *graph) {
  int64_t id[ENGINES], end = 0;
  int count = host_plan_engines(graph, ENGINES, id);
  for (int i = 0; i < count && i < ENGINES; i++)
    end = id[i] + 1 > end ? id[i] + 1 : end;
  return end;
}

cudnnStatus_t host_build_graph(host_object_t *graph) {
  const host_value_t *ops = HOST_VALUE(graph, OPERATIONGRAPH_OPS);
  REFUSE_IF(ops->count == 0, CUDNN_STATUS_BAD_PARAM);
  sdg_graph_t *made = calloc(1, sizeof *made);
  REFUSE_IF(!made, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  cudnnStatus_t status = build(made, ops);
  if (!status)
    status =
        host_object_put(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT,
                        CUDNN_TYPE_INT64, engines(made));
  if (status)
    sdg_graph_release(made);
  else
    graph->graph = made;
  return status;
}
