// SPDX-License-Identifier: Apache-2.0
// Descriptors of the backend API: their life and their values.
#include "src/host/cudnn/backend/object.h"

#include <stdlib.h>
#include <string.h>

host_object_t *host_object_create(cudnnBackendDescriptorType_t kind) {
  int count = 0;
  const host_attribute_t *attribute = host_kind_attributes(kind, &count);
  host_object_t *object =
      calloc(1, sizeof *object + (size_t)count * sizeof object->value[0]);
  if (!object)
    return NULL;
  object->kind = kind;
  object->references = 1;
  object->value_count = count;
  object->attribute = attribute;
  return object;
}

host_object_t *host_object_retain(host_object_t *object) {
  if (object)
    __atomic_fetch_add(&object->references, 1, __ATOMIC_RELAXED);
  return object;
}

static void value_clear(host_value_t *value) {
  if (value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (int64_t i = 0; i < value->count; i++)
      host_object_release(value->slot[i].object);
  free(value->slot);
  *value = (host_value_t){0};
}

static void object_clear(host_object_t *object) {
  for (int i = 0; i < object->value_count; i++)
    value_clear(&object->value[i]);
  sdg_graph_release(object->graph);
  object->graph = NULL;
}

void host_object_release(host_object_t *object) {
  if (!object ||
      __atomic_fetch_sub(&object->references, 1, __ATOMIC_ACQ_REL) != 1)
    return;
  object_clear(object);
  free(object);
}

cudnnStatus_t host_value_resize(host_value_t *value,
                                cudnnBackendAttributeType_t type,
                                int64_t count) {
  host_slot_t *slot = count > 0 ? calloc((size_t)count, sizeof *slot) : NULL;
  REFUSE_IF(count > 0 && !slot,
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  value_clear(value);
  *value = (host_value_t){.type = type, .count = count, .slot = slot};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_value_append(host_value_t *value, host_object_t *object) {
  host_slot_t *slot =
      realloc(value->slot, ((size_t)value->count + 1) * sizeof *slot);
  REFUSE_IF(!slot, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  value->type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
  value->slot = slot;
  slot[value->count++].object = host_object_retain(object);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_object_assign(host_object_t *object,
                                 const host_object_t *from) {
  if (object == from)
    return CUDNN_STATUS_SUCCESS;
  object_clear(object);
  object->finalized = true;
  object->graph = sdg_graph_retain(from->graph);
  for (int i = 0; i < from->value_count; i++) {
    const host_value_t *source = &from->value[i];
    cudnnStatus_t status =
        host_value_resize(&object->value[i], source->type, source->count);
    if (status)
      return status;
    for (int64_t j = 0; j < source->count; j++) {
      object->value[i].slot[j] = source->slot[j];
      if (source->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        host_object_retain(source->slot[j].object);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

host_value_t *host_object_value(host_object_t *object,
                                cudnnBackendAttributeName_t name) {
  return &object->value[host_attribute((int)name) - object->attribute];
}

int64_t host_object_integer(host_object_t *object,
                            cudnnBackendAttributeName_t name, int64_t missing) {
  const host_value_t *value = host_object_value(object, name);
  return value->count > 0 ? value->slot[0].integer : missing;
}

host_object_t *host_object_child(host_object_t *object,
                                 cudnnBackendAttributeName_t name) {
  const host_value_t *value = host_object_value(object, name);
  return value->count > 0 && value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR
             ? value->slot[0].object
             : NULL;
}

cudnnStatus_t host_object_put(host_object_t *object,
                              cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t value) {
  host_value_t *at = host_object_value(object, name);
  cudnnStatus_t status = host_value_resize(at, type, 1);
  if (!status)
    at->slot[0].integer = value;
  return status;
}

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                             cudnnBackendDescriptor_t *descriptor) {
  REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  *descriptor = NULL;
  REFUSE_IF(!host_kind_exists((int)descriptorType),
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  host_object_t *object = host_object_create(descriptorType);
  REFUSE_IF(!object, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  *descriptor = object;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  host_object_release(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor) {
  REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  host_object_t *object = descriptor;
  REFUSE_IF(!object, CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  REFUSE_IF(object->finalized, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = host_object_finalize(object);
  object->finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}
