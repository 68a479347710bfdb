// SPDX-License-Identifier: Apache-2.0
// Finds the operand of a call that leads, and where the others have to be.
#include "rules/place/colocate.h"

#include <string.h>

#include "rules/place/readings.h"
#include "rules/place/tagging.h"
#include "src/call/tag.h"

const sdg_placement_t *sdg_colocate_at(const sdg_colocation_t *colocation,
                                       int index) {
  return &colocation->tagging.placement[index];
}

bool sdg_colocate_same_pieces(const sdg_placement_t *a,
                              const sdg_placement_t *b) {
  bool equal = a->dims == b->dims;
  for (int d = 0; equal && d < a->dims; d++)
    equal = sdg_part_equal(&a->part[d], &b->part[d]) &&
            (a->part[d].pieces == 1 ||
             sdg_place_same(&a->split[d], &b->split[d], 1));
  return equal;
}

bool sdg_colocate_moves(const sdg_colocation_t *colocation, int index) {
  int is = colocation->is[index];
  return is >= 0 &&
         !sdg_colocate_same_pieces(&colocation->place[index][is].placement,
                                   sdg_colocate_at(colocation, index));
}

// Whether some rank has no elements; the vendor's library refuses empty
// tensors.
static bool some_empty(const sdg_placement_t *placement) {
  for (int d = 0; d < placement->dims; d++)
    for (int p = 0; p < placement->part[d].pieces; p++)
      if (sdg_part_size(&placement->part[d], p) == 0)
        return true;
  return false;
}

sdg_status_t sdg_colocate_follow(sdg_colocation_t *colocation, int index,
                                 const sdg_placement_t *want, bool any_parts) {
  const sdg_operand_t *operand = &colocation->call->operand[index];
  bool absent = !operand->data && !colocation->call->is_query;
  for (int k = 0; k < colocation->places[index]; k++) {
    const sdg_placement_t *is = &colocation->place[index][k].placement;
    if (!sdg_placement_extents_equal(is, want))
      continue;
    colocation->is[index] = k;
    if (absent ||
        (any_parts && sdg_place_same(is->split, want->split, is->dims)))
      want = is;
    colocation->empties |= some_empty(want);
    sdg_placement_fini(&colocation->tagging.placement[index]);
    return sdg_placement_copy(want, &colocation->tagging.placement[index]);
  }
  colocation->fits = false;
  return SDG_OK;
}

// Where an operand with these extents is beside `lead`.
static sdg_status_t beside(const sdg_colocation_t *colocation,
                           const sdg_placement_t *is,
                           const sdg_placement_t *lead, sdg_placement_t *out) {
  int64_t extent[SDG_DIMS_MAX];
  int from[SDG_DIMS_MAX];
  for (int d = 0; d < is->dims; d++) {
    extent[d] = sdg_placement_extent(is, d);
    from[d] = lead->split[d].axes && extent[d] == sdg_placement_extent(lead, d)
                  ? d
                  : -1;
  }
  return sdg_placement_like(is->dims, extent, colocation->tagging.mesh, lead,
                            from, out);
}

// The extents of a call's tensors so far: 1 where no tensor has more.
typedef struct {
  int dims;
  int64_t extent[SDG_DIMS_MAX];
} extents_t;

// Adds a tensor to `common`. False if it has another extent where both have
// more than 1: an extent of 1 stands for all elements, or came of them.
static bool extents_join(const sdg_placement_t *is, const extents_t *common,
                         extents_t *out) {
  *out = *common;
  for (int d = 0; d < is->dims && is->dims == common->dims; d++) {
    int64_t extent = sdg_placement_extent(is, d);
    if (extent != 1 && common->extent[d] != 1 && extent != common->extent[d])
      return false;
    if (extent != 1)
      out->extent[d] = extent;
  }
  return is->dims == common->dims;
}

// The first readings of operands from `index` on that fit each other, and those
// before. An extent of 1 of the one that leads fits any of another, but not two
// different ones of two others.
static bool readings_choose(const sdg_colocation_t *colocation, int lead,
                            int index, const extents_t *common,
                            int reading[SDG_OPERANDS_MAX]) {
  if (index == colocation->call->operands)
    return true;
  if (index == lead ||
      !sdg_role_is_activation(colocation->call->operand[index].role))
    return readings_choose(colocation, lead, index + 1, common, reading);
  for (int k = 0; k < colocation->places[index]; k++) {
    extents_t more;
    reading[index] = k;
    if (extents_join(&colocation->place[index][k].placement, common, &more) &&
        readings_choose(colocation, lead, index + 1, &more, reading))
      return true;
  }
  return false;
}

sdg_status_t sdg_colocate_alike(sdg_colocation_t *colocation, int lead) {
  const sdg_placement_t *first = sdg_colocate_at(colocation, lead);
  extents_t common = {.dims = first->dims};
  int reading[SDG_OPERANDS_MAX];
  for (int d = 0; d < first->dims; d++)
    common.extent[d] = sdg_placement_extent(first, d);
  colocation->fits &= readings_choose(colocation, lead, 0, &common, reading);
  for (int i = 0; i < colocation->call->operands && colocation->fits; i++) {
    sdg_placement_t want;
    if (i == lead || !sdg_role_is_activation(colocation->call->operand[i].role))
      continue;
    SDG_TRY(beside(colocation, &colocation->place[i][reading[i]].placement,
                   sdg_colocate_at(colocation, lead), &want));
    sdg_status_t status = sdg_colocate_follow(colocation, i, &want, false);
    sdg_placement_fini(&want);
    SDG_TRY(status);
  }
  return SDG_OK;
}

