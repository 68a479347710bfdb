// SPDX-License-Identifier: Apache-2.0
// Neighbourhood attention in the whole view: each rank computes the queries of
// its part of q, and gets the gradients of its parts of q, k and v.
#include <stdlib.h>

#include "rules/neighborhood/plan.h"

sdg_status_t sdg_neighborhood_heads(const sdg_placement_t *like, int64_t from,
                                    int64_t to, const sdg_mesh_t *mesh,
                                    bool *out_can, sdg_placement_t *io) {
  sdg_part_t part;
  *out_can = true;
  SDG_TRY(sdg_part_copy(&like->part[1], &part));
  for (int p = 0; p <= part.pieces; p++) {
    *out_can &= part.offset[p] % from == 0;
    part.offset[p] = part.offset[p] / from * to;
  }
  sdg_status_t status =
      *out_can ? sdg_placement_split(io, mesh, 1, &like->split[1], &part)
               : SDG_OK;
  sdg_part_fini(&part);
  return status;
}

// The placements of operands for given q, k and v; operands with the output's
// shape follow q.
static sdg_status_t operands_place(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_tagging_t *out, bool *out_fits) {
  static const int like[] = {SDG_NEIGHBORHOOD_Q, SDG_NEIGHBORHOOD_K,
                             SDG_NEIGHBORHOOD_V, SDG_NEIGHBORHOOD_Q,
                             SDG_NEIGHBORHOOD_Q, SDG_NEIGHBORHOOD_K,
                             SDG_NEIGHBORHOOD_V};
  const sundog_neighborhood_t *how = call->args;
  *out = *tagging;
  *out_fits = true;
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    out->placement[i] = (sdg_placement_t){.dims = 0};
  for (int i = 0; i < call->operands && *out_fits; i++) {
    const sdg_placement_t *from = &tagging->placement[like[i]];
    int64_t channels[2] = {
        sdg_placement_extent(&tagging->placement[SDG_NEIGHBORHOOD_Q], 1) /
            how->heads,
        sdg_placement_extent(&tagging->placement[SDG_NEIGHBORHOOD_V], 1) /
            how->heads};
    // A split that heads do not divide is rejected below.
    SDG_TRY(sdg_placement_copy(from, &out->placement[i]));
    if (i == SDG_NEIGHBORHOOD_O && channels[0] > 0)
      SDG_TRY(sdg_neighborhood_heads(from, channels[0], channels[1],
                                     tagging->mesh, out_fits,
                                     &out->placement[i]));
  }
  return SDG_OK;
}

static sdg_status_t reads_fill(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               const sdg_neighborhood_t *shape,
                               sdg_share_t *share) {
  const sdg_placement_t *at = tagging->placement;
  for (int i = 0; i < call->operands; i++) {
    sdg_box_t *boxes;
    if (call->operand[i].is_output) {
      SDG_TRY(sdg_share_output(share, i, &at[i]));
      continue;
    }
    SDG_TRY(sdg_share_reads(share, i, &boxes));
    for (int r = 0; r < share->ranks; r++) {
      boxes[r] = sdg_placement_box(&at[i], tagging->mesh, r);
      sdg_box_t q =
          sdg_placement_box(&at[SDG_NEIGHBORHOOD_Q], tagging->mesh, r);
      if (i == SDG_NEIGHBORHOOD_K || i == SDG_NEIGHBORHOOD_V)
        boxes[r] = sdg_neighborhood_need(shape, &q, i == SDG_NEIGHBORHOOD_V);
    }
  }
  return SDG_OK;
}

static sdg_status_t shared_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) {
  sdg_neighborhood_t shape;
  SDG_TRY(sdg_neighborhood_shape(call, tagging, &shape));
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create_shared("halo", sdg_mesh_ranks(tagging->mesh), &plan));
  sdg_status_t status = reads_fill(call, tagging, &shape, plan->share);
  if (status == SDG_OK)
    status = sdg_neighborhood_fill(call, tagging, plan);
  return sdg_plan_finish(plan, status, out_plan);
}

sdg_status_t sdg_neighborhood_share(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_plan_t **out_plan) {
  bool fits;
  *out_plan = NULL;
  for (int i = SDG_NEIGHBORHOOD_Q; i <= SDG_NEIGHBORHOOD_O; i++)
    if (call->operand[i].dims != 4 && call->operand[i].dims != 5)
      return SDG_OK;
  sdg_tagging_t *all;
  SDG_TRY(SDG_ALLOCATE(all, 1, "a plan"));
  sdg_status_t status = operands_place(call, tagging, all, &fits);
  if (status == SDG_OK && fits)
    status = shared_plan(call, all, out_plan);
  for (int i = 0; i < call->operands; i++)
    sdg_placement_fini(&all->placement[i]);
  free(all);
  return status;
}
