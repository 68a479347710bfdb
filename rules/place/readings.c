// SPDX-License-Identifier: Apache-2.0
// Finds other ways to read a call's tensors: as tensors of every rank's own, or
// as other pieces.
#include "rules/place/readings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/place/colocate.h"
#include "rules/place/tagging.h"
#include "src/call/tag.h"
#include "src/job/job.h"

// Pieces that make one tensor by another operand's tag, and also by a section
// of their own, lie in different places by the two.
static sdg_status_t places_check(const sdg_colocation_t *colocation) {
  for (int i = 0; i < colocation->call->operands; i++) {
    const sdg_place_t *place = colocation->place[i];
    for (int k = 0; k < colocation->places[i] && colocation->is[i] >= 0; k++) {
      const sdg_placement_t *of[2] = {&place[colocation->is[i]].placement,
                                      &place[k].placement};
      char text[2][256];
      if (!sdg_placement_extents_equal(of[0], of[1]) ||
          sdg_colocate_same_pieces(of[0], of[1]))
        continue;
      for (int n = 0; n < 2; n++)
        sdg_tagging_format(colocation->call->family, colocation->tagging.mesh,
                           of[n], text[n], sizeof text[n]);
      return sdg_fail(
          SDG_E_READINGS,
          "%s of %s is %s according to the other tensors of the call, but %s "
          "according to its section: tag it (sundog_tag)",
          sdg_role_name(colocation->call->operand[i].role),
          colocation->call->entry_name, text[0], text[1]);
    }
  }
  return SDG_OK;
}

// Whether the program or the rules say something about this operand itself: its
// own section, or a [local] one. A reading by another tensor's tag or section
// does not count.
static bool is_said(const sdg_colocation_t *colocation,
                    const sdg_rules_t *rules, int i) {
  const sdg_section_t *by = colocation->place[i][colocation->is[i]].section;
  sdg_seen_t seen;
  if (colocation->call->operand[i].label || !colocation->place[i][0].section)
    return true;
  return by && sdg_place_section(colocation->call, i, rules, &seen) == by;
}

// Whether one descriptor describes both, such as a tensor and its gradient.
static bool same_tensor(const sdg_colocation_t *colocation, int a, int b) {
  const sdg_operand_t *operand = colocation->call->operand;
  return operand[a].descriptor == operand[b].descriptor &&
         operand[a].generation == operand[b].generation &&
         colocation->places[a] == colocation->places[b];
}

// Whether all operands also fit if `index` is read as its reading `k`. A
// failure other than lack of memory counts as not fitting.
static sdg_status_t fits_as(const sdg_colocation_t *colocation,
                            const sdg_rules_t *rules, const sdg_op_t *op,
                            int index, int k, bool *out_fits) {
  sdg_colocation_t *other;
  SDG_TRY(SDG_ALLOCATE(other, 1, "readings of a call"));
  memcpy(other, colocation, sizeof *other); // the readings are borrowed
  memset(&other->tagging, 0, sizeof other->tagging);
  for (int i = 0; i < colocation->call->operands; i++) {
    bool with = i == index || same_tensor(colocation, i, index);
    // Operands that the program or the rules describe keep their reading.
    if (!with && (colocation->is[i] < 0 || !is_said(colocation, rules, i)))
      continue;
    other->place[i][0] = colocation->place[i][with ? k : colocation->is[i]];
    other->places[i] = 1;
  }
  sdg_probe_begin();
  sdg_status_t status = sdg_colocate_lead(other, rules, op);
  sdg_probe_end();
  *out_fits = status == SDG_OK && other->fits;
  sdg_tagging_fini(&other->tagging);
  free(other);
  return status == SDG_E_NO_MEMORY ? status : SDG_OK;
}

static sdg_status_t sizes_fail(const sdg_colocation_t *colocation, int index,
                               int k) {
  const int reading[2] = {colocation->is[index], k};
  char text[2][256];
  for (int n = 0; n < 2; n++)
    sdg_tagging_format(colocation->call->family, colocation->tagging.mesh,
                       &colocation->place[index][reading[n]].placement, text[n],
                       sizeof text[n]);
  const char *role = sdg_role_name(colocation->call->operand[index].role);
  return sdg_fail(SDG_E_SIZES_READ,
                  "%s of %s is %s, or %s, and the other tensors fit both: say "
                  "which with sundog_tag(descriptor of %s, ...); the tag is "
                  "\"local\" if every rank has all of it",
                  role, colocation->call->entry_name, text[0], text[1], role);
}

