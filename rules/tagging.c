// SPDX-License-Identifier: Apache-2.0
// The verdict on a call, derived from the extents that the ranks agreed on.
#include "rules/tagging.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rules/label.h"
#include "src/job.h"
#include "src/log.h"
#include "src/options.h"
#include "src/tag.h"

void sdg_tagging_names(sdg_family_t family, int dims, const char **out) {
  for (int d = 0; d < dims; d++) {
    sdg_dim_t dim = sdg_dim_at(family, d, dims);
    out[d] = dim == SDG_DIM_COUNT ? "?" : sdg_dim_name(dim);
  }
}

// The section's splits by dimension index of a tensor of `dims` dimensions.
// False if the tensor lacks a dimension that the section splits.
bool sdg_tagging_splits(const sdg_section_t *section, sdg_family_t family,
                        int dims, sdg_split_t *out_split) {
  memset(out_split, 0, SDG_DIMS_MAX * sizeof *out_split);
  for (int i = 0; i < section->splits; i++) {
    const sdg_rule_split_t *split = &section->split[i];
    int d = sdg_dim_index(family, split->dim, dims);
    if (d < 0)
      return false;
    // The axes of a split stand in the mesh's order (rules/rulesfile.h).
    for (int a = 0; a < SDG_AXES_MAX; a++)
      if (split->axes >> a & 1)
        out_split[d].axis[out_split[d].axes++] = a;
  }
  return true;
}

// Global extents as this section would see them from member `member` of the
// group: summed over the pieces of the dimensions it splits, that rank's own in
// the others.
static void extents_sum(const sdg_tag_vector_t *vector,
                        const sdg_split_t *split, int member,
                        int64_t *out_extent) {
  const sdg_mesh_t *mesh = sdg_job_mesh();
  const sdg_group_t *group = sdg_job_group();
  int dims = vector->dims;
  const int64_t *own = vector->extent + (size_t)member * (size_t)dims;
  for (int d = 0; d < dims; d++) {
    out_extent[d] = own[d];
    if (split[d].axes == 0)
      continue;
    // Piece by piece, from the first rank that holds it, and has elements.
    int pieces = sdg_split_pieces(&split[d], mesh);
    out_extent[d] = 0;
    for (int piece = 0; piece < pieces; piece++) {
      int64_t size = 0;
      for (int r = 0; r < group->count && size == 0; r++)
        if (sdg_split_piece(&split[d], mesh, group->rank[r]) == piece)
          size = vector->extent[(size_t)r * (size_t)dims + (size_t)d];
      out_extent[d] += size;
    }
  }
}

static sdg_status_t placement_of(const sdg_call_t *call,
                                 const sdg_tag_vector_t *vector,
                                 const sdg_split_t *split,
                                 sdg_placement_t *out_placement) {
  const sdg_group_t *group = sdg_job_group();
  const char *names[SDG_DIMS_MAX];
  sdg_tagging_names(call->family, vector->dims, names);
  int64_t(*extent)[SDG_DIMS_MAX] = calloc((size_t)group->count, sizeof *extent);
  if (!extent)
    return sdg_fail(SDG_E_NO_MEMORY, "extents of %d ranks", group->count);
  for (int r = 0; r < group->count; r++)
    memcpy(extent[r], vector->extent + (size_t)r * (size_t)vector->dims,
           (size_t)vector->dims * sizeof(int64_t));
  sdg_status_t status = sdg_placement_derive(
      sdg_job_mesh(), group->rank, group->count, vector->dims, split, names,
      (const int64_t(*)[SDG_DIMS_MAX])extent, out_placement);
  free(extent);
  return status;
}

bool sdg_tagging_repeats(sdg_family_t family) {
  return family == SDG_FAMILY_POINTWISE || family == SDG_FAMILY_REDUCE ||
         family == SDG_FAMILY_SOFTMAX;
}

sdg_status_t sdg_tagging_differ(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int a, int b) {
  const int which[2] = {a, b};
  char text[2][256];
  for (int k = 0; k < 2; k++) {
    const sdg_placement_t *placement = &tagging->placement[which[k]];
    const char *names[SDG_DIMS_MAX];
    sdg_tagging_names(call->family, placement->dims, names);
    sdg_placement_format(placement, tagging->mesh, names, text[k],
                         sizeof text[k]);
  }
  return sdg_fail(SDG_E_OPERANDS_DIFFER, "%s: %s is %s, %s is %s",
                  call->entry_name, sdg_role_name(call->operand[a].role),
                  text[0], sdg_role_name(call->operand[b].role), text[1]);
}

