// SPDX-License-Identifier: Apache-2.0
// Builds placements from parts or from every rank's local extents, and
// computes the box that a rank holds.
#include "src/geometry/placement.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

sdg_status_t sdg_placement_init(int dims, const int64_t *extent,
                                sdg_placement_t *out_placement) {
  if (dims < 1 || dims > SDG_DIMS_MAX)
    return sdg_fail(SDG_E_INTERNAL, "a placement of %d dimensions", dims);
  sdg_placement_t placement = {.dims = dims};
  for (int d = 0; d < dims; d++) {
    sdg_status_t status =
        sdg_part_from_sizes(1, &extent[d], &placement.part[d]);
    if (status != SDG_OK) {
      sdg_placement_fini(&placement);
      return status;
    }
  }
  *out_placement = placement;
  return SDG_OK;
}

void sdg_placement_fini(sdg_placement_t *placement) {
  for (int d = 0; d < placement->dims; d++)
    sdg_part_fini(&placement->part[d]);
  *placement = (sdg_placement_t){.dims = 0};
}

sdg_status_t sdg_placement_copy(const sdg_placement_t *placement,
                                sdg_placement_t *out_placement) {
  sdg_placement_t copy = {.dims = placement->dims};
  for (int d = 0; d < copy.dims; d++) {
    copy.split[d] = placement->split[d];
    sdg_status_t status = sdg_part_copy(&placement->part[d], &copy.part[d]);
    if (status != SDG_OK) {
      sdg_placement_fini(&copy);
      return status;
    }
  }
  *out_placement = copy;
  return SDG_OK;
}

sdg_axes_t sdg_split_all_axes(const sdg_split_t *split) {
  sdg_axes_t axes = 0;
  for (int i = 0; i < split->axes; i++)
    axes |= 1u << split->axis[i];
  return axes;
}

static sdg_status_t axes_check(const sdg_placement_t *placement,
                               const sdg_mesh_t *mesh, int dim,
                               const sdg_split_t *split, int part_pieces) {
  sdg_axes_t used = 0;
  for (int d = 0; d < placement->dims; d++)
    if (d != dim)
      used |= sdg_split_all_axes(&placement->split[d]);
  for (int i = 0; i < split->axes; i++) {
    int axis = split->axis[i];
    if (axis < 0 || axis >= mesh->axes)
      return sdg_fail(SDG_E_PARTS, "no axis %d in a mesh of %d", axis,
                      mesh->axes);
    if (used >> axis & 1)
      return sdg_fail(SDG_E_PARTS, "axis \"%s\" splits one tensor twice",
                      mesh->name[axis]);
    used |= 1u << axis;
  }
  int pieces = sdg_split_pieces(split, mesh);
  return part_pieces == pieces
             ? SDG_OK
             : sdg_fail(SDG_E_PARTS,
                        "%d pieces for the %d ranks along the split axes",
                        part_pieces, pieces);
}

sdg_status_t sdg_placement_take(sdg_placement_t *placement,
                                const sdg_mesh_t *mesh, int dim,
                                const sdg_split_t *split, sdg_part_t *part) {
  sdg_status_t status = axes_check(placement, mesh, dim, split, part->pieces);
  if (status != SDG_OK) {
    sdg_part_fini(part);
    return status;
  }
  sdg_part_fini(&placement->part[dim]);
  placement->part[dim] = *part;
  placement->split[dim] = *split;
  return SDG_OK;
}

sdg_status_t sdg_placement_split(sdg_placement_t *placement,
                                 const sdg_mesh_t *mesh, int dim,
                                 const sdg_split_t *split,
                                 const sdg_part_t *part) {
  sdg_part_t copy;
  SDG_TRY(sdg_part_copy(part, &copy));
  return sdg_placement_take(placement, mesh, dim, split, &copy);
}

sdg_status_t sdg_placement_like(int dims, const int64_t *extent,
                                const sdg_mesh_t *mesh,
                                const sdg_placement_t *like, const int *from,
                                sdg_placement_t *out) {
  sdg_status_t status = SDG_OK;
  SDG_TRY(sdg_placement_init(dims, extent, out));
  for (int d = 0; d < dims && status == SDG_OK; d++)
    if (from[d] >= 0 && like->split[from[d]].axes)
      status = sdg_placement_split(out, mesh, d, &like->split[from[d]],
                                   &like->part[from[d]]);
  if (status != SDG_OK)
    sdg_placement_fini(out);
  return status;
}

