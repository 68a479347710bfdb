// SPDX-License-Identifier: Apache-2.0
// Names and kinds of operands' roles.
#include "src/call.h"

bool sdg_role_is_activation(sdg_role_t role) {
  return role <= SDG_ROLE_DV || role == SDG_ROLE_PRODUCT;
}

bool sdg_role_is_matrix(sdg_role_t role) {
  return role >= SDG_ROLE_A && role <= SDG_ROLE_ADDEND;
}

const char *sdg_role_name(sdg_role_t role) {
  static const char *const names[SDG_ROLE_COUNT] = {
      [SDG_ROLE_X] = "x",
      [SDG_ROLE_Y] = "y",
      [SDG_ROLE_Z] = "z",
      [SDG_ROLE_DX] = "dx",
      [SDG_ROLE_DY] = "dy",
      [SDG_ROLE_Q] = "q",
      [SDG_ROLE_K] = "k",
      [SDG_ROLE_V] = "v",
      [SDG_ROLE_O] = "o",
      [SDG_ROLE_DO] = "do",
      [SDG_ROLE_DQ] = "dq",
      [SDG_ROLE_DK] = "dk",
      [SDG_ROLE_DV] = "dv",
      [SDG_ROLE_W] = "w",
      [SDG_ROLE_DW] = "dw",
      [SDG_ROLE_BIAS] = "bias",
      [SDG_ROLE_DBIAS] = "db",
      [SDG_ROLE_SCALE] = "scale",
      [SDG_ROLE_PRODUCT] = "product",
      [SDG_ROLE_A] = "a",
      [SDG_ROLE_B] = "b",
      [SDG_ROLE_C] = "c",
      [SDG_ROLE_D] = "d",
      [SDG_ROLE_ADDEND] = "bias",
  };
  return role < SDG_ROLE_COUNT ? names[role] : "?";
}