// A bias's dimension is replicated, and that of a tensor that a reduction made;
// and of scales, which are cut as the activation is.
static void repeats_unsplit(const sdg_tag_vector_t *vector,
                            sdg_split_t *split) {
  for (int d = 0; d < vector->dims; d++) {
    bool one = true;
    for (int r = 0; r < vector->ranks; r++)
      one &= vector->extent[(size_t)r * (size_t)vector->dims + (size_t)d] == 1;
    if (one)
      split[d].axes = 0;
  }
}

// `parts =` is an assertion in the shard view.
static sdg_status_t parts_check(const sdg_section_t *section,
                                sdg_family_t family,
                                const sdg_placement_t *placement) {
  for (int i = 0; i < section->splits; i++) {
    const sdg_rule_split_t *split = &section->split[i];
    if (strcmp(split->parts, "agree") == 0)
      continue;
    int d = sdg_dim_index(family, split->dim, placement->dims);
    const sdg_part_t *part = &placement->part[d];
    sdg_part_t said;
    SDG_TRY(sdg_part_parse(split->parts, sdg_part_extent(part), split->pieces,
                           &said));
    bool equal = sdg_part_equal(part, &said);
    char is[256], should[256];
    sdg_part_format(part, is, sizeof is);
    sdg_part_format(&said, should, sizeof should);
    sdg_part_fini(&said);
    if (!equal)
      return sdg_fail(SDG_E_ASSERTED_PARTS,
                      "%s %lld is %s on the ranks, the rule says parts = %s, "
                      "which is %s (sundog split --dim %s --parts %s)",
                      sdg_dim_name(split->dim),
                      (long long)sdg_part_extent(part), is, split->parts,
                      should, sdg_dim_name(split->dim), split->parts);
  }
  return SDG_OK;
}

// A rank without elements says 0 in every dimension that is split, though its
// piece may be empty in one of them: the others are as the ranks beside it say.
static sdg_tag_vector_t *empty_fill(const sdg_tag_vector_t *vector,
                                    const sdg_split_t *split) {
  size_t count = (size_t)vector->ranks * (size_t)vector->dims;
  sdg_tag_vector_t *out = malloc(sizeof *out + count * sizeof *out->extent);
  if (!out)
    return NULL;
  memcpy(out, vector, sizeof *out + count * sizeof *out->extent);
  const sdg_mesh_t *mesh = sdg_job_mesh();
  const int *rank = sdg_job_group()->rank;
  for (int d = 0; d < vector->dims; d++)
    for (int r = 0; split[d].axes && r < vector->ranks; r++)
      for (int o = 0; o < vector->ranks; o++) {
        int64_t *mine = &out->extent[r * vector->dims + d];
        int64_t theirs = vector->extent[o * vector->dims + d];
        if (*mine == 0 && sdg_split_piece(&split[d], mesh, rank[r]) ==
                              sdg_split_piece(&split[d], mesh, rank[o]))
          *mine = theirs;
      }
  return out;
}

// As placement_of, of pieces that may be empty.
static sdg_status_t filled_place(const sdg_call_t *call,
                                 const sdg_tag_vector_t *vector,
                                 const sdg_split_t *split,
                                 sdg_placement_t *out) {
  int all = vector->ranks * vector->dims, i = 0;
  while (i < all && vector->extent[i] != 0)
    i++;
  if (i == all)
    return placement_of(call, vector, split, out);
  sdg_tag_vector_t *filled = empty_fill(vector, split);
  if (!filled)
    return sdg_fail(SDG_E_NO_MEMORY, "extents of the ranks");
  sdg_status_t status = placement_of(call, filled, split, out);
  free(filled);
  return status;
}

// Ranks of the group that see a match, and that do not; -1 if there are none.
typedef struct seen {
  int yes, no;
} seen_t;

