// SPDX-License-Identifier: Apache-2.0
// The plan of a pointwise op in the whole view, where every rank has memory for
// the full tensors.
#include "rules/pointwise/plan.h"

#include "rules/pointwise/run.h"
#include "rules/vendor/argument.h"

// The written operand; -1 if the ranks cannot share the call.
static int output_find(const sdg_call_t *call) {
  int output = -1;
  // The real function rejects absent descriptors.
  if (!sdg_call_is_complete(call))
    return -1;
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].is_output)
      output = i;
  if (output < 0)
    return -1;
  const sdg_operand_t *y = &call->operand[output];
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (operand->dims != y->dims || operand->elem_bytes == 0 || !operand->data)
      return -1;
    for (int d = 0; d < y->dims; d++)
      if (operand->extent[d] != y->extent[d] && operand->extent[d] != 1)
        return -1;
  }
  return output;
}

static bool extents_equal(const sdg_operand_t *a, const sdg_operand_t *b) {
  for (int d = 0; d < a->dims; d++)
    if (a->extent[d] != b->extent[d])
      return false;
  return true;
}

// The placement of the output: that of an input of the same extents which is
// split, otherwise the output's own.
static const sdg_placement_t *placement_find(const sdg_call_t *call,
                                             const sdg_tagging_t *tagging,
                                             int output) {
  const sdg_operand_t *y = &call->operand[output];
  for (int i = 0; i < call->operands; i++)
    if (i != output && extents_equal(&call->operand[i], y) &&
        sdg_placement_axes(&tagging->placement[i]))
      return &tagging->placement[i];
  return &tagging->placement[output];
}

static sdg_status_t reads_fill(sdg_share_t *share, const sdg_call_t *call,
                               const sdg_tagging_t *tagging, bool reads_old) {
  int output = share->output[0].operand;
  const sdg_placement_t *placement = &share->output[0].placement;
  for (int i = 0; i < call->operands; i++) {
    sdg_box_t *boxes;
    if (i == output && !reads_old)
      continue;
    SDG_TRY(sdg_share_reads(share, i, &boxes));
    for (int r = 0; r < share->ranks; r++) {
      sdg_box_t own = sdg_placement_box(placement, tagging->mesh, r);
      boxes[r] = sdg_pointwise_project(call->operand[i].extent, &own);
    }
  }
  return SDG_OK;
}

static sdg_status_t steps_make(sdg_plan_t *plan, const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  sdg_box_t own = sdg_tagging_own(tagging, &plan->share->output[0].placement);
  if (sdg_box_empty(&own))
    return SDG_OK;
  SDG_TRY(sdg_pointwise_open(plan));
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    sdg_box_t all = sdg_operand_box(operand);
    int slab;
    SDG_TRY(sdg_plan_operand(plan, call, i, &all, &slab));
    sdg_box_t part = sdg_pointwise_project(operand->extent, &own);
    SDG_TRY(sdg_pointwise_operand(plan, call, i, slab, &part));
  }
  return sdg_plan_call(plan, 0);
}

sdg_status_t sdg_pointwise_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, bool reads_old,
                                 sdg_plan_t **out_plan) {
  *out_plan = NULL;
  int output = output_find(call);
  if (output < 0)
    return SDG_OK;
  const sdg_placement_t *like = placement_find(call, tagging, output);
  if (!sdg_placement_axes(like))
    return SDG_OK;
  sdg_plan_t *plan;
  sdg_status_t status;
  SDG_TRY(
      sdg_plan_create_shared("window", sdg_mesh_ranks(tagging->mesh), &plan));
  SDG_TRY_GOTO(sdg_share_output(plan->share, output, like), fail);
  SDG_TRY_GOTO(reads_fill(plan->share, call, tagging, reads_old), fail);
  SDG_TRY_GOTO(steps_make(plan, call, tagging), fail);
fail:
  return sdg_plan_finish(plan, status, out_plan);
}