bool sdg_split_equal(const sdg_split_t *a, const sdg_split_t *b) {
  return a->axes == b->axes &&
         memcmp(a->axis, b->axis, (size_t)a->axes * sizeof a->axis[0]) == 0;
}

bool sdg_placement_equal(const sdg_placement_t *a, const sdg_placement_t *b) {
  if (a->dims != b->dims)
    return false;
  for (int d = 0; d < a->dims; d++)
    if (!sdg_split_equal(&a->split[d], &b->split[d]) ||
        !sdg_part_equal(&a->part[d], &b->part[d]))
      return false;
  return true;
}

bool sdg_placement_extents_equal(const sdg_placement_t *a,
                                 const sdg_placement_t *b) {
  bool equal = a->dims == b->dims;
  for (int d = 0; equal && d < a->dims; d++)
    equal = sdg_placement_extent(a, d) == sdg_placement_extent(b, d);
  return equal;
}

int64_t sdg_placement_extent(const sdg_placement_t *placement, int dim) {
  return sdg_part_extent(&placement->part[dim]);
}

sdg_axes_t sdg_placement_axes(const sdg_placement_t *placement) {
  sdg_axes_t axes = 0;
  for (int d = 0; d < placement->dims; d++)
    axes |= sdg_split_all_axes(&placement->split[d]);
  return axes;
}

int sdg_placement_group(const sdg_placement_t *placement,
                        const sdg_mesh_t *mesh, int rank, int *out_ranks) {
  return sdg_mesh_group(mesh, rank, sdg_placement_axes(placement), out_ranks);
}

int sdg_split_pieces(const sdg_split_t *split, const sdg_mesh_t *mesh) {
  int pieces = 1;
  for (int i = 0; i < split->axes; i++)
    pieces *= mesh->size[split->axis[i]];
  return pieces;
}

int sdg_split_piece(const sdg_split_t *split, const sdg_mesh_t *mesh,
                    int rank) {
  int coord[SDG_AXES_MAX], piece = 0;
  sdg_mesh_coords(mesh, rank, coord);
  for (int i = 0; i < split->axes; i++)
    piece = piece * mesh->size[split->axis[i]] + coord[split->axis[i]];
  return piece;
}

sdg_box_t sdg_placement_box(const sdg_placement_t *placement,
                            const sdg_mesh_t *mesh, int rank) {
  sdg_box_t box = {.dims = placement->dims};
  for (int d = 0; d < box.dims; d++) {
    int piece = sdg_split_piece(&placement->split[d], mesh, rank);
    box.dim[d].lo = placement->part[d].offset[piece];
    box.dim[d].hi = placement->part[d].offset[piece + 1];
  }
  return box;
}

// Returns the first member of the group that holds `piece` of a split; -1 if
// none does.
static int piece_holder(const sdg_mesh_t *mesh, const int *ranks, int count,
                        const sdg_split_t *split, int piece) {
  for (int i = 0; i < count; i++)
    if (sdg_split_piece(split, mesh, ranks[i]) == piece)
      return i;
  return -1;
}

bool sdg_placement_conflict(const sdg_mesh_t *mesh, const int *ranks, int count,
                            int dims, const sdg_split_t *split,
                            const int64_t (*extent)[SDG_DIMS_MAX],
                            sdg_extents_conflict_t *out_conflict) {
  for (int d = 0; d < dims; d++)
    for (int i = 0; i < count; i++) {
      int other = piece_holder(mesh, ranks, count, &split[d],
                               sdg_split_piece(&split[d], mesh, ranks[i]));
      if (extent[i][d] != extent[other][d] || extent[i][d] < 0) {
        *out_conflict =
            (sdg_extents_conflict_t){.dim = d, .member = i, .other = other};
        return true;
      }
    }
  return false;
}

// Appends to out[*used]; cuts what does not fit; *used stays in bounds.
__attribute__((format(printf, 4, 5))) static void
append(char *out, int out_bytes, int *used, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(out + *used, (size_t)(out_bytes - *used), format, args);
  va_end(args);
  if (n > 0)
    *used += n < out_bytes - *used ? n : out_bytes - *used - 1;
}

static void append_dim(char *out, int out_bytes, int *used,
                       const char *const *name, int dim) {
  if (name && name[dim])
    append(out, out_bytes, used, "%s", name[dim]);
  else
    append(out, out_bytes, used, "dimension %d", dim);
}

