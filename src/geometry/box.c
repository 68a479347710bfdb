// SPDX-License-Identifier: Apache-2.0
// Set arithmetic on boxes: intersect, subtract, contain, count.
#include "src/geometry/box.h"

#include <assert.h>

int64_t sdg_min64(int64_t a, int64_t b) {
  return a < b ? a : b;
}

int64_t sdg_max64(int64_t a, int64_t b) {
  return a > b ? a : b;
}

bool sdg_range_empty(sdg_range_t range) {
  return range.hi <= range.lo;
}

int64_t sdg_box_length(const sdg_box_t *box, int dim) {
  return box->dim[dim].hi - box->dim[dim].lo;
}

int64_t sdg_floor_div(int64_t a, int64_t b) {
  // C truncates towards zero, so a negative remainder means that the quotient
  // is one too large.
  return a / b - (a % b < 0);
}

int64_t sdg_ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b > 0);
}

sdg_box_t sdg_box_whole(int dims, const int64_t *extent) {
  sdg_box_t box = {.dims = dims};
  for (int d = 0; d < dims; d++)
    box.dim[d].hi = extent[d];
  return box;
}

bool sdg_box_empty(const sdg_box_t *box) {
  for (int d = 0; d < box->dims; d++)
    if (box->dim[d].hi <= box->dim[d].lo)
      return true;
  return false;
}

bool sdg_box_equal(const sdg_box_t *a, const sdg_box_t *b) {
  if (a->dims != b->dims)
    return false;
  if (sdg_box_empty(a) || sdg_box_empty(b))
    return sdg_box_empty(a) && sdg_box_empty(b);
  for (int d = 0; d < a->dims; d++)
    if (a->dim[d].lo != b->dim[d].lo || a->dim[d].hi != b->dim[d].hi)
      return false;
  return true;
}

bool sdg_box_contains(const sdg_box_t *outer, const sdg_box_t *inner) {
  assert(outer->dims == inner->dims);
  if (sdg_box_empty(inner))
    return true;
  for (int d = 0; d < outer->dims; d++)
    if (inner->dim[d].lo < outer->dim[d].lo ||
        inner->dim[d].hi > outer->dim[d].hi)
      return false;
  return true;
}

int64_t sdg_box_count(const sdg_box_t *box) {
  if (sdg_box_empty(box))
    return 0;
  int64_t count = 1;
  for (int d = 0; d < box->dims; d++)
    count *= box->dim[d].hi - box->dim[d].lo;
  return count;
}

sdg_box_t sdg_box_intersect(const sdg_box_t *a, const sdg_box_t *b) {
  assert(a->dims == b->dims);
  sdg_box_t both = {.dims = a->dims};
  for (int d = 0; d < a->dims; d++) {
    both.dim[d].lo = sdg_max64(a->dim[d].lo, b->dim[d].lo);
    both.dim[d].hi = sdg_min64(a->dim[d].hi, b->dim[d].hi);
  }
  return sdg_box_empty(&both) ? (sdg_box_t){.dims = a->dims} : both;
}

sdg_box_t sdg_box_shift(const sdg_box_t *box, const int64_t *shift) {
  sdg_box_t moved = *box;
  for (int d = 0; d < box->dims; d++) {
    moved.dim[d].lo += shift[d];
    moved.dim[d].hi += shift[d];
  }
  return moved;
}

int sdg_box_subtract(const sdg_box_t *a, const sdg_box_t *b,
                     sdg_box_t *out_boxes) {
  if (sdg_box_empty(a))
    return 0;
  sdg_box_t hole = sdg_box_intersect(a, b);
  if (sdg_box_empty(&hole)) {
    out_boxes[0] = *a;
    return 1;
  }
  // For each dimension, the slabs below and above the hole are cut off; the
  // rest has the hole's range in that dimension. Slabs of the outer dimensions
  // keep the full range of the inner ones, so they are contiguous in memory.
  // [0,4)x[0,4) minus [1,2)x[1,4): [0,1)x[0,4), [2,4)x[0,4), [1,2)x[0,1).
  int count = 0;
  sdg_box_t rest = *a;
  for (int d = 0; d < a->dims; d++) {
    if (rest.dim[d].lo < hole.dim[d].lo) {
      out_boxes[count] = rest;
      out_boxes[count++].dim[d].hi = hole.dim[d].lo;
    }
    if (hole.dim[d].hi < rest.dim[d].hi) {
      out_boxes[count] = rest;
      out_boxes[count++].dim[d].lo = hole.dim[d].hi;
    }
    rest.dim[d] = hole.dim[d];
  }
  return count;
}
