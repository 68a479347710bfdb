// SPDX-License-Identifier: Apache-2.0
// The verdict on a call, derived from the extents that the ranks agreed on.
#include "rules/place/tagging.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "rules/place/label.h"
#include "rules/place/ones.h"
#include "rules/place/place.h"
#include "rules/place/product_sizes.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/call/tag.h"
#include "src/job/job.h"

const char *sdg_tagging_name(sdg_family_t family, int dims, int d) {
  sdg_dim_t dim = sdg_dim_at(family, d, dims);
  return dim == SDG_DIM_COUNT ? "?" : sdg_dim_name(dim);
}

void sdg_tagging_names(sdg_family_t family, int dims, const char **out) {
  for (int d = 0; d < dims; d++)
    out[d] = sdg_tagging_name(family, dims, d);
}

void sdg_tagging_format(sdg_family_t family, const sdg_mesh_t *mesh,
                        const sdg_placement_t *placement, char *out,
                        int out_bytes) {
  const char *names[SDG_DIMS_MAX];
  sdg_tagging_names(family, placement->dims, names);
  sdg_placement_format(placement, mesh, names, out, out_bytes);
}

sdg_status_t sdg_tagging_differ(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int a, int b) {
  const int which[2] = {a, b};
  char text[2][256];
  for (int k = 0; k < 2; k++)
    sdg_tagging_format(call->family, tagging->mesh,
                       &tagging->placement[which[k]], text[k], sizeof text[k]);
  return sdg_fail(SDG_E_OPERANDS_DIFFER, "%s: %s is %s, %s is %s",
                  call->entry_name, sdg_role_name(call->operand[a].role),
                  text[0], sdg_role_name(call->operand[b].role), text[1]);
}

// `parts =` is checked in the shard view.
static sdg_status_t part_check(const sdg_rules_split_t *split,
                               const char *operand, const sdg_part_t *part) {
  int64_t extent = sdg_part_extent(part),
          listed = sdg_part_listed(split->parts);
  char is[256], should[256];
  sdg_part_format(part, is, sizeof is);
  if (listed >= 0 && listed != extent)
    return sdg_fail(SDG_E_ASSERTED_PARTS,
                    "%s: %s %lld is %s on the ranks, but the rule says parts = "
                    "%s, which add up to %lld (tensors with other extents need "
                    "a section of their own, or parts = agree)",
                    operand, sdg_dim_name(split->dim), (long long)extent, is,
                    split->parts, (long long)listed);
  sdg_part_t said;
  SDG_TRY(sdg_part_parse(split->parts, extent, split->pieces, &said));
  bool equal = sdg_part_equal(part, &said);
  sdg_part_format(&said, should, sizeof should);
  sdg_part_fini(&said);
  return equal ? SDG_OK
               : sdg_fail(
                     SDG_E_ASSERTED_PARTS,
                     "%s: %s %lld is %s on the ranks, but the rule says parts "
                     "= %s, which is %s (sundog split --dim %s --parts %s)",
                     operand, sdg_dim_name(split->dim), (long long)extent, is,
                     split->parts, should, sdg_dim_name(split->dim),
                     split->parts);
}

static sdg_status_t parts_check(const sdg_call_t *call, int index,
                                const sdg_section_t *section,
                                const sdg_placement_t *placement) {
  char operand[128];
  snprintf(operand, sizeof operand, "%s of %s",
           sdg_role_name(call->operand[index].role), call->entry_name);
  for (int i = 0; i < section->splits; i++) {
    const sdg_rules_split_t *split = &section->split[i];
    int d = sdg_dim_index(call->family, split->dim, placement->dims);
    if (d >= 0 && strcmp(split->parts, "agree") != 0)
      SDG_TRY(part_check(split, operand, &placement->part[d]));
  }
  return SDG_OK;
}

// Fails if ranks see different matches, because they would not make the same
// calls.
static sdg_status_t seen_check(const sdg_call_t *call, int index,
                               const sdg_section_t *section, sdg_seen_t seen) {
  if (!section || seen.no < 0)
    return SDG_OK;
  return sdg_fail(
      SDG_E_EXTENTS, "%s of %s matches [%s %s] on rank %d but not on rank %d",
      sdg_role_name(call->operand[index].role), call->entry_name,
      section->is_local ? "local" : "shard", section->name, seen.yes, seen.no);
}

static bool is_activation(const sdg_call_t *call, int index, bool output) {
  const sdg_operand_t *operand = &call->operand[index];
  return sdg_role_is_activation(operand->role) && operand->is_output == output;
}

static bool local_input(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (is_activation(call, i, false) && call->operand[i].label &&
        call->operand[i].label->is_local)
      return true;
  return false;
}

