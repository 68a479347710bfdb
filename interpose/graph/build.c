// SPDX-License-Identifier: Apache-2.0
// Makes an operation graph of what the program has set.
#include "interpose/graph/build.h"

#include <stdlib.h>
#include <string.h>

enum { NO_UID = -1 };

// ---- values ----------------------------------------------------------------

static int64_t integer_at(const sdg_shadow_value_t *value, int64_t i) {
  const char *at = (const char *)value->data +
                   (size_t)i * sdg_shadow_value_bytes(value->type);
  int32_t small;
  int64_t large;
  bool flag;
  switch ((int)value->type) {
  case CUDNN_TYPE_INT64:
    memcpy(&large, at, sizeof large);
    return large;
  case CUDNN_TYPE_BOOLEAN:
    memcpy(&flag, at, sizeof flag);
    return flag;
  }
  memcpy(&small, at, sizeof small);
  return small;
}

static double real_at(const sdg_shadow_value_t *value, int64_t i) {
  if (value->type == CUDNN_TYPE_DOUBLE)
    return ((const double *)value->data)[i];
  if (value->type == CUDNN_TYPE_FRACTION) {
    const cudnnFraction_t *fraction = (const cudnnFraction_t *)value->data + i;
    return (double)fraction->numerator / (double)fraction->denominator;
  }
  return (double)((const float *)value->data)[i];
}

// Whether a list of fractions has integers only.
static bool is_whole(const sdg_shadow_value_t *value) {
  const cudnnFraction_t *fraction = value->data;
  for (int64_t i = 0; i < value->count; i++)
    if (fraction[i].denominator == 0 ||
        fraction[i].numerator % fraction[i].denominator != 0)
      return false;
  return true;
}

static int64_t integer_get(const sdg_shadow_t *shadow,
                           cudnnBackendAttributeName_t name, int64_t missing) {
  const sdg_shadow_value_t *value = sdg_shadow_value(shadow, name);
  return value && value->data && value->count > 0 ? integer_at(value, 0)
                                                  : missing;
}

// ---- tensors ---------------------------------------------------------------

static bool list_get(const sdg_shadow_t *shadow,
                     cudnnBackendAttributeName_t name, int *io_count,
                     int64_t *out) {
  const sdg_shadow_value_t *value = sdg_shadow_value(shadow, name);
  if (!value || !value->data || value->count < 1 ||
      value->count > CUDNN_DIM_MAX ||
      (*io_count > 0 && value->count != *io_count))
    return false;
  *io_count = (int)value->count;
  for (int i = 0; i < *io_count; i++)
    out[i] = integer_at(value, i);
  return true;
}

// Of a later version of cuDNN: a constant value (9.22), for one.
static bool has_unknown(const sdg_shadow_t *shadow) {
  for (int i = 0; i < shadow->values; i++)
    switch ((int)shadow->value[i].name) {
    case CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT:
    case CUDNN_ATTR_TENSOR_DATA_TYPE:
    case CUDNN_ATTR_TENSOR_DIMENSIONS:
    case CUDNN_ATTR_TENSOR_STRIDES:
    case CUDNN_ATTR_TENSOR_VECTOR_COUNT:
    case CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION:
    case CUDNN_ATTR_TENSOR_UNIQUE_ID:
    case CUDNN_ATTR_TENSOR_IS_VIRTUAL:
    case CUDNN_ATTR_TENSOR_IS_BY_VALUE:
    case CUDNN_ATTR_TENSOR_REORDERING_MODE:
    case CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC:
      break;
    default:
      return true;
    }
  return false;
}