// A tensor without a tag or section takes the reading that fits the others. If
// several readings fit and give different tensors, the call is refused.
static sdg_status_t sizes_check(const sdg_colocation_t *colocation,
                                const sdg_rules_t *rules, const sdg_op_t *op) {
  for (int i = 0; i < colocation->call->operands; i++) {
    if (colocation->is[i] < 0 || colocation->places[i] < 2 ||
        is_said(colocation, rules, i))
      continue;
    for (int k = 0; k < colocation->places[i]; k++) {
      bool fits = false;
      if (sdg_placement_extents_equal(
              &colocation->place[i][k].placement,
              &colocation->place[i][colocation->is[i]].placement))
        continue;
      SDG_TRY(fits_as(colocation, rules, op, i, k, &fits));
      if (fits)
        return sizes_fail(colocation, i, k);
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_readings_check(const sdg_colocation_t *colocation,
                                const sdg_rules_t *rules, const sdg_op_t *op) {
  SDG_TRY(places_check(colocation));
  return sizes_check(colocation, rules, op);
}

// ---- every rank by itself ---------------------------------------------------

static const sdg_tag_vector_t *vector_of(const sdg_call_t *call, int index) {
  const sdg_operand_t *operand = &call->operand[index];
  return sdg_role_is_activation(operand->role)
             ? sdg_tag_vector(operand->descriptor, operand->generation)
             : NULL;
}

// Returns whether an earlier rank has tensors of the same extents.
static bool seen_before(const sdg_call_t *call, int member) {
  for (int before = 0; before < member; before++) {
    bool same = true;
    for (int i = 0; i < call->operands && same; i++) {
      const sdg_tag_vector_t *v = vector_of(call, i);
      same = !v || memcmp(v->extent + (ptrdiff_t)before * v->dims,
                          v->extent + (ptrdiff_t)member * v->dims,
                          (size_t)v->dims * sizeof *v->extent) == 0;
    }
    if (same)
      return true;
  }
  return false;
}

// Places one rank's tensors as if each were a whole tensor.
static sdg_status_t own_places(const sdg_call_t *call, int member,
                               sdg_colocation_t *colocation, int *out_lead) {
  *out_lead = -1;
  for (int i = 0; i < call->operands; i++) {
    const sdg_tag_vector_t *v = vector_of(call, i);
    colocation->is[i] = -1;
    if (!v)
      continue;
    SDG_TRY(sdg_placement_init(v->dims, v->extent + (ptrdiff_t)member * v->dims,
                               &colocation->place[i][0].placement));
    colocation->places[i] = 1;
    if (*out_lead < 0)
      *out_lead = i;
  }
  return SDG_OK;
}

static sdg_status_t member_fits(const sdg_call_t *call, const sdg_op_t *op,
                                const sdg_section_t *section, int member,
                                bool *out_fits) {
  sdg_colocation_t colocation;
  int lead;
  sdg_status_t status;
  memset(&colocation, 0, sizeof colocation);
  colocation.call = call;
  colocation.fits = true;
  SDG_TRY_GOTO(own_places(call, member, &colocation, &lead), out);
  sdg_tagging_group(section, &colocation.tagging);
  if (lead >= 0) {
    colocation.is[lead] = 0;
    SDG_TRY_GOTO(sdg_placement_copy(&colocation.place[lead][0].placement,
                                    &colocation.tagging.placement[lead]),
                 out);
    SDG_TRY_GOTO(op->colocate(call, &colocation, lead), out);
  }
  *out_fits = colocation.fits;
  status = SDG_OK;
out:
  sdg_colocate_fini(&colocation);
  return status;
}

sdg_status_t sdg_colocate_alone(const sdg_call_t *call, const sdg_op_t *op,
                                const sdg_section_t *section, bool *out_can) {
  *out_can = true;
  if (!sdg_op_knows(op, call) || !op->colocate ||
      sdg_family_is(call->family, SDG_FAMILY_MIXES_PLACES))
    return SDG_OK;
  for (int r = 0; r < sdg_job_group()->count && *out_can; r++)
    if (!seen_before(call, r))
      SDG_TRY(member_fits(call, op, section, r, out_can));
  return SDG_OK;
}

// ---- both ------------------------------------------------------------------

// Writes both readings of one operand: "H of x is 4 (own), or 4+4 = 8
// (pieces)".
static void readings_format(const sdg_call_t *call,
                            const sdg_colocation_t *colocation, int index,
                            char *out, size_t out_bytes) {
  const sdg_placement_t *pieces = sdg_colocate_at(colocation, index);
  const sdg_tag_vector_t *v = vector_of(call, index);
  char text[256];
  size_t used = 0;
  out[0] = 0;
  for (int d = 0; d < pieces->dims && used < out_bytes; d++) {
    if (pieces->part[d].pieces < 2)
      continue;
    sdg_part_format(&pieces->part[d], text, sizeof text);
    used += (size_t)snprintf(
        out + used, out_bytes - used,
        "%s%s of %s is %lld (own), or %s = %lld (pieces)", used ? ", " : "",
        sdg_tagging_name(call->family, pieces->dims, d),
        sdg_role_name(call->operand[index].role),
        (long long)v->extent[(ptrdiff_t)colocation->tagging.me * v->dims + d],
        text, (long long)sdg_placement_extent(pieces, d));
  }
}

// Returns an operand that a [local] section names although it is to be in
// pieces; -1 if no operand is.
static int named_find(const sdg_call_t *call,
                      const sdg_colocation_t *colocation) {
  for (int i = 0; i < call->operands; i++)
    if (colocation->is[i] > 0 && !colocation->place[i][0].section)
      return i;
  return -1;
}

// The first operand that a [local] section names on all ranks; -1: none.
// Families that mix placements take such operands beside pieces.
static int local_find(const sdg_call_t *call, const sdg_rules_t *rules) {
  if (sdg_family_is(call->family, SDG_FAMILY_MIXES_PLACES))
    return -1;
  for (int i = 0; i < call->operands; i++) {
    sdg_seen_t seen;
    if (!vector_of(call, i))
      continue;
    const sdg_section_t *section = sdg_place_section(call, i, rules, &seen);
    if (section && section->is_local && seen.no < 0)
      return i;
  }
  return -1;
}

// Whether the program said of a tensor that it is in pieces.
static bool is_tagged(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].label && !call->operand[i].label->is_local)
      return true;
  return false;
}

// Whether the call's tensors fit together as pieces of one call.
static sdg_status_t pieces_fit(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_op_t *op, int index, bool *out_fit,
                               sdg_colocation_t *out) {
  sdg_tagging_t tagging;
  sdg_colocate_result_t met;
  *out_fit = false;
  sdg_probe_begin();
  sdg_status_t status = sdg_tagging_by(call, rules, index, &tagging);
  if (status == SDG_OK) {
    status = sdg_colocate_find(call, rules, op, &tagging, out, &met);
    sdg_tagging_fini(&tagging);
    *out_fit = status == SDG_OK && out->fits;
    if (status == SDG_OK && !*out_fit)
      sdg_colocate_fini(out);
  }
  sdg_probe_end();
  if (status != SDG_E_SIZES_READ)
    return status == SDG_E_NO_MEMORY ? status : SDG_OK;
  // As pieces they fit in more than one way: reports that.
  SDG_TRY(sdg_tagging_by(call, rules, index, &tagging));
  status = sdg_colocate_find(call, rules, op, &tagging, out, &met);
  sdg_tagging_fini(&tagging);
  return status;
}

sdg_status_t sdg_colocate_own_check(const sdg_call_t *call,
                                    const sdg_rules_t *rules,
                                    const sdg_op_t *op, int index,
                                    bool by_input) {
  sdg_seen_t seen;
  sdg_colocation_t colocation;
  char text[2][400];
  bool fit;
  if (!op || !sdg_family_is(call->family, SDG_FAMILY_WINDOWED) ||
      !op->colocate || !sdg_op_knows(op, call) || is_tagged(call))
    return SDG_OK;
  SDG_TRY(pieces_fit(call, rules, op, index, &fit, &colocation));
  if (!fit)
    return SDG_OK;
  int own = named_find(call, &colocation);
  if (own >= 0) {
    readings_format(call, &colocation, own, text[0], sizeof text[0]);
  } else if (!by_input && (own = local_find(call, rules)) >= 0) {
    snprintf(text[0], sizeof text[0], "%s is the same in both",
             sdg_role_name(call->operand[own].role));
  }
  readings_format(call, &colocation, index, text[1], sizeof text[1]);
  if (!*text[1]) // the readings are the same
    own = -1;
  sdg_colocate_fini(&colocation);
  if (own < 0)
    return SDG_OK;
  const char *local = sdg_place_section(call, own, rules, &seen)->name;
  const char *shard = sdg_place_section(call, index, rules, &seen)->name;
  const char *role[] = {sdg_role_name(call->operand[own].role),
                        sdg_role_name(call->operand[index].role)};
  return sdg_fail(
      SDG_E_OWN_OR_PIECES,
      "%s: [local %s] names %s as each rank's own, and [shard %s] splits %s. "
      "The sizes fit a call of each rank and one call on pieces: %s; %s. If "
      "each rank makes a call of its own, write a [local] section before "
      "[shard %s] whose match = also fits %s. If the ranks make one call on "
      "pieces, change match = of [local %s] so that it does not fit %s",
      call->entry_name, local, role[0], shard, role[1], text[0], text[1], shard,
      role[1], local, role[0]);
}