// Whether the call reads an activation. Ops that only write (SetTensor) are
// judged by their output.
static bool any_input(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (is_activation(call, i, false))
      return true;
  return false;
}

static bool any_label(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].label)
      return true;
  return false;
}

void sdg_tagging_span(sdg_tagging_t *tagging, sdg_axes_t axes) {
  tagging->axes = axes;
  tagging->ranks =
      sdg_mesh_group(tagging->mesh, tagging->rank, axes, tagging->rank_list);
  tagging->me = 0;
  while (tagging->rank_list[tagging->me] != tagging->rank)
    tagging->me++;
}

void sdg_tagging_group(const sdg_section_t *section, sdg_tagging_t *out) {
  memset(out, 0, sizeof *out);
  out->section = section;
  out->mesh = sdg_job_mesh();
  out->rank = sdg_job_rank();
  sdg_tagging_span(out, sdg_section_axes(section));
  int summing[SDG_RANKS_MAX];
  if (sdg_mesh_group(out->mesh, out->rank, section->sum_axes, summing) > 1)
    out->sum_axes = section->sum_axes;
}

void sdg_tagging_narrow(sdg_tagging_t *tagging, int index) {
  int summing[SDG_RANKS_MAX];
  const sdg_placement_t *placement = &tagging->placement[index];
  if (placement->dims == 0)
    return;
  tagging->sum_axes &=
      ~(sdg_section_axes(tagging->section) & ~sdg_placement_axes(placement));
  if (sdg_mesh_group(tagging->mesh, tagging->rank, tagging->sum_axes,
                     summing) == 1)
    tagging->sum_axes = 0;
}

void sdg_tagging_note(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    if (placement->dims == 0 || !call->operand[i].descriptor ||
        sdg_family_is_product(call->family))
      continue;
    sdg_box_t box = sdg_tagging_own(tagging, placement);
    sdg_tag_place_t place = {.generation = call->operand[i].generation,
                             .dims = placement->dims};
    for (int d = 0; d < placement->dims; d++) {
      place.first[d] = box.dim[d].lo;
      place.extent[d] = sdg_placement_extent(placement, d);
    }
    sdg_tag_set_place(call->operand[i].descriptor, &place);
  }
}

// Reads a call whose operands each have a label of their own.
static sdg_status_t placements_read(const sdg_call_t *call,
                                    sdg_tagging_t *out) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < call->operands; i++) {
    const sdg_section_t *section = sdg_label_section(&call->operand[i]);
    SDG_TRY(sdg_label_check(call, &call->operand[i]));
    axes |= sdg_section_axes(section) | section->pending;
  }
  sdg_tagging_group(sdg_label_section(&call->operand[0]), out);
  sdg_tagging_span(out, axes);
  for (int i = 0; i < call->operands; i++) {
    sdg_status_t status = sdg_place_exactly(call, i, &out->placement[i]);
    if (status != SDG_OK) {
      sdg_tagging_fini(out);
      return status;
    }
  }
  return SDG_OK;
}

static sdg_status_t operand_place(const sdg_call_t *call, int index,
                                  const sdg_rules_t *rules, bool labelled,
                                  sdg_tagging_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  sdg_place_t place[SDG_PLACES_MAX];
  sdg_placement_t *first = &out->placement[index];
  int places;
  bool scale = sdg_role_is_scale(operand->role);
  if (!sdg_role_is_activation(operand->role) && !scale)
    return SDG_OK;
  if (operand->role == SDG_ROLE_PRODUCT) {
    SDG_TRY(sdg_family_is(call->family, SDG_FAMILY_STATED)
                ? sdg_sizes_place(call, out->section, first)
                : sdg_place_pieces(call, index, out->section, first));
    return parts_check(call, index, out->section, first);
  }
  SDG_TRY(sdg_place_list(call, index, out->section, rules, place, &places));
  // No reading fits: no error if operands have labels of their own.
  if (places == 0)
    return labelled ? SDG_OK : sdg_place_check(call, index, out->section);
  *first = place[0].placement;
  sdg_place_free(place + 1, places - 1);
  if (operand->elem_bytes == 0)
    return sdg_fail(
        SDG_E_TENSOR_TYPE,
        "%s of %s stores channels as vectors (INT8x4, UINT8x4 or INT8x32), "
        "has two elements in a byte, or a type that is not known",
        sdg_role_name(operand->role), call->entry_name);
  return operand->is_output || scale || place[0].section != out->section ||
                 sdg_placement_axes(first) != out->axes
             ? SDG_OK
             : parts_check(call, index, out->section, first);
}

