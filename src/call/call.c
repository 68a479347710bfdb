// SPDX-License-Identifier: Apache-2.0
// The table of families; names and kinds of operands' roles; layouts and
// accesses of operands.
#include "src/call/call.h"

#include <string.h>

static const struct {
  const char *name;
  sdg_family_dims_t dims;
  unsigned flags;
} families[SDG_FAMILY_COUNT] = {
#define SDG_FAMILY(name, op, word, dims, flags)                                \
  [SDG_FAMILY_##name] = {word, SDG_FAMILY_##dims, flags},
#define SDG_FAMILY_WITHOUT_OP(name, word, dims, flags)                         \
  [SDG_FAMILY_##name] = {word, SDG_FAMILY_##dims, flags},
#include "src/call/families.def"
};

static const struct {
  const char *name;
  unsigned flags;
} roles[SDG_ROLE_COUNT] = {
#define SDG_ROLE(name, word, flags) [SDG_ROLE_##name] = {word, flags},
#include "src/call/families.def"
};

const char *sdg_family_name(sdg_family_t family) {
  return families[family].name;
}

const char *sdg_family_word(sdg_family_t family) {
  const char *name = families[family].name;
  const char *graph = strstr(name, "_graph");
  for (int f = 0; graph && f < SDG_FAMILY_COUNT; f++)
    if (strlen(families[f].name) == (size_t)(graph - name) &&
        strncmp(families[f].name, name, (size_t)(graph - name)) == 0)
      return families[f].name;
  return name;
}

sdg_family_dims_t sdg_family_dims(sdg_family_t family) {
  return families[family].dims;
}

bool sdg_family_is(sdg_family_t family, unsigned flag) {
  return (families[family].flags & flag) != 0;
}

bool sdg_family_is_product(sdg_family_t family) {
  return families[family].dims == SDG_FAMILY_PRODUCT;
}

bool sdg_role_is_activation(sdg_role_t role) {
  return (roles[role].flags & SDG_ROLE_IS_ACTIVATION) != 0;
}

bool sdg_role_is_scale(sdg_role_t role) {
  return (roles[role].flags & SDG_ROLE_IS_SCALE) == SDG_ROLE_IS_SCALE;
}

bool sdg_role_is_matrix(sdg_role_t role) {
  return (roles[role].flags & SDG_ROLE_IS_MATRIX) != 0;
}

bool sdg_role_follows(sdg_role_t role) {
  return (roles[role].flags & (SDG_ROLE_FOLLOWS | SDG_ROLE_IS_MATRIX)) != 0;
}

const char *sdg_role_name(sdg_role_t role) {
  return role < SDG_ROLE_COUNT ? roles[role].name : "?";
}

int sdg_call_operand(const sdg_call_t *call, sdg_role_t role) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].role == role)
      return i;
  return -1;
}

sdg_layout_t sdg_operand_layout(const sdg_operand_t *operand) {
  sdg_layout_t layout = {.elem_bytes = operand->elem_bytes,
                         .dims = operand->dims};
  memcpy(layout.extent, operand->extent, sizeof layout.extent);
  memcpy(layout.stride, operand->stride, sizeof layout.stride);
  return layout;
}

sdg_access_t sdg_operand_access(const sdg_operand_t *operand, bool reads,
                                bool writes) {
  sdg_layout_t layout = sdg_operand_layout(operand);
  // Writing a tensor with gaps leaves the bytes in the gaps unchanged.
  return (sdg_access_t){
      .at = (uintptr_t)operand->data,
      .reads = reads || (writes && !sdg_layout_dense(&layout)),
      .writes = writes,
      .width = operand->elem_bytes ? sdg_layout_bytes(&layout) : 0,
      .height = 1,
  };
}

bool sdg_operand_is_image(const sdg_operand_t *operand) {
  return (operand->kind == SDG_OPERAND_TENSOR ||
          operand->kind == SDG_OPERAND_FILTER) &&
         !sdg_role_is_matrix(operand->role);
}

const int64_t *sdg_operand_nesting(const sdg_operand_t *operand) {
  return operand->nesting[0] > 0 ? operand->nesting : operand->stride;
}

sdg_box_t sdg_operand_box(const sdg_operand_t *operand) {
  return sdg_box_whole(operand->dims, operand->extent);
}
