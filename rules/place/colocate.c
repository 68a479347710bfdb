// SPDX-License-Identifier: Apache-2.0
// Which operand of a call leads, and where the others have to be.
#include "rules/place/colocate.h"

#include <string.h>

#include "rules/place/tagging.h"
#include "src/call/tag.h"

const sdg_placement_t *sdg_meet_at(const sdg_meet_t *meet, int index) {
  return &meet->tagging.placement[index];
}

// Alike but for axes of one rank, which cut nothing.
static bool pieces_equal(const sdg_placement_t *a, const sdg_placement_t *b) {
  bool equal = a->dims == b->dims;
  for (int d = 0; equal && d < a->dims; d++)
    equal = sdg_part_equal(&a->part[d], &b->part[d]) &&
            (a->part[d].pieces == 1 ||
             sdg_place_same(&a->split[d], &b->split[d], 1));
  return equal;
}

bool sdg_meet_moves(const sdg_meet_t *meet, int index) {
  int is = meet->is[index];
  return is >= 0 && !pieces_equal(&meet->place[index][is].placement,
                                  sdg_meet_at(meet, index));
}

static bool extents_equal(const sdg_placement_t *a, const sdg_placement_t *b) {
  bool equal = a->dims == b->dims;
  for (int d = 0; equal && d < a->dims; d++)
    equal = sdg_placement_extent(a, d) == sdg_placement_extent(b, d);
  return equal;
}

// The vendor's library has no empty tensors.
static bool some_empty(const sdg_placement_t *placement) {
  for (int d = 0; d < placement->dims; d++)
    for (int p = 0; p < placement->part[d].pieces; p++)
      if (sdg_part_size(&placement->part[d], p) == 0)
        return true;
  return false;
}

sdg_status_t sdg_meet_follow(sdg_meet_t *meet, int index,
                             const sdg_placement_t *want, bool any_parts) {
  const sdg_operand_t *operand = &meet->call->operand[index];
  bool absent = !operand->data && !meet->call->is_query;
  for (int k = 0; k < meet->places[index]; k++) {
    const sdg_placement_t *is = &meet->place[index][k].placement;
    if (!extents_equal(is, want))
      continue;
    meet->is[index] = k;
    if (absent ||
        (any_parts && sdg_place_same(is->split, want->split, is->dims)))
      want = is;
    meet->empties |= some_empty(want);
    sdg_placement_fini(&meet->tagging.placement[index]);
    return sdg_placement_copy(want, &meet->tagging.placement[index]);
  }
  meet->fits = false;
  return SDG_OK;
}

