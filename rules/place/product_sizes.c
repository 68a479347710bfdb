// SPDX-License-Identifier: Apache-2.0
// Computes the whole product from the sizes that the ranks' calls state.
#include "rules/place/product_sizes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/place/place.h"
#include "rules/vendor/product.h"
#include "src/call/tag.h"
#include "src/job/job.h"

static sdg_dim_t name_of(int dim) {
  return sdg_dim_at(SDG_FAMILY_MATMUL, dim, SDG_PRODUCT_DIMS);
}

static sdg_axes_t axes_in(const sdg_rules_split_t *split, int splits, int dim) {
  for (int i = 0; i < splits; i++)
    if (split[i].dim == name_of(dim))
      return split[i].axes;
  return 0;
}

sdg_axes_t sdg_sizes_cut(const sdg_section_t *section, int dim,
                         bool *out_by_matrix) {
  sdg_axes_t axes = axes_in(section->split, section->splits, dim);
  *out_by_matrix = !axes;
  for (int m = 0; m < SDG_MATRICES && !axes; m++)
    axes = axes_in(section->matrix[m].split, section->matrix[m].splits, dim);
  return axes;
}

sdg_split_t sdg_sizes_split(sdg_axes_t axes) {
  sdg_split_t split = {.axes = 0};
  for (int a = 0; a < SDG_AXES_MAX; a++)
    if (axes >> a & 1)
      split.axis[split.axes++] = a;
  return split;
}

int sdg_sizes_pieces(sdg_axes_t axes) {
  sdg_split_t split = sdg_sizes_split(axes);
  return sdg_split_pieces(&split, sdg_job_mesh());
}

void sdg_sizes_added(const sdg_section_t *section, int dims, sdg_sizes_t unsaid,
                     sdg_split_t *out_split) {
  memset(out_split, 0, SDG_DIMS_MAX * sizeof *out_split);
  for (int d = 0; d < dims && d < SDG_PRODUCT_DIMS; d++) {
    bool by_matrix;
    sdg_axes_t axes = sdg_sizes_cut(section, d, &by_matrix);
    sdg_sizes_t sizes = section->sizes[d] ? section->sizes[d] : unsaid;
    if (axes && sizes == SDG_SIZES_PIECE)
      out_split[d] = sdg_sizes_split(axes);
  }
}

static const sdg_tag_vector_t *vector_of(const sdg_call_t *call) {
  const sdg_operand_t *product =
      &call->operand[sdg_call_operand(call, SDG_ROLE_PRODUCT)];
  return sdg_tag_vector(product->descriptor, product->generation);
}

sdg_status_t sdg_sizes_part(const sdg_call_t *call, int dim, sdg_axes_t axes,
                            sdg_part_t *out_part) {
  const sdg_tag_vector_t *vector = vector_of(call);
  const sdg_group_t *group = sdg_job_group();
  const sdg_mesh_t *mesh = sdg_job_mesh();
  sdg_split_t split = sdg_sizes_split(axes);
  int64_t size[SDG_RANKS_MAX] = {0};
  int of[SDG_RANKS_MAX];
  for (int r = 0; r < vector->ranks; r++) {
    int piece = sdg_split_piece(&split, mesh, group->rank[r]);
    int64_t extent = vector->extent[r * vector->dims + dim];
    if (extent == 0) // a rank that has nothing says 0 of all that is cut
      continue;
    if (size[piece] != 0 && size[piece] != extent)
      return sdg_fail(SDG_E_EXTENTS,
                      "%s of %s is %lld on rank %d and %lld on rank %d, but "
                      "both ranks have the same piece",
                      sdg_dim_name(name_of(dim)), call->entry_name,
                      (long long)size[piece], group->rank[of[piece]],
                      (long long)extent, group->rank[r]);
    size[piece] = extent;
    of[piece] = r;
  }
  return sdg_part_from_sizes(sdg_split_pieces(&split, mesh), size, out_part);
}

