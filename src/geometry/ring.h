/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of a tensor whose dimensions may be periodic. Pure.
 *
 * Row `extent` is row 0 again, so rows at both ends of a dimension form one
 * range: with 10 rows, [8,12) is rows 8, 9, 0 and 1, and so is [-2,2). */
#ifndef SDG_SRC_GEOMETRY_RING_H
#define SDG_SRC_GEOMETRY_RING_H

#include "src/geometry/box.h"

/* Returns the normal form of a box: the same elements, each once, as ranges
 * that begin inside the domain and are no longer than it. A box inside the
 * domain is returned unchanged. Extent 10: [-2,2) becomes [8,12), [-1,11)
 * becomes [0,10). */
sdg_box_t sdg_ring_normal(const sdg_box_t *box, const int64_t *extent);
/* Returns true if every element of `inner` is in `outer`; always true for an
 * empty inner. */
bool sdg_ring_contains(const sdg_box_t *outer, const sdg_box_t *inner,
                       const int64_t *extent);
/* Returns a small normal box that contains both. It takes the shorter way
 * around the ring; if both are equally long, the one inside the domain. Extent
 * 10: [0,3) and [9,10) make [9,13); [0,5) and [5,6) make [0,6). */
sdg_box_t sdg_ring_hull(const sdg_box_t *a, const sdg_box_t *b,
                        const int64_t *extent);

#endif
