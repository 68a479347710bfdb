// SPDX-License-Identifier: Apache-2.0
// The pieces of an array, from the arguments of `split` and `join`.
#include "tools/array/pieces.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/geometry/part.h"

enum { KEY_MESH = 0x100, KEY_PARTS, KEY_SHAPE, KEY_DTYPE, TEXT_BYTES = 4096 };
static const int64_t COPY_BYTES = 1 << 26;

static const struct argp_option pieces_options[] = {
    {"dim", 'd', "DIM[:AXIS],...", 0,
     "The dimension to cut: its number from 0, or D, H, W (the last three), N, "
     "C (the first two of four or more). Several with the axes of --mesh: "
     "H:y,W:x. Default: H, or the only dimension",
     0},
    {"split", 'd', NULL, OPTION_ALIAS, NULL, 0},
    {"mesh", KEY_MESH, "MESH", 0,
     "Axes of ranks, row-major, as in y=2,x=2; default: one axis", 0},
    {"parts", KEY_PARTS, "PARTS", 0,
     "even (default), even/32 (inner boundaries are multiples of 32), chunk "
     "(equal sizes except the last), sizes: 300,212; or one for each "
     "dimension: 'H:300,212 W:even'",
     0},
    {"ranks", 'n', "N", 0,
     "Number of pieces; default: from --mesh, --parts or the number of files",
     0},
    {"shape", KEY_SHAPE, "N,N,...", 0,
     "The files are raw elements without a header; this is the shape of the "
     "whole array",
     0},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "Type of a raw file's elements, as in float32, f4, int64, u1", 0},
    {0},
};

