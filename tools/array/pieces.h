/* SPDX-License-Identifier: Apache-2.0 */
/* What `split` and `join` have in common: which pieces an array has. */
#ifndef SDG_TOOLS_ARRAY_PIECES_H
#define SDG_TOOLS_ARRAY_PIECES_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/mesh.h"
#include "src/geometry/placement.h"
#include "tools/array/npy.h"

/* The arguments, as given; NULL or 0 where not. */
typedef struct pieces {
  const char *dim;   /* "H", "0", "H:y,W:x" */
  const char *mesh;  /* "y=2,x=2" */
  const char *parts; /* "even/32", "300,212", "H:300,212 W:even" */
  int ranks;
  const char *shape, *dtype; /* of a raw file */
  const char *output;        /* split: pattern with {rank} */
  bool force;                /* join: the output may look like a piece */
  int files;
  char **file; /* the words that are no options */
} pieces_t;

/* Options of both commands; a child parser whose input is pieces_t. */
extern const struct argp pieces_argp;
/* Takes the remaining words, which may stand between options. */
error_t pieces_take_word(pieces_t *pieces, char *word);
/* Fails (SDG_E_USAGE) if only one of --shape and --dtype was given. */
sdg_status_t pieces_check_raw(const pieces_t *pieces) SDG_MUST_CHECK;

/* The shape of a raw array. */
sdg_status_t pieces_shape(const pieces_t *pieces, int *out_dims,
                          int64_t *out_extent) SDG_MUST_CHECK;

/* The number of pieces: --ranks, the product of --mesh, the length of the list
 * in --parts, `fallback`; the first that is given. 0 if none is. */
int pieces_count(const pieces_t *pieces, int fallback);

/* The mesh of `ranks`, and the axes that each of an array's `dims` dimensions
 * is split over (SDG_DIMS_MAX entries). Without --dim that is H, or the only
 * dimension. */
sdg_status_t pieces_splits(const pieces_t *pieces, int ranks, int dims,
                           sdg_mesh_t *out_mesh,
                           sdg_split_t *out_split) SDG_MUST_CHECK;

/* The placement that --parts, or even division, gives. */
sdg_status_t pieces_place(const pieces_t *pieces, const sdg_mesh_t *mesh,
                          const sdg_split_t *split, int dims,
                          const int64_t *extent,
                          sdg_placement_t *out_placement) SDG_MUST_CHECK;

/* `pattern` with every {rank} replaced; owned by the caller, NULL without
 * memory. */
char *pieces_name(const char *pattern, int rank);

/* Copies the elements of from's `source` to to's `target`, boxes of one shape,
 * in amounts that fit in memory. `compare`: the target is read instead, and
 * *out_equal tells whether it has the same elements. */
sdg_status_t pieces_copy(const sdg_npy_t *from, const sdg_box_t *source,
                         const sdg_npy_t *to, const sdg_box_t *target,
                         bool compare, bool *out_equal) SDG_MUST_CHECK;

#endif
