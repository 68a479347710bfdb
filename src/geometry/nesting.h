/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a tensor's dimensions nest in memory. Pure.
 *
 * The strides of one rank do not tell the place of a dimension of which it has
 * one index. Other ranks may have more of them, and memory that a plan
 * allocates may, too. */
#ifndef SDG_SRC_GEOMETRY_NESTING_H
#define SDG_SRC_GEOMETRY_NESTING_H

#include <stdbool.h>
#include <stdint.h>

#include "src/geometry/box.h"

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
