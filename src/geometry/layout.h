/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a tensor in memory, and the order in which its dimensions nest
 * there. Pure. */
#ifndef SDG_SRC_GEOMETRY_LAYOUT_H
#define SDG_SRC_GEOMETRY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/geometry/box.h"

/* Extents and strides in elements. */
typedef struct sdg_layout {
  int elem_bytes, dims;
  int64_t extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
} sdg_layout_t;
/* Returns the distance from the tensor's first byte to the end of its last. */
size_t sdg_layout_bytes(const sdg_layout_t *layout);
/* Returns true if all of these bytes belong to the tensor: no gaps. */
bool sdg_layout_dense(const sdg_layout_t *layout);
/* Returns true if both have the same elements at the same addresses; strides
 * of dimensions of extent 1 are ignored. */
bool sdg_layout_equal(const sdg_layout_t *a, const sdg_layout_t *b);
/* Returns the box of all indices. */
sdg_box_t sdg_layout_box(const sdg_layout_t *layout);
/* Returns true if both describe the same elements and their dimensions, except
 * those of extent 1, correspond. out_dim[d] is the dimension of `from` that
 * equals dimension d of `to`; -1 if to's extent is 1. Example: a matrix of 16
 * x 50 with strides 1 and 16 is also a tensor of 1 x 50 x 16 x 1 with strides
 * 800, 16, 1 and 1: {-1, 1, 0, -1}. */
bool sdg_layout_map(const sdg_layout_t *from, const sdg_layout_t *to,
                    int *out_dim);

/* ---- the order of dimensions --------------------------------------------- */

/* The strides of one rank do not tell the place of a dimension of which it has
 * one index. Other ranks may have more of them, and memory that a plan
 * allocates may, too. */

/* One rank's piece of a tensor. */
typedef struct sdg_nest {
  int64_t extent[SDG_DIMS_MAX];
  unsigned char order[SDG_DIMS_MAX]; /* dimensions, outermost first */
} sdg_nest_t;

/* Sets out->extent, and out->order by the strides, in elements. An image
 * (dimensions N, C, spatial ...) whose strides fit NCHW or NHWC, is in that
 * order, and in NCHW if they fit both. Strides of dimensions of extent 1 count
 * only where the others leave a choice. */
void sdg_nest_make(int dims, bool is_image, const int64_t *extent,
                   const int64_t *stride, sdg_nest_t *out);
/* Returns true if the dimensions of more than one index on both ranks nest in
 * the same order. */
bool sdg_nest_match(int dims, const sdg_nest_t *a, const sdg_nest_t *b);
/* Finds one order that fits the pieces of all `ranks` (at least 1); where they
 * leave a choice, for an image NCHW or NHWC, and the order of nest[0]. Sets
 * out_nesting[d] to dims for the outermost dimension, to 1 for the innermost:
 * like strides, without ties. If the ranks contradict each other, the order is
 * any. */
void sdg_nesting_find(int dims, bool is_image, int ranks,
                      const sdg_nest_t *nest, int64_t *out_nesting);

#endif
