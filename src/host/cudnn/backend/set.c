// SPDX-License-Identifier: Apache-2.0
// Stores an attribute: whether the row of attributes.def takes what the program
// gives, and no more. Values are judged when the descriptor is finalized.
#include "src/host/cudnn/backend/object.h"

#include <string.h>

// Bytes of one element in the program's array. Enumerations are ints.
static size_t element_bytes(cudnnBackendAttributeType_t type) {
  switch ((int)type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return sizeof(void *);
  case CUDNN_TYPE_INT64:
    return sizeof(int64_t);
  case CUDNN_TYPE_DOUBLE:
    return sizeof(double);
  case CUDNN_TYPE_FRACTION:
    return sizeof(cudnnFraction_t);
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    return 1;
  }
  return sizeof(int32_t);
}

static void slot_read(host_slot_t *slot, cudnnBackendAttributeType_t type,
                      const void *from) {
  int32_t word = 0;
  float single = 0;
  switch ((int)type) {
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    memcpy(&slot->pointer, from, sizeof slot->pointer);
    return;
  case CUDNN_TYPE_INT64:
    memcpy(&slot->integer, from, sizeof slot->integer);
    return;
  case CUDNN_TYPE_DOUBLE:
    memcpy(&slot->real, from, sizeof slot->real);
    return;
  case CUDNN_TYPE_FLOAT:
    memcpy(&single, from, sizeof single);
    slot->real = (double)single;
    return;
  case CUDNN_TYPE_FRACTION:
    memcpy(&slot->fraction, from, sizeof slot->fraction);
    return;
  case CUDNN_TYPE_BOOLEAN:
    slot->integer = *(const char *)from != 0;
    return;
  case CUDNN_TYPE_CHAR:
    slot->integer = *(const char *)from;
    return;
  }
  memcpy(&word, from, sizeof word);
  slot->integer = word;
}

// FIRST and SOME are about descriptors: a seed may be a number, too.
static bool takes_any_number(const host_attribute_t *attribute,
                             cudnnBackendAttributeType_t type) {
  return type == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
         (attribute->count == HOST_COUNT_FIRST ||
          attribute->count == HOST_COUNT_SOME);
}