// ---- which one leads -------------------------------------------------------

static void placements_drop(sdg_colocation_t *colocation) {
  for (int i = 0; i < colocation->call->operands; i++) {
    sdg_placement_fini(&colocation->tagging.placement[i]);
    colocation->tagging.placement[i] = (sdg_placement_t){.dims = 0};
  }
}

// Scales are cut as the lead is.
static sdg_status_t scales_place(sdg_colocation_t *colocation,
                                 const sdg_rules_t *rules) {
  for (int i = 0; i < colocation->call->operands; i++) {
    sdg_place_t place[SDG_PLACES_MAX];
    int places;
    if (!sdg_role_is_scale(colocation->call->operand[i].role))
      continue;
    SDG_TRY(sdg_place_list(colocation->call, i, colocation->tagging.section,
                           rules, place, &places));
    if (places == 0)
      continue;
    colocation->tagging.placement[i] = place[0].placement;
    sdg_place_free(place + 1, places - 1);
  }
  return SDG_OK;
}

// *io_empties becomes true if all fit, but a rank would get no elements.
static sdg_status_t lead_try(sdg_colocation_t *colocation,
                             const sdg_rules_t *rules, const sdg_op_t *op,
                             int lead, const sdg_place_t *place,
                             bool *io_empties) {
  sdg_tagging_group(place->section, &colocation->tagging);
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    colocation->is[i] = -1;
  colocation->is[lead] = (int)(place - colocation->place[lead]);
  colocation->fits = true;
  colocation->empties = false;
  SDG_TRY(sdg_placement_copy(&place->placement,
                             &colocation->tagging.placement[lead]));
  sdg_tagging_narrow(&colocation->tagging, lead);
  SDG_TRY(scales_place(colocation, rules));
  SDG_TRY(op->colocate(colocation->call, colocation, lead));
  SDG_TRY(sdg_place_coordinates(colocation->call, colocation->tagging.mesh,
                                colocation->tagging.placement));
  *io_empties |= colocation->fits && colocation->empties;
  colocation->fits &= !colocation->empties;
  if (!colocation->fits)
    placements_drop(colocation);
  return SDG_OK;
}

// Tries each operand as lead, in their order. In elementwise ops an output
// comes first: then only the inputs are moved.
static sdg_status_t each_try(sdg_colocation_t *colocation,
                             const sdg_rules_t *rules, const sdg_op_t *op,
                             bool *io_empties) {
  const sdg_call_t *call = colocation->call;
  bool output_first = sdg_family_is(call->family, SDG_FAMILY_ELEMENTWISE);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < call->operands; i++) {
      bool first = !output_first || call->operand[i].is_output;
      if (!sdg_role_is_activation(call->operand[i].role) ||
          first != (pass == 0))
        continue;
      for (int k = 0; k < colocation->places[i]; k++) {
        const sdg_place_t *place = &colocation->place[i][k];
        if (!place->section || !sdg_placement_axes(&place->placement))
          continue;
        SDG_TRY(lead_try(colocation, rules, op, i, place, io_empties));
        if (colocation->fits)
          return SDG_OK;
      }
    }
  return SDG_OK;
}

// A tensor that a [local] section names is taken as whole on every rank, if its
// size fits that; otherwise as a piece.
sdg_status_t sdg_colocate_lead(sdg_colocation_t *colocation,
                               const sdg_rules_t *rules, const sdg_op_t *op) {
  int places[SDG_OPERANDS_MAX];
  bool named = false, empties = false;
  memcpy(places, colocation->places, sizeof places);
  for (int i = 0; i < colocation->call->operands; i++)
    if (places[i] > 1 && !colocation->place[i][0].section) {
      colocation->places[i] = 1;
      named = true;
    }
  sdg_status_t status = each_try(colocation, rules, op, &empties);
  memcpy(colocation->places, places, sizeof places);
  return status != SDG_OK || !named || colocation->fits || empties
             ? status
             : each_try(colocation, rules, op, &empties);
}

static sdg_status_t places_list(sdg_colocation_t *colocation,
                                const sdg_rules_t *rules,
                                const sdg_tagging_t *tagging, int *out_count) {
  *out_count = 0;
  for (int i = 0; i < colocation->call->operands; i++) {
    if (!sdg_role_is_activation(colocation->call->operand[i].role))
      continue;
    ++*out_count;
    SDG_TRY(sdg_place_list(colocation->call, i, tagging->section, rules,
                           colocation->place[i], &colocation->places[i]));
  }
  return SDG_OK;
}

// ---- the call --------------------------------------------------------------

