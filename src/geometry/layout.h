/* SPDX-License-Identifier: Apache-2.0 */
/* How a tensor lies in memory. Pure. */
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
/* From the first byte of the tensor to its last. */
size_t sdg_layout_bytes(const sdg_layout_t *layout);
/* True if these bytes are all the tensor's: no gaps. */
bool sdg_layout_dense(const sdg_layout_t *layout);
/* The same elements at the same addresses; strides of extent 1 do not count. */
bool sdg_layout_equal(const sdg_layout_t *a, const sdg_layout_t *b);
/* All indices of the tensor. */
sdg_box_t sdg_layout_box(const sdg_layout_t *layout);
/* Whether both describe the same elements, dimension by dimension but for those
 * of extent 1: then out_dim[d] is the dimension of `from` that is d of `to`, -1
 * where to's extent is 1. Rows of a matrix, 16 x 50 with strides 1 and 16, are
 * a tensor of 1 x 50 x 16 x 1 with strides 800, 16, 1 and 1: {-1, 1, 0, -1}. */
bool sdg_layout_map(const sdg_layout_t *from, const sdg_layout_t *to,
                    int *out_dim);

#endif