static sdg_status_t operands_place(const sdg_call_t *call,
                                   const sdg_section_t *section,
                                   const sdg_rules_t *rules, bool labelled,
                                   sdg_tagging_t *out) {
  sdg_status_t status = SDG_OK;
  sdg_tagging_group(section, out);
  for (int i = 0; i < call->operands && status == SDG_OK; i++)
    status = operand_place(call, i, rules, labelled, out);
  if (status == SDG_OK)
    status = sdg_place_coordinates(call, out->mesh, out->placement);
  if (status != SDG_OK)
    sdg_tagging_fini(out);
  return status;
}

// The tensors of a graph are this rank's pieces, whatever the section is for.
// Of M, N and BATCH a wrong guess computes what the program asks for. With K it
// adds whole products as often as there are ranks, so the section has to say
// it.
static sdg_status_t pieces_check(const sdg_call_t *call,
                                 const sdg_section_t *section) {
  for (int i = 0; i < section->splits; i++) {
    int d = sdg_dim_index(call->family, section->split[i].dim, SDG_SIZES_DIMS);
    if (d >= 0 && section->sizes[d] == SDG_SIZES_WHOLE)
      return sdg_fail(SDG_E_PRODUCT_SIZES,
                      "%s: in a graph %s is that of this rank's tensors, but "
                      "section '%s' says 'sizes = %s:whole'. Write a section "
                      "for graphs before it",
                      call->entry_name, sdg_dim_name(section->split[i].dim),
                      section->name, sdg_dim_name(section->split[i].dim));
    if (section->split[i].dim == SDG_DIM_K && d >= 0 &&
        section->sizes[d] == SDG_SIZES_UNSAID &&
        section->view == SDG_VIEW_SHARD)
      return sdg_fail(SDG_E_PRODUCT_SIZES,
                      "%s, a graph: the ranks add their results if section "
                      "'%s' splits K. Write 'sizes = K:piece' into it if each "
                      "rank's A and B have this rank's part of K",
                      call->entry_name, section->name);
  }
  return SDG_OK;
}

// Checks that one section, and only one, says what the sizes of a product mean.
static sdg_status_t product_check(const sdg_call_t *call,
                                  const sdg_rules_t *rules,
                                  const sdg_section_t *section, bool labelled) {
  bool stated = sdg_family_is(call->family, SDG_FAMILY_STATED);
  if (!section->is_local)
    SDG_TRY(stated ? sdg_sizes_said(call, section)
                   : pieces_check(call, section));
  // In the whole view a graph's sizes are the whole's.
  bool one = !stated && rules->view == SDG_VIEW_WHOLE;
  return labelled || one ? SDG_OK : sdg_sizes_once(call, rules, section);
}

sdg_status_t sdg_tagging_derive(const sdg_call_t *call,
                                const sdg_rules_t *rules,
                                const sdg_section_t **out_section,
                                bool *out_local, sdg_tagging_t *out) {
  bool by_output = !any_input(call);
  // An output may be in pieces although every rank has all inputs in full.
  bool mixes = sdg_family_is(call->family, SDG_FAMILY_MIXES_PLACES);
  bool product = sdg_family_is_product(call->family);
  bool stated = sdg_family_is(call->family, SDG_FAMILY_STATED);
  int labelled = -1;
  if (sdg_family_is(call->family, SDG_FAMILY_MOVES)) {
    *out_section = sdg_label_section(&call->operand[0]);
    *out_local = false;
    return placements_read(call, out);
  }
  if (any_label(call))
    SDG_TRY(sdg_label_find(call, &labelled));
  // The label concerns this tensor only; a section may split other tensors from
  // which an output is computed.
  if (labelled >= 0 && call->operand[labelled].label->is_local &&
      (mixes || (!by_output && !local_input(call))))
    labelled = -1;
  const sdg_section_t *found = NULL;
  bool local = false;
  int lead = 0;
  for (int k = 0; k < 2 * call->operands && !found; k++) {
    // Inputs first.
    int i = k % call->operands;
    bool outputs = k >= call->operands;
    if (labelled >= 0 ? k != labelled
        : outputs
            ? !is_activation(call, i, true) || !(by_output || (mixes && local))
            : !is_activation(call, i, false))
      continue;
    sdg_seen_t seen;
    lead = i;
    found = sdg_place_section(call, i, rules, &seen);
    if (found && product)
      SDG_TRY(sdg_sizes_everywhere(call, rules, &found, &seen));
    SDG_TRY(seen_check(call, i, found, seen));
    if (found && product)
      SDG_TRY(product_check(call, rules, found, labelled >= 0));
    bool whole =
        found && !found->is_local && sdg_ones_are_whole(call, i, found);
    if (found && (found->is_local || whole)) {
      local = true;
      found = NULL;
    }
  }
  *out_section = found;
  *out_local = local;
  if (!found)
    return stated && !local ? sdg_sizes_missed(call, rules) : SDG_OK;
  SDG_TRY(operands_place(call, found, rules, labelled >= 0, out));
  sdg_tagging_narrow(out, lead);
  return SDG_OK;
}