// "M 24 = 8+8+8" for each dimension that is cut, as the sizes would mean it.
static void reading_format(const sdg_call_t *call, const sdg_section_t *section,
                           sdg_sizes_t sizes, char *out, size_t out_bytes) {
  const sdg_tag_vector_t *vector = vector_of(call);
  size_t used = 0;
  out[0] = 0;
  for (int d = 0; d < vector->dims && used < out_bytes; d++) {
    bool by_matrix;
    sdg_part_t part;
    char text[128] = "impossible, because ranks differ";
    sdg_axes_t axes = sdg_sizes_cut(section, d, &by_matrix);
    if (!axes)
      continue;
    bool same = true;
    for (int r = 1; r < vector->ranks; r++)
      same &= vector->extent[r * vector->dims + d] == vector->extent[d];
    sdg_split_t split = sdg_sizes_split(axes);
    sdg_status_t status = SDG_E_EXTENTS;
    if (sizes == SDG_SIZES_PIECE)
      status = sdg_sizes_part(call, d, axes, &part);
    else if (same)
      status = sdg_part_divide(vector->extent[d],
                               sdg_split_pieces(&split, sdg_job_mesh()),
                               SDG_PART_EVEN, 1, &part);
    if (status == SDG_OK) {
      char parts[96];
      sdg_part_format(&part, parts, sizeof parts);
      snprintf(text, sizeof text, "%lld = %s",
               (long long)sdg_part_extent(&part), parts);
      sdg_part_fini(&part);
    }
    used += (size_t)snprintf(out + used, out_bytes - used, "%s%s %s",
                             used ? ", " : "", sdg_dim_name(name_of(d)), text);
  }
}

// "M 8, N 20, K 12" of the group's first rank.
static void stated_format(const sdg_call_t *call, char *out, size_t out_bytes) {
  const sdg_tag_vector_t *vector = vector_of(call);
  size_t used = 0;
  for (int d = 0; d < vector->dims && used < out_bytes; d++)
    used += (size_t)snprintf(out + used, out_bytes - used, "%s%s %lld",
                             used ? ", " : "", sdg_dim_name(name_of(d)),
                             (long long)vector->extent[d]);
}

static sdg_status_t readings_fail(const sdg_call_t *call,
                                  const sdg_section_t *section,
                                  const char *what) {
  char stated[96], piece[256], whole[256];
  stated_format(call, stated, sizeof stated);
  reading_format(call, section, SDG_SIZES_PIECE, piece, sizeof piece);
  reading_format(call, section, SDG_SIZES_WHOLE, whole, sizeof whole);
  return sdg_fail(SDG_E_PRODUCT_SIZES,
                  "%s with %s on rank %d, of section '%s', %s: 'sizes = piece' "
                  "(%s), or 'sizes = whole' (%s)",
                  call->entry_name, stated, sdg_job_group()->rank[0],
                  section->name, what, piece, whole);
}

sdg_status_t sdg_sizes_said(const sdg_call_t *call,
                            const sdg_section_t *section) {
  int cut = 0;
  bool unsaid = false, by_matrix;
  for (int d = 0; d < call->operand[0].dims; d++)
    if (sdg_sizes_cut(section, d, &by_matrix)) {
      cut++;
      unsaid |= section->sizes[d] == SDG_SIZES_UNSAID;
    }
  if (!unsaid)
    return SDG_OK;
  return readings_fail(
      call, section,
      cut > 1 ? "which must say what these sizes are, by one word or by one "
                "for each dimension, as in 'sizes = M:piece N:whole'"
              : "which must say what these sizes are");
}

