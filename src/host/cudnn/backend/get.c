// SPDX-License-Identifier: Apache-2.0
// Reads an attribute of a finalized descriptor.
#include "src/host/cudnn/backend/object.h"

#include <string.h>

// What attributes are that the program did not set, where it is not 0.
static const struct {
  cudnnBackendAttributeName_t name;
  int64_t integer;
  double real;
} defaults[] = {
    {CUDNN_ATTR_TENSOR_VECTOR_COUNT, 1, 0},
    {CUDNN_ATTR_TENSOR_VECTORIZED_DIMENSION, -1, 0},
    {CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX, -1, 0},
    {CUDNN_ATTR_TENSOR_UNIQUE_ID, -1, 0},
    {CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, -1, 0},
    {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODES_COUNT, 0},
    {CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, -1, 0},
    {CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT, 1, 0},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 0, 1},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 0, 1},
    {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 0, 1},
    {CUDNN_ATTR_RNG_NORMAL_DIST_MEAN, 0, -1},
    {CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION, 0, -1},
    {CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM, 0, -1},
    {CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM, 0, -1},
    {CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 0, -1},
};

static bool is_real(cudnnBackendAttributeType_t type) {
  return type == CUDNN_TYPE_FLOAT || type == CUDNN_TYPE_DOUBLE;
}

static host_slot_t missing(cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type) {
  host_slot_t slot = {0};
  for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
    if (defaults[i].name == name && is_real(type))
      slot.real = defaults[i].real;
    else if (defaults[i].name == name)
      slot.integer = defaults[i].integer;
  return slot;
}

// Writes a slot of type `from` as element `at` of an array of `type`. False if
// the value has no such form.
static bool slot_write(const host_slot_t *slot,
                       cudnnBackendAttributeType_t from,
                       cudnnBackendAttributeType_t type, void *array,
                       int64_t at) {
  if (from == CUDNN_TYPE_FRACTION && type == CUDNN_TYPE_FRACTION) {
    ((cudnnFraction_t *)array)[at] = slot->fraction;
    return true;
  }
  if (from == CUDNN_TYPE_FRACTION && slot->fraction.denominator != 1)
    return false;
  int64_t integer = is_real(from) ? (int64_t)slot->real : slot->integer;
  double real = is_real(from) ? slot->real : (double)slot->integer;
  switch ((int)type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
    ((void **)array)[at] = slot->pointer;
    return true;
  case CUDNN_TYPE_INT64:
    ((int64_t *)array)[at] = integer;
    return true;
  case CUDNN_TYPE_DOUBLE:
    ((double *)array)[at] = real;
    return true;
  case CUDNN_TYPE_FLOAT:
    ((float *)array)[at] = (float)real;
    return true;
  case CUDNN_TYPE_FRACTION:
    ((cudnnFraction_t *)array)[at] = (cudnnFraction_t){integer, 1};
    return true;
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    ((char *)array)[at] = (char)integer;
    return true;
  }
  ((int32_t *)array)[at] = (int32_t)integer;
  return true;
}

// Convolutions are read with the type that they were set with.
static bool same_type_only(const host_attribute_t *attribute) {
  return host_attribute_takes(attribute, CUDNN_TYPE_FLOAT) &&
         attribute->kind >=
             CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
         attribute->kind <=
             CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
}

// Two enumerations are read as something else than they are set.
static bool reads_as(const host_attribute_t *attribute,
                     cudnnBackendAttributeType_t type) {
  if (attribute->name == CUDNN_ATTR_CONVOLUTION_CONV_MODE)
    return type == CUDNN_TYPE_DATA_TYPE;
  if (attribute->name == CUDNN_ATTR_TENSOR_REORDERING_MODE)
    return type == CUDNN_TYPE_INT64;
  return host_attribute_takes(attribute, (int)type);
}

static bool is_forward_operand(const host_attribute_t *attribute) {
  return attribute->kind ==
             CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR &&
         host_attribute_takes(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR);
}

static cudnnStatus_t wrong_type(const host_attribute_t *attribute) {
  if (is_forward_operand(attribute) ||
      attribute->name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE)
    return CUDNN_STATUS_NOT_INITIALIZED;
  if (attribute->name == CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT)
    return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  if (attribute->name == CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)
    return CUDNN_STATUS_BAD_PARAM;
  bool early =
      attribute->kind < CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
  return early || attribute->refused == CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE
             ? CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE
             : CUDNN_STATUS_BAD_PARAM;
}

