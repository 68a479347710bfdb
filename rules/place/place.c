// SPDX-License-Identifier: Apache-2.0
// Placements of the extents that the ranks agreed on, section by section.
#include "rules/place/place.h"

#include <stdlib.h>
#include <string.h>

#include "rules/place/label.h"
#include "rules/place/ones.h"
#include "rules/place/product_sizes.h"
#include "rules/place/tagging.h"
#include "src/call/tag.h"
#include "src/job/job.h"

bool sdg_place_splits(const sdg_section_t *section, sdg_family_t family,
                      int dims, sdg_split_t *out_split) {
  memset(out_split, 0, SDG_DIMS_MAX * sizeof *out_split);
  for (int i = 0; i < section->splits; i++) {
    const sdg_rules_split_t *split = &section->split[i];
    int d = sdg_dim_index(family, split->dim, dims);
    if (d < 0)
      return false;
    // The axes of a split stand in the mesh's order (rules/file/file.h).
    for (int a = 0; a < SDG_AXES_MAX; a++)
      if (split->axes >> a & 1)
        out_split[d].axis[out_split[d].axes++] = a;
  }
  return true;
}

bool sdg_place_same(const sdg_split_t *a, const sdg_split_t *b, int dims) {
  for (int d = 0; d < dims; d++)
    if (a[d].axes != b[d].axes ||
        memcmp(a[d].axis, b[d].axis, (size_t)a[d].axes * sizeof a[d].axis[0]))
      return false;
  return true;
}