// Whether some rank sees a match with these sizes.
static bool matches(const sdg_call_t *call, const sdg_section_t *section,
                    sdg_sizes_t sizes) {
  sdg_section_t other = *section;
  sdg_split_t split[SDG_DIMS_MAX];
  for (int d = 0; d < SDG_SIZES_DIMS; d++)
    other.sizes[d] = sizes;
  return sdg_place_splits(section, call->family, call->operand[0].dims,
                          split) &&
         sdg_place_seen(call, 0, &other).yes >= 0;
}

sdg_status_t sdg_sizes_missed(const sdg_call_t *call,
                              const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++) {
    const sdg_section_t *section = &rules->section[s];
    if (section->is_local || !sdg_section_multiplies(section))
      continue;
    if (matches(call, section, SDG_SIZES_PIECE) ||
        matches(call, section, SDG_SIZES_WHOLE))
      return readings_fail(call, section,
                           "which would match with sizes other than that "
                           "section says (a [local] section before it names "
                           "products that every rank computes in full)");
  }
  return SDG_OK;
}

// The section's parts of a dimension whose whole extent is stated.
static sdg_status_t whole_split(const sdg_rules_split_t *said, int dim,
                                sdg_placement_t *out) {
  sdg_split_t split = sdg_sizes_split(said->axes);
  int64_t extent = sdg_placement_extent(out, dim);
  sdg_part_t part;
  if (strcmp(said->parts, "agree") == 0)
    SDG_TRY(sdg_part_divide(extent, said->pieces, SDG_PART_EVEN, 1, &part));
  else
    SDG_TRY(sdg_part_parse(said->parts, extent, said->pieces, &part));
  return sdg_placement_take(out, sdg_job_mesh(), dim, &split, &part);
}

// A dimension that is cut only in matrices is whole in the product.
static sdg_status_t matrices_add(const sdg_call_t *call,
                                 const sdg_section_t *section,
                                 sdg_tag_vector_t *vector) {
  for (int d = 0; d < vector->dims; d++) {
    bool by_matrix;
    sdg_part_t part;
    sdg_axes_t axes = sdg_sizes_cut(section, d, &by_matrix);
    if (!axes || !by_matrix || section->sizes[d] != SDG_SIZES_PIECE)
      continue;
    SDG_TRY(sdg_sizes_part(call, d, axes, &part));
    for (int r = 0; r < vector->ranks; r++)
      vector->extent[r * vector->dims + d] = sdg_part_extent(&part);
    sdg_part_fini(&part);
  }
  return SDG_OK;
}

sdg_status_t sdg_sizes_place(const sdg_call_t *call,
                             const sdg_section_t *section,
                             sdg_placement_t *out) {
  const sdg_tag_vector_t *vector = vector_of(call);
  size_t count = (size_t)vector->ranks * (size_t)vector->dims;
  sdg_tag_vector_t *whole =
      malloc(sizeof *whole + count * sizeof *whole->extent);
  if (!whole)
    return sdg_fail(SDG_E_NO_MEMORY, "extents of the ranks");
  memcpy(whole, vector, sizeof *whole + count * sizeof *whole->extent);
  sdg_split_t split[SDG_DIMS_MAX] = {{0}};
  for (int i = 0; i < section->splits; i++) {
    int d = sdg_dim_index(call->family, section->split[i].dim, vector->dims);
    if (d >= 0 && section->sizes[d] != SDG_SIZES_WHOLE)
      split[d] = sdg_sizes_split(section->split[i].axes);
  }
  sdg_status_t status = matrices_add(call, section, whole);
  if (status == SDG_OK)
    status = sdg_place_vector(call, whole, split, NULL, out);
  free(whole);
  if (status != SDG_OK)
    return status;
  for (int i = 0; i < section->splits && status == SDG_OK; i++) {
    int d = sdg_dim_index(call->family, section->split[i].dim, vector->dims);
    if (d >= 0 && section->sizes[d] == SDG_SIZES_WHOLE)
      status = whole_split(&section->split[i], d, out);
  }
  if (status != SDG_OK)
    sdg_placement_fini(out);
  return status;
}
