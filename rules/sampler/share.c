// SPDX-License-Identifier: Apache-2.0
// The sampler in the whole view: each rank computes its box of y, or of the
// gradients.
#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

#include "rules/place/place.h"
#include "rules/sampler/plan.h"
#include "rules/vendor/argument.h"

sdg_status_t sdg_sampler_edges(const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  unsigned wrap = tagging->section ? tagging->section->wrap : 0;
  return wrap ? sdg_fail(SDG_E_NO_RULE,
                         "%s with a periodic dimension: coordinates end at the "
                         "edges",
                         call->entry_name)
              : SDG_OK;
}

static bool is_shareable(const sdg_call_t *call) {
  if (!sdg_sampler_is_legal(call))
    return false;
  for (int i = 0; i < call->operands; i++)
    if (!call->operand[i].data || call->operand[i].elem_bytes == 0)
      return false;
  if (!sdg_sampler_is_backward(call))
    return true;
  // dx is placed like x, so it must have the same extents.
  const sdg_operand_t *x =
      &call->operand[sdg_sampler_operand(call, SDG_SAMPLER_X)];
  const sdg_operand_t *dx =
      &call->operand[sdg_sampler_operand(call, SDG_SAMPLER_DX)];
  return memcmp(x->extent, dx->extent, (size_t)x->dims * sizeof *x->extent) ==
         0;
}

// Cuts y over the axes of x: at the same places in dimensions where both have
// the same extent, otherwise evenly.
static sdg_status_t y_place(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_placement_t *out) {
  const sdg_placement_t *x = sdg_sampler_at(call, tagging, SDG_SAMPLER_X);
  const sdg_operand_t *y =
      &call->operand[sdg_sampler_operand(call, SDG_SAMPLER_Y)];
  SDG_TRY(sdg_placement_init(y->dims, y->extent, out));
  for (int d = 0; d < y->dims; d++) {
    sdg_part_t part;
    if (x->split[d].axes == 0)
      continue;
    if (y->extent[d] == sdg_placement_extent(x, d))
      SDG_TRY(sdg_part_copy(&x->part[d], &part));
    else
      SDG_TRY(sdg_part_parse("even", y->extent[d], x->part[d].pieces, &part));
    SDG_TRY(sdg_placement_take(out, tagging->mesh, d, &x->split[d], &part));
  }
  return SDG_OK;
}

static sdg_status_t operands_place(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_tagging_t *out) {
  const sdg_placement_t *at = tagging->placement;
  int x = sdg_sampler_operand(call, SDG_SAMPLER_X);
  int y = sdg_sampler_operand(call, SDG_SAMPLER_Y);
  int dx = sdg_sampler_operand(call, SDG_SAMPLER_DX);
  *out = *tagging;
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    out->placement[i] = (sdg_placement_t){.dims = 0};
  SDG_TRY(sdg_placement_copy(&at[x], &out->placement[x]));
  if (dx < 0)
    SDG_TRY(y_place(call, tagging, &out->placement[y]));
  else
    SDG_TRY(sdg_placement_copy(&at[y], &out->placement[y]));
  if (dx >= 0)
    SDG_TRY(sdg_placement_copy(&at[x], &out->placement[dx]));
  return sdg_place_coordinates(call, out->mesh, out->placement);
}

static sdg_status_t reads_fill(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_share_t *share) {
  const sdg_placement_t *at = tagging->placement;
  const sdg_placement_t *y = sdg_sampler_at(call, tagging, SDG_SAMPLER_Y);
  for (int i = 0; i < call->operands; i++) {
    bool coordinates = call->operand[i].kind == SDG_OPERAND_COORDINATES;
    sdg_box_t *boxes;
    if (call->operand[i].is_output)
      SDG_TRY(sdg_share_output(share, i, &at[i]));
    if (call->operand[i].is_output &&
        sdg_call_scalar(call, coordinates ? SDG_BETA2 : SDG_BETA) == 0)
      continue;
    SDG_TRY(sdg_share_reads(share, i, &boxes));
    for (int r = 0; r < share->ranks; r++) {
      boxes[r] = sdg_placement_box(&at[i], tagging->mesh, r);
      sdg_box_t box = sdg_placement_box(y, tagging->mesh, r);
      if (i == sdg_sampler_operand(call, SDG_SAMPLER_X))
        boxes[r] = sdg_sampler_need(&at[i], &box);
    }
  }
  return SDG_OK;
}

static sdg_status_t shared_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) {
  sdg_plan_t *plan;
  SDG_TRY(
      sdg_plan_create_shared("fetch", sdg_mesh_ranks(tagging->mesh), &plan));
  sdg_status_t status = reads_fill(call, tagging, plan->share);
  if (status == SDG_OK)
    status = sdg_sampler_fill(call, tagging, plan);
  return sdg_plan_finish(plan, status, out_plan);
}

sdg_status_t sdg_sampler_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  *out_plan = NULL;
  SDG_TRY(sdg_sampler_edges(call, tagging));
  if (!is_shareable(call))
    return SDG_OK;
  sdg_tagging_t *all;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  sdg_status_t status = operands_place(call, tagging, all);
  if (status == SDG_OK && sdg_sampler_unfit(call, all) < 0 &&
      sdg_placement_axes(sdg_sampler_at(call, all, SDG_SAMPLER_Y)))
    status = shared_plan(call, all, out_plan);
  for (int i = 0; i < call->operands; i++)
    sdg_placement_fini(&all->placement[i]);
  free(all);
  return status;
}
