/* SPDX-License-Identifier: Apache-2.0 */
/* The mesh: the ranks arranged on named axes, row-major. Pure: no I/O. */
#ifndef SDG_SRC_GEOMETRY_MESH_H
#define SDG_SRC_GEOMETRY_MESH_H

#include "src/base/status.h"

enum { SDG_AXES_MAX = 4, SDG_AXIS_NAME_MAX = 16, SDG_RANKS_MAX = 1024 };

typedef struct sdg_mesh {
  int axes; /* 1..SDG_AXES_MAX */
  char name[SDG_AXES_MAX][SDG_AXIS_NAME_MAX];
  int size[SDG_AXES_MAX]; /* >= 1; their product is the number of ranks */
} sdg_mesh_t;

/* A set of axes, bit i = axis i. */
typedef unsigned sdg_axes_t;

/* Parses "data=2,y=4" (spaces allowed). `ranks` must equal the product;
 * text NULL or "" means one axis "ranks" with all of them.
 * Fails with SDG_E_MESH, which names the fault. */
sdg_status_t sdg_mesh_parse(const char *text, int ranks,
                            sdg_mesh_t *out_mesh) SDG_MUST_CHECK;

/* Returns the product of the sizes in such a text, at most a little more than
 * SDG_RANKS_MAX squared; below 1 if a size is not a number. Reports nothing. */
long sdg_mesh_product(const char *text);

int sdg_mesh_ranks(const sdg_mesh_t *mesh);
/* Returns the index of a named axis, -1 if it does not exist. */
int sdg_mesh_axis(const sdg_mesh_t *mesh, const char *name);
/* Computes the coordinates of a rank; out_coord has mesh->axes entries.
 * data=2,y=4: rank 5 is (1,1). */
void sdg_mesh_coords(const sdg_mesh_t *mesh, int rank, int *out_coord);

/* Lists the ranks that have the same coordinates as `rank` except along
 * `axes`, `rank` included, ascending, which is row-major order of those axes.
 * out_ranks has room for SDG_RANKS_MAX; returns their number. */
int sdg_mesh_group(const sdg_mesh_t *mesh, int rank, sdg_axes_t axes,
                   int *out_ranks);

#endif
