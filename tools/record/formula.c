// SPDX-License-Identifier: Apache-2.0
// Needs of windows: convolutions, their gradients, pooling forward, functions.
#include "tools/record/formula.h"

#include <string.h>

#include "tools/record/recorded.h"

static const json_t *operand_of(const json_t *plan, const char *role,
                                bool is_output) {
  size_t index;
  json_t *operand;
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    if (strcmp(recorded_text(operand, "role"), role) == 0 &&
        json_is_true(json_object_get(operand, "output")) == is_output)
      return operand;
  }
  return NULL;
}

static int64_t item(const json_t *object, const char *name, int index) {
  return (int64_t)json_integer_value(
      json_array_get(json_object_get(object, name), (size_t)index));
}

static bool box_read(const json_t *operand, sdg_box_t *out) {
  size_t dims = json_array_size(json_object_get(operand, "whole"));
  *out = (sdg_box_t){.dims = (int)dims};
  if (dims < 3 || dims > SDG_DIMS_MAX)
    return false;
  for (int d = 0; d < out->dims; d++) {
    int64_t lo = item(operand, "first", d);
    out->dim[d] = (sdg_range_t){lo, lo + item(operand, "own", d)};
    int64_t whole = item(operand, "whole", d);
    if (lo < 0 || out->dim[d].hi < lo || out->dim[d].hi > whole)
      return false;
  }
  return true;
}

static bool window_read(const json_t *plan, int d, sdg_window_t *out) {
  const json_t *window = json_object_get(plan, "window");
  *out = (sdg_window_t){.kernel = item(window, "kernel", d),
                        .stride = item(window, "stride", d),
                        .dilation = item(window, "dilation", d),
                        .pad = item(window, "pad", d)};
  const int64_t most = 1 << 24; // keeps products from overflowing
  return out->kernel >= 1 && out->stride >= 1 && out->dilation >= 1 &&
         out->pad >= 0 && out->kernel < most && out->stride < most &&
         out->dilation < most && out->pad < most;
}

// The tensor that has a halo, and the one that decides what is needed of it.
typedef struct ends {
  const json_t *from, *by;
  bool adjoint; // `from` is the window's output
} ends_t;

static bool is_function(const json_t *plan) {
  return strcmp(recorded_text(plan, "family"), "function") == 0;
}

static ends_t ends_of(const json_t *plan) {
  const json_t *x = operand_of(plan, "x", false),
               *dy = operand_of(plan, "dy", false);
  if (is_function(plan)) { // every tensor is cut as the first one is
    const json_t *lead = x ? x : operand_of(plan, "y", true);
    return (ends_t){lead, lead, false};
  }
  if (operand_of(plan, "y", true))
    return (ends_t){x, operand_of(plan, "y", true), false};
  if (operand_of(plan, "dw", true))
    return (ends_t){x, dy, false};
  if (operand_of(plan, "dx", true) && !x)
    return (ends_t){dy, operand_of(plan, "dx", true), true};
  return (ends_t){NULL, NULL, false};
}

static bool is_windowed(const json_t *plan) {
  const json_t *window = json_object_get(plan, "window");
  const char *family = recorded_text(plan, "family"),
             *strategy = recorded_text(plan, "strategy");
  bool known = strcmp(family, "conv") == 0 || strcmp(family, "pool") == 0 ||
               strcmp(family, "function") == 0;
  return known && window && *strategy && strcmp(strategy, "adjoint") != 0 &&
         !json_is_true(json_object_get(window, "wrap"));
}

bool formula_need(const json_t *plan, formula_need_t *out) {
  sdg_box_t by;
  ends_t ends = ends_of(plan);
  int spatial = (int)json_array_size(
      json_object_get(json_object_get(plan, "window"), "kernel"));
  if (!is_windowed(plan) || !ends.from || !ends.by ||
      !box_read(ends.from, &out->own) || !box_read(ends.by, &by) ||
      by.dims != out->own.dims || spatial < 1 || spatial > by.dims - 2)
    return false;
  out->operand = ends.from;
  out->need = out->own;
  for (int d = 0; d < by.dims; d++) {
    int64_t whole = item(ends.from, "whole", d);
    int at = d - (by.dims - spatial);
    sdg_window_t window;
    if (at < 0 && d > 0 && out->own.dim[d].hi - out->own.dim[d].lo != whole)
      return false;
    if (at < 0)
      continue;
    if (!window_read(plan, at, &window))
      return false;
    sdg_range_t need = by.dim[d].hi == by.dim[d].lo ? (sdg_range_t){0, 0}
                       : ends.adjoint
                           ? sdg_window_need_adjoint(&window, by.dim[d])
                           : sdg_window_need(&window, by.dim[d]);
    need.lo = need.lo < 0 ? 0 : need.lo;
    need.hi = need.hi > whole ? whole : need.hi;
    out->need.dim[d] = need.hi > need.lo ? need : (sdg_range_t){0, 0};
  }
  return true;
}