static error_t pieces_parse(int key, char *argument, struct argp_state *state) {
  pieces_t *pieces = state->input;
  char *end;
  long ranks;
  switch (key) {
  case 'd':
    pieces->dim = argument;
    return 0;
  case KEY_MESH:
    pieces->mesh = argument;
    return 0;
  case KEY_PARTS:
    pieces->parts = argument;
    return 0;
  case 'n':
    errno = 0;
    ranks = strtol(argument, &end, 10);
    if (errno || *end || end == argument || ranks < 1 || ranks > SDG_RANKS_MAX)
      argp_error(state, "-n takes a number from 1 to %d, not '%s'",
                 SDG_RANKS_MAX, argument);
    pieces->ranks = (int)ranks;
    return 0;
  case KEY_SHAPE:
    pieces->shape = argument;
    return 0;
  case KEY_DTYPE:
    pieces->dtype = argument;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp pieces_argp = {.options = pieces_options,
                                 .parser = pieces_parse};

error_t pieces_take_word(pieces_t *pieces, char *word) {
  char **more =
      realloc(pieces->file, ((size_t)pieces->files + 1) * sizeof *more);
  if (!more)
    return ENOMEM;
  pieces->file = more;
  pieces->file[pieces->files++] = word;
  return 0;
}

sdg_status_t pieces_check_raw(const pieces_t *pieces) {
  if (!pieces->shape == !pieces->dtype)
    return SDG_OK;
  return sdg_fail(SDG_E_USAGE,
                  "a raw file needs --shape and --dtype; %s is "
                  "missing",
                  pieces->shape ? "--dtype" : "--shape");
}

sdg_status_t pieces_shape(const pieces_t *pieces, int *out_dims,
                          int64_t *out_extent) {
  const char *at = pieces->shape;
  int dims = 0;
  for (;;) {
    char *end;
    errno = 0;
    long long extent = strtoll(at, &end, 10);
    if (errno || end == at || extent < 0 || dims == SDG_DIMS_MAX ||
        (*end && *end != ','))
      return sdg_fail(
          SDG_E_USAGE,
          "--shape '%s' is not a list of at most %d sizes, as in 100,200",
          pieces->shape, SDG_DIMS_MAX);
    out_extent[dims++] = extent;
    if (*end == '\0')
      break;
    at = end + 1;
  }
  *out_dims = dims;
  return SDG_OK;
}

int pieces_count(const pieces_t *pieces, int fallback) {
  if (pieces->ranks)
    return pieces->ranks;
  if (pieces->mesh) { // 0 if sdg_mesh_parse would refuse the text
    long product = sdg_mesh_product(pieces->mesh);
    return product < 1 || product > SDG_RANKS_MAX ? 0 : (int)product;
  }
  if (pieces->parts && strchr(pieces->parts, ',') &&
      !strchr(pieces->parts, ' ')) {
    int count = 1;
    for (const char *c = pieces->parts; *c; c++)
      count += *c == ',';
    return count;
  }
  return fallback;
}

// Returns the index of the dimension that "0" or "H" names, of `dims`
// dimensions; -1 if no dimension has this name.
static int dim_index(const char *name, int length, int dims) {
  static const char spatial[] = "DHW", leading[] = "NC";
  if (length == 1 && isalpha((unsigned char)*name)) {
    const char *at = strchr(spatial, *name);
    int index = at ? dims - 3 + (int)(at - spatial) : -1;
    if (at)
      return dims >= 4 && index < 2 ? -1 : index;
    at = strchr(leading, *name);
    return at && dims >= 4 ? (int)(at - leading) : -1;
  }
  int index = 0;
  for (int i = 0; i < length; i++) {
    if (!isdigit((unsigned char)name[i]) || i > 1)
      return -1;
    index = index * 10 + (name[i] - '0');
  }
  return length > 0 && index < dims ? index : -1;
}

static sdg_status_t dim_fail(const char *name, int length, int dims) {
  return sdg_fail(SDG_E_USAGE,
                  "an array of %d dimensions has no '%.*s'; its dimensions are "
                  "numbered 0 to %d",
                  dims, length, name, dims - 1);
}

// One item "H:y+x" or "H".
static sdg_status_t split_add(const char *item, int length, int dims,
                              const sdg_mesh_t *mesh, sdg_split_t *out_split) {
  const char *colon = memchr(item, ':', (size_t)length);
  int name = colon ? (int)(colon - item) : length;
  int dim = dim_index(item, name, dims);
  if (dim < 0)
    return dim_fail(item, name, dims);
  sdg_split_t *split = &out_split[dim];
  if (split->axes > 0)
    return sdg_fail(SDG_E_USAGE, "'%.*s' is cut twice", name, item);
  if (!colon) {
    if (mesh->axes > 1)
      return sdg_fail(
          SDG_E_USAGE,
          "the mesh has %d axes: say which of them cuts '%.*s', as in %.*s:%s",
          mesh->axes, name, item, name, item, mesh->name[0]);
    split->axes = 1;
    return SDG_OK;
  }
  const char *at = colon + 1, *end = item + length;
  while (at <= end) {
    char axis[SDG_AXIS_NAME_MAX] = "";
    const char *stop = at;
    while (stop < end && *stop != '+')
      stop++;
    snprintf(axis, sizeof axis, "%.*s", (int)(stop - at), at);
    int index = sdg_mesh_axis(mesh, axis);
    if (index < 0 || split->axes == SDG_AXES_MAX)
      return sdg_fail(SDG_E_USAGE, "the mesh has no axis '%.*s'",
                      (int)(stop - at), at);
    split->axis[split->axes++] = index;
    at = stop + 1;
  }
  return SDG_OK;
}

sdg_status_t pieces_splits(const pieces_t *pieces, int ranks, int dims,
                           sdg_mesh_t *out_mesh, sdg_split_t *out_split) {
  // A single axis in --dim needs no mesh.
  char single[64] = "";
  const char *text = pieces->dim ? pieces->dim : dims > 1 ? "H" : "0";
  const char *colon = strchr(text, ':');
  if (dims < 1)
    return sdg_fail(SDG_E_USAGE, "a single number cannot be cut");
  if (!pieces->mesh && colon && !strpbrk(text, ",+"))
    snprintf(single, sizeof single, "%.40s=%d", colon + 1, ranks);
  SDG_TRY(
      sdg_mesh_parse(pieces->mesh ? pieces->mesh : single, ranks, out_mesh));
  memset(out_split, 0, SDG_DIMS_MAX * sizeof *out_split);
  while (*text) {
    int length = (int)strcspn(text, ",");
    SDG_TRY(split_add(text, length, dims, out_mesh, out_split));
    text += length;
    text += *text == ',';
  }
  return SDG_OK;
}

// Copies the text of --parts for one dimension to `out`.
static sdg_status_t parts_of(const char *parts, int dim, int dims, char *out) {
  const char *colon = strchr(parts, ':');
  snprintf(out, TEXT_BYTES, "%s", colon ? "even" : parts);
  if (strlen(parts) >= TEXT_BYTES)
    return sdg_fail(SDG_E_USAGE, "--parts is too long");
  while (colon && *parts) {
    int length = (int)strcspn(parts, " ");
    colon = memchr(parts, ':', (size_t)length);
    if (length > 0 && !colon)
      return sdg_fail(SDG_E_USAGE,
                      "--parts: '%.*s' should be like H:300,212 (no spaces)",
                      length, parts);
    if (colon) {
      int name = (int)(colon - parts), index = dim_index(parts, name, dims);
      if (index < 0)
        return dim_fail(parts, name, dims);
      if (index == dim)
        snprintf(out, TEXT_BYTES, "%.*s", length - name - 1, colon + 1);
    }
    parts += length;
    parts += strspn(parts, " ");
    colon = parts;
  }
  return SDG_OK;
}

sdg_status_t pieces_place(const pieces_t *pieces, const sdg_mesh_t *mesh,
                          const sdg_split_t *split, int dims,
                          const int64_t *extent,
                          sdg_placement_t *out_placement) {
  sdg_status_t status;
  sdg_placement_t placement;
  char text[TEXT_BYTES];
  SDG_TRY(sdg_placement_init(dims, extent, &placement));
  for (int d = 0; d < dims; d++) {
    sdg_part_t part;
    if (split[d].axes == 0)
      continue;
    SDG_TRY_GOTO(
        parts_of(pieces->parts ? pieces->parts : "even", d, dims, text),
        fini_placement);
    SDG_TRY_GOTO(sdg_part_parse(text, extent[d],
                                sdg_split_pieces(&split[d], mesh), &part),
                 fini_placement);
    status = sdg_placement_split(&placement, mesh, d, &split[d], &part);
    sdg_part_fini(&part);
    if (status != SDG_OK)
      goto fini_placement;
  }
  *out_placement = placement;
  return SDG_OK;
fini_placement:
  sdg_placement_fini(&placement);
  return status;
}

char *pieces_name(const char *pattern, int rank) {
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  if (!out)
    return NULL;
  for (const char *at; (at = strstr(pattern, "{rank}")); pattern = at + 6)
    fprintf(out, "%.*s%d", (int)(at - pattern), pattern, rank);
  fputs(pattern, out);
  return fclose(out) == 0 ? text : NULL;
}

sdg_status_t pieces_copy(const sdg_npy_t *from, const sdg_box_t *source,
                         const sdg_npy_t *to, const sdg_box_t *target,
                         bool compare, bool *out_equal) {
  if (from->header.fortran && to->header.fortran) {
    const sdg_npy_t mirror[2] = {sdg_npy_mirror(from), sdg_npy_mirror(to)};
    const sdg_box_t box[2] = {sdg_npy_mirror_box(source),
                              sdg_npy_mirror_box(target)};
    return pieces_copy(&mirror[0], &box[0], &mirror[1], &box[1], compare,
                       out_equal);
  }
  int64_t count = sdg_box_count(source);
  *out_equal = true;
  if (count == 0)
    return SDG_OK;
  // Rows of the first dimension; an array without dimensions has one.
  int64_t rows = source->dims ? source->dim[0].hi - source->dim[0].lo : 1;
  int64_t row_bytes = count / rows * from->header.elem_bytes;
  int64_t step = row_bytes < COPY_BYTES ? COPY_BYTES / row_bytes : 1;
  if (step > rows)
    step = rows;
  sdg_status_t status = SDG_OK;
  char *elements = malloc((size_t)(step * row_bytes));
  char *others = compare ? malloc((size_t)(step * row_bytes)) : NULL;
  if (!elements || (compare && !others)) {
    status = sdg_fail(SDG_E_NO_MEMORY, "%lld bytes for a copy",
                      (long long)(step * row_bytes));
    goto free_elements;
  }
  for (int64_t row = 0; row < rows; row += step) {
    int64_t n = rows - row < step ? rows - row : step;
    sdg_box_t in = *source, out = *target;
    if (in.dims) {
      in.dim[0].lo += row;
      in.dim[0].hi = in.dim[0].lo + n;
      out.dim[0].lo += row;
      out.dim[0].hi = out.dim[0].lo + n;
    }
    SDG_TRY_GOTO(sdg_npy_read_box(from, &in, elements), free_elements);
    if (!compare) {
      SDG_TRY_GOTO(sdg_npy_write_box(to, &out, elements), free_elements);
      continue;
    }
    SDG_TRY_GOTO(sdg_npy_read_box(to, &out, others), free_elements);
    if (memcmp(elements, others, (size_t)(n * row_bytes)) != 0)
      *out_equal = false;
  }
free_elements:
  free(others);
  free(elements);
  return status;
}
