/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a case, cuts it into pieces, and invents its input. */
#include "case.h"

#include <stdlib.h>
#include <string.h>

/* Dimensions by name, in descriptor order. */
static const char dim_names[] = "NCDHW";

static int dim_of(char name) {
  const char *at = strchr(dim_names, name);
  return at && *at ? (int)(at - dim_names) : -1;
}

/* "3x5" or "3x5x7" into the last two or three of `out`; returns how many. */
static int read_sizes(const char *text, int out[3]) {
  int values[3], count = 0;
  for (char *end; count < 3; text = end + 1) {
    values[count++] = (int)strtol(text, &end, 10);
    if (*end != 'x')
      break;
  }
  for (int i = 0; i < count; i++)
    out[3 - count + i] = values[i];
  return count;
}

/* "H:0+1,W:2" */
static int read_split(const char *text, case_t *c) {
  while (*text) {
    int d = dim_of(*text);
    if (d < 0 || text[1] != ':')
      return 0;
    text++;
    while (*text == ':' || *text == '+') {
      char *end;
      int axis = (int)strtol(text + 1, &end, 10);
      if (axis < 0 || axis >= CASE_AXES || c->axis_count[d] == CASE_AXES)
        return 0;
      c->axis[d][c->axis_count[d]++] = axis;
      text = end;
    }
    if (*text == ',')
      text++;
  }
  return 1;
}

static int read_parts(const char *text, int d, case_t *c) {
  int count = 0;
  for (char *end; count <= CASE_PIECES; text = end + 1) {
    c->first[d][count++] = (int)strtol(text, &end, 10);
    if (*end != ',')
      break;
  }
  c->pieces[d] = count - 1;
  return count > 1;
}

static int read_word(const char *key, const char *value, case_t *c) {
  int number = atoi(value);
  if (!strcmp(key, "mesh")) {
    int sizes[3] = {0};
    c->mesh_count = read_sizes(value, sizes);
    for (int i = 0; i < c->mesh_count; i++)
      c->mesh[i] = sizes[3 - c->mesh_count + i];
    return c->mesh_count > 0;
  }
  if (!strcmp(key, "split"))
    return read_split(value, c);
  if (!strncmp(key, "part", 4) && dim_of(key[4]) >= 0)
    return read_parts(value, dim_of(key[4]), c);
  if (!strcmp(key, "size")) {
    c->rank = 2 + read_sizes(value, c->size + 2);
    return 1;
  }
  if (!strcmp(key, "kernel"))
    return read_sizes(value, c->kernel);
  if (!strcmp(key, "stride"))
    return read_sizes(value, c->stride);
  if (!strcmp(key, "dilation"))
    return read_sizes(value, c->dilation);
  if (!strcmp(key, "pad"))
    return read_sizes(value, c->pad);
  if (!strcmp(key, "op")) {
    c->op = !strcmp(value, "conv")       ? CASE_CONV
            : !strcmp(value, "biasrelu") ? CASE_BIAS_RELU
                                         : CASE_BIAS_NONE;
    return 1;
  }
  if (!strcmp(key, "alpha") || !strcmp(key, "beta")) {
    *(key[0] == 'a' ? &c->alpha : &c->beta) = (float)atof(value);
    return 1;
  }
  if (!strcmp(key, "seed")) {
    c->seed = strtoull(value, NULL, 10);
    return 1;
  }
  const struct {
    const char *key;
    int *out;
  } numbers[] = {
      {"n", &c->size[0]},       {"c", &c->size[1]},
      {"k", &c->outputs},       {"groups", &c->groups},
      {"nhwc", &c->nhwc},       {"gap", &c->gap},
      {"flipped", &c->flipped}, {"zy", &c->z_is_y},
      {"repeat", &c->repeat},   {"own_sizes", &c->own_sizes},
      {"spread", &c->spread},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!strcmp(key, numbers[i].key)) {
      *numbers[i].out = number;
      return 1;
    }
  /* Words for the driver alone. */
  return !strcmp(key, "strategy") || !strcmp(key, "name");
}

const char *case_read(char *line, case_t *out) {
  case_t c = {.repeat = 1, .groups = 1, .alpha = 1};
  for (int i = 0; i < 3; i++) {
    c.kernel[i] = c.stride[i] = c.dilation[i] = 1;
    c.size[2 + i] = 1;
  }
  for (char *save, *word = strtok_r(line, " \n", &save); word;
       word = strtok_r(NULL, " \n", &save)) {
    char *value = strchr(word, '=');
    if (!value)
      return word;
    *value = 0;
    if (!read_word(word, value + 1, &c))
      return word;
  }
  *out = c;
  return NULL;
}

