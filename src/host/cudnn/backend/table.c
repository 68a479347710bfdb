// SPDX-License-Identifier: Apache-2.0
// attributes.def as arrays.
#include "src/host/cudnn/backend/table.h"

#define T(name) (1u << CUDNN_TYPE_##name)

enum {
  TYPES_ANY = -1,
  TYPES_DESC = T(BACKEND_DESCRIPTOR),
  TYPES_REAL = T(FLOAT) | T(DOUBLE),
  TYPES_SCALE = T(FLOAT) | T(DOUBLE) | T(INT32),
  TYPES_NUMBER = T(FLOAT) | T(DOUBLE) | T(INT32) | T(INT64),
  TYPES_SPAN = T(INT64) | T(FRACTION),
  TYPES_SEED = T(INT64) | T(BACKEND_DESCRIPTOR),
#define SINGLE(name) TYPES_##name = T(name)
  SINGLE(BN_FINALIZE_STATS_MODE),
  SINGLE(BEHAVIOR_NOTE),
  SINGLE(BOOLEAN),
  SINGLE(CONVOLUTION_MODE),
  SINGLE(DATA_TYPE),
  SINGLE(DOUBLE),
  SINGLE(FLOAT),
  SINGLE(GENSTATS_MODE),
  SINGLE(HANDLE),
  SINGLE(HEUR_MODE),
  SINGLE(INT32),
  SINGLE(INT64),
  SINGLE(KNOB_TYPE),
  SINGLE(LAYOUT_TYPE),
  SINGLE(MOE_GROUPED_MATMUL_MODE),
  SINGLE(NAN_PROPOGATION),
  SINGLE(NORM_FWD_PHASE),
  SINGLE(NORM_MODE),
  SINGLE(NUMERICAL_NOTE),
  SINGLE(PADDING_MODE),
  SINGLE(POINTWISE_MODE),
  SINGLE(REDUCTION_OPERATOR_TYPE),
  SINGLE(RESAMPLE_MODE),
  SINGLE(RNG_DISTRIBUTION),
  SINGLE(SIGNAL_MODE),
  SINGLE(TENSOR_REORDERING_MODE),
  SINGLE(VOID_PTR),
};

enum {
#define CHILD(name) CHILD_##name = CUDNN_BACKEND_##name##_DESCRIPTOR
  CHILD_NONE = HOST_CHILD_NONE,
  CHILD_OPERATIONS = HOST_CHILD_OPERATIONS,
  CHILD(CONVOLUTION),
  CHILD(DEVICEPROP),
  CHILD(ENGINE),
  CHILD(ENGINECFG),
  CHILD(KERNEL_CACHE),
  CHILD(KNOB_CHOICE),
  CHILD(KNOB_INFO),
  CHILD(LAYOUT_INFO),
  CHILD(MATMUL),
  CHILD(OPERATIONGRAPH),
  CHILD(POINTWISE),
  CHILD(REDUCTION),
  CHILD(RESAMPLE),
  CHILD(RNG),
  CHILD(TENSOR),
};

enum {
#define ROW(kind, attribute, types, refused, count, child, access)             \
  AT_##attribute,
#include "src/host/cudnn/backend/attributes.def"
#undef ROW
  ROWS
};

static const host_attribute_t rows[ROWS] = {
#define ROW(kind_, attribute, types_, refused_, count_, child_, access_)       \
  {.name = CUDNN_ATTR_##attribute,                                             \
   .types = (uint32_t)TYPES_##types_,                                          \
   .refused = (cudnnStatus_t)(refused_),                                       \
   .kind = CUDNN_BACKEND_##kind_##_DESCRIPTOR,                                 \
   .count = HOST_COUNT_##count_,                                               \
   .child = CHILD_##child_,                                                    \
   .access = HOST_ACCESS_##access_},
#include "src/host/cudnn/backend/attributes.def"
#undef ROW
};

// By attribute, 1 more than its row; 0: no descriptor has it.
static const uint16_t row_of[] = {
#define ROW(kind, attribute, types, refused, count, child, access)             \
  [CUDNN_ATTR_##attribute] = AT_##attribute + 1,
#include "src/host/cudnn/backend/attributes.def"
#undef ROW
};

const host_attribute_t *host_attribute(int name) {
  if (name < 0 || (size_t)name >= sizeof row_of / sizeof *row_of ||
      row_of[name] == 0)
    return NULL;
  return &rows[row_of[name] - 1];
}

const host_attribute_t *host_kind_attributes(int kind, int *out_count) {
  const host_attribute_t *first = NULL;
  *out_count = 0;
  for (int i = 0; i < ROWS; i++)
    if (rows[i].kind == kind) {
      if (!first)
        first = &rows[i];
      *out_count += 1;
    }
  return first;
}

bool host_kind_exists(int kind) {
  return kind >= 0 && kind < HOST_KIND_COUNT &&
         kind != CUDNN_BACKEND_INTERMEDIATE_INFO_DESCRIPTOR;
}

bool host_kind_is_operation(int kind) {
  switch (kind) {
  case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
  case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
  case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
  case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
  case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
  case CUDNN_BACKEND_RESAMPLE_DESCRIPTOR:
  case CUDNN_BACKEND_RNG_DESCRIPTOR:
  case CUDNN_BACKEND_KERNEL_CACHE_DESCRIPTOR:
  case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
    return false;
  }
  return host_kind_exists(kind) &&
         kind >= CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
}
