/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of descriptors share: create, destroy, ranges. */
#ifndef SDG_SRC_HOST_CUDNN_DESCRIPTOR_LIFE_H
#define SDG_SRC_HOST_CUDNN_DESCRIPTOR_LIFE_H

#include <stdlib.h>

#include "src/host/cudnn/descriptor/types.h"

/* Defines create and destroy for one kind of descriptor; the further arguments
 * are its initial state. */
#define LIFE(Kind, name, ...)                                                  \
  cudnnStatus_t cudnnCreate##Kind##Descriptor(                                 \
      cudnn##Kind##Descriptor_t *out_##name) {                                 \
    REFUSE_IF(!out_##name, CUDNN_STATUS_BAD_PARAM);                            \
    *out_##name = calloc(1, sizeof **out_##name);                              \
    REFUSE_IF(!*out_##name,                                                    \
              CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);             \
    **out_##name = (__typeof__(**out_##name)){__VA_ARGS__};                    \
    return CUDNN_STATUS_SUCCESS;                                               \
  }                                                                            \
  cudnnStatus_t cudnnDestroy##Kind##Descriptor(                                \
      cudnn##Kind##Descriptor_t name) {                                        \
    free(name);                                                                \
    return CUDNN_STATUS_SUCCESS;                                               \
  }

static inline bool host_in_range(int value, int first, int last) {
  return value >= first && value <= last;
}

#endif
