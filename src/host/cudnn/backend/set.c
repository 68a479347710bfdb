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

static cudnnStatus_t check_count(const host_attribute_t *attribute,
                                 int64_t count) {
  REFUSE_IF(attribute->count == HOST_COUNT_SOLE && count > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(count < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(attribute->count != HOST_COUNT_LIST && count != 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(count > INT32_MAX, CUDNN_STATUS_BAD_PARAM);
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
    REFUSE_IF(!operand || attribute->count == HOST_COUNT_SOLE,
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
  if (a->kind != CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
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
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return CUDNN_STATUS_SUCCESS;
  host_object_t *const *children = values;
  for (int64_t i = 0; i < count; i++) {
    REFUSE_IF(count > 1 && !children[i], CUDNN_STATUS_BAD_PARAM);
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
  // No operand: as if not set.
  if (descriptor && count == 1 && !children[0])
    return host_value_resize(value, type, 0);
  // Refused when the tensor is finalized. A reference could close a circle of
  // tensors, which would never be freed.
  if (descriptor && attribute->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
      !children[0]->finalized)
    return host_value_resize(value, type, 1);
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
        object->kind ==
                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR
            ? CUDNN_STATUS_NOT_SUPPORTED
            : CUDNN_STATUS_BAD_PARAM,
        "an attribute of another kind of descriptor");
  bool takes = attribute->access != HOST_ACCESS_RESULT &&
               host_attribute_takes(attribute, (int)attributeType);
  REFUSE_IF(!takes, attribute->refused);
  REFUSE_IF(!arrayOfElements, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check_count(attribute, elementCount);
  if (!status)
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