const sdg_section_t *sdg_tagging_beside(const sdg_call_t *call,
                                        const sdg_rules_t *rules,
                                        int *out_index) {
  sdg_seen_t seen;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!sdg_role_is_activation(operand->role) ||
        (operand->label && operand->label->is_local))
      continue;
    const sdg_section_t *found = sdg_place_section(call, i, rules, &seen);
    *out_index = i;
    if (found && !found->is_local && !sdg_ones_are_whole(call, i, found))
      return found;
  }
  return NULL;
}

sdg_status_t sdg_tagging_by(const sdg_call_t *call, const sdg_rules_t *rules,
                            int index, sdg_tagging_t *out) {
  sdg_seen_t seen;
  const sdg_section_t *section = sdg_place_section(call, index, rules, &seen);
  SDG_TRY(seen_check(call, index, section, seen));
  return operands_place(call, section, rules, any_label(call), out);
}

// Whether a spatial dimension has more than one element on some rank.
static bool has_rows(const sdg_placement_t *placement) {
  for (int d = 2; d < placement->dims; d++)
    for (int p = 0; p < placement->part[d].pieces; p++)
      if (sdg_part_size(&placement->part[d], p) > 1)
        return true;
  return false;
}

sdg_status_t sdg_tagging_sure(const sdg_call_t *call,
                              const sdg_tagging_t *tagging) {
  const char *role = NULL;
  // A section about products names M, K or the op.
  if (sdg_family_is_product(call->family))
    return SDG_OK;
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    if (!sdg_role_is_activation(call->operand[i].role))
      continue;
    if (call->operand[i].label || has_rows(placement) ||
        sdg_ones_are_known(call, i, tagging->section))
      return SDG_OK;
    for (int d = 2; d < placement->dims; d++)
      if (placement->part[d].pieces > 1)
        role = sdg_role_name(call->operand[i].role);
  }
  for (int i = 0; i < tagging->section->splits; i++)
    if (sdg_part_listed(tagging->section->split[i].parts) >= 0)
      return SDG_OK;
  return role ? sdg_fail(SDG_E_ONE_EACH, "%s of %s", role, call->entry_name)
              : SDG_OK;
}

void sdg_tagging_fini(sdg_tagging_t *tagging) {
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    sdg_placement_fini(&tagging->placement[i]);
}

// "; model: the program's own, not compared", for every axis of several ranks
// that the group of agreements leaves out.
static void own_format(const sdg_mesh_t *mesh, char *out, size_t out_bytes) {
  size_t used = 0;
  out[0] = '\0';
  for (int a = 0; a < mesh->axes && used < out_bytes; a++)
    if (mesh->size[a] > 1 && !(sdg_job_axes() >> a & 1))
      used += (size_t)snprintf(out + used, out_bytes - used,
                               "; %s: left to the program, not compared",
                               mesh->name[a]);
}

void sdg_tagging_say(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  static atomic_bool said;
  if (sdg_job_rank() != 0 || atomic_load_explicit(&said, memory_order_relaxed))
    return;
  char text[512];
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    if (placement->dims == 0 || !sdg_placement_axes(placement) ||
        sdg_role_is_matrix(call->operand[i].role)) // the product says it
      continue;
    if (atomic_exchange(&said, true))
      return;
    sdg_tagging_format(call->family, tagging->mesh, placement, text,
                       sizeof text);
    char own[256];
    own_format(tagging->mesh, own, sizeof own);
    sdg_log("%s, view %s%s", text,
            tagging->section->view == SDG_VIEW_WHOLE ? "whole" : "shard", own);
    return;
  }
}

// Whether a glob could match some entries of a family and not others; then a
// descriptor may match in one call and not in another.
static bool names_entries(const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++)
    for (int g = 0; g < rules->section[s].globs; g++) {
      const char *glob = rules->section[s].glob[g];
      if (strcmp(glob, "*") != 0 &&
          (strchr("*?[", glob[0]) || (glob[0] == 'c' && glob[1] != 'o')))
        return true;
    }
  return false;
}

bool sdg_tagging_passes(const sdg_call_t *call, int operand,
                        const sdg_rules_t *rules) {
  const sdg_operand_t *o = &call->operand[operand];
  if (o->label)
    return o->label->is_local;
  if (names_entries(rules))
    return false;
  if (!sdg_rules_may_match(rules, call->family, call->entry_name, o->extent,
                           o->dims))
    return true;
  if (!sdg_tag_vector(o->descriptor, o->generation))
    return false;
  sdg_seen_t seen;
  const sdg_section_t *section = sdg_place_section(call, operand, rules, &seen);
  return !section || (section->is_local && seen.no < 0);
}
