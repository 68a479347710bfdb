/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of a tensor whose dimensions may be thought of as rings. Pure.
 *
 * Row `extent` is row 0 again, so that what lies at both ends of a dimension is
 * one range: of 10 rows [8,12) are 8, 9, 0 and 1, and so are [-2,2). */
#ifndef SDG_SRC_GEOMETRY_RING_H
#define SDG_SRC_GEOMETRY_RING_H

#include "src/geometry/box.h"

/* The same elements, each once: ranges that begin inside the domain and are no
 * longer than it. Inside the domain already: the box itself.
 * Extent 10: [-2,2) is [8,12), [-1,11) is [0,10). */
sdg_box_t sdg_ring_normal(const sdg_box_t *box, const int64_t *extent);
/* True if every element of `inner` is in `outer`; an empty inner always is. */
bool sdg_ring_contains(const sdg_box_t *outer, const sdg_box_t *inner,
                       const int64_t *extent);
/* A short box, normal, that contains both: of two ways round the shorter one,
 * inside the domain where they are equal.
 * Extent 10: [0,3) and [9,10) make [9,13); [0,5) and [5,6) make [0,6). */
sdg_box_t sdg_ring_hull(const sdg_box_t *a, const sdg_box_t *b,
                        const int64_t *extent);

#endif
