/* SPDX-License-Identifier: Apache-2.0 */
/* A box: a product of half-open index ranges in global coordinates. Pure. */
#ifndef SDG_SRC_GEOMETRY_BOX_H
#define SDG_SRC_GEOMETRY_BOX_H

#include <stdbool.h>
#include <stdint.h>

enum { SDG_DIMS_MAX = 8 };

typedef struct sdg_range {
  int64_t lo, hi; /* [lo, hi); empty if hi <= lo */
} sdg_range_t;

typedef struct sdg_box {
  int dims; /* 0..SDG_DIMS_MAX */
  sdg_range_t dim[SDG_DIMS_MAX];
} sdg_box_t;

int64_t sdg_min64(int64_t a, int64_t b);
int64_t sdg_max64(int64_t a, int64_t b);
bool sdg_range_empty(sdg_range_t range);
/* The extent of one dimension. */
int64_t sdg_box_length(const sdg_box_t *box, int dim);
/* The box of a whole tensor with these extents. */
sdg_box_t sdg_box_whole(int dims, const int64_t *extent);
bool sdg_box_empty(const sdg_box_t *box);
bool sdg_box_equal(const sdg_box_t *a, const sdg_box_t *b);
/* Returns true if every element of `inner` is in `outer`; always true for an
 * empty inner. */
bool sdg_box_contains(const sdg_box_t *outer, const sdg_box_t *inner);
/* Returns the number of elements, 0 if empty. */
int64_t sdg_box_count(const sdg_box_t *box);
/* Returns the intersection. If it is empty, all its ranges are [0,0). */
sdg_box_t sdg_box_intersect(const sdg_box_t *a, const sdg_box_t *b);
sdg_box_t sdg_box_shift(const sdg_box_t *box, const int64_t *shift);
/* Splits a minus b into at most 2*dims disjoint boxes; returns their number. */
int sdg_box_subtract(const sdg_box_t *a, const sdg_box_t *b,
                     sdg_box_t *out_boxes);

/* Mathematical floor and ceiling of a/b, b > 0: floor(-1/2) = -1. */
int64_t sdg_floor_div(int64_t a, int64_t b);
int64_t sdg_ceil_div(int64_t a, int64_t b);

#endif