void sdg_place_extents(const sdg_tag_vector_t *vector, const sdg_split_t *split,
                       int member, int64_t *out_extent) {
  const sdg_mesh_t *mesh = sdg_job_mesh();
  const sdg_group_t *group = sdg_job_group();
  int dims = vector->dims;
  const int64_t *own = vector->extent + (size_t)member * (size_t)dims;
  for (int d = 0; d < dims; d++) {
    out_extent[d] = own[d];
    if (split[d].axes == 0)
      continue;
    // Takes each piece from the first rank that has it and has elements.
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

sdg_seen_t sdg_place_would(const sdg_call_t *call, int index,
                           const sdg_section_t *section,
                           const sdg_split_t *split) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_tag_vector_t *vector =
      sdg_tag_vector(operand->descriptor, operand->generation);
  sdg_seen_t seen = {-1, -1};
  for (int r = 0; r < vector->ranks; r++) {
    int64_t extent[SDG_DIMS_MAX];
    sdg_place_extents(vector, split, r, extent);
    bool match = sdg_section_match(section, call->family, call->entry_name,
                                   extent, operand->dims);
    *(match ? &seen.yes : &seen.no) = sdg_job_group()->rank[r];
  }
  return seen;
}

static sdg_seen_t section_seen(const sdg_call_t *call, int index,
                               const sdg_section_t *section,
                               sdg_sizes_t unsaid) {
  const sdg_operand_t *operand = &call->operand[index];
  sdg_split_t split[SDG_DIMS_MAX] = {{0}};
  if (!section->is_local && sdg_family_is(call->family, SDG_FAMILY_STATED))
    sdg_sizes_added(section, operand->dims, unsaid, split);
  else if (!section->is_local)
    (void)sdg_place_splits(section, call->family, operand->dims, split);
  return sdg_place_would(call, index, section, split);
}

sdg_seen_t sdg_place_seen(const sdg_call_t *call, int index,
                          const sdg_section_t *section) {
  sdg_seen_t seen = section_seen(call, index, section, SDG_SIZES_PIECE);
  // A [shard] section that does not say what a product's sizes mean, too.
  if (seen.yes < 0 && !section->is_local &&
      sdg_family_is(call->family, SDG_FAMILY_STATED))
    seen = section_seen(call, index, section, SDG_SIZES_WHOLE);
  return seen;
}

const sdg_section_t *sdg_place_section(const sdg_call_t *call, int index,
                                       const sdg_rules_t *rules,
                                       sdg_seen_t *out_seen) {
  if (call->operand[index].label) {
    *out_seen = (sdg_seen_t){sdg_job_rank(), -1}; // agreed on word by word
    return sdg_label_section(&call->operand[index]);
  }
  for (int s = 0; s < rules->sections; s++) {
    const sdg_section_t *section = &rules->section[s];
    sdg_split_t split[SDG_DIMS_MAX] = {{0}};
    if (!section->is_local &&
        !sdg_place_splits(section, call->family, call->operand[index].dims,
                          split))
      continue;
    *out_seen = sdg_place_seen(call, index, section);
    if (out_seen->yes >= 0)
      return section;
  }
  return NULL;
}

// The ranks' extents, the group's one after the other; the caller frees them.
typedef int64_t extents_t[SDG_DIMS_MAX];
static extents_t *extents_get(const sdg_tag_vector_t *vector) {
  size_t dims = (size_t)vector->dims;
  extents_t *extent = calloc((size_t)vector->ranks, sizeof *extent);
  for (int r = 0; extent && r < vector->ranks; r++)
    memcpy(extent[r], vector->extent + (size_t)r * dims,
           dims * sizeof(int64_t));
  return extent;
}

// The placement of extents with these splits. If they make no tensor: *out_can
// is false if out_can is given, otherwise SDG_E_EXTENTS.
static sdg_status_t placement_of(const sdg_call_t *call,
                                 const sdg_tag_vector_t *vector,
                                 const sdg_split_t *split, bool *out_can,
                                 sdg_placement_t *out_placement) {
  const sdg_group_t *group = sdg_job_group();
  const char *names[SDG_DIMS_MAX];
  sdg_extents_conflict_t conflict;
  sdg_tagging_names(call->family, vector->dims, names);
  extents_t *extent = extents_get(vector);
  if (!extent)
    return sdg_fail(SDG_E_NO_MEMORY, "extents of %d ranks", group->count);
  const int64_t(*sizes)[SDG_DIMS_MAX] = (const int64_t(*)[SDG_DIMS_MAX])extent;
  sdg_status_t status = SDG_OK;
  if (out_can)
    *out_can =
        !sdg_placement_conflict(sdg_job_mesh(), group->rank, group->count,
                                vector->dims, split, sizes, &conflict);
  if (!out_can || *out_can)
    status =
        sdg_placement_derive(sdg_job_mesh(), group->rank, group->count,
                             vector->dims, split, names, sizes, out_placement);
  free(extent);
  return status;
}

// A rank without elements states 0 in every split dimension, although its piece
// may be empty in one only. The other extents are taken from the ranks that
// share them.
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

// As placement_of, for pieces that may be empty.
sdg_status_t sdg_place_vector(const sdg_call_t *call,
                              const sdg_tag_vector_t *vector,
                              const sdg_split_t *split, bool *out_can,
                              sdg_placement_t *out) {
  int all = vector->ranks * vector->dims, i = 0;
  while (i < all && vector->extent[i] != 0)
    i++;
  if (i == all)
    return placement_of(call, vector, split, out_can, out);
  sdg_tag_vector_t *filled = empty_fill(vector, split);
  if (!filled)
    return sdg_fail(SDG_E_NO_MEMORY, "extents of the ranks");
  sdg_status_t status = placement_of(call, filled, split, out_can, out);
  free(filled);
  return status;
}

static sdg_status_t filled_place(const sdg_call_t *call, int index,
                                 const sdg_split_t *split, bool *out_can,
                                 sdg_placement_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  return sdg_place_vector(
      call, sdg_tag_vector(operand->descriptor, operand->generation), split,
      out_can, out);
}

sdg_status_t sdg_place_exactly(const sdg_call_t *call, int index,
                               sdg_placement_t *out) {
  const sdg_operand_t *operand = &call->operand[index];
  sdg_split_t split[SDG_DIMS_MAX];
  (void)sdg_place_splits(sdg_label_section(operand), call->family,
                         operand->dims, split);
  return filled_place(call, index, split, NULL, out);
}

sdg_status_t sdg_place_pieces(const sdg_call_t *call, int index,
                              const sdg_section_t *section,
                              sdg_placement_t *out) {
  sdg_split_t split[SDG_DIMS_MAX];
  (void)sdg_place_splits(section, call->family, call->operand[index].dims,
                         split);
  return filled_place(call, index, split, NULL, out);
}

// How a section splits an operand; false if that lacks a dimension.
static bool operand_splits(const sdg_call_t *call, int index,
                           const sdg_section_t *section,
                           sdg_split_t *out_split) {
  const sdg_operand_t *operand = &call->operand[index];
  memset(out_split, 0, SDG_DIMS_MAX * sizeof *out_split);
  if (section && !section->is_local &&
      !sdg_place_splits(section, call->family, operand->dims, out_split))
    return false;
  sdg_ones_unsplit(call, index, section, out_split);
  return true;
}

sdg_status_t sdg_place_list(const sdg_call_t *call, int index,
                            const sdg_section_t *section,
                            const sdg_rules_t *rules, sdg_place_t *out,
                            int *out_count) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_section_t *by[SDG_PLACES_MAX] = {section};
  bool activation = sdg_role_is_activation(operand->role);
  sdg_split_t split[SDG_DIMS_MAX];
  int sections = 1;
  *out_count = 0;
  if (activation && operand->label) {
    by[0] = sdg_label_section(operand);
  } else if (activation) {
    sdg_seen_t seen;
    const sdg_section_t *own = sdg_place_section(call, index, rules, &seen);
    bool local = own && own->is_local && seen.no < 0;
    if (local)
      by[0] = NULL; // the whole tensor on every rank
    if (local && !sdg_family_is(call->family, SDG_FAMILY_MIXES_PLACES)) {
      by[sections++] = section; // if its size does not fit that
    } else if (!local) {
      if (own && own != section && seen.no < 0)
        by[sections++] = own;
      by[sections++] = NULL;
    }
  }
  for (int i = 0; i < sections; i++) {
    bool can = operand_splits(call, index, by[i], split);
    if (!can && i == 0)
      return SDG_OK;
    if (!can)
      continue;
    sdg_place_t *place = &out[*out_count];
    sdg_status_t status =
        filled_place(call, index, split, &can, &place->placement);
    if (status != SDG_OK) {
      sdg_place_free(out, *out_count);
      *out_count = 0;
      return status;
    }
    place->section = by[i];
    *out_count += can;
  }
  return *out_count > 0 || !activation ? SDG_OK
                                       : sdg_place_check(call, index, by[0]);
}

