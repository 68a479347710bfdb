// SPDX-License-Identifier: Apache-2.0
// Places the tensors of a whole call as the ranks of a split run would have
// them.
#include <string.h>

#include "rules/cut/attempt.h"
#include "rules/place/place.h"

// The section of a call: inputs come first.
static const sdg_section_t *section_find(const sdg_call_t *call,
                                         const sdg_rules_t *rules) {
  bool any = false;
  for (int pass = 0; pass < 2 && !(pass == 1 && any); pass++)
    for (int i = 0; i < call->operands; i++) {
      const sdg_operand_t *operand = &call->operand[i];
      if (!sdg_role_is_activation(operand->role) ||
          operand->is_output != (pass == 1))
        continue;
      any = true;
      for (int s = 0; s < rules->sections; s++)
        if (sdg_section_match(&rules->section[s], call->family,
                              call->entry_name, operand->extent, operand->dims))
          return &rules->section[s];
    }
  return NULL;
}

static const char *parts_of(const sdg_rules_split_t *split, int64_t extent) {
  int64_t listed = sdg_part_listed(split->parts);
  return strcmp(split->parts, "agree") == 0 || (listed >= 0 && listed != extent)
             ? "even"
             : split->parts;
}

static bool part_place(sdg_cut_t *cut, const sdg_rules_split_t *said,
                       const sdg_split_t *split, int d) {
  sdg_placement_t *lead = &cut->placement[0];
  int64_t extent = cut->call.operand[0].extent[d];
  sdg_part_t part;
  if (sdg_part_parse(parts_of(said, extent), extent, said->pieces, &part) !=
          SDG_OK ||
      sdg_placement_take(lead, cut->mesh, d, split, &part) != SDG_OK)
    return sdg_cut_fails(cut, "%s", sdg_last_error());
  for (int p = 0; p < lead->part[d].pieces && !cut->whole; p++)
    if (sdg_part_size(&lead->part[d], p) < 1)
      return sdg_cut_fails(cut, "%s %lld is too small for %d pieces",
                           sdg_dim_name(said->dim), (long long)extent,
                           lead->part[d].pieces);
  return true;
}

static bool lead_place(sdg_cut_t *cut) {
  const sdg_operand_t *operand = &cut->call.operand[0];
  const sdg_function_t *function = cut->function;
  sdg_split_t split[SDG_DIMS_MAX];
  if (!sdg_place_splits(cut->section, cut->call.family, operand->dims, split))
    return sdg_cut_fails(cut, "its section splits other dimensions");
  if (sdg_placement_init(operand->dims, operand->extent, &cut->placement[0]) !=
      SDG_OK)
    return sdg_cut_fails(cut, "%s", sdg_last_error());
  for (int i = 0; i < cut->section->splits; i++) {
    const sdg_rules_split_t *said = &cut->section->split[i];
    int d = sdg_dim_index(cut->call.family, said->dim, operand->dims);
    if (sdg_function_extent_at(function, sdg_function_tensor_of(function, 0),
                               d) >= 0 &&
        !part_place(cut, said, &split[d], d))
      return false;
  }
  return sdg_placement_axes(&cut->placement[0]) != 0 ||
         sdg_cut_fails(cut, "'%s' has no dimension that is split",
                       sdg_cut_name(cut, 0));
}

static bool other_place(sdg_cut_t *cut, int index) {
  const sdg_operand_t *operand = &cut->call.operand[index];
  const sdg_placement_t *lead = &cut->placement[0];
  int tensor = sdg_function_tensor_of(cut->function, index);
  int from[SDG_DIMS_MAX];
  for (int d = 0; d < operand->dims; d++) {
    from[d] = sdg_function_extent_at(cut->function, tensor, d) >= 0 ? d : -1;
    bool fits = from[d] < 0 || !sdg_placement_splits(lead, d) ||
                operand->extent[d] == sdg_placement_extent(lead, d);
    if (!fits && cut->whole) // the plan decides
      return true;
    if (!fits)
      return sdg_cut_fails(
          cut, "'%s' and '%s' have different extents where they are split",
          sdg_cut_name(cut, 0), sdg_cut_name(cut, index));
  }
  return sdg_placement_like(operand->dims, operand->extent, cut->mesh, lead,
                            from, &cut->placement[index]) == SDG_OK ||
         sdg_cut_fails(cut, "%s", sdg_last_error());
}

bool sdg_cut_place(sdg_cut_t *cut, const sdg_rules_t *rules) {
  cut->mesh = &rules->mesh;
  cut->whole = rules->view == SDG_VIEW_WHOLE;
  cut->section = section_find(&cut->call, rules);
  if (!cut->section || cut->section->is_local)
    return sdg_cut_fails(cut, "no [shard] section splits its tensors");
  if (!lead_place(cut))
    return false;
  for (int i = 1; i < cut->call.operands; i++)
    if (!sdg_cut_is_result(cut, i) && !other_place(cut, i))
      return false;
  return true;
}
