// SPDX-License-Identifier: Apache-2.0
// Colocates operands of neighbourhood attention that are cut at different
// places. Queries lead; outputs and gradients are placed where the op expects
// them. Keys and values stay, because a plan fetches what windows see from any
// placement.

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

static bool has_extents(const sdg_colocation_t *colocation, int index, int dims,
                        const int64_t *extent) {
  bool has = false;
  for (int k = 0; k < colocation->places[index] && !has; k++)
    has = extents_equal(&colocation->place[index][k].placement, dims, extent);
  return has;
}

// Takes the reading in which an operand has these extents, so that it does not
// move.
static sdg_status_t reading_take(sdg_colocation_t *colocation, int index,
                                 int dims, const int64_t *extent) {
  for (int k = 0; k < colocation->places[index]; k++) {
    const sdg_placement_t *is = &colocation->place[index][k].placement;
    if (!extents_equal(is, dims, extent))
      continue;
    colocation->is[index] = k;
    sdg_placement_fini(&colocation->tagging.placement[index]);
    return sdg_placement_copy(is, &colocation->tagging.placement[index]);
  }
  colocation->fits = false;
  return SDG_OK;
}

// Whether some rank's piece is empty. Such operands do not move, because a rank
// without data could not take part in the agreement.
static bool some_empty(const sdg_placement_t *p) {
  for (int d = 0; d < p->dims; d++)
    for (int i = 0; i < p->part[d].pieces; i++)
      if (sdg_part_size(&p->part[d], i) == 0)
        return true;
  return false;
}

static sdg_status_t operand_move(sdg_colocation_t *colocation, int index,
                                 const int64_t *extent,
                                 const sdg_placement_t *want) {
  for (int k = 0; k < colocation->places[index]; k++) {
    const sdg_placement_t *is = &colocation->place[index][k].placement;
    if (extents_equal(is, want->dims, extent) && some_empty(is))
      colocation->fits = false;
  }
  return colocation->fits ? sdg_colocate_follow(colocation, index, want, false)
                          : SDG_OK;
}

// Creates the placement of outputs with these extents, cut like the queries:
// channels between the same heads, other dimensions at the same places.
static sdg_status_t beside(sdg_colocation_t *colocation, const int64_t *extent,
                           int heads, sdg_placement_t *out) {
  const sdg_placement_t *q = sdg_colocate_at(colocation, SDG_NEIGHBORHOOD_Q);
  int64_t from = sdg_placement_extent(q, 1) / heads, to = extent[1] / heads;
  sdg_status_t status = SDG_OK;
  colocation->fits = from > 0 && to > 0 && extent[1] % heads == 0;
  SDG_TRY(sdg_placement_init(q->dims, extent, out));
  for (int d = 0; d < q->dims && status == SDG_OK && colocation->fits; d++)
    if (q->split[d].axes > 0)
      status =
          d == 1 ? sdg_neighborhood_heads(q, from, to, colocation->tagging.mesh,
                                          &colocation->fits, out)
                 : sdg_placement_split(out, colocation->tagging.mesh, d,
                                       &q->split[d], &q->part[d]);
  if (status != SDG_OK)
    sdg_placement_fini(out);
  return status;
}

// The output, or its gradient, has the grid of q and the channels of v.
static sdg_status_t output_follow(sdg_colocation_t *colocation, int heads,
                                  int64_t *out_extent) {
  const sdg_placement_t *q = sdg_colocate_at(colocation, SDG_NEIGHBORHOOD_Q);
  for (int d = 0; d < q->dims; d++)
    out_extent[d] = sdg_placement_extent(q, d);
  for (int k = 0; k < colocation->places[SDG_NEIGHBORHOOD_O]; k++) {
    const sdg_placement_t *is =
        &colocation->place[SDG_NEIGHBORHOOD_O][k].placement;
    sdg_placement_t want;
    if (is->dims != q->dims)
      continue;
    out_extent[1] = sdg_placement_extent(is, 1);
    if (!extents_equal(is, q->dims, out_extent) ||
        !has_extents(colocation, SDG_NEIGHBORHOOD_V, q->dims, out_extent))
      continue;
    SDG_TRY(beside(colocation, out_extent, heads, &want));
    sdg_status_t status = SDG_OK;
    if (colocation->fits)
      status =
          sdg_placement_equal(is, &want)
              ? reading_take(colocation, SDG_NEIGHBORHOOD_O, q->dims,
                             out_extent)
              : operand_move(colocation, SDG_NEIGHBORHOOD_O, out_extent, &want);
    sdg_placement_fini(&want);
    return status;
  }
  colocation->fits = false;
  return SDG_OK;
}

static sdg_status_t gradients_follow(const sdg_call_t *call,
                                     sdg_colocation_t *colocation) {
  static const int like[] = {
      [SDG_NEIGHBORHOOD_DQ] = SDG_NEIGHBORHOOD_Q,
      [SDG_NEIGHBORHOOD_DK] = SDG_NEIGHBORHOOD_K,
      [SDG_NEIGHBORHOOD_DV] = SDG_NEIGHBORHOOD_V,
  };
  for (int i = SDG_NEIGHBORHOOD_DQ; i < call->operands && colocation->fits;
       i++) {
    const sdg_placement_t *want = sdg_colocate_at(colocation, like[i]);
    int64_t extent[SDG_DIMS_MAX];
    bool same = false;
    for (int d = 0; d < want->dims; d++)
      extent[d] = sdg_placement_extent(want, d);
    for (int k = 0; k < colocation->places[i]; k++)
      same |= sdg_placement_equal(&colocation->place[i][k].placement, want);
    // Pieces may be empty if nothing is moved.
    SDG_TRY(same ? reading_take(colocation, i, want->dims, extent)
                 : operand_move(colocation, i, extent, want));
  }
  return SDG_OK;
}

sdg_status_t sdg_neighborhood_colocate(const sdg_call_t *call,
                                       sdg_colocation_t *colocation, int lead) {
  const sundog_neighborhood_t *how = call->args;
  int64_t queries[SDG_DIMS_MAX], outputs[SDG_DIMS_MAX];
  const sdg_placement_t *q = sdg_colocate_at(colocation, lead);
  colocation->fits = lead == SDG_NEIGHBORHOOD_Q && q->dims > 2;
  if (!colocation->fits)
    return SDG_OK;
  for (int d = 0; d < q->dims; d++)
    queries[d] = sdg_placement_extent(q, d);
  SDG_TRY(output_follow(colocation, how->heads, outputs));
  if (colocation->fits)
    SDG_TRY(reading_take(colocation, SDG_NEIGHBORHOOD_K, q->dims, queries));
  if (colocation->fits)
    SDG_TRY(reading_take(colocation, SDG_NEIGHBORHOOD_V, q->dims, outputs));
  if (colocation->fits)
    SDG_TRY(gradients_follow(call, colocation));
  if (!colocation->fits)
    return SDG_OK;
  // The plan exchanges messages between all ranks that have any part of it.
  sdg_tagging_span(
      &colocation->tagging,
      colocation->tagging.axes | sdg_placement_axes(q) |
          sdg_placement_axes(sdg_colocate_at(colocation, SDG_NEIGHBORHOOD_K)) |
          sdg_placement_axes(sdg_colocate_at(colocation, SDG_NEIGHBORHOOD_V)));
  return SDG_OK;
}
