// SPDX-License-Identifier: Apache-2.0
// Tensors, and what checks of operations ask of their operands.
#include "src/host/cudnn/backend/check.h"

host_extents_t host_extents(const host_object_t *tensor) {
  host_extents_t extents = {0};
  if (!tensor)
    return extents;
  const host_value_t *dim =
      HOST_VALUE((host_object_t *)tensor, TENSOR_DIMENSIONS);
  extents.rank = (int)dim->count;
  for (int i = 0; i < extents.rank; i++)
    extents.dim[i] = dim->slot[i].integer;
  return extents;
}

host_extents_t host_extents_of(host_object_t *op,
                               cudnnBackendAttributeName_t name) {
  return host_extents(host_object_child(op, name));
}

bool host_extents_same(const host_extents_t *a, const host_extents_t *b) {
  if (a->rank != b->rank)
    return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dim[i] != b->dim[i])
      return false;
  return true;
}

bool host_operand_there(host_object_t *op, cudnnBackendAttributeName_t name) {
  return host_object_child(op, name) != NULL;
}

bool host_operand_final(host_object_t *op, cudnnBackendAttributeName_t name) {
  const host_object_t *child = host_object_child(op, name);
  return child && child->finalized;
}

int64_t host_list_at(host_object_t *object, cudnnBackendAttributeName_t name,
                     int at, int64_t missing) {
  const host_value_t *value = host_object_value(object, name);
  if (at >= value->count)
    return missing;
  return value->type == CUDNN_TYPE_FRACTION ? value->slot[at].fraction.numerator
                                            : value->slot[at].integer;
}

// Vectors of int8 have 4 or 32 elements, those of uint8 have 4; the count of
// other types has no meaning.
static cudnnStatus_t check_vectors(host_object_t *tensor, int type) {
  int64_t count =
      host_object_integer(tensor, CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1);
  bool bytes = type == CUDNN_DATA_INT8 || type == CUDNN_DATA_UINT8;
  REFUSE_IF(bytes && count != 1 && count != 4 &&
                !(count == 32 && type == CUDNN_DATA_INT8),
            CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

// The offsets of a ragged tensor: one more than the sequences, 1 elsewhere.
static cudnnStatus_t check_ragged(host_object_t *tensor) {
  host_object_t *offsets =
      host_object_child(tensor, CUDNN_ATTR_TENSOR_RAGGED_OFFSET_DESC);
  if (HOST_VALUE(tensor, TENSOR_RAGGED_OFFSET_DESC)->count == 0)
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!offsets, CUDNN_STATUS_BAD_PARAM); // was not finalized
  int64_t type = host_object_integer(offsets, CUDNN_ATTR_TENSOR_DATA_TYPE,
                                     CUDNN_DATA_FLOAT);
  REFUSE_IF(type != CUDNN_DATA_INT32 && type != CUDNN_DATA_INT64,
            CUDNN_STATUS_BAD_PARAM);
  const host_value_t *dim = HOST_VALUE(tensor, TENSOR_DIMENSIONS);
  host_extents_t extents = host_extents(offsets);
  for (int i = 0; i < extents.rank; i++)
    REFUSE_IF(
        extents.dim[i] != 1 &&
            (i >= dim->count || extents.dim[i] != dim->slot[i].integer + 1),
        CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_check_tensor(host_object_t *tensor) {
  const host_value_t *dim = HOST_VALUE(tensor, TENSOR_DIMENSIONS);
  const host_value_t *stride = HOST_VALUE(tensor, TENSOR_STRIDES);
  int type = (int)host_object_integer(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE,
                                      CUDNN_DATA_FLOAT);
  REFUSE_IF(dim->count < 1 || dim->count > CUDNN_DIM_MAX,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(dim->count != stride->count, CUDNN_STATUS_BAD_PARAM);
  int lists = 0; // extents above 1
  for (int64_t i = 0; i < dim->count; i++) {
    REFUSE_IF(dim->slot[i].integer < 0 || stride->slot[i].integer < 0,
              CUDNN_STATUS_BAD_PARAM);
    lists += dim->slot[i].integer > 1;
  }
  bool by_value =
      host_object_integer(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0) != 0;
  REFUSE_IF(by_value && lists > 1, CUDNN_STATUS_BAD_PARAM);
  int64_t dimension =
      host_object_integer(tensor, CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, -1);
  REFUSE_IF(dimension > dim->count, CUDNN_STATUS_BAD_PARAM);
  // The vectorised types of the legacy API are no types of this one.
  REFUSE_IF(type == CUDNN_DATA_INT8x4 || type == CUDNN_DATA_UINT8x4 ||
                type == CUDNN_DATA_INT8x32,
            CUDNN_STATUS_NOT_SUPPORTED);
  cudnnStatus_t status = check_vectors(tensor, type);
  if (status)
    return status;
  int64_t bytes = (int64_t)sdg_graph_type_bytes((cudnnDataType_t)type);
  int64_t alignment =
      host_object_integer(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
  REFUSE_IF(bytes == 0, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(alignment <= 0 || alignment % bytes != 0, CUDNN_STATUS_BAD_PARAM);
  return check_ragged(tensor);
}