// Whether operands move; if not, whether the op's tagging is the call's.
static sdg_colocate_result_t result_of(const sdg_colocation_t *colocation,
                                       const sdg_tagging_t *tagging) {
  bool same = colocation->tagging.section == tagging->section &&
              colocation->tagging.axes == tagging->axes;
  for (int i = 0; i < colocation->call->operands; i++) {
    if (sdg_colocate_moves(colocation, i))
      return SDG_COLOCATE_MOVES;
    same &= colocation->is[i] < 0 ||
            sdg_placement_equal(sdg_colocate_at(colocation, i),
                                &tagging->placement[i]);
  }
  return same ? SDG_COLOCATE_NOTHING : SDG_COLOCATE_READ;
}

// Sets in the tagging where the program's tensors are, and the ranks that take
// part.
static sdg_status_t tagging_correct(const sdg_colocation_t *colocation,
                                    sdg_tagging_t *tagging) {
  sdg_axes_t axes = tagging->axes | colocation->tagging.axes;
  for (int i = 0; i < colocation->call->operands; i++) {
    bool scale = sdg_role_is_scale(colocation->call->operand[i].role);
    if (colocation->is[i] < 0 && !scale)
      continue;
    sdg_placement_fini(&tagging->placement[i]);
    SDG_TRY(sdg_placement_copy(
        scale ? sdg_colocate_at(colocation, i)
              : &colocation->place[i][colocation->is[i]].placement,
        &tagging->placement[i]));
    axes |= sdg_placement_axes(&tagging->placement[i]);
  }
  SDG_TRY(sdg_place_coordinates(colocation->call, tagging->mesh,
                                tagging->placement));
  sdg_tagging_span(tagging, axes);
  return SDG_OK;
}

// The first activation that is in pieces; -1: none is.
static int cut_beside(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  for (int i = 0; i < call->operands; i++)
    if (sdg_role_is_activation(call->operand[i].role) &&
        sdg_placement_axes(&tagging->placement[i]))
      return i;
  return -1;
}

// Whether a [local] section names an operand that is beside one in pieces.
static sdg_status_t local_find(const sdg_call_t *call, int index,
                               const sdg_rules_t *rules,
                               const sdg_tagging_t *tagging, bool *out_local) {
  sdg_place_t place[SDG_PLACES_MAX];
  int places;
  SDG_TRY(sdg_place_list(call, index, tagging->section, rules, place, &places));
  *out_local = places > 0 && !place[0].section;
  sdg_place_free(place, places);
  return SDG_OK;
}

// An operand that does not move has to be split as the call's section or one
// tag says: planners compare parts, and expect the split dimensions of one
// section. An op that moves nothing may accept tensors that every rank has in
// full.
static sdg_status_t left_check(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_op_t *op, const sdg_tagging_t *tagging,
                               bool others) {
  int first = -1, cut = cut_beside(call, tagging);
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    bool scale = sdg_role_is_scale(operand->role);
    if (!sdg_role_is_activation(operand->role) && !scale)
      continue;
    if (scale || !operand->label) {
      bool local = false;
      SDG_TRY(sdg_place_check(call, i, tagging->section));
      if (!scale && others && cut >= 0 && op->colocate)
        SDG_TRY(local_find(call, i, rules, tagging, &local));
      if (local)
        return sdg_tagging_differ(call, tagging, i, cut);
      continue;
    }
    if (!op->colocate && operand->label->is_local)
      continue;
    if (operand->label->is_local && others && cut >= 0)
      return sdg_tagging_differ(call, tagging, i, cut);
    if (first >= 0 && operand->label != call->operand[first].label)
      return sdg_tagging_differ(call, tagging, first, i);
    first = i;
  }
  return SDG_OK;
}

sdg_status_t sdg_colocate_find(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_op_t *op, sdg_tagging_t *tagging,
                               sdg_colocation_t *out,
                               sdg_colocate_result_t *out_result) {
  int activations;
  memset(out, 0, sizeof *out);
  out->call = call;
  *out_result = SDG_COLOCATE_NOTHING;
  if (sdg_family_is(call->family, SDG_FAMILY_MOVES))
    return SDG_OK;
  if (!op->colocate)
    return left_check(call, rules, op, tagging, false);
  sdg_status_t status;
  SDG_TRY_GOTO(places_list(out, rules, tagging, &activations), fail);
  if (activations > 1)
    SDG_TRY_GOTO(sdg_colocate_lead(out, rules, op), fail);
  if (!out->fits) {
    SDG_TRY_GOTO(left_check(call, rules, op, tagging, activations > 1), fail);
    return SDG_OK;
  }
  SDG_TRY_GOTO(sdg_readings_check(out, rules, op), fail);
  *out_result = result_of(out, tagging);
  if (*out_result != SDG_COLOCATE_NOTHING)
    SDG_TRY_GOTO(tagging_correct(out, tagging), fail);
  return SDG_OK;
fail:
  sdg_colocate_fini(out);
  return status;
}

void sdg_colocate_fini(sdg_colocation_t *colocation) {
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    sdg_place_free(colocation->place[i], colocation->places[i]);
  sdg_tagging_fini(&colocation->tagging);
  memset(colocation, 0, sizeof *colocation);
}
