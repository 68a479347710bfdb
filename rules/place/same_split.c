// SPDX-License-Identifier: Apache-2.0
// Compares the placements of a call's operands.
#include "rules/place/same_split.h"

#include "rules/place/tagging.h"

// Whether operand a is cut like b in every dimension, or is broadcast where b
// is cut.
static bool is_cut_like(const sdg_placement_t *a, const sdg_placement_t *b) {
  if (a->dims != b->dims)
    return false;
  for (int d = 0; d < a->dims; d++) {
    if (a->split[d].axes == 0 && sdg_placement_extent(a, d) == 1)
      continue;
    if (!sdg_part_equal(&a->part[d], &b->part[d]))
      return false;
  }
  return true;
}

sdg_status_t sdg_same_split_check(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging, int like) {
  for (int i = 0; i < call->operands; i++)
    if (sdg_role_is_activation(call->operand[i].role) &&
        !is_cut_like(&tagging->placement[i], &tagging->placement[like]))
      return sdg_tagging_differ(call, tagging, i, like);
  return SDG_OK;
}

sdg_status_t sdg_literal_plan(sdg_plan_t **out_plan) {
  SDG_TRY(sdg_plan_create("literal", out_plan));
  (*out_plan)->literal = true;
  return SDG_OK;
}

sdg_status_t sdg_in_full_plan(const char *why, sdg_plan_t **out_plan) {
  SDG_TRY(sdg_plan_create("whole", out_plan));
  (*out_plan)->literal = true;
  (*out_plan)->why = why;
  return SDG_OK;
}
