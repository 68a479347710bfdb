// SPDX-License-Identifier: Apache-2.0
// Finds the section of a call in the whole view, and places its tensors.
#include "rules/view/whole/place.h"

#include <string.h>

#include "rules/place/place.h"
#include "rules/place/tagging.h"
#include "src/job/job.h"

// The first section that matches the operand; NULL: none does.
static const sdg_section_t *operand_section(const sdg_call_t *call,
                                            const sdg_operand_t *operand,
                                            const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++)
    if (sdg_section_match(&rules->section[s], call->family, call->entry_name,
                          operand->extent, operand->dims))
      return &rules->section[s];
  return NULL;
}

const sdg_section_t *sdg_whole_section(const sdg_call_t *call,
                                       const sdg_rules_t *rules) {
  for (int pass = 0; pass < 2; pass++) {
    bool any = false;
    for (int i = 0; i < call->operands; i++) {
      const sdg_operand_t *operand = &call->operand[i];
      if (!sdg_role_is_activation(operand->role) ||
          operand->is_output != (pass == 1))
        continue;
      any = true;
      const sdg_section_t *section = operand_section(call, operand, rules);
      if (section && !section->is_local)
        return section;
    }
    if (any)
      return NULL;
  }
  return NULL;
}

const sdg_buffer_t *sdg_whole_buffer(sdg_buffers_t *table,
                                     const sdg_operand_t *operand) {
  sdg_layout_t layout = sdg_operand_layout(operand);
  return operand->data
             ? sdg_buffers_find(table, (uintptr_t)operand->data, &layout)
             : NULL;
}

// The section's `parts =` for this extent. "agree" means even. If listed sizes
// do not add up to the extent, it is cut evenly, too: parts only share out the
// work, and a tensor between two calls may have any extent.
static const char *parts_of(const sdg_rules_split_t *split, int64_t extent) {
  if (strcmp(split->parts, "agree") == 0)
    return "even";
  int64_t listed = sdg_part_listed(split->parts);
  return listed < 0 || listed == extent ? split->parts : "even";
}

static sdg_status_t parts_place(const sdg_call_t *call, int index,
                                const sdg_section_t *section,
                                const sdg_split_t *split,
                                sdg_placement_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  SDG_TRY(sdg_placement_init(operand->dims, operand->extent, out));
  sdg_status_t status;
  for (int i = 0; i < section->splits; i++) {
    const sdg_rules_split_t *said = &section->split[i];
    int d = sdg_dim_index(call->family, said->dim, operand->dims);
    if (split[d].axes == 0)
      continue;
    sdg_part_t part;
    SDG_TRY_GOTO(sdg_part_parse(parts_of(said, operand->extent[d]),
                                operand->extent[d], said->pieces, &part),
                 fail);
    SDG_TRY_GOTO(sdg_placement_take(out, sdg_job_mesh(), d, &split[d], &part),
                 fail);
  }
  return SDG_OK;
fail:
  sdg_placement_fini(out);
  return status;
}

// Places an operand: as it was written, if the same dimensions are split.
static sdg_status_t operand_place(const sdg_call_t *call, int index,
                                  const sdg_section_t *section,
                                  const sdg_buffer_t *buffer,
                                  sdg_placement_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  sdg_split_t split[SDG_DIMS_MAX];
  if (!sdg_place_splits(section, call->family, operand->dims, split))
    return SDG_OK;
  for (int d = 0; d < operand->dims; d++)
    if (sdg_family_is(call->family, SDG_FAMILY_REPEATS_ONES) &&
        operand->extent[d] == 1)
      split[d].axes = 0;
  if (buffer && sdg_place_same(split, buffer->placement.split, operand->dims))
    return sdg_placement_copy(&buffer->placement, out);
  return parts_place(call, index, section, split, out);
}

sdg_status_t sdg_whole_tagging(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_section_t *section,
                               sdg_buffers_t *table, sdg_tagging_t *out) {
  sdg_tagging_group(section, out);
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    // Ops with windows place their outputs themselves. A function may have no
    // input that says where they are.
    if (!sdg_role_is_activation(operand->role) || operand->dims < 1 ||
        (operand->is_output && call->family != SDG_FAMILY_FUNCTION &&
         !sdg_family_is(call->family, SDG_FAMILY_ELEMENTWISE)))
      continue;
    const sdg_buffer_t *buffer = sdg_whole_buffer(table, operand);
    if (buffer && !sdg_buffer_grown(buffer))
      out->pieces |= 1u << i;
    const sdg_section_t *own =
        sdg_family_is(call->family, SDG_FAMILY_MIXES_PLACES)
            ? operand_section(call, operand, rules)
            : NULL;
    sdg_status_t status =
        own && own->is_local
            ? sdg_placement_init(operand->dims, operand->extent,
                                 &out->placement[i])
            : operand_place(call, i, section, buffer, &out->placement[i]);
    if (status != SDG_OK) {
      sdg_tagging_fini(out);
      return status;
    }
  }
  return SDG_OK;
}
