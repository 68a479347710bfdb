/* SPDX-License-Identifier: Apache-2.0 */
/* The options that `split` and `join` have in common, and the pieces of an
 * array that follow from them. */
#ifndef SDG_TOOLS_ARRAY_PIECES_H
#define SDG_TOOLS_ARRAY_PIECES_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/mesh.h"
#include "src/geometry/placement.h"
#include "tools/array/npy.h"

/* The arguments as given; NULL or 0 if absent. */
typedef struct pieces {
  const char *dim;   /* "H", "0", "H:y,W:x" */
  const char *mesh;  /* "y=2,x=2" */
  const char *parts; /* "even/32", "300,212", "H:300,212 W:even" */
  int ranks;
  const char *shape, *dtype; /* of a raw file */
  const char *output;        /* split: pattern with {rank} */
  bool force;                /* join: the output may look like a piece */
  int files;
  char **file; /* the words that are not options */
} pieces_t;

/* Options of both commands; a child parser whose input is pieces_t. */
extern const struct argp pieces_argp;
/* Takes a word that is not an option. Such words may stand between options. */
error_t pieces_take_word(pieces_t *pieces, char *word);
/* Fails (SDG_E_USAGE) if only one of --shape and --dtype was given. */
sdg_status_t pieces_check_raw(const pieces_t *pieces) SDG_MUST_CHECK;

/* Parses --shape, the extents of a raw array. */
sdg_status_t pieces_shape(const pieces_t *pieces, int *out_dims,
                          int64_t *out_extent) SDG_MUST_CHECK;

/* Returns the number of pieces. The first given source decides: --ranks, the
 * product of --mesh, the length of the list in --parts, `fallback`. 0 if all
 * are missing. */
int pieces_count(const pieces_t *pieces, int fallback);

/* Makes the mesh of `ranks` ranks, and for each of an array's `dims` dimensions
 * the axes that split it (SDG_DIMS_MAX entries). Without --dim, dimension H is
 * split, or the only dimension. */
sdg_status_t pieces_splits(const pieces_t *pieces, int ranks, int dims,
                           sdg_mesh_t *out_mesh,
                           sdg_split_t *out_split) SDG_MUST_CHECK;

/* Makes the placement from --parts, or from even division. */
sdg_status_t pieces_place(const pieces_t *pieces, const sdg_mesh_t *mesh,
                          const sdg_split_t *split, int dims,
                          const int64_t *extent,
                          sdg_placement_t *out_placement) SDG_MUST_CHECK;

/* Returns `pattern` with every {rank} replaced; owned by the caller, NULL if
 * memory runs out. */
char *pieces_name(const char *pattern, int rank);

/* Copies the elements of box `source` of `from` to box `target` of `to`, in
 * chunks that fit in memory. Both boxes have the same shape. With `compare` it
 * writes nothing: it reads the target, and sets *out_equal to whether the
 * elements are equal. */
sdg_status_t pieces_copy(const sdg_npy_t *from, const sdg_box_t *source,
                         const sdg_npy_t *to, const sdg_box_t *target,
                         bool compare, bool *out_equal) SDG_MUST_CHECK;

#endif
