// SPDX-License-Identifier: Apache-2.0
// What ranks have in common of an operand.
#include "rules/place/shared.h"

#include <string.h>

// For an operand that is not split beside operands that are: these read it as
// one tensor.
static sdg_axes_t beside(const sdg_call_t *call, const sdg_tagging_t *tagging,
                         int index) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < call->operands; i++)
    if (i != index && tagging->placement[i].dims > 0)
      axes |= sdg_placement_axes(&tagging->placement[i]);
  return axes & tagging->axes & ~sdg_placement_axes(&tagging->placement[index]);
}

// A scale's dimension of 1 on every rank is the same element on all of them,
// unless x also has one element there on every rank, and is split.
static sdg_axes_t scale_axes(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int index) {
  const sdg_placement_t *scale = &tagging->placement[index], *x = NULL;
  sdg_axes_t axes = tagging->axes;
  if (scale->dims > 0)
    axes &= ~sdg_placement_axes(scale);
  for (int i = 0; i < call->operands && !x; i++)
    if (sdg_role_is_activation(call->operand[i].role) &&
        tagging->placement[i].dims == call->operand[index].dims)
      x = &tagging->placement[i];
  for (int d = 1; x && d < x->dims; d++) {
    bool ones = x->split[d].axes > 0;
    for (int p = 0; ones && p < x->part[d].pieces; p++)
      ones = sdg_part_size(&x->part[d], p) == 1;
    for (int a = 0; ones && a < x->split[d].axes; a++)
      axes &= ~((sdg_axes_t)1 << x->split[d].axis[a]);
  }
  return axes;
}

static sdg_axes_t axes_of(const sdg_call_t *call, const sdg_tagging_t *tagging,
                          int index) {
  sdg_role_t role = call->operand[index].role;
  if (role == SDG_ROLE_W || role == SDG_ROLE_BIAS)
    return tagging->axes;
  if (sdg_role_is_scale(role))
    return scale_axes(call, tagging, index);
  return sdg_role_is_activation(role) && tagging->placement[index].dims > 0
             ? beside(call, tagging, index)
             : 0;
}

sdg_common_t sdg_common_of(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           int index) {
  sdg_common_t common = {.axes = axes_of(call, tagging, index)};
  const sdg_placement_t *placement = &tagging->placement[index];
  memcpy(common.extent, call->operand[index].extent, sizeof common.extent);
  memcpy(common.whole, call->operand[index].extent, sizeof common.whole);
  for (int d = 0; d < placement->dims; d++)
    common.whole[d] = sdg_placement_extent(placement, d);
  return common;
}
