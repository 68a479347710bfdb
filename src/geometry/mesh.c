// SPDX-License-Identifier: Apache-2.0
// Parses the mesh's text, and converts ranks to coordinates and back.
#include "src/geometry/mesh.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *text) {
  while (isspace((unsigned char)*text))
    text++;
  return text;
}

// A name is a letter or underscore, followed by letters, digits and
// underscores: it must differ from a number and from "dimension:axis+axis".
static int name_length(const char *text) {
  int n = 0;
  while (text[n] == '_' || (n ? isalnum((unsigned char)text[n])
                              : isalpha((unsigned char)text[n])))
    n++;
  return n;
}

// Reads one "name=size" at *text as the mesh's next axis, and moves *text past
// it. `whole` is the user's full text, for messages.
static sdg_status_t axis_parse(const char **text, const char *whole,
                               sdg_mesh_t *mesh) {
  const char *at = skip_space(*text);
  int n = name_length(at);
  if (n == 0)
    return sdg_fail(SDG_E_MESH,
                    "expected the name of an axis at \"%s\" of "
                    "\"%s\"",
                    at, whole);
  if (n >= SDG_AXIS_NAME_MAX)
    return sdg_fail(SDG_E_MESH,
                    "axis name \"%.*s\" is longer than %d "
                    "characters",
                    n, at, SDG_AXIS_NAME_MAX - 1);
  if (mesh->axes == SDG_AXES_MAX)
    return sdg_fail(SDG_E_MESH, "\"%s\" has more than %d axes", whole,
                    SDG_AXES_MAX);
  char *name = mesh->name[mesh->axes];
  memcpy(name, at, (size_t)n);
  name[n] = '\0';
  if (sdg_mesh_axis(mesh, name) >= 0)
    return sdg_fail(SDG_E_MESH, "axis \"%s\" is named twice in \"%s\"", name,
                    whole);
  at = skip_space(at + n);
  if (*at != '=')
    return sdg_fail(SDG_E_MESH, "expected = after axis \"%s\" of \"%s\"", name,
                    whole);
  at = skip_space(at + 1);
  char *end;
  errno = 0;
  long size = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : 0;
  if (size < 1 || size > SDG_RANKS_MAX || errno)
    return sdg_fail(SDG_E_MESH,
                    "the size of axis \"%s\" of \"%s\" must be a "
                    "number from 1 to %d",
                    name, whole, SDG_RANKS_MAX);
  mesh->size[mesh->axes++] = (int)size;
  *text = skip_space(end);
  return SDG_OK;
}

sdg_status_t sdg_mesh_parse(const char *text, int ranks, sdg_mesh_t *out_mesh) {
  if (ranks < 1 || ranks > SDG_RANKS_MAX)
    return sdg_fail(SDG_E_MESH, "%d ranks; possible are 1 to %d", ranks,
                    SDG_RANKS_MAX);
  sdg_mesh_t mesh = {.axes = 0};
  if (!text || *skip_space(text) == '\0') {
    mesh.axes = 1;
    strcpy(mesh.name[0], "ranks");
    mesh.size[0] = ranks;
    *out_mesh = mesh;
    return SDG_OK;
  }
  const char *at = text;
  for (;;) {
    SDG_TRY(axis_parse(&at, text, &mesh));
    if (*at == '\0')
      break;
    if (*at != ',')
      return sdg_fail(SDG_E_MESH, "expected a comma at \"%s\" of \"%s\"", at,
                      text);
    at++;
  }
  long product = 1; // at most SDG_RANKS_MAX to the power SDG_AXES_MAX: 2^40
  for (int a = 0; a < mesh.axes; a++)
    product *= mesh.size[a];
  if (product != ranks)
    return sdg_fail(SDG_E_MESH, "\"%s\" lays out %ld ranks, but the job has %d",
                    text, product, ranks);
  *out_mesh = mesh;
  return SDG_OK;
}

long sdg_mesh_product(const char *text) {
  long product = 1;
  for (const char *c = strchr(text, '='); c && product <= SDG_RANKS_MAX;
       c = strchr(c + 1, '='))
    product *= strtol(c + 1, NULL, 10);
  return product;
}

int sdg_mesh_ranks(const sdg_mesh_t *mesh) {
  int ranks = 1;
  for (int a = 0; a < mesh->axes; a++)
    ranks *= mesh->size[a];
  return ranks;
}

int sdg_mesh_axis(const sdg_mesh_t *mesh, const char *name) {
  for (int a = 0; a < mesh->axes; a++)
    if (strcmp(mesh->name[a], name) == 0)
      return a;
  return -1;
}

void sdg_mesh_coords(const sdg_mesh_t *mesh, int rank, int *out_coord) {
  assert(rank >= 0 && rank < sdg_mesh_ranks(mesh));
  for (int a = mesh->axes - 1; a >= 0; a--) {
    out_coord[a] = rank % mesh->size[a];
    rank /= mesh->size[a];
  }
}

int sdg_mesh_group(const sdg_mesh_t *mesh, int rank, sdg_axes_t axes,
                   int *out_ranks) {
  // Ranks are row-major, so counting through all of them visits the group in
  // row-major order of its axes: data=2,y=4, axes {data}, rank 5: 1, 5.
  int own[SDG_AXES_MAX], coord[SDG_AXES_MAX], count = 0;
  sdg_mesh_coords(mesh, rank, own);
  int ranks = sdg_mesh_ranks(mesh);
  for (int r = 0; r < ranks; r++) {
    sdg_mesh_coords(mesh, r, coord);
    bool member = true;
    for (int a = 0; a < mesh->axes; a++)
      member &= (axes >> a & 1) || coord[a] == own[a];
    if (member)
      out_ranks[count++] = r;
  }
  return count;
}
