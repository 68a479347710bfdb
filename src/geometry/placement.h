/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pieces of one tensor are: each dimension replicated, or split
 * over a list of mesh axes. Pure. */
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
  sdg_part_t part[SDG_DIMS_MAX]; /* of the global extent; one piece where the
                                    dimension is replicated; owned */
} sdg_placement_t;

/* Every dimension replicated. */
sdg_status_t sdg_placement_init(int dims, const int64_t *extent,
                                sdg_placement_t *out_placement) SDG_MUST_CHECK;
void sdg_placement_fini(sdg_placement_t *placement);
sdg_status_t sdg_placement_copy(const sdg_placement_t *placement,
                                sdg_placement_t *out_placement) SDG_MUST_CHECK;
/* Splits dimension `dim` by a copy of `part`, replacing its extent and split.
 * SDG_E_PARTS unless the part has one piece per rank along the axes and the
 * axes are distinct and not used by another dimension; then the placement is
 * as before. */
sdg_status_t sdg_placement_split(sdg_placement_t *placement,
                                 const sdg_mesh_t *mesh, int dim,
                                 const sdg_split_t *split,
                                 const sdg_part_t *part) SDG_MUST_CHECK;
bool sdg_placement_equal(const sdg_placement_t *a, const sdg_placement_t *b);

int64_t sdg_placement_extent(const sdg_placement_t *placement, int dim);
/* Union of all split axes; group ranks: sdg_mesh_group(mesh, rank, these). */
sdg_axes_t sdg_placement_axes(const sdg_placement_t *placement);
int sdg_placement_group(const sdg_placement_t *placement,
                        const sdg_mesh_t *mesh, int rank, int *out_ranks);

/* Pieces of a split, and the piece of a rank: row-major over its axes. */
int sdg_split_pieces(const sdg_split_t *split, const sdg_mesh_t *mesh);
int sdg_split_piece(const sdg_split_t *split, const sdg_mesh_t *mesh, int rank);

/* What `rank` holds, in global coordinates; empty if it holds nothing. */
sdg_box_t sdg_placement_box(const sdg_placement_t *placement,
                            const sdg_mesh_t *mesh, int rank);

/* Two ranks whose sizes of a dimension should be equal and are not. */
typedef struct sdg_extents_conflict {
  int dim;
  int member, other; /* indices into the group; equal if the size is < 0 */
} sdg_extents_conflict_t;

/* extent[i]: local extents of ranks[i]. True, with the first conflict, if they
 * do not make one tensor under the splits: the size of a dimension may depend
 * on a rank's piece of that dimension and on nothing else. Reports nothing. */
bool sdg_placement_conflict(const sdg_mesh_t *mesh, const int *ranks, int count,
                            int dims, const sdg_split_t *split,
                            const int64_t (*extent)[SDG_DIMS_MAX],
                            sdg_extents_conflict_t *out_conflict);

/* The placement whose local extents these are. `ranks` must contain every
 * piece of every split (a group along at least the split axes). `name`: of the
 * dimensions, for messages, may be NULL. SDG_E_EXTENTS names the ranks and
 * the dimension of the first conflict. Example: H over y=2, ranks 0 and 1
 * with {1,3,5,8} and {1,3,4,8}: H 9 = 5+4. */
sdg_status_t
sdg_placement_derive(const sdg_mesh_t *mesh, const int *ranks, int count,
                     int dims, const sdg_split_t *split,
                     const char *const *name,
                     const int64_t (*extent)[SDG_DIMS_MAX],
                     sdg_placement_t *out_placement) SDG_MUST_CHECK;

/* "H 2048 = 520+500+516+512 over y=4"; several split dimensions with "; ",
 * several axes with commas; "replicated" if none is split. Long parts end in
 * "...". `name` as above. */
void sdg_placement_format(const sdg_placement_t *placement,
                          const sdg_mesh_t *mesh, const char *const *name,
                          char *out, int out_bytes);

#endif