// Where an operand with these extents is beside `lead`.
static sdg_status_t beside(const sdg_meet_t *meet, const sdg_placement_t *is,
                           const sdg_placement_t *lead, bool *out_can,
                           sdg_placement_t *out) {
  int64_t extent[SDG_DIMS_MAX];
  *out_can = is->dims == lead->dims;
  for (int d = 0; d < is->dims && *out_can; d++) {
    int64_t of = sdg_placement_extent(lead, d);
    extent[d] = sdg_placement_extent(is, d);
    *out_can = extent[d] == of || extent[d] == 1 || of == 1;
  }
  if (!*out_can)
    return SDG_OK;
  SDG_TRY(sdg_placement_init(is->dims, extent, out));
  for (int d = 0; d < is->dims; d++) {
    if (!lead->split[d].axes || extent[d] != sdg_placement_extent(lead, d))
      continue;
    sdg_status_t status = sdg_placement_split(out, meet->tagging.mesh, d,
                                              &lead->split[d], &lead->part[d]);
    if (status != SDG_OK) {
      sdg_placement_fini(out);
      return status;
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_meet_alike(sdg_meet_t *meet, int lead) {
  for (int i = 0; i < meet->call->operands && meet->fits; i++) {
    bool can = false;
    if (i == lead || !sdg_role_is_activation(meet->call->operand[i].role))
      continue;
    for (int k = 0; k < meet->places[i] && !can; k++) {
      sdg_placement_t want;
      SDG_TRY(beside(meet, &meet->place[i][k].placement,
                     sdg_meet_at(meet, lead), &can, &want));
      if (!can)
        continue;
      sdg_status_t status = sdg_meet_follow(meet, i, &want, false);
      sdg_placement_fini(&want);
      SDG_TRY(status);
    }
    meet->fits &= can;
  }
  return SDG_OK;
}

// ---- which one leads -------------------------------------------------------

static void placements_drop(sdg_meet_t *meet) {
  for (int i = 0; i < meet->call->operands; i++) {
    sdg_placement_fini(&meet->tagging.placement[i]);
    meet->tagging.placement[i] = (sdg_placement_t){.dims = 0};
  }
}

// Scales are cut as the activation that leads is.
static sdg_status_t scales_place(sdg_meet_t *meet, const sdg_rules_t *rules) {
  for (int i = 0; i < meet->call->operands; i++) {
    sdg_place_t place[SDG_PLACES_MAX];
    int places;
    if (meet->call->operand[i].role != SDG_ROLE_SCALE)
      continue;
    SDG_TRY(sdg_place_list(meet->call, i, meet->tagging.section, rules, place,
                           &places));
    if (places == 0)
      continue;
    meet->tagging.placement[i] = place[0].placement;
    sdg_place_free(place + 1, places - 1);
  }
  return SDG_OK;
}

// *io_empties becomes true where all fit but for a rank without elements.
static sdg_status_t lead_try(sdg_meet_t *meet, const sdg_rules_t *rules,
                             const sdg_rule_t *rule, int lead,
                             const sdg_place_t *place, bool *io_empties) {
  sdg_tagging_group(place->section, &meet->tagging);
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    meet->is[i] = -1;
  meet->is[lead] = (int)(place - meet->place[lead]);
  meet->fits = true;
  meet->empties = false;
  SDG_TRY(
      sdg_placement_copy(&place->placement, &meet->tagging.placement[lead]));
  sdg_tagging_narrow(&meet->tagging, lead);
  SDG_TRY(scales_place(meet, rules));
  SDG_TRY(rule->meet(meet->call, meet, lead));
  *io_empties |= meet->fits && meet->empties;
  meet->fits &= !meet->empties;
  if (!meet->fits)
    placements_drop(meet);
  return SDG_OK;
}

// In the order of operands; where every element is for itself, an output comes
// first, as inputs are moved once.
static sdg_status_t each_try(sdg_meet_t *meet, const sdg_rules_t *rules,
                             const sdg_rule_t *rule, bool *io_empties) {
  const sdg_call_t *call = meet->call;
  bool output_first = call->family == SDG_FAMILY_POINTWISE;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < call->operands; i++) {
      bool first = !output_first || call->operand[i].is_output;
      if (!sdg_role_is_activation(call->operand[i].role) ||
          first != (pass == 0))
        continue;
      for (int k = 0; k < meet->places[i]; k++) {
        const sdg_place_t *place = &meet->place[i][k];
        if (!place->section || !sdg_placement_axes(&place->placement))
          continue;
        SDG_TRY(lead_try(meet, rules, rule, i, place, io_empties));
        if (meet->fits)
          return SDG_OK;
      }
    }
  return SDG_OK;
}

// What a [local] section names is all of it on every rank, if its size can be
// that; otherwise sizes tell that it is not.
static sdg_status_t leads_try(sdg_meet_t *meet, const sdg_rules_t *rules,
                              const sdg_rule_t *rule) {
  int places[SDG_OPERANDS_MAX];
  bool named = false, empties = false;
  memcpy(places, meet->places, sizeof places);
  for (int i = 0; i < meet->call->operands; i++)
    if (places[i] > 1 && !meet->place[i][0].section) {
      meet->places[i] = 1;
      named = true;
    }
  sdg_status_t status = each_try(meet, rules, rule, &empties);
  memcpy(meet->places, places, sizeof places);
  return status != SDG_OK || !named || meet->fits || empties
             ? status
             : each_try(meet, rules, rule, &empties);
}

static sdg_status_t places_list(sdg_meet_t *meet, const sdg_rules_t *rules,
                                const sdg_tagging_t *tagging, int *out_count) {
  *out_count = 0;
  for (int i = 0; i < meet->call->operands; i++) {
    if (!sdg_role_is_activation(meet->call->operand[i].role))
      continue;
    ++*out_count;
    SDG_TRY(sdg_place_list(meet->call, i, tagging->section, rules,
                           meet->place[i], &meet->places[i]));
  }
  return SDG_OK;
}

// ---- the call --------------------------------------------------------------

// Pieces that make one tensor by a tag of another operand, and also by a
// section of their own, are in different places by the two.
static sdg_status_t readings_check(const sdg_meet_t *meet) {
  for (int i = 0; i < meet->call->operands; i++) {
    const sdg_place_t *place = meet->place[i];
    for (int k = 0; k < meet->places[i] && meet->is[i] >= 0; k++) {
      const sdg_placement_t *of[2] = {&place[meet->is[i]].placement,
                                      &place[k].placement};
      char text[2][256];
      const char *names[SDG_DIMS_MAX];
      if (!extents_equal(of[0], of[1]) || pieces_equal(of[0], of[1]))
        continue;
      sdg_tagging_names(meet->call->family, of[0]->dims, names);
      for (int n = 0; n < 2; n++)
        sdg_placement_format(of[n], meet->tagging.mesh, names, text[n],
                             sizeof text[n]);
      return sdg_fail(SDG_E_READINGS,
                      "%s of %s is %s as the tensors beside it, or %s by its "
                      "own section: tag it",
                      sdg_role_name(meet->call->operand[i].role),
                      meet->call->entry_name, text[0], text[1]);
    }
  }
  return SDG_OK;
}

// Whether the op's tagging is the one that is there already.
static sdg_met_t met_of(const sdg_meet_t *meet, const sdg_tagging_t *tagging) {
  bool same = meet->tagging.section == tagging->section &&
              meet->tagging.axes == tagging->axes;
  for (int i = 0; i < meet->call->operands; i++) {
    if (sdg_meet_moves(meet, i))
      return SDG_MET_MOVES;
    same &= meet->is[i] < 0 ||
            sdg_placement_equal(sdg_meet_at(meet, i), &tagging->placement[i]);
  }
  return same ? SDG_MET_NOTHING : SDG_MET_READ;
}

// Where the program's tensors are, and the ranks that take part.
static sdg_status_t tagging_correct(const sdg_meet_t *meet,
                                    sdg_tagging_t *tagging) {
  sdg_axes_t axes = tagging->axes | meet->tagging.axes;
  for (int i = 0; i < meet->call->operands; i++) {
    bool scale = meet->call->operand[i].role == SDG_ROLE_SCALE;
    if (meet->is[i] < 0 && !scale)
      continue;
    sdg_placement_fini(&tagging->placement[i]);
    SDG_TRY(sdg_placement_copy(scale ? sdg_meet_at(meet, i)
                                     : &meet->place[i][meet->is[i]].placement,
                               &tagging->placement[i]));
    axes |= sdg_placement_axes(&tagging->placement[i]);
  }
  sdg_tagging_span(tagging, axes);
  return SDG_OK;
}

// An activation that is in pieces; -1: there is none.
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

// What is not moved has to be as the call's section, or one tag, says: planners
// compare parts, and take the dimensions that are split to be those of one
// section. A rule that moves nothing may know tensors that are on every rank.
static sdg_status_t left_check(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_rule_t *rule,
                               const sdg_tagging_t *tagging, bool others) {
  int first = -1, cut = cut_beside(call, tagging);
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    bool scale = operand->role == SDG_ROLE_SCALE;
    if (!sdg_role_is_activation(operand->role) && !scale)
      continue;
    if (scale || !operand->label) {
      bool local = false;
      SDG_TRY(sdg_place_check(call, i, tagging->section));
      if (!scale && others && cut >= 0 && rule->meet)
        SDG_TRY(local_find(call, i, rules, tagging, &local));
      if (local)
        return sdg_tagging_differ(call, tagging, i, cut);
      continue;
    }
    if (!rule->meet && operand->label->is_local)
      continue;
    if (operand->label->is_local && others && cut >= 0)
      return sdg_tagging_differ(call, tagging, i, cut);
    if (first >= 0 && operand->label != call->operand[first].label)
      return sdg_tagging_differ(call, tagging, first, i);
    first = i;
  }
  return SDG_OK;
}

sdg_status_t sdg_meet_find(const sdg_call_t *call, const sdg_rules_t *rules,
                           const sdg_rule_t *rule, sdg_tagging_t *tagging,
                           sdg_meet_t *out, sdg_met_t *out_met) {
  int activations;
  memset(out, 0, sizeof *out);
  out->call = call;
  *out_met = SDG_MET_NOTHING;
  if (call->family == SDG_FAMILY_REDISTRIBUTE)
    return SDG_OK;
  if (!rule->meet)
    return left_check(call, rules, rule, tagging, false);
  sdg_status_t status;
  SDG_TRY_GOTO(places_list(out, rules, tagging, &activations), fail);
  if (activations > 1)
    SDG_TRY_GOTO(leads_try(out, rules, rule), fail);
  if (!out->fits) {
    SDG_TRY_GOTO(left_check(call, rules, rule, tagging, activations > 1), fail);
    return SDG_OK;
  }
  SDG_TRY_GOTO(readings_check(out), fail);
  *out_met = met_of(out, tagging);
  if (*out_met != SDG_MET_NOTHING)
    SDG_TRY_GOTO(tagging_correct(out, tagging), fail);
  return SDG_OK;
fail:
  sdg_meet_fini(out);
  return status;
}

void sdg_meet_fini(sdg_meet_t *meet) {
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    sdg_place_free(meet->place[i], meet->places[i]);
  sdg_tagging_fini(&meet->tagging);
  memset(meet, 0, sizeof *meet);
}
