/* SPDX-License-Identifier: Apache-2.0 */
/* The object behind a descriptor of the backend API: values of attributes, and
 * what finalizing has made of them.
 *
 * An attribute holds a reference to its descriptors, so that the program may
 * destroy its own handle at once. A finalized object is constant, and may be
 * used by several threads. */
#ifndef SDG_SRC_HOST_CUDNN_BACKEND_OBJECT_H
#define SDG_SRC_HOST_CUDNN_BACKEND_OBJECT_H

#include "src/host/cudnn/backend/table.h"
#include "src/graph/graph.h"
#include "src/host/cudnn/descriptor/types.h"

typedef struct host_object host_object_t;

typedef union {
  int64_t integer; /* enumerations and booleans too */
  double real;
  void *pointer;
  cudnnFraction_t fraction;
  host_object_t *object; /* a reference */
} host_slot_t;

typedef struct {
  cudnnBackendAttributeType_t type; /* of the set */
  int64_t count;                    /* 0: not set */
  host_slot_t *slot;                /* owned */
} host_value_t;

struct host_object {
  cudnnBackendDescriptorType_t kind;
  int references; /* atomic */
  bool finalized;
  bool hasty; /* an operation that was finalized before one of its tensors */
  sdg_graph_t *graph; /* a reference: of a graph or a plan */
  int value_count;
  const host_attribute_t *attribute; /* `value_count` rows */
  host_value_t value[];
};

/* One reference; NULL when memory is short. */
host_object_t *host_object_create(cudnnBackendDescriptorType_t kind);
host_object_t *host_object_retain(host_object_t *object);
/* Frees the object with its last reference. NULL is allowed. */
void host_object_release(host_object_t *object);

/* Makes `object` a finalized copy of another one of its kind. */
cudnnStatus_t host_object_assign(host_object_t *object,
                                 const host_object_t *from);

/* Empty (count 0) if the attribute was not set; it has to be one of the
 * object's kind. */
host_value_t *host_object_value(host_object_t *object,
                                cudnnBackendAttributeName_t name);
/* Short for CUDNN_ATTR_name. */
#define HOST_VALUE(object, name) host_object_value((object), CUDNN_ATTR_##name)

/* The first value, or `missing` if the attribute was not set. */
int64_t host_object_integer(host_object_t *object,
                            cudnnBackendAttributeName_t name, int64_t missing);
/* The first descriptor, borrowed; NULL if not set. */
host_object_t *host_object_child(host_object_t *object,
                                 cudnnBackendAttributeName_t name);

/* Replaces a value by `count` zeroed slots. */
cudnnStatus_t host_value_resize(host_value_t *value,
                                cudnnBackendAttributeType_t type,
                                int64_t count);
/* Adds a reference to a list of descriptors. */
cudnnStatus_t host_value_append(host_value_t *value, host_object_t *object);
/* Replaces a value by one integer. */
cudnnStatus_t host_object_put(host_object_t *object,
                              cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type, int64_t value);

/* Finalizes an object whose attributes are set: see rules.h. */
cudnnStatus_t host_object_finalize(host_object_t *object);
/* The checks of that only. */
cudnnStatus_t host_object_check(host_object_t *object);

#endif
