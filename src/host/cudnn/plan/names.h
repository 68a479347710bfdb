/* SPDX-License-Identifier: Apache-2.0 */
/* The names of enumerations and parameters in a plan's JSON. */
#ifndef SDG_SRC_HOST_CUDNN_PLAN_NAMES_H
#define SDG_SRC_HOST_CUDNN_PLAN_NAMES_H

#include "src/graph/graph.h"
#include "src/host/cudnn/descriptor/types.h"

typedef enum {
  HOST_KEY_DATA_TYPE,
  HOST_KEY_CONVOLUTION_MODE,
  HOST_KEY_POINTWISE_MODE,
  HOST_KEY_REDUCTION_OPERATOR,
  HOST_KEY_KNOB_TYPE,
  HOST_KEY_REORDERING,
  HOST_KEY_OPERATION, /* kinds of descriptors */
  HOST_KEY_ENUMS,     /* those above have names */
  HOST_KEY_REAL = HOST_KEY_ENUMS,
  HOST_KEY_LIST, /* of integers, one for each spatial dimension */
  HOST_KEY_INTEGER,
  HOST_KEY_BOOLEAN,
  HOST_KEY_OPERAND, /* the name of a tensor */
} host_key_type_t;

typedef struct {
  cudnnBackendDescriptorType_t kind;
  cudnnBackendAttributeName_t attribute;
  const char *key;
  host_key_type_t type;
} host_key_t;

extern const host_key_t host_keys[];
extern const int host_key_count;

/* The name of a value, or NULL. */
const char *host_name_of(host_key_type_t type, int64_t value);
/* The value of a name; false if there is no such name. */
bool host_name_find(host_key_type_t type, const char *name, int64_t *out);

/* The type in which the API sets the attribute. */
cudnnBackendAttributeType_t host_key_attribute_type(host_key_type_t type);

#endif
