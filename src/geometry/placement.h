/* SPDX-License-Identifier: Apache-2.0 */
/* A placement: which rank holds which piece of one tensor. Each dimension is
 * replicated, or split over a list of mesh axes. Pure. */
#ifndef SDG_SRC_GEOMETRY_PLACEMENT_H
#define SDG_SRC_GEOMETRY_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "src/geometry/box.h"
#include "src/geometry/mesh.h"
#include "src/geometry/part.h"

/* The mesh axes that one dimension is split over; the first varies slowest.
 * H over "y+x" of y=2,x=3: piece 4 is at y=1, x=1. */
typedef struct sdg_split {
  int axes; /* 0: replicated */
  int axis[SDG_AXES_MAX];
} sdg_split_t;

typedef struct sdg_placement {
  int dims; /* 1..SDG_DIMS_MAX */
  sdg_split_t split[SDG_DIMS_MAX];
  /* Splits the global extent; one piece if the dimension is replicated; owned.
   */
  sdg_part_t part[SDG_DIMS_MAX];
} sdg_placement_t;

/* Makes a placement with every dimension replicated. */
sdg_status_t sdg_placement_init(int dims, const int64_t *extent,
                                sdg_placement_t *out_placement) SDG_MUST_CHECK;
void sdg_placement_fini(sdg_placement_t *placement);
sdg_status_t sdg_placement_copy(const sdg_placement_t *placement,
                                sdg_placement_t *out_placement) SDG_MUST_CHECK;
/* Splits dimension `dim` by a copy of `part`, replacing its extent and split.
 * SDG_E_PARTS, without a change, unless the part has one piece per rank along
 * the axes, and the axes are distinct and not used by another dimension. */
sdg_status_t sdg_placement_split(sdg_placement_t *placement,
                                 const sdg_mesh_t *mesh, int dim,
                                 const sdg_split_t *split,
                                 const sdg_part_t *part) SDG_MUST_CHECK;
/* The same with the part itself, which the placement then owns. A failure frees
 * it. */
sdg_status_t sdg_placement_take(sdg_placement_t *placement,
                                const sdg_mesh_t *mesh, int dim,
                                const sdg_split_t *split,
                                sdg_part_t *part) SDG_MUST_CHECK;
/* Makes a placement whose dimension d is split as dimension from[d] of `like`,
 * which has the same extent; -1: replicated. */
sdg_status_t sdg_placement_like(int dims, const int64_t *extent,
                                const sdg_mesh_t *mesh,
                                const sdg_placement_t *like, const int *from,
                                sdg_placement_t *out) SDG_MUST_CHECK;
bool sdg_placement_equal(const sdg_placement_t *a, const sdg_placement_t *b);

/* Returns true if both have the same dimensions with the same extents. */
bool sdg_placement_extents_equal(const sdg_placement_t *a,
                                 const sdg_placement_t *b);
int64_t sdg_placement_extent(const sdg_placement_t *placement, int dim);
/* Returns the union of all split axes; sdg_placement_group returns
 * sdg_mesh_group(mesh, rank, that union). */
sdg_axes_t sdg_placement_axes(const sdg_placement_t *placement);
int sdg_placement_group(const sdg_placement_t *placement,
                        const sdg_mesh_t *mesh, int rank, int *out_ranks);

/* Return the number of pieces of a split, and the piece of a rank: row-major
 * over the split's axes. */
int sdg_split_pieces(const sdg_split_t *split, const sdg_mesh_t *mesh);
int sdg_split_piece(const sdg_split_t *split, const sdg_mesh_t *mesh, int rank);

sdg_axes_t sdg_split_all_axes(const sdg_split_t *split);
bool sdg_split_equal(const sdg_split_t *a, const sdg_split_t *b);

/* Returns true if the dimension is split over some axis. */
static inline bool sdg_placement_splits(const sdg_placement_t *placement,
                                        int dim) {
  return placement->split[dim].axes > 0;
}

/* Returns the box that `rank` holds, in global coordinates; empty if it holds
 * nothing. */
sdg_box_t sdg_placement_box(const sdg_placement_t *placement,
                            const sdg_mesh_t *mesh, int rank);

/* Two ranks that must have equal sizes in a dimension but do not. */
typedef struct sdg_extents_conflict {
  int dim;
  int member, other; /* indices into the group; both equal if a size is < 0 */
} sdg_extents_conflict_t;

/* extent[i]: local extents of ranks[i]. Returns true, with the first conflict,
 * if the ranks' extents do not form one tensor under the splits: the size of a
 * dimension may depend only on a rank's piece of that dimension. Reports
 * nothing. */
bool sdg_placement_conflict(const sdg_mesh_t *mesh, const int *ranks, int count,
                            int dims, const sdg_split_t *split,
                            const int64_t (*extent)[SDG_DIMS_MAX],
                            sdg_extents_conflict_t *out_conflict);

/* Derives the placement from the ranks' local extents. `ranks` must include
 * every piece of every split (a group along at least the split axes). `name`:
 * names of the dimensions for messages; may be NULL. SDG_E_EXTENTS names the
 * ranks and the dimension of the first conflict. Example: H over y=2, ranks 0
 * and 1 with {1,3,5,8} and {1,3,4,8}: H 9 = 5+4. */
sdg_status_t
sdg_placement_derive(const sdg_mesh_t *mesh, const int *ranks, int count,
                     int dims, const sdg_split_t *split,
                     const char *const *name,
                     const int64_t (*extent)[SDG_DIMS_MAX],
                     sdg_placement_t *out_placement) SDG_MUST_CHECK;

/* Writes "H 2048 = 520+500+516+512 over y=4"; several split dimensions are
 * joined by "; ", several axes by commas; "replicated" if none is split. Long
 * parts end in "...". `name` as above. */
void sdg_placement_format(const sdg_placement_t *placement,
                          const sdg_mesh_t *mesh, const char *const *name,
                          char *out, int out_bytes);

#endif