// The bytes that travel for an element of the halo: of a function's, all that
// it reads. -1 if these have other extents.
static int64_t element_bytes(const json_t *plan, const formula_need_t *f) {
  size_t index;
  json_t *operand;
  int64_t bytes = 0;
  if (!is_function(plan))
    return recorded_number(f->operand, "bytes");
  json_array_foreach(json_object_get(plan, "operands"), index, operand) {
    if (json_is_true(json_object_get(operand, "output")) &&
        !json_is_true(json_object_get(operand, "updated")))
      continue;
    if (!json_equal(json_object_get(operand, "whole"),
                    json_object_get(f->operand, "whole")))
      return -1;
    bytes += recorded_number(operand, "bytes");
  }
  return bytes;
}

int64_t formula_halo_bytes(const json_t *plan) {
  formula_need_t f;
  if (!formula_need(plan, &f) || element_bytes(plan, &f) < 0)
    return -1;
  sdg_box_t owned = sdg_box_intersect(&f.need, &f.own);
  return (sdg_box_count(&f.need) - sdg_box_count(&owned)) *
         element_bytes(plan, &f);
}

static int spatial_of(const json_t *plan) {
  return (int)json_array_size(
      json_object_get(json_object_get(plan, "window"), "kernel"));
}

// The index of a dimension of space; -1: the window has none of that name.
static int dim_at(const json_t *plan, const json_t *operand, const char *dim) {
  int dims = (int)json_array_size(json_object_get(operand, "whole"));
  for (int d = dims - spatial_of(plan); d < dims; d++) {
    const char *name = json_string_value(
        json_array_get(json_object_get(operand, "names"), (size_t)d));
    if (name && strcmp(name, dim) == 0)
      return d;
  }
  return -1;
}

bool formula_ends(const json_t *plan, const char *dim, formula_ends_t *out) {
  formula_need_t f;
  ends_t ends = ends_of(plan);
  if (!formula_need(plan, &f) || element_bytes(plan, &f) < 0)
    return false;
  int at = dim_at(plan, f.operand, dim);
  if (at < 0 ||
      !window_read(plan, at - (f.own.dims - spatial_of(plan)), &out->window))
    return false;
  int64_t from = item(ends.from, "whole", at), by = item(ends.by, "whole", at);
  // A function's tensors are all cut alike.
  if (is_function(plan))
    out->window = (sdg_window_t){.kernel = 1, .stride = 1, .dilation = 1};
  out->adjoint = ends.adjoint;
  out->x = ends.adjoint ? by : from;
  out->y = ends.adjoint ? from : by;
  return true;
}

// What a rank that owns `own` needs: of other dimensions, what all outputs
// need.
static bool need_then(const json_t *plan, const ends_t *ends, sdg_box_t by,
                      const sdg_box_t *own, sdg_box_t *out) {
  int spatial = spatial_of(plan);
  *out = *own;
  for (int d = own->dims - spatial; d < own->dims; d++) {
    sdg_window_t window;
    if (!window_read(plan, d - (own->dims - spatial), &window))
      return false;
    out->dim[d] = sdg_range_cut(
        ends->adjoint ? sdg_window_need_adjoint(&window, by.dim[d])
                      : sdg_window_need(&window, by.dim[d]),
        item(ends->from, "whole", d));
  }
  return true;
}

static void rank_add(formula_then_t *then, const sdg_box_t *need,
                     const sdg_box_t *own, int at, bool first, bool last) {
  sdg_box_t owned = sdg_box_intersect(need, own);
  const sdg_range_t *n = &need->dim[at], *o = &own->dim[at];
  bool any = !sdg_box_empty(need);
  bool low = any && n->lo < o->lo, high = any && n->hi > o->hi;
  then->bytes += sdg_box_count(need) - sdg_box_count(&owned);
  then->low |= low;
  then->high |= high;
  then->all_low &= low || first;
  then->all_high &= high || last;
}

bool formula_predict(const json_t *plan, const char *dim, const sdg_part_t *x,
                     const sdg_part_t *y, formula_then_t *out) {
  formula_need_t f;
  formula_ends_t extents;
  ends_t ends = ends_of(plan);
  if (!formula_ends(plan, dim, &extents) || !formula_need(plan, &f))
    return false;
  int at = dim_at(plan, f.operand, dim);
  const sdg_part_t *from = ends.adjoint ? y : x, *to = ends.adjoint ? x : y;
  formula_then_t then = {.all_low = true, .all_high = true};
  sdg_box_t own = {.dims = f.own.dims}, by = own, need;
  for (int d = 0; d < own.dims; d++) {
    own.dim[d] = (sdg_range_t){0, item(ends.from, "whole", d)};
    by.dim[d] = (sdg_range_t){0, item(ends.by, "whole", d)};
  }
  for (int r = 0; r < from->pieces; r++) {
    own.dim[at] = (sdg_range_t){from->offset[r], from->offset[r + 1]};
    by.dim[at] = (sdg_range_t){to->offset[r], to->offset[r + 1]};
    if (!need_then(plan, &ends, by, &own, &need))
      return false;
    rank_add(&then, &need, &own, at, r == 0, r + 1 == from->pieces);
  }
  then.bytes *= element_bytes(plan, &f);
  *out = then;
  return true;
}