static seen_t section_seen(const sdg_call_t *call, int index,
                           const sdg_section_t *section,
                           const sdg_split_t *split) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  seen_t seen = {-1, -1};
  for (int r = 0; r < vector->ranks; r++) {
    int64_t extent[SDG_DIMS_MAX];
    extents_sum(vector, split, r, extent);
    bool match = sdg_section_match(section, call->family, call->entry_name,
                                   extent, operand->dims);
    *(match ? &seen.yes : &seen.no) = sdg_job_group()->rank[r];
  }
  return seen;
}

// The first section that matches this operand on any rank; NULL if none does.
// Which ranks see it tells whether it is a match on all of them.
static const sdg_section_t *section_find(const sdg_call_t *call, int index,
                                         const sdg_rules_t *rules,
                                         seen_t *out_seen) {
  const sdg_section_t *said = sdg_label_section(&call->operand[index]);
  if (said) {
    *out_seen = (seen_t){sdg_job_rank(), -1}; // agreed on word by word
    return said;
  }
  for (int s = 0; s < rules->sections; s++) {
    const sdg_section_t *section = &rules->section[s];
    sdg_split_t split[SDG_DIMS_MAX] = {{0}};
    if (!section->is_local &&
        !sdg_tagging_splits(section, call->family, call->operand[index].dims,
                            split))
      continue;
    *out_seen = section_seen(call, index, section, split);
    if (out_seen->yes >= 0)
      return section;
  }
  return NULL;
}

// Ranks that see different things would part ways here.
static sdg_status_t seen_check(const sdg_call_t *call, int index,
                               const sdg_section_t *section, seen_t seen) {
  if (!section || seen.no < 0)
    return SDG_OK;
  return sdg_fail(SDG_E_EXTENTS,
                  "%s of %s matches [%s %s] on rank %d and does not on rank %d",
                  sdg_role_name(call->operand[index].role), call->entry_name,
                  section->is_local ? "local" : "shard", section->name,
                  seen.yes, seen.no);
}

static bool is_input(const sdg_call_t *call, int index) {
  const sdg_operand_t *operand = &call->operand[index];
  return sdg_role_is_activation(operand->role) && !operand->is_output;
}

// Ops that only write (SetTensor) are judged by their output.
static bool any_input(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (is_input(call, i))
      return true;
  return false;
}

static void group_fill(sdg_tagging_t *tagging, sdg_axes_t axes) {
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
  group_fill(out, sdg_section_axes(section));
  int summing[SDG_RANKS_MAX];
  if (sdg_mesh_group(out->mesh, out->rank, section->sum_axes, summing) > 1)
    out->sum_axes = section->sum_axes;
}

void sdg_tagging_note(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    if (placement->dims == 0 || call->family == SDG_FAMILY_MATMUL)
      continue;
    sdg_box_t box = sdg_placement_box(placement, tagging->mesh, tagging->rank);
    sdg_tag_place_t place = {.generation = call->operand[i].generation,
                             .dims = placement->dims};
    for (int d = 0; d < placement->dims; d++) {
      place.first[d] = box.dim[d].lo;
      place.extent[d] = sdg_placement_extent(placement, d);
    }
    sdg_tag_set_place(call->operand[i].descriptor, &place);
  }
}

static sdg_status_t label_place(const sdg_call_t *call, int index,
                                sdg_placement_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  sdg_split_t split[SDG_DIMS_MAX];
  (void)sdg_tagging_splits(sdg_label_section(operand), call->family,
                           operand->dims, split);
  return filled_place(call,
                      sdg_tag_vector(operand->descriptor, operand->generation),
                      split, out);
}

// A call whose operands each are where their own label says.
static sdg_status_t placements_read(const sdg_call_t *call,
                                    sdg_tagging_t *out) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < call->operands; i++) {
    const sdg_section_t *section = sdg_label_section(&call->operand[i]);
    SDG_TRY(sdg_label_check(call, &call->operand[i]));
    axes |= sdg_section_axes(section) | section->pending;
  }
  sdg_tagging_group(sdg_label_section(&call->operand[0]), out);
  group_fill(out, axes);
  for (int i = 0; i < call->operands; i++) {
    sdg_status_t status = label_place(call, i, &out->placement[i]);
    if (status != SDG_OK) {
      sdg_tagging_fini(out);
      return status;
    }
  }
  return SDG_OK;
}

