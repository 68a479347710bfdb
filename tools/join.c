// SPDX-License-Identifier: Apache-2.0
// `sundog join`: puts the pieces of an array file together.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/array/names.h"
#include "tools/array/pieces.h"
#include "tools/array/unfinished.h"
#include "tools/command.h"

static error_t join_parse(int key, char *argument, struct argp_state *state) {
  pieces_t *pieces = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = pieces;
    return 0;
  case ARGP_KEY_ARG:
    return pieces_take_word(pieces, argument);
  case 'f':
    pieces->force = true;
    return 0;
  case ARGP_KEY_END:
    if (pieces->files < 2)
      argp_error(state, "the output and at least one piece are needed");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option join_options[] = {
    {"force", 'f', NULL, 0,
     "Replace OUTPUT even if it looks like one more piece", 0},
    {0},
};
static const struct argp_child join_children[] = {{&pieces_argp, 0, NULL, 0},
                                                  {0}};
const struct argp join_argp = {
    .options = join_options,
    .parser = join_parse,
    .children = join_children,
    .args_doc = "OUTPUT PIECE...",
    .doc = "Joins the pieces of an array file, in the order of the ranks; a "
           "PIECE with {rank} in its name stands for all of them. The sizes of "
           "the pieces decide where each lies; --parts is checked if given. "
           "Pieces of raw elements need --shape and --dtype of the whole and "
           "the --parts by which they were cut. OUTPUT is in Fortran order if "
           "all pieces are. An existing OUTPUT is replaced, unless it is a "
           "piece or looks like one more piece. Numbers in names that do not "
           "ascend, and a file with the next number, are said.\v  sundog join "
           "out.npy "
           "'out-{rank}.npy'\n  sundog join --dim H:y,W:x --mesh y=2,x=2 "
           "out.npy out.[0-3].npy\n  sundog join --shape 3,512,512 --dtype "
           "float32 --parts 300,212 out.raw a.raw b.raw"};

typedef struct join {
  pieces_t given;
  int ranks;
  char **path;      // paths of the pieces; owned
  sdg_npy_t *piece; // open, or zeroed
  int64_t (*extent)[SDG_DIMS_MAX];
  int *rank; // 0, 1, ...
} join_t;

static sdg_status_t names_make(join_t *join) {
  const pieces_t *given = &join->given;
  bool pattern = given->files == 2 && strstr(given->file[1], "{rank}");
  join->ranks = pattern ? pieces_count(given, 0) : given->files - 1;
  // If no option gives the number, counts the existing files.
  while (pattern && pieces_count(given, 0) == 0) {
    char *path = pieces_name(given->file[1], join->ranks);
    bool there = path && access(path, F_OK) == 0;
    free(path);
    if (!there || join->ranks == SDG_RANKS_MAX)
      break;
    join->ranks++;
  }
  if (join->ranks == 0)
    return sdg_fail(SDG_E_PIECES, "the piece '%s' does not exist",
                    given->file[1]);
  if (given->ranks && given->ranks != join->ranks)
    return sdg_fail(SDG_E_PIECES, "%d pieces for %d ranks", join->ranks,
                    given->ranks);
  if (!pattern)
    SDG_TRY(names_order_check(given->file + 1, join->ranks));
  size_t n = (size_t)join->ranks;
  join->path = calloc(n, sizeof *join->path);
  join->piece = calloc(n, sizeof *join->piece);
  join->extent = calloc(n, sizeof *join->extent);
  join->rank = calloc(n, sizeof *join->rank);
  if (!join->path || !join->piece || !join->extent || !join->rank)
    return sdg_fail(SDG_E_NO_MEMORY, "for %d pieces", join->ranks);
  for (int r = 0; r < join->ranks; r++) {
    join->rank[r] = r;
    join->path[r] =
        pattern ? pieces_name(given->file[1], r) : strdup(given->file[r + 1]);
    if (!join->path[r])
      return sdg_fail(SDG_E_NO_MEMORY, "for a name");
  }
  names_say(join->path, join->ranks);
  return SDG_OK;
}

static sdg_status_t piece_opened(join_t *join, int r) {
  const sdg_npy_header_t *own = &join->piece[r].header,
                         *first = &join->piece[0].header;
  if (own->dims != first->dims)
    return sdg_fail(SDG_E_PIECES, "%s has %d dimensions, %s has %d",
                    join->path[r], own->dims, join->path[0], first->dims);
  if (strcmp(own->dtype, first->dtype) != 0)
    return sdg_fail(SDG_E_PIECES, "%s is of type %s, %s of %s", join->path[r],
                    own->dtype, join->path[0], first->dtype);
  memcpy(join->extent[r], own->extent, sizeof join->extent[r]);
  return SDG_OK;
}

// Finds the place of each .npy piece from the pieces' extents.
static sdg_status_t npy_place(join_t *join, sdg_mesh_t *mesh,
                              sdg_placement_t *out_placement) {
  static const char *const numbers[SDG_DIMS_MAX] = {"0", "1", "2", "3",
                                                    "4", "5", "6", "7"};
  sdg_split_t split[SDG_DIMS_MAX];
  for (int r = 0; r < join->ranks; r++) {
    SDG_TRY(sdg_npy_open(join->path[r], &join->piece[r]));
    SDG_TRY(piece_opened(join, r));
  }
  int dims = join->piece[0].header.dims;
  SDG_TRY(pieces_splits(&join->given, join->ranks, dims, mesh, split));
  SDG_TRY(sdg_placement_derive(
      mesh, join->rank, join->ranks, dims, split, numbers,
      (const int64_t(*)[SDG_DIMS_MAX])join->extent, out_placement));
  if (!join->given.parts)
    return SDG_OK;
  int64_t extent[SDG_DIMS_MAX];
  sdg_placement_t said;
  for (int d = 0; d < dims; d++)
    extent[d] = sdg_placement_extent(out_placement, d);
  sdg_status_t status =
      pieces_place(&join->given, mesh, split, dims, extent, &said);
  if (status == SDG_OK) {
    char text[512];
    sdg_placement_format(out_placement, mesh, numbers, text, sizeof text);
    if (!sdg_placement_equal(out_placement, &said))
      status = sdg_fail(SDG_E_PIECES, "dimension %s, not --parts %s", text,
                        join->given.parts);
    sdg_placement_fini(&said);
  }
  if (status != SDG_OK)
    sdg_placement_fini(out_placement);
  return status;
}

// Finds the place of each raw piece from --shape and --parts.
static sdg_status_t raw_place(join_t *join, sdg_mesh_t *mesh,
                              sdg_placement_t *out_placement) {
  int dims;
  int64_t extent[SDG_DIMS_MAX];
  sdg_split_t split[SDG_DIMS_MAX];
  sdg_status_t status = SDG_OK;
  SDG_TRY(pieces_shape(&join->given, &dims, extent));
  SDG_TRY(pieces_splits(&join->given, join->ranks, dims, mesh, split));
  SDG_TRY(pieces_place(&join->given, mesh, split, dims, extent, out_placement));
  for (int r = 0; r < join->ranks && status == SDG_OK; r++) {
    sdg_box_t box = sdg_placement_box(out_placement, mesh, r);
    for (int d = 0; d < dims; d++)
      extent[d] = box.dim[d].hi - box.dim[d].lo;
    status = sdg_npy_open_raw(join->path[r], join->given.dtype, dims, extent,
                              &join->piece[r]);
  }
  if (status != SDG_OK)
    sdg_placement_fini(out_placement);
  return status;
}

// Returns whether a lower rank holds the same box, and so the same elements.
static bool is_replica(const sdg_placement_t *placement, const sdg_mesh_t *mesh,
                       int rank, const sdg_box_t *box, int *out_first) {
  for (int r = 0; r < rank; r++) {
    sdg_box_t other = sdg_placement_box(placement, mesh, r);
    if (sdg_box_equal(box, &other) && !sdg_box_empty(box)) {
      *out_first = r;
      return true;
    }
  }
  return false;
}

static sdg_status_t pieces_write(const join_t *join, const sdg_mesh_t *mesh,
                                 const sdg_placement_t *placement,
                                 const sdg_npy_t *whole) {
  for (int r = 0; r < join->ranks; r++) {
    sdg_box_t box = sdg_placement_box(placement, mesh, r);
    sdg_box_t own = sdg_npy_box(&join->piece[r]);
    bool equal;
    int first = 0;
    bool replica = is_replica(placement, mesh, r, &box, &first);
    SDG_TRY(pieces_copy(&join->piece[r], &own, whole, &box, replica, &equal));
    if (!equal)
      return sdg_fail(SDG_E_PIECES, "%s and %s are the same piece but differ",
                      join->path[r], join->path[first]);
  }
  return SDG_OK;
}

// Returns true if the array `old` could be another piece: its extents agree
// with the pieces' in all dimensions that are not cut. An array with all the
// extents of the result is an earlier result instead.
static bool fits_as_piece(const join_t *join, const sdg_npy_header_t *old,
                          const sdg_placement_t *placement) {
  const sdg_npy_header_t *piece = &join->piece[0].header;
  bool is_result = join->ranks > 1;
  if (old->dims != piece->dims || strcmp(old->dtype, piece->dtype) != 0)
    return false;
  for (int d = 0; d < old->dims; d++) {
    int64_t whole = sdg_placement_extent(placement, d);
    is_result &= old->extent[d] == whole;
    if (placement->split[d].axes == 0 && old->extent[d] != whole)
      return false;
  }
  return !is_result;
}

// Refuses an output that would replace a piece: this happens if the user lists
// the pieces but forgets the output's name, so that the first piece is taken
// for it.
static sdg_status_t output_check(const join_t *join,
                                 const sdg_placement_t *placement) {
  const char *output = join->given.file[0];
  for (int r = 0; r < join->ranks; r++)
    SDG_TRY(unfinished_check(output, join->path[r]));
  if (join->given.force || strstr(join->given.file[1], "{rank}") ||
      access(output, F_OK) != 0)
    return SDG_OK;
  bool is_piece = false;
  for (int r = 0; r < join->ranks; r++)
    is_piece |= names_differ_by_number(output, join->path[r]);
  sdg_npy_t old;
  if (!is_piece && !join->given.shape && sdg_npy_open(output, &old) == SDG_OK) {
    is_piece = fits_as_piece(join, &old.header, placement);
    sdg_npy_close(&old);
  }
  if (!is_piece)
    return SDG_OK;
  return sdg_fail(
      SDG_E_OVERWRITE,
      "the output '%s' exists, and looks like a piece that comes before '%s'",
      output, join->path[0]);
}

// Returns whether two paths lead to one file, which is not so of two links that
// a program made to save space, because their content is the same.
static bool is_same(const char *a, const struct stat *is_a, const char *b,
                    const struct stat *is_b) {
  if (is_a->st_dev != is_b->st_dev || is_a->st_ino != is_b->st_ino)
    return false;
  char *real_a = realpath(a, NULL), *real_b = realpath(b, NULL);
  bool same = real_a && real_b && strcmp(real_a, real_b) == 0;
  free(real_a);
  free(real_b);
  return same;
}

// Refuses a file that is given for two pieces with different places.
static sdg_status_t twice_check(const join_t *join, const sdg_mesh_t *mesh,
                                const sdg_placement_t *placement) {
  sdg_status_t status = SDG_OK;
  struct stat *is = calloc((size_t)join->ranks, sizeof *is);
  if (!is)
    return sdg_fail(SDG_E_NO_MEMORY, "for %d pieces", join->ranks);
  for (int r = 0; r < join->ranks && status == SDG_OK; r++) {
    sdg_box_t box = sdg_placement_box(placement, mesh, r);
    if (stat(join->path[r], &is[r]) != 0)
      continue;
    for (int q = 0; q < r && status == SDG_OK; q++) {
      sdg_box_t other = sdg_placement_box(placement, mesh, q);
      if (sdg_box_equal(&box, &other) ||
          !is_same(join->path[q], &is[q], join->path[r], &is[r]))
        continue;
      status = strcmp(join->path[q], join->path[r]) == 0
                   ? sdg_fail(SDG_E_PIECES, "%s is given twice", join->path[r])
                   : sdg_fail(SDG_E_PIECES, "%s is %s", join->path[r],
                              join->path[q]);
    }
  }
  free(is);
  return status;
}

static sdg_status_t join_run(join_t *join) {
  sdg_mesh_t mesh;
  sdg_placement_t placement;
  sdg_npy_t whole = {.path = NULL};
  int64_t extent[SDG_DIMS_MAX];
  bool raw = join->given.shape != NULL;
  SDG_TRY(pieces_check_raw(&join->given));
  SDG_TRY(names_make(join));
  SDG_TRY(raw ? raw_place(join, &mesh, &placement)
              : npy_place(join, &mesh, &placement));
  for (int d = 0; d < placement.dims; d++)
    extent[d] = sdg_placement_extent(&placement, d);
  sdg_npy_header_t like = join->piece[0].header;
  for (int r = 0; r < join->ranks; r++)
    like.fortran &= join->piece[r].header.fortran;
  sdg_status_t status = output_check(join, &placement);
  if (status == SDG_OK)
    status = twice_check(join, &mesh, &placement);
  if (status == SDG_OK)
    status = unfinished_create(join->given.file[0], raw, &like, placement.dims,
                               extent, &whole);
  if (status == SDG_OK)
    status = pieces_write(join, &mesh, &placement, &whole);
  if (status == SDG_OK)
    status = unfinished_commit(&whole);
  unfinished_close(&whole);
  sdg_placement_fini(&placement);
  return status;
}

int command_join(int argc, char **argv) {
  join_t join = {.ranks = 0};
  unfinished_guard();
  argp_parse(&join_argp, argc, argv, 0, NULL, &join.given);
  sdg_status_t status = join_run(&join);
  for (int r = 0; r < join.ranks; r++) {
    if (join.piece)
      sdg_npy_close(&join.piece[r]);
    if (join.path)
      free(join.path[r]);
  }
  free(join.path);
  free(join.piece);
  free(join.extent);
  free(join.rank);
  free(join.given.file);
  return command_exit(status);
}