// Where one descriptor is to be read.
static cudnnStatus_t wrong_number(const host_attribute_t *attribute,
                                  int64_t requested, bool set) {
  if (is_forward_operand(attribute))
    return CUDNN_STATUS_NOT_INITIALIZED;
  switch ((int)attribute->name) {
  case CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC:
    return CUDNN_STATUS_BAD_PARAM;
  case CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC:
  case CUDNN_ATTR_OPERATION_RNG_SEED:
    return set ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM;
  case CUDNN_ATTR_OPERATION_RNG_YDESC:
  case CUDNN_ATTR_ENGINEHEUR_DEVICEPROP:
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  bool settings = attribute->child != CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
                  attribute->count == HOST_COUNT_FIRST;
  return host_kind_is_operation(attribute->kind) && (requested > 1 || settings)
             ? CUDNN_STATUS_NOT_SUPPORTED
             : CUDNN_STATUS_BAD_PARAM;
}

// Descriptors are read into those that the caller made.
static cudnnStatus_t read_children(const host_attribute_t *attribute,
                                   const host_value_t *value, int64_t requested,
                                   int64_t *count, void *array) {
  bool list = host_attribute_is_list(attribute);
  bool there = value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && value->count > 0;
  if (!list && requested != 1)
    return host_refuse(wrong_number(attribute, requested, there),
                       "a number of descriptors that is not 1");
  REFUSE_IF(!list && (value->count < 1 || !array), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(value->count > 0 && value->type != CUDNN_TYPE_BACKEND_DESCRIPTOR,
            CUDNN_STATUS_BAD_PARAM);
  host_object_t **target = array;
  int64_t filled = requested < value->count ? requested : value->count;
  // The count of results is asked with 0; knob choices say what was filled.
  bool asks = requested == 0 && attribute->access == HOST_ACCESS_RESULT;
  for (int64_t i = 0; array && i < filled; i++) {
    const host_object_t *source = value->slot[i].object;
    REFUSE_IF(!target[i] || !source || target[i]->kind != source->kind,
              CUDNN_STATUS_BAD_PARAM);
    cudnnStatus_t status = host_object_assign(target[i], source);
    if (status)
      return status;
  }
  *count = asks ? value->count : filled;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t read_list(const host_attribute_t *attribute,
                               cudnnBackendAttributeType_t type,
                               const host_value_t *value, int64_t requested,
                               int64_t *count, void *array) {
  bool text = attribute->types == UINT32_MAX;
  bool asks =
      requested == 0 && (text || attribute->access == HOST_ACCESS_RESULT);
  REFUSE_IF(value->count == 0 && attribute->access != HOST_ACCESS_RESULT,
            CUDNN_STATUS_BAD_PARAM);
  // Windows that may be fractions are read as integers only as they are.
  REFUSE_IF(type == CUDNN_TYPE_INT64 && requested > value->count &&
                host_attribute_takes(attribute, CUDNN_TYPE_FRACTION),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(text && requested > 0 && requested < value->count,
            CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
  int64_t filled = requested < value->count ? requested : value->count;
  for (int64_t i = 0; array && i < filled; i++)
    REFUSE_IF(!slot_write(&value->slot[i], value->type, type, array, i),
              CUDNN_STATUS_BAD_PARAM);
  *count = asks ? value->count : filled;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t read_one(const host_attribute_t *attribute,
                              cudnnBackendAttributeType_t type,
                              const host_value_t *value, int64_t requested,
                              int64_t *count, void *array) {
  REFUSE_IF(requested != 1 || !array, CUDNN_STATUS_BAD_PARAM);
  cudnnBackendAttributeType_t as =
      value->count > 0 ? value->type : CUDNN_TYPE_DOUBLE;
  REFUSE_IF(as != type && same_type_only(attribute), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(value->count == 0 && type == CUDNN_TYPE_VOID_PTR &&
                attribute->name != CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR && value->count > 0,
            CUDNN_STATUS_BAD_PARAM);
  host_slot_t unset = missing(attribute->name, type);
  bool set = value->count > 0;
  slot_write(set ? &value->slot[0] : &unset, set ? value->type : type, type,
             array, 0);
  *count = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                         cudnnBackendAttributeName_t attributeName,
                         cudnnBackendAttributeType_t attributeType,
                         int64_t requestedElementCount, int64_t *elementCount,
                         void *arrayOfElements) {
  host_object_t *object = descriptor;
  REFUSE_IF(!object, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!object->finalized, CUDNN_STATUS_NOT_INITIALIZED);
  const host_attribute_t *attribute = host_attribute((int)attributeName);
  REFUSE_IF(requestedElementCount < 0, CUDNN_STATUS_BAD_PARAM);
  // Nothing of these can be read, whatever it is.
  REFUSE_IF(object->kind == CUDNN_BACKEND_POINTWISE_DESCRIPTOR ||
                object->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!attribute || attribute->kind != (int)object->kind,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(attribute->access == HOST_ACCESS_HIDDEN,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!reads_as(attribute, attributeType), wrong_type(attribute));
  const host_value_t *value = host_object_value(object, attributeName);
  int64_t count = 0;
  cudnnStatus_t status;
  if (attributeType == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    status = read_children(attribute, value, requestedElementCount, &count,
                           arrayOfElements);
  else if (host_attribute_is_list(attribute))
    status = read_list(attribute, attributeType, value, requestedElementCount,
                       &count, arrayOfElements);
  else
    status = read_one(attribute, attributeType, value, requestedElementCount,
                      &count, arrayOfElements);
  if (!status && elementCount)
    *elementCount = count;
  return status;
}