sdg_status_t sdg_tagging_derive(const sdg_call_t *call,
                                const sdg_rules_t *rules,
                                const sdg_section_t **out_section,
                                bool *out_local, sdg_tagging_t *out) {
  bool by_output = !any_input(call);
  int labelled;
  if (call->family == SDG_FAMILY_REDISTRIBUTE) {
    *out_section = sdg_label_section(&call->operand[0]);
    *out_local = false;
    return placements_read(call, out);
  }
  SDG_TRY(sdg_label_find(call, &labelled));
  const sdg_section_t *found = NULL;
  bool local = false;
  for (int i = 0; i < call->operands && !found; i++) {
    if (labelled >= 0
            ? i != labelled
            : !is_input(call, i) &&
                  !(by_output && sdg_role_is_activation(call->operand[i].role)))
      continue;
    seen_t seen;
    found = section_find(call, i, rules, &seen);
    SDG_TRY(seen_check(call, i, found, seen));
    if (found && found->is_local) {
      local = true;
      found = NULL;
    }
  }
  *out_section = found;
  *out_local = local;
  if (!found)
    return SDG_OK;

  sdg_tagging_group(found, out);
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    bool scale = operand->role == SDG_ROLE_SCALE;
    if (!sdg_role_is_activation(operand->role) && !scale)
      continue;
    sdg_split_t split[SDG_DIMS_MAX];
    if (!sdg_tagging_splits(found, call->family, operand->dims, split))
      continue;
    const sdg_tag_vector_t *vector =
        sdg_tag_vector(operand->descriptor, operand->generation);
    // What the program says of a tensor it says of rows, too.
    if ((sdg_tagging_repeats(call->family) && !operand->label) || scale)
      repeats_unsplit(vector, split);
    sdg_status_t status = filled_place(call, vector, split, &out->placement[i]);
    if (status == SDG_OK && operand->elem_bytes == 0)
      status = sdg_fail(SDG_E_TENSOR_TYPE, "%s of %s",
                        sdg_role_name(operand->role), call->entry_name);
    if (status == SDG_OK && !operand->is_output && !scale &&
        sdg_placement_axes(&out->placement[i]) == out->axes)
      status = parts_check(found, call->family, &out->placement[i]);
    if (status != SDG_OK) {
      sdg_tagging_fini(out);
      return status;
    }
  }
  return SDG_OK;
}

// More than one element in a spatial dimension, on some rank.
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
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    if (!sdg_role_is_activation(call->operand[i].role))
      continue;
    if (call->operand[i].label || has_rows(placement))
      return SDG_OK;
    for (int d = 2; d < placement->dims; d++)
      if (placement->part[d].pieces > 1)
        role = sdg_role_name(call->operand[i].role);
  }
  for (int i = 0; i < tagging->section->splits; i++)
    if (isdigit((unsigned char)tagging->section->split[i].parts[0]))
      return SDG_OK;
  return role ? sdg_fail(SDG_E_ONE_EACH, "%s of %s", role, call->entry_name)
              : SDG_OK;
}

void sdg_tagging_fini(sdg_tagging_t *tagging) {
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    sdg_placement_fini(&tagging->placement[i]);
}

void sdg_tagging_say(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  static atomic_bool said;
  if (sdg_job_rank() != 0 || !*sdg_options_get()->report ||
      atomic_load_explicit(&said, memory_order_relaxed))
    return;
  char text[512];
  const char *names[SDG_DIMS_MAX];
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *placement = &tagging->placement[i];
    if (placement->dims == 0 || !sdg_placement_axes(placement))
      continue;
    if (atomic_exchange(&said, true))
      return;
    sdg_tagging_names(call->family, placement->dims, names);
    sdg_placement_format(placement, tagging->mesh, names, text, sizeof text);
    sdg_log("%s, view %s", text,
            tagging->section->view == SDG_VIEW_WHOLE ? "whole" : "shard");
    return;
  }
}

// A glob that could tell two entries of one family apart; then a descriptor
// may match in one call and not in another.
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
  seen_t seen;
  const sdg_section_t *section = section_find(call, operand, rules, &seen);
  return !section || (section->is_local && seen.no < 0);
}