sdg_status_t sdg_place_check(const sdg_call_t *call, int index,
                             const sdg_section_t *section) {
  sdg_split_t split[SDG_DIMS_MAX];
  sdg_placement_t placement;
  // Limits are not a tensor: ranks may have equal limits and different keys.
  if (call->operand[index].kind == SDG_OPERAND_LIMITS ||
      !operand_splits(call, index, section, split))
    return SDG_OK;
  SDG_TRY(filled_place(call, index, split, NULL, &placement));
  sdg_placement_fini(&placement);
  return SDG_OK;
}

void sdg_place_free(sdg_place_t *place, int count) {
  for (int i = 0; i < count; i++)
    sdg_placement_fini(&place[i].placement);
}

// All coordinates of a point are on one rank: dimension 1 is not split.
static sdg_status_t coordinates_place(const sdg_placement_t *beside,
                                      const sdg_mesh_t *mesh,
                                      sdg_placement_t *out) {
  int64_t extent[SDG_DIMS_MAX];
  int from[SDG_DIMS_MAX];
  for (int d = 0; d < beside->dims; d++) {
    extent[d] = d == 1 ? beside->dims - 2 : sdg_placement_extent(beside, d);
    from[d] = d == 1 ? -1 : d;
  }
  return sdg_placement_like(beside->dims, extent, mesh, beside, from, out);
}

sdg_status_t sdg_place_coordinates(const sdg_call_t *call,
                                   const sdg_mesh_t *mesh,
                                   sdg_placement_t *io_placement) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_placement_t *beside = &io_placement[call->operand[i].beside];
    if (call->operand[i].kind != SDG_OPERAND_COORDINATES)
      continue;
    sdg_placement_fini(&io_placement[i]);
    if (beside->dims > 2)
      SDG_TRY(coordinates_place(beside, mesh, &io_placement[i]));
  }
  return SDG_OK;
}
