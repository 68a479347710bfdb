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
    if (!call->operand[i].is_output || sdg_call_scalar(call, SDG_BETA) != 0)
      SDG_TRY(sdg_share_reads_own(share, i, place, tagging->mesh));
  }
  return SDG_OK;
}

// Engines take tensors of five dimensions only if D, H and W have no gaps.
static bool is_copied(const sdg_call_t *call, const sdg_box_t *own) {
  const sdg_box_t all = sdg_operand_box(&call->operand[0]);
  for (int d = 3; d < all.dims && all.dims == 5; d++)
    if (own->dim[d].lo != all.dim[d].lo || own->dim[d].hi != all.dim[d].hi)
      return true;
  return false;
}

static sdg_status_t steps_add(const sdg_call_t *call,
                              const sdg_tagging_t *tagging, sdg_plan_t *plan) {
  sdg_box_t own = sdg_tagging_own(tagging, &tagging->placement[0]);
  sdg_subcall_t sub = {.fn = sdg_subcall_program, .tensors = call->operands};
  if (sdg_box_empty(&own))
    return SDG_OK;
  bool copied = is_copied(call, &own);
  int slab[SDG_OPERANDS_MAX];
  SDG_TRY(sdg_subcalls_open(plan, call));
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    sdg_box_t all = sdg_operand_box(operand);
    SDG_TRY(sdg_plan_operand(plan, call, i, &all, &slab[i]));
    sub.tensor[i] = (sdg_subcall_tensor_t){
        .slab = slab[i], .box = own, .type = operand->type};
    if (!copied)
      continue;
    SDG_TRY(sdg_plan_scratch(plan, &own, slab[i], &sub.tensor[i].slab));
    if (!operand->is_output || sdg_call_scalar(call, SDG_BETA) != 0)
      SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, slab[i], sub.tensor[i].slab,
                            NULL, NULL, SDG_COPY_ACTIVATION));
  }
  SDG_TRY(sdg_subcall_add(plan, &sub));
  for (int i = 0; i < call->operands && copied; i++)
    if (call->operand[i].is_output)
      SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, sub.tensor[i].slab, slab[i],
                            NULL, &own, SDG_COPY_ACTIVATION));
  return SDG_OK;
}

sdg_status_t sdg_lrn_share(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_plan_t **out_plan) {
  *out_plan = NULL;
  if (!shareable(call, tagging))
    return SDG_OK;
  sdg_plan_t *plan;
  sdg_status_t status;
  SDG_TRY(
      sdg_plan_create_shared("window", sdg_mesh_ranks(tagging->mesh), &plan));
  SDG_TRY_GOTO(share_fill(plan->share, call, tagging), fail);
  SDG_TRY_GOTO(steps_add(call, tagging, plan), fail);
fail:
  return sdg_plan_finish(plan, status, out_plan);
}
