/* SPDX-License-Identifier: Apache-2.0 */
/* Hints: over which axes of the mesh what a plan wrote is in pieces, by the
 * range of memory that it wrote. Shard view.
 *
 * A hint lasts until something that sundog sees writes or frees any of its
 * bytes. It decides nothing alone: where ranks have to do the same by it, they
 * have agreed on it. Disjoint ranges; any thread; nothing is allocated while
 * programs write the same tensors step by step. */
#ifndef SDG_SRC_GEOMETRY_HINT_H
#define SDG_SRC_GEOMETRY_HINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/geometry/mesh.h"

/* 0: nothing is known. Otherwise SDG_HINT_KNOWN, and the axes that it is in
 * pieces over; of none of them: every rank has the same. */
typedef uint32_t sdg_hint_t;
#define SDG_HINT_KNOWN (UINT32_C(1) << 31)
#define SDG_HINT_AXES  ((UINT32_C(1) << SDG_AXES_MAX) - 1)
/* Of pieces: values of them are each rank's own, or of all together; neither:
 * there shall be none. */
#define SDG_HINT_LOCAL  (UINT32_C(1) << 8)
#define SDG_HINT_GLOBAL (UINT32_C(1) << 9)

/* Of what is made of both: in pieces where one is. */
static inline sdg_hint_t sdg_hint_join(sdg_hint_t a, sdg_hint_t b) {
  if (!(a & SDG_HINT_AXES) || !(b & SDG_HINT_AXES))
    return a & SDG_HINT_AXES ? a : b & SDG_HINT_AXES ? b : a && b ? a : 0;
  return SDG_HINT_KNOWN | ((a | b) & SDG_HINT_AXES) |
         (a & b & (SDG_HINT_LOCAL | SDG_HINT_GLOBAL));
}

/* How many hints there are: a look without the lock. */
extern atomic_int sdg_hint_count;
static inline bool sdg_hint_any(void) {
  return atomic_load_explicit(&sdg_hint_count, memory_order_acquire) > 0;
}

/* [at, at + bytes) was written; nothing is known of it if `hint` is 0, or there
 * is no memory for a note. `gaps`: not each of these bytes; ranges with the
 * same hint that this one overlaps become one with it. */
void sdg_hint_put(const void *at, size_t bytes, bool gaps, sdg_hint_t hint);
/* Of exactly these bytes. */
sdg_hint_t sdg_hint_of(const void *at, size_t bytes);
/* Of any of these bytes: over which axes some are in pieces, 0 where none is
 * known to be. */
sdg_hint_t sdg_hint_within(const void *at, size_t bytes);
/* Of all of these bytes, by one range. */
sdg_hint_t sdg_hint_around(const void *at, size_t bytes);
/* Everything was freed. */
void sdg_hint_forget(void);

#endif
