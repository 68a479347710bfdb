// SPDX-License-Identifier: Apache-2.0
// Set arithmetic on ranges that may cross the end of a periodic dimension.
#include "src/geometry/ring.h"

static sdg_range_t range_normal(sdg_range_t range, int64_t extent) {
  if (range.hi - range.lo >= extent)
    return (sdg_range_t){0, extent};
  if (range.lo >= 0 && range.lo < extent) // the usual case
    return range;
  int64_t turns = sdg_floor_div(range.lo, extent) * extent;
  return (sdg_range_t){range.lo - turns, range.hi - turns};
}

sdg_box_t sdg_ring_normal(const sdg_box_t *box, const int64_t *extent) {
  sdg_box_t normal = {.dims = box->dims};
  if (sdg_box_empty(box))
    return normal;
  for (int d = 0; d < box->dims; d++)
    normal.dim[d] = range_normal(box->dim[d], extent[d]);
  return normal;
}

// Both are normal; if `inner` begins before `outer`, it may still be inside,
// shifted by one extent.
static bool range_contains(sdg_range_t outer, sdg_range_t inner,
                           int64_t extent) {
  if (outer.hi - outer.lo >= extent)
    return true;
  int64_t turn = inner.lo < outer.lo ? extent : 0;
  return inner.lo + turn >= outer.lo && inner.hi + turn <= outer.hi;
}

bool sdg_ring_contains(const sdg_box_t *outer, const sdg_box_t *inner,
                       const int64_t *extent) {
  if (sdg_box_contains(outer, inner)) // the usual case
    return true;
  if (sdg_box_empty(outer))
    return false;
  for (int d = 0; d < outer->dims; d++)
    if (!range_contains(range_normal(outer->dim[d], extent[d]),
                        range_normal(inner->dim[d], extent[d]), extent[d]))
      return false;
  return true;
}

static sdg_range_t range_hull(sdg_range_t a, sdg_range_t b, int64_t extent) {
  static const int turns[] = {0, -1, 1};
  sdg_range_t best = {0, extent};
  if (range_contains(a, b, extent))
    return a;
  if (range_contains(b, a, extent))
    return b;
  for (int i = 0; i < 3; i++) {
    int64_t by = turns[i] * extent;
    sdg_range_t hull = {sdg_min64(a.lo, b.lo + by), sdg_max64(a.hi, b.hi + by)};
    if (hull.hi - hull.lo < best.hi - best.lo)
      best = hull;
  }
  return range_normal(best, extent);
}

sdg_box_t sdg_ring_hull(const sdg_box_t *a, const sdg_box_t *b,
                        const int64_t *extent) {
  if (sdg_box_empty(a))
    return sdg_ring_normal(b, extent);
  if (sdg_box_empty(b))
    return sdg_ring_normal(a, extent);
  sdg_box_t hull = {.dims = a->dims};
  for (int d = 0; d < a->dims; d++)
    hull.dim[d] = range_hull(range_normal(a->dim[d], extent[d]),
                             range_normal(b->dim[d], extent[d]), extent[d]);
  return hull;
}
