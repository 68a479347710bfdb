// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels: each rank's own call is right
// unless channels are split.
#include <cudnn.h>

#include "rules/kit/subcall.h"
#include "rules/norm/rule.h"
#include "rules/place/same_split.h"
#include "rules/vendor/argument.h"

bool sdg_lrn_is(const sdg_call_t *call) {
  return call->entry == SDG_ENTRY_cudnnLRNCrossChannelForward ||
         call->entry == SDG_ENTRY_cudnnLRNCrossChannelBackward;
}

sdg_status_t sdg_lrn_plan(const sdg_call_t *call, const sdg_tagging_t *tagging,
                          sdg_plan_t **out_plan) {
  for (int i = 0; i < call->operands; i++)
    if (tagging->placement[i].split[1].axes > 0)
      return sdg_fail(SDG_E_SPLIT_DIMENSION, "C of %s", call->entry_name);
  SDG_TRY(sdg_same_split_check(call, tagging, 0));
  return sdg_literal_plan(out_plan);
}

// ---- the whole view --------------------------------------------------------

static bool shareable(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  const sdg_operand_t *x = &call->operand[0];
  if (!sdg_call_is_complete(call) ||
      !sdg_placement_axes(&tagging->placement[0]) ||
      tagging->placement[0].split[1].axes > 0)
    return false;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!operand->data || operand->elem_bytes == 0 || operand->dims != x->dims)
      return false;
    for (int d = 0; d < x->dims; d++)
      if (operand->extent[d] != x->extent[d])
        return false;
  }
  return true;
}

static sdg_status_t share_fill(sdg_share_t *share, const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  const sdg_placement_t *place = &tagging->placement[0];
  bool forward = call->entry == SDG_ENTRY_cudnnLRNCrossChannelForward;
  SDG_TRY(sdg_share_output(
      share, sdg_call_operand(call, forward ? SDG_ROLE_Y : SDG_ROLE_DX),
      place));
  for (int i = 0; i < call->operands; i++) {
    sdg_box_t *boxes;
    if (call->operand[i].is_output && sdg_call_scalar(call, SDG_BETA) == 0)
      continue;
    SDG_TRY(sdg_share_reads(share, i, &boxes));
    for (int r = 0; r < share->ranks; r++)
      boxes[r] = sdg_placement_box(place, tagging->mesh, r);
  }
  return SDG_OK;
}

static sdg_status_t steps_add(const sdg_call_t *call,
                              const sdg_tagging_t *tagging, sdg_plan_t *plan) {
  sdg_box_t own =
      sdg_placement_box(&tagging->placement[0], tagging->mesh, tagging->rank);
  sdg_subcall_t sub = {.fn = sdg_subcall_program, .tensors = call->operands};
  if (sdg_box_empty(&own))
    return SDG_OK;
  SDG_TRY(sdg_subcalls_open(plan, call));
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    sdg_box_t all = sdg_operand_box(operand);
    sub.tensor[i].type = operand->type;
    sub.tensor[i].box = own;
    SDG_TRY(sdg_plan_operand(plan, call, i, &all, &sub.tensor[i].slab));
  }
  return sdg_subcall_add(plan, &sub);
}

sdg_status_t sdg_lrn_share(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) {
  *out_plan = NULL;
  if (!shareable(call, tagging))
    return SDG_OK;
  sdg_plan_t *plan = sdg_plan_create("window");
  sdg_status_t status;
  if (!plan)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  SDG_TRY_GOTO(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &plan->share),
               fail);
  SDG_TRY_GOTO(share_fill(plan->share, call, tagging), fail);
  SDG_TRY_GOTO(steps_add(call, tagging, plan), fail);
fail:
  return sdg_plan_finish(plan, status, out_plan);
}