static cudnnStatus_t check_count(const host_attribute_t *attribute,
                                 cudnnBackendAttributeType_t type,
                                 int64_t count) {
  REFUSE_IF(count > INT32_MAX, CUDNN_STATUS_BAD_PARAM);
  if (attribute->count == HOST_COUNT_FIRST && takes_any_number(attribute, type))
    return CUDNN_STATUS_SUCCESS;
  if (attribute->child == HOST_CHILD_OPERATIONS ||
      (attribute->count == HOST_COUNT_MANY && count == 0))
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(attribute->count == HOST_COUNT_ONLY && count != 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(attribute->count == HOST_COUNT_SOLE && count > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(count < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_attribute_is_list(attribute) &&
                !takes_any_number(attribute, type) && count != 1,
            CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// A descriptor of another kind is refused; NVIDIA's library crashes.
static cudnnStatus_t check_child(const host_attribute_t *attribute,
                                 const host_object_t *child) {
  if (attribute->child == HOST_CHILD_OPERATIONS) {
    REFUSE_IF(!child, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    REFUSE_IF(!child->finalized || !host_kind_is_operation((int)child->kind),
              CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    return CUDNN_STATUS_SUCCESS;
  }
  if (!child) {
    // No operand, which is the same as none set.
    bool operand = attribute->child == CUDNN_BACKEND_TENSOR_DESCRIPTOR ||
                   host_kind_is_operation(attribute->kind);
    REFUSE_IF(!operand || attribute->count == HOST_COUNT_SOLE ||
                  attribute->count == HOST_COUNT_ONLY,
              CUDNN_STATUS_BAD_PARAM);
    return CUDNN_STATUS_SUCCESS;
  }
  REFUSE_IF(attribute->child == CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR &&
                !child->finalized,
            CUDNN_STATUS_NOT_INITIALIZED);
  REFUSE_IF(attribute->child != (int)child->kind, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

// A configuration chooses a knob once.
static bool same_knob(host_object_t *a, host_object_t *b) {
  if (!a || !b || a->kind != CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
    return false;
  return host_object_integer(a, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 0) ==
         host_object_integer(b, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 0);
}

static cudnnStatus_t check_values(const host_attribute_t *attribute,
                                  cudnnBackendAttributeType_t type,
                                  int64_t count, const void *values) {
  if (type == CUDNN_TYPE_HANDLE) {
    void *handle = NULL;
    memcpy(&handle, values, sizeof handle);
    REFUSE_IF(!handle && attribute->kind != CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR,
              CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  }
  if (attribute->name == CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS ||
      attribute->name == CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS ||
      attribute->name ==
          CUDNN_ATTR_OPERATION_MATMUL_IRREGULARLY_STRIDED_BATCH_COUNT) {
    int64_t number = 0;
    memcpy(&number, values, sizeof number);
    REFUSE_IF(number > INT32_MAX, CUDNN_STATUS_BAD_PARAM);
  }
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return CUDNN_STATUS_SUCCESS;
  host_object_t *const *children = values;
  for (int64_t i = 0; i < count; i++) {
    cudnnStatus_t status = check_child(attribute, children[i]);
    if (status)
      return status;
    for (int64_t j = 0; j < i; j++)
      REFUSE_IF(same_knob(children[j], children[i]), CUDNN_STATUS_BAD_PARAM);
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t store(const host_attribute_t *attribute,
                           host_value_t *value,
                           cudnnBackendAttributeType_t type, int64_t count,
                           const void *values) {
  bool descriptor = type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
  host_object_t *const *children = values;
  // Refused when the tensor is finalized. A reference could close a circle of
  // tensors, which would never be freed.
  if (descriptor && attribute->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
      (!children[0] || !children[0]->finalized))
    return host_value_resize(value, type, 1);
  // A graph or a convolution counts as it is now.
  if ((attribute->name == CUDNN_ATTR_ENGINE_OPERATION_GRAPH ||
       attribute->name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH ||
       attribute->child == CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR) &&
      !children[0]->finalized)
    return host_value_resize(value, type, 1);
  // No operand is as if not set, but for these.
  bool kept = false;
  switch ((int)attribute->kind) {
  case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    kept = true;
  }
  if (kept && descriptor && count < 1)
    return host_value_resize(value, type, 1);
  if (count < 1 || (descriptor && count == 1 && !children[0] && !kept))
    return host_value_resize(value, type, 0);
  // The new children may be the old ones.
  for (int64_t i = 0; descriptor && i < count; i++)
    host_object_retain(children[i]);
  cudnnStatus_t status = host_value_resize(value, type, count);
  for (int64_t i = 0; i < count; i++)
    if (!status)
      slot_read(&value->slot[i], type,
                (const char *)values + (size_t)i * element_bytes(type));
    else if (descriptor)
      host_object_release(children[i]);
  return status;
}

// A graph's operations come one after the other, in one call or in several; one
// that is refused ends its call.
static cudnnStatus_t append(const host_attribute_t *attribute,
                            host_value_t *value, int64_t count,
                            host_object_t *const *ops) {
  for (int64_t i = 0; i < count; i++) {
    cudnnStatus_t status = check_child(attribute, ops[i]);
    if (!status)
      status = host_value_append(value, ops[i]);
    if (status)
      return status;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                         cudnnBackendAttributeName_t attributeName,
                         cudnnBackendAttributeType_t attributeType,
                         int64_t elementCount, const void *arrayOfElements) {
  host_object_t *object = descriptor;
  REFUSE_IF(!object, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  REFUSE_IF(object->finalized, CUDNN_STATUS_BAD_PARAM);
  const host_attribute_t *attribute = host_attribute((int)attributeName);
  if (!attribute || attribute->kind != (int)object->kind)
    return host_refuse(
        arrayOfElements &&
                object->kind ==
                    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
            ? CUDNN_STATUS_NOT_SUPPORTED
            : CUDNN_STATUS_BAD_PARAM,
        "an attribute of another kind of descriptor");
  REFUSE_IF(!arrayOfElements && elementCount > 0, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(attribute->access == HOST_ACCESS_RESULT, attribute->refused);
  REFUSE_IF((object->kind == CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR ||
             object->kind == CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR) &&
                elementCount != 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(
      object->kind ==
              CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR &&
          elementCount < 1,
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_attribute_takes(attribute, (int)attributeType),
            attribute->refused);
  cudnnStatus_t status = check_count(attribute, attributeType, elementCount);
  if (!status && attribute->child == HOST_CHILD_OPERATIONS)
    return append(attribute, host_object_value(object, attributeName),
                  elementCount, arrayOfElements);
  if (!status && takes_any_number(attribute, attributeType))
    elementCount = arrayOfElements ? 1 : 0;
  if (!status && elementCount > 0)
    status =
        check_values(attribute, attributeType, elementCount, arrayOfElements);
  if (status)
    return status;
  // Text is text whatever type the program calls it.
  cudnnBackendAttributeType_t type =
      attribute->types == UINT32_MAX ? CUDNN_TYPE_CHAR : attributeType;
  return store(attribute, host_object_value(object, attributeName), type,
               elementCount, arrayOfElements);
}