static void append_axes(char *out, int out_bytes, int *used,
                        const sdg_split_t *split, const sdg_mesh_t *mesh) {
  for (int i = 0; i < split->axes; i++)
    append(out, out_bytes, used, "%s%s=%d", i ? "," : "",
           mesh->name[split->axis[i]], mesh->size[split->axis[i]]);
}

static sdg_status_t conflict_report(const sdg_mesh_t *mesh, const int *ranks,
                                    const sdg_split_t *split,
                                    const char *const *name,
                                    const int64_t (*extent)[SDG_DIMS_MAX],
                                    const sdg_extents_conflict_t *conflict) {
  char dim[64], why[192];
  int d = conflict->dim, used = 0;
  append_dim(dim, sizeof dim, &used, name, d);
  int64_t size = extent[conflict->member][d];
  if (conflict->member == conflict->other)
    return sdg_fail(SDG_E_EXTENTS, "rank %d has %s = %" PRId64,
                    ranks[conflict->member], dim, size);
  used = 0;
  if (split[d].axes) {
    append(why, sizeof why, &used, "is split over ");
    append_axes(why, sizeof why, &used, &split[d], mesh);
    append(why, sizeof why, &used,
           ", and both ranks have the same piece of it");
  } else {
    append(why, sizeof why, &used,
           "is not split, so it must be equal on all ranks");
  }
  return sdg_fail(SDG_E_EXTENTS,
                  "rank %d has %s = %" PRId64 ", rank %d has %" PRId64
                  "; %s %s",
                  ranks[conflict->other], dim, extent[conflict->other][d],
                  ranks[conflict->member], size, dim, why);
}

// Derives the part of one dimension from the first holder of each piece.
static sdg_status_t part_derive(const sdg_mesh_t *mesh, const int *ranks,
                                int count, int dim, const sdg_split_t *split,
                                const int64_t (*extent)[SDG_DIMS_MAX],
                                sdg_part_t *out_part) {
  int64_t sizes[SDG_RANKS_MAX];
  int pieces = sdg_split_pieces(split, mesh);
  for (int p = 0; p < pieces; p++) {
    int holder = piece_holder(mesh, ranks, count, split, p);
    if (holder < 0)
      return sdg_fail(SDG_E_INTERNAL,
                      "none of the %d ranks holds piece %d of dimension %d",
                      count, p, dim);
    sizes[p] = extent[holder][dim];
  }
  return sdg_part_from_sizes(pieces, sizes, out_part);
}

sdg_status_t sdg_placement_derive(const sdg_mesh_t *mesh, const int *ranks,
                                  int count, int dims, const sdg_split_t *split,
                                  const char *const *name,
                                  const int64_t (*extent)[SDG_DIMS_MAX],
                                  sdg_placement_t *out_placement) {
  sdg_extents_conflict_t conflict;
  if (sdg_placement_conflict(mesh, ranks, count, dims, split, extent,
                             &conflict))
    return conflict_report(mesh, ranks, split, name, extent, &conflict);
  sdg_placement_t placement;
  SDG_TRY(sdg_placement_init(dims, extent[0], &placement));
  sdg_status_t status = SDG_OK;
  for (int d = 0; d < dims && status == SDG_OK; d++) {
    sdg_part_t part;
    SDG_TRY_GOTO(part_derive(mesh, ranks, count, d, &split[d], extent, &part),
                 fail);
    status = sdg_placement_take(&placement, mesh, d, &split[d], &part);
  }
  if (status != SDG_OK)
    goto fail;
  *out_placement = placement;
  return SDG_OK;

fail:
  sdg_placement_fini(&placement);
  return status;
}

void sdg_placement_format(const sdg_placement_t *placement,
                          const sdg_mesh_t *mesh, const char *const *name,
                          char *out, int out_bytes) {
  int used = 0;
  if (out_bytes < 1)
    return;
  out[0] = '\0';
  for (int d = 0; d < placement->dims; d++) {
    const sdg_split_t *split = &placement->split[d];
    if (split->axes == 0)
      continue;
    char sizes[160];
    sdg_part_format(&placement->part[d], sizes, sizeof sizes);
    append(out, out_bytes, &used, "%s", used ? "; " : "");
    append_dim(out, out_bytes, &used, name, d);
    append(out, out_bytes, &used, " %" PRId64 " = %s over ",
           sdg_placement_extent(placement, d), sizes);
    append_axes(out, out_bytes, &used, split, mesh);
  }
  if (used == 0)
    append(out, out_bytes, &used, "replicated");
}
