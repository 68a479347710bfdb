// SPDX-License-Identifier: Apache-2.0
// Operands of neighbourhood attention that are cut in different places: queries
// lead, outputs and gradients come to where the op has them; keys and values
// stay, as a plan brings what windows see from wherever it is.
#include <string.h>

#include "rules/neighborhood/plan.h"
#include "rules/place/colocate.h"
#include "rules/place/tagging.h"

static bool extents_equal(const sdg_placement_t *p, int dims,
                          const int64_t *extent) {
  bool equal = p->dims == dims;
  for (int d = 0; equal && d < dims; d++)
    equal = sdg_placement_extent(p, d) == extent[d];
  return equal;
}

// An operand with these extents where the program has it.
static sdg_status_t stay(sdg_meet_t *meet, int index, int dims,
                         const int64_t *extent) {
  for (int k = 0; k < meet->places[index]; k++) {
    const sdg_placement_t *is = &meet->place[index][k].placement;
    if (!extents_equal(is, dims, extent))
      continue;
    meet->is[index] = k;
    sdg_placement_fini(&meet->tagging.placement[index]);
    return sdg_placement_copy(is, &meet->tagging.placement[index]);
  }
  meet->fits = false;
  return SDG_OK;
}

// What is moved has elements on every rank: those without data could not tell.
static bool some_empty(const sdg_placement_t *p) {
  for (int d = 0; d < p->dims; d++)
    for (int i = 0; i < p->part[d].pieces; i++)
      if (sdg_part_size(&p->part[d], i) == 0)
        return true;
  return false;
}

static sdg_status_t come(sdg_meet_t *meet, int index, const int64_t *extent,
                         const sdg_placement_t *want) {
  for (int k = 0; k < meet->places[index]; k++) {
    const sdg_placement_t *is = &meet->place[index][k].placement;
    if (extents_equal(is, want->dims, extent) && some_empty(is))
      meet->fits = false;
  }
  return meet->fits ? sdg_meet_follow(meet, index, want, false) : SDG_OK;
}

// Outputs with these extents beside the queries.
static sdg_status_t beside(sdg_meet_t *meet, const int64_t *extent, int heads,
                           sdg_placement_t *out) {
  const sdg_placement_t *q = sdg_meet_at(meet, SDG_NEIGHBOR_Q);
  int64_t from = sdg_placement_extent(q, 1) / heads, to = extent[1] / heads;
  sdg_status_t status = SDG_OK;
  meet->fits = from > 0 && to > 0;
  SDG_TRY(sdg_placement_init(q->dims, extent, out));
  for (int d = 0; d < q->dims && status == SDG_OK && meet->fits; d++)
    if (q->split[d].axes > 0)
      status = d == 1 ? sdg_neighborhood_heads(q, from, to, meet->tagging.mesh,
                                               &meet->fits, out)
                      : sdg_placement_split(out, meet->tagging.mesh, d,
                                            &q->split[d], &q->part[d]);
  if (status != SDG_OK)
    sdg_placement_fini(out);
  return status;
}

// The output, or its gradient, has the grid of q; its channels are its own.
static sdg_status_t output_follow(sdg_meet_t *meet, int heads,
                                  int64_t *out_extent) {
  const sdg_placement_t *q = sdg_meet_at(meet, SDG_NEIGHBOR_Q);
  for (int d = 0; d < q->dims; d++)
    out_extent[d] = sdg_placement_extent(q, d);
  for (int k = 0; k < meet->places[SDG_NEIGHBOR_O]; k++) {
    const sdg_placement_t *is = &meet->place[SDG_NEIGHBOR_O][k].placement;
    sdg_placement_t want;
    if (is->dims != q->dims)
      continue;
    out_extent[1] = sdg_placement_extent(is, 1);
    if (!extents_equal(is, q->dims, out_extent))
      continue;
    SDG_TRY(beside(meet, out_extent, heads, &want));
    sdg_status_t status = SDG_OK;
    if (meet->fits)
      status = sdg_placement_equal(is, &want)
                   ? stay(meet, SDG_NEIGHBOR_O, q->dims, out_extent)
                   : come(meet, SDG_NEIGHBOR_O, out_extent, &want);
    sdg_placement_fini(&want);
    return status;
  }
  meet->fits = false;
  return SDG_OK;
}

static sdg_status_t gradients_follow(const sdg_call_t *call, sdg_meet_t *meet) {
  static const int like[] = {
      [SDG_NEIGHBOR_DQ] = SDG_NEIGHBOR_Q,
      [SDG_NEIGHBOR_DK] = SDG_NEIGHBOR_K,
      [SDG_NEIGHBOR_DV] = SDG_NEIGHBOR_V,
  };
  for (int i = SDG_NEIGHBOR_DQ; i < call->operands && meet->fits; i++) {
    const sdg_placement_t *want = sdg_meet_at(meet, like[i]);
    int64_t extent[SDG_DIMS_MAX];
    bool same = false;
    for (int d = 0; d < want->dims; d++)
      extent[d] = sdg_placement_extent(want, d);
    for (int k = 0; k < meet->places[i]; k++)
      same |= sdg_placement_equal(&meet->place[i][k].placement, want);
    // Pieces may be empty where nothing is moved.
    SDG_TRY(same ? stay(meet, i, want->dims, extent)
                 : come(meet, i, extent, want));
  }
  return SDG_OK;
}

sdg_status_t sdg_neighborhood_meet(const sdg_call_t *call, sdg_meet_t *meet,
                                   int lead) {
  const sundog_neighborhood_t *how = call->args;
  int64_t queries[SDG_DIMS_MAX], outputs[SDG_DIMS_MAX];
  const sdg_placement_t *q = sdg_meet_at(meet, lead);
  meet->fits = lead == SDG_NEIGHBOR_Q && q->dims > 2;
  if (!meet->fits)
    return SDG_OK;
  for (int d = 0; d < q->dims; d++)
    queries[d] = sdg_placement_extent(q, d);
  SDG_TRY(output_follow(meet, how->heads, outputs));
  if (meet->fits)
    SDG_TRY(stay(meet, SDG_NEIGHBOR_K, q->dims, queries));
  if (meet->fits)
    SDG_TRY(stay(meet, SDG_NEIGHBOR_V, q->dims, outputs));
  if (meet->fits)
    SDG_TRY(gradients_follow(call, meet));
  if (!meet->fits)
    return SDG_OK;
  // The plan has messages between all ranks that have any of it.
  sdg_tagging_span(&meet->tagging,
                   meet->tagging.axes | sdg_placement_axes(q) |
                       sdg_placement_axes(sdg_meet_at(meet, SDG_NEIGHBOR_K)) |
                       sdg_placement_axes(sdg_meet_at(meet, SDG_NEIGHBOR_V)));
  return SDG_OK;
}
