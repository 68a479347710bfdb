/* SPDX-License-Identifier: Apache-2.0 */
/* Which attributes a kind of descriptor has. */
#ifndef SDG_SRC_HOST_CUDNN_BACKEND_TABLE_H
#define SDG_SRC_HOST_CUDNN_BACKEND_TABLE_H

#include "src/host/cudnn/descriptor/types.h"

enum { HOST_KIND_COUNT = CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR + 1 };

/* Children that are no single kind. */
enum { HOST_CHILD_NONE = 100, HOST_CHILD_OPERATIONS };

typedef enum {
  HOST_COUNT_ONE,
  HOST_COUNT_SOLE,
  HOST_COUNT_ONLY,
  HOST_COUNT_LIST,
  HOST_COUNT_MANY,
  HOST_COUNT_FIRST,
  HOST_COUNT_SOME
} host_attribute_count_t;

typedef enum {
  HOST_ACCESS_READ,
  HOST_ACCESS_HIDDEN,
  HOST_ACCESS_RESULT
} host_access_t;

/* One row of attributes.def. */
typedef struct {
  cudnnBackendAttributeName_t name;
  uint32_t types; /* a bit for each cudnnBackendAttributeType_t */
  cudnnStatus_t refused;
  uint8_t kind, count, child, access;
} host_attribute_t;

/* The row of an attribute, or NULL if no descriptor has it. */
const host_attribute_t *host_attribute(int name);

/* The rows of a kind; NULL and 0 for kinds that cannot be created. */
const host_attribute_t *host_kind_attributes(int kind, int *out_count);

bool host_kind_exists(int kind);
/* Whether descriptors of the kind are operations of a graph. */
bool host_kind_is_operation(int kind);

static inline bool host_attribute_takes(const host_attribute_t *attribute,
                                        int type) {
  return type >= 0 && type < 32 && (attribute->types >> type & 1) != 0;
}

static inline bool host_attribute_is_list(const host_attribute_t *attribute) {
  return attribute->count == HOST_COUNT_LIST ||
         attribute->count == HOST_COUNT_MANY;
}

#endif