static bool tensor_get(const sdg_shadow_t *shadow, sdg_graph_tensor_t *out) {
#define GET(name, missing)                                                     \
  integer_get(shadow, CUDNN_ATTR_TENSOR_##name, missing)
  *out = (sdg_graph_tensor_t){
      .uid = GET(UNIQUE_ID, NO_UID),
      .type = (cudnnDataType_t)GET(DATA_TYPE, CUDNN_DATA_FLOAT),
      .alignment = GET(BYTE_ALIGNMENT, 1),
      .vector_count = GET(VECTOR_COUNT, 1),
      .vector_dimension = GET(VECTORIZED_DIMENSION, -1),
      .reordering = (cudnnBackendTensorReordering_t)GET(
          REORDERING_MODE, CUDNN_TENSOR_REORDERING_NONE),
      .is_virtual = GET(IS_VIRTUAL, 0) != 0,
      .is_by_value = GET(IS_BY_VALUE, 0) != 0,
      .is_ragged = sdg_shadow_value(
                       shadow, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC) != NULL,
      .has_unknown = has_unknown(shadow),
  };
#undef GET
  return list_get(shadow, CUDNN_ATTR_TENSOR_DIMENSIONS, &out->rank, out->dim) &&
         list_get(shadow, CUDNN_ATTR_TENSOR_STRIDES, &out->rank, out->stride);
}

// A graph while it is made. Descriptors with one unique id are one tensor;
// without an id each descriptor is a tensor.
typedef struct maker {
  sdg_graph_t *graph;
  const sdg_shadow_t **tensor; // of each tensor
} maker_t;

static int tensor_add(maker_t *m, const sdg_shadow_t *shadow) {
  sdg_graph_tensor_t tensor;
  if (!shadow || shadow->kind != CUDNN_BACKEND_TENSOR_DESCRIPTOR ||
      !tensor_get(shadow, &tensor))
    return -1;
  for (int t = 0; t < m->graph->tensor_count; t++)
    if (m->tensor[t] == shadow ||
        (tensor.uid != NO_UID && m->graph->tensor[t].uid == tensor.uid))
      return t;
  m->graph->tensor[m->graph->tensor_count] = tensor;
  m->tensor[m->graph->tensor_count] = shadow;
  return m->graph->tensor_count++;
}

// ---- nodes -----------------------------------------------------------------

static bool parameter_add(const sdg_shadow_value_t *value,
                          sdg_graph_node_t *node) {
  sdg_graph_parameter_t *out = &node->parameter[node->parameter_count++];
  bool fractions = value->type == CUDNN_TYPE_FRACTION;
  bool whole = fractions && is_whole(value);
  bool real = (fractions && !whole) || value->type == CUDNN_TYPE_FLOAT ||
              value->type == CUDNN_TYPE_DOUBLE;
  *out = (sdg_graph_parameter_t){.name = value->name,
                                 .type = whole ? CUDNN_TYPE_INT64 : value->type,
                                 .count = (int)value->count};
  if (value->count > CUDNN_DIM_MAX || value->type == CUDNN_TYPE_HANDLE ||
      value->type == CUDNN_TYPE_VOID_PTR)
    return false;
  for (int i = 0; i < out->count; i++)
    if (real)
      out->value[i].real = real_at(value, i);
    else
      out->value[i].integer =
          whole ? (int64_t)real_at(value, i) : integer_at(value, i);
  return true;
}

// No op has more operands and parameters.
static size_t room(const sdg_shadow_t *op) {
  size_t sum = 1;
  for (int i = 0; i < op->values; i++) {
    sum += (size_t)op->value[i].count;
    for (int64_t k = 0; op->value[i].shadow && k < op->value[i].count; k++)
      sum +=
          op->value[i].shadow[k] ? (size_t)op->value[i].shadow[k]->values : 0;
  }
  return sum;
}

// An op's operands and parameters, and those of the descriptor that it refers
// to.
static bool values_add(maker_t *m, const sdg_shadow_t *shadow, bool nested,
                       sdg_graph_node_t *node) {
  for (int i = 0; i < shadow->values; i++) {
    const sdg_shadow_value_t *value = &shadow->value[i];
    if (value->count == 0)
      continue;
    if (!value->shadow) {
      if (!parameter_add(value, node))
        return false;
      continue;
    }
    const sdg_shadow_t *first = value->shadow[0];
    if (first && first->kind != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
      if (nested || !values_add(m, first, true, node))
        return false;
      continue;
    }
    for (int64_t k = 0; k < value->count; k++) {
      int t = tensor_add(m, value->shadow[k]);
      if (t < 0)
        return false;
      node->operand[node->operand_count++] =
          (sdg_graph_operand_t){.name = value->name, .tensor = t};
    }
  }
  return true;
}

static bool node_add(maker_t *m, const sdg_shadow_t *op) {
  if (!op)
    return false;
  sdg_graph_node_t *node = &m->graph->node[m->graph->node_count++];
  size_t most = room(op);
  node->kind = op->kind;
  node->operand = calloc(most, sizeof *node->operand);
  node->parameter = calloc(most, sizeof *node->parameter);
  return node->operand && node->parameter && values_add(m, op, false, node);
}

static bool graph_fill(maker_t *m, const sdg_shadow_value_t *ops) {
  size_t most = 1;
  for (int64_t i = 0; i < ops->count; i++)
    most += ops->shadow[i] ? room(ops->shadow[i]) : 0;
  m->graph->node = calloc((size_t)ops->count + 1, sizeof *m->graph->node);
  m->graph->tensor = calloc(most, sizeof *m->graph->tensor);
  m->tensor = calloc(most, sizeof(void *));
  bool good = m->graph->node && m->graph->tensor && m->tensor;
  for (int64_t i = 0; good && i < ops->count; i++)
    good = node_add(m, ops->shadow[i]);
  free(m->tensor);
  return good && sdg_graph_sort(m->graph);
}

sdg_graph_t *sdg_shadow_graph(const sdg_shadow_t *shadow) {
  const sdg_shadow_value_t *ops =
      sdg_shadow_value(shadow, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  sdg_graph_t *graph = calloc(1, sizeof *graph);
  if (!graph || !ops || !ops->shadow) {
    free(graph);
    return NULL;
  }
  graph->references = 1;
  maker_t maker = {.graph = graph};
  if (graph_fill(&maker, ops))
    return graph;
  sdg_graph_release(graph);
  return NULL;
}
