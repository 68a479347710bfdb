// SPDX-License-Identifier: Apache-2.0
// Finds operands whose pieces could also be read in another way.
#include "rules/place/readings.h"

#include <stdlib.h>
#include <string.h>

#include "rules/place/tagging.h"

// Pieces that make one tensor by another operand's tag, and also by a section
// of their own, lie in different places by the two.
static sdg_status_t places_check(const sdg_colocation_t *colocation) {
  for (int i = 0; i < colocation->call->operands; i++) {
    const sdg_place_t *place = colocation->place[i];
    for (int k = 0; k < colocation->places[i] && colocation->is[i] >= 0; k++) {
      const sdg_placement_t *of[2] = {&place[colocation->is[i]].placement,
                                      &place[k].placement};
      char text[2][256];
      const char *names[SDG_DIMS_MAX];
      if (!sdg_placement_extents_equal(of[0], of[1]) ||
          sdg_colocate_same_pieces(of[0], of[1]))
        continue;
      sdg_tagging_names(colocation->call->family, of[0]->dims, names);
      for (int n = 0; n < 2; n++)
        sdg_placement_format(of[n], colocation->tagging.mesh, names, text[n],
                             sizeof text[n]);
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
  const char *names[SDG_DIMS_MAX];
  for (int n = 0; n < 2; n++) {
    const sdg_placement_t *p = &colocation->place[index][reading[n]].placement;
    sdg_tagging_names(colocation->call->family, p->dims, names);
    sdg_placement_format(p, colocation->tagging.mesh, names, text[n],
                         sizeof text[n]);
  }
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