int case_ranks(const case_t *c) {
  int ranks = 1;
  for (int i = 0; i < c->mesh_count; i++)
    ranks *= c->mesh[i];
  return ranks;
}

/* Which piece of dimension `d` a rank holds: its coordinates along the
 * dimension's axes, row-major. Example: mesh 2x3, axes 1: rank 4 -> 1. */
static int piece_of(const case_t *c, int rank, int d) {
  int coordinate[CASE_AXES], piece = 0;
  for (int i = c->mesh_count - 1; i >= 0; i--) {
    coordinate[i] = rank % c->mesh[i];
    rank /= c->mesh[i];
  }
  for (int i = 0; i < c->axis_count[d]; i++)
    piece = piece * c->mesh[c->axis[d][i]] + coordinate[c->axis[d][i]];
  return piece;
}

static int ceil_div(int a, int b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* The extent of y along spatial dimension i. */
static int outputs_along(const case_t *c, int i) {
  int reach = c->dilation[i] * (c->kernel[i] - 1) + 1;
  return (c->size[2 + i] + 2 * c->pad[i] - reach) / c->stride[i] + 1;
}

/* Where y is cut, given where x is: an output belongs to who owns the centre
 * of its window. */
static int cut_y(const case_t *c, int d, int piece) {
  if (d < 2)
    return c->first[d][piece];
  int i = d - 2, total = outputs_along(c, i);
  if (piece == 0)
    return 0;
  if (piece == c->pieces[d])
    return total;
  int centre = c->dilation[i] * (c->kernel[i] - 1) / 2;
  int cut = ceil_div(c->first[d][piece] + c->pad[i] - centre, c->stride[i]);
  return cut < 0 ? 0 : cut > total ? total : cut;
}

case_box_t case_x(const case_t *c, int rank) {
  case_box_t box = {0};
  for (int d = 0; d < CASE_DIMS; d++) {
    box.extent[d] = c->size[d];
    if (rank < 0 || !c->axis_count[d])
      continue;
    int piece = piece_of(c, rank, d);
    box.first[d] = c->first[d][piece];
    box.extent[d] = c->first[d][piece + 1] - box.first[d];
  }
  return box;
}

case_box_t case_y(const case_t *c, int rank) {
  case_box_t box = {0};
  for (int d = 0; d < CASE_DIMS; d++) {
    box.extent[d] = d == 0   ? c->size[0]
                    : d == 1 ? c->outputs
                             : outputs_along(c, d - 2);
    if (rank < 0 || !c->axis_count[d])
      continue;
    int piece = piece_of(c, rank, d);
    box.first[d] = cut_y(c, d, piece);
    box.extent[d] = cut_y(c, d, piece + 1) - box.first[d];
  }
  return box;
}

int64_t case_count(case_box_t box) {
  int64_t count = 1;
  for (int d = 0; d < CASE_DIMS; d++)
    count *= box.extent[d];
  return count;
}

int64_t case_strides(const case_t *c, const int extent[CASE_DIMS], int gap,
                     int64_t stride[CASE_DIMS]) {
  static const int nchw[] = {4, 3, 2, 1, 0}, nhwc[] = {1, 4, 3, 2, 0};
  const int *order = c->nhwc ? nhwc : nchw;
  int64_t next = 1, span = 1;
  for (int i = 0; i < CASE_DIMS; i++) {
    int d = order[i];
    stride[d] = next;
    span += (extent[d] - 1) * next;
    next *= extent[d];
    /* The line is W, with its channels where they are innermost. */
    if (d == 4)
      next += gap;
  }
  return span;
}

float case_value(const case_t *c, case_tensor_t tensor, const int at[CASE_DIMS],
                 const int size[CASE_DIMS]) {
  uint64_t index = 0;
  for (int d = 0; d < CASE_DIMS; d++)
    index = index * (uint64_t)size[d] + (uint64_t)at[d];
  /* The finalizer of splitmix64. */
  uint64_t z = (c->seed * 8 + (uint64_t)tensor) * 0x9e3779b97f4a7c15u + index;
  z = (z + 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return (float)((double)(z >> 40) / (1 << 23) - 1 + 1.0 / (1 << 24));
}
