// SPDX-License-Identifier: Apache-2.0
// `sundog split`: cuts an array file into one piece per rank.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/log.h"
#include "tools/array/pieces.h"
#include "tools/array/unfinished.h"
#include "tools/command.h"

static error_t split_parse(int key, char *argument, struct argp_state *state) {
  pieces_t *pieces = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = pieces;
    return 0;
  case 'o':
    pieces->output = argument;
    return 0;
  case ARGP_KEY_ARG:
    return pieces_take_word(pieces, argument);
  case ARGP_KEY_END:
    if (pieces->files != 1)
      argp_error(state, "one file at a time, not %d", pieces->files);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option split_options[] = {
    {"output", 'o', "PATTERN", 0,
     "Names of the pieces, with {rank} for the number of each, or a folder for "
     "them; default: FILE.{rank}.npy for FILE.npy",
     0},
    {0},
};
static const struct argp_child split_children[] = {{&pieces_argp, 0, NULL, 0},
                                                   {0}};
const struct argp split_argp = {
    .options = split_options,
    .parser = split_parse,
    .children = split_children,
    .args_doc = "FILE",
    .doc = "Cuts an array file (.npy, or raw with --shape and --dtype) into "
           "the pieces that the ranks of `sundog run` work on, and prints the "
           "name and shape of each. Pieces have the type, byte order and order "
           "of dimensions (C or Fortran) of the file.\v  sundog split --parts "
           "300,212 field.npy\n  sundog split --dim H --parts even/32 -n 4 "
           "field.npy -o in-{rank}.npy\n  sundog split --dim H:y,W:x --mesh "
           "y=2,x=2 field.npy\n  sundog split --shape 3,512,512 --dtype "
           "float32 -n 2 field.raw\n\n`sundog join` joins the pieces again."};

// Returns the default pattern: for "a/field.npy" it is "a/field.{rank}.npy", or
// "folder/field.{rank}.npy". Owned by the caller.
static char *pattern_default(const char *path, const char *folder) {
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  const char *dot = strrchr(base, '.'), *kept = folder ? base : path;
  char *pattern = NULL;
  int stem = dot && dot > base ? (int)(dot - kept) : (int)strlen(kept);
  return asprintf(&pattern, "%s%s%.*s.{rank}%s", folder ? folder : "",
                  folder ? "/" : "", stem, kept, kept + stem) < 0
             ? NULL
             : pattern;
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void piece_print(const char *path, const sdg_box_t *box) {
  printf("%s (", path);
  for (int d = 0; d < box->dims; d++)
    printf("%s%lld", d ? ", " : "",
           (long long)(box->dim[d].hi - box->dim[d].lo));
  printf(")\n");
}

// Writes a piece under its temporary name.
static sdg_status_t piece_write(const pieces_t *pieces, const sdg_npy_t *whole,
                                const char *path, const sdg_box_t *box,
                                sdg_npy_t *out_piece) {
  sdg_box_t own = {.dims = box->dims};
  int64_t extent[SDG_DIMS_MAX];
  bool equal;
  for (int d = 0; d < box->dims; d++) {
    extent[d] = box->dim[d].hi - box->dim[d].lo;
    own.dim[d] = (sdg_range_t){0, extent[d]};
  }
  SDG_TRY(unfinished_create(path, pieces->shape != NULL, &whole->header,
                            box->dims, extent, out_piece));
  SDG_TRY(pieces_copy(whole, box, out_piece, &own, false, &equal));
  return sdg_npy_finish(out_piece);
}

// Writes all pieces, then gives them their names. So if one cannot be written,
// for example on a full disk, no piece of an older split is replaced.
static sdg_status_t pieces_write(const pieces_t *pieces, const sdg_npy_t *whole,
                                 const char *pattern, int ranks,
                                 const sdg_mesh_t *mesh,
                                 const sdg_placement_t *placement) {
  sdg_status_t status = SDG_OK;
  sdg_npy_t *piece = calloc((size_t)ranks, sizeof *piece);
  if (!piece)
    return sdg_fail(SDG_E_NO_MEMORY, "for %d pieces", ranks);
  for (int r = 0; r < ranks && status == SDG_OK; r++) {
    sdg_box_t box = sdg_placement_box(placement, mesh, r);
    char *path = pieces_name(pattern, r);
    status = path ? unfinished_check(path, whole->path)
                  : sdg_fail(SDG_E_NO_MEMORY, "for a name");
    if (status == SDG_OK)
      status = piece_write(pieces, whole, path, &box, &piece[r]);
    free(path);
  }
  for (int r = 0; r < ranks && status == SDG_OK; r++) {
    sdg_box_t box = sdg_placement_box(placement, mesh, r);
    char *path = pieces_name(pattern, r);
    status = unfinished_commit(&piece[r]);
    if (status == SDG_OK && path)
      piece_print(path, &box);
    free(path);
  }
  for (int r = 0; r < ranks; r++)
    unfinished_close(&piece[r]);
  free(piece);
  return status;
}

// More ranks than pieces would read files that are left of an earlier split.
static void earlier_say(const char *pattern, int ranks) {
  char *next = strstr(pattern, "{rank}") ? pieces_name(pattern, ranks) : NULL;
  if (next && access(next, F_OK) == 0)
    sdg_log("%s is a piece of an earlier split, or another file: it is none of "
            "these %d pieces, so remove it or run with %d ranks",
            next, ranks, ranks);
  free(next);
}

static sdg_status_t split(const pieces_t *pieces, const sdg_npy_t *whole,
                          const char *pattern) {
  sdg_mesh_t mesh;
  sdg_split_t axes[SDG_DIMS_MAX];
  sdg_placement_t placement;
  int ranks = pieces_count(pieces, 0), dims = whole->header.dims;
  if (ranks == 0)
    return sdg_fail(SDG_E_USAGE, "the number of pieces is missing: give -n, "
                                 "--mesh or a list of --parts");
  if (ranks > 1 && !strstr(pattern, "{rank}"))
    return sdg_fail(SDG_E_USAGE,
                    "'%s' has no {rank}: all pieces would be one "
                    "file",
                    pattern);
  SDG_TRY(pieces_splits(pieces, ranks, dims, &mesh, axes));
  SDG_TRY(pieces_place(pieces, &mesh, axes, dims, whole->header.extent,
                       &placement));
  sdg_status_t status =
      pieces_write(pieces, whole, pattern, ranks, &mesh, &placement);
  if (status == SDG_OK)
    earlier_say(pattern, ranks);
  sdg_placement_fini(&placement);
  return status;
}

static sdg_status_t whole_open(const pieces_t *pieces, sdg_npy_t *out_whole) {
  int dims;
  int64_t extent[SDG_DIMS_MAX];
  SDG_TRY(pieces_check_raw(pieces));
  if (!pieces->shape)
    return sdg_npy_open(pieces->file[0], out_whole);
  SDG_TRY(pieces_shape(pieces, &dims, extent));
  return sdg_npy_open_raw(pieces->file[0], pieces->dtype, dims, extent,
                          out_whole);
}

int command_split(int argc, char **argv) {
  pieces_t pieces = {.files = 0};
  sdg_npy_t whole = {.path = NULL};
  unfinished_guard();
  argp_parse(&split_argp, argc, argv, 0, NULL, &pieces);
  bool folder = pieces.output && is_folder(pieces.output);
  char *fallback =
      pattern_default(pieces.file[0], folder ? pieces.output : NULL);
  sdg_status_t status = fallback ? whole_open(&pieces, &whole)
                                 : sdg_fail(SDG_E_NO_MEMORY, "for a name");
  if (status == SDG_OK) {
    status = split(&pieces, &whole,
                   pieces.output && !folder ? pieces.output : fallback);
    sdg_npy_close(&whole);
  }
  free(fallback);
  free(pieces.file);
  return command_exit(status);
}
