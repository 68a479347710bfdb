// SPDX-License-Identifier: Apache-2.0
// Needs of windows: convolutions, their gradients, pooling forward, functions.
#include "tools/record/formula.h"

#include <string.h>

#include "rules/window/window.h"
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

// Whether the window neither moves nor changes the extents.
static bool is_same(const json_t *plan, const ends_t *ends, int dims) {
  int spatial = (int)json_array_size(
      json_object_get(json_object_get(plan, "window"), "kernel"));
  for (int i = 0; i < spatial; i++) {
    sdg_window_t window;
    int d = dims - spatial + i;
    if (!window_read(plan, i, &window) || window.stride != 1 ||
        item(ends->from, "whole", d) != item(ends->by, "whole", d))
      return false;
  }
  return true;
}

int64_t formula_predict(const json_t *plan, int dim, int ranks) {
  formula_need_t f;
  sdg_window_t window;
  ends_t ends = ends_of(plan);
  int spatial = (int)json_array_size(
      json_object_get(json_object_get(plan, "window"), "kernel"));
  if (!formula_need(plan, &f) || element_bytes(plan, &f) < 0 ||
      !is_same(plan, &ends, f.own.dims) || dim < f.own.dims - spatial ||
      !window_read(plan, dim - (f.own.dims - spatial), &window))
    return -1;
  int64_t n = item(ends.from, "whole", dim), across = 1, rows = 0, lo = 0;
  if (n < ranks)
    return -1;
  for (int d = 0; d < f.own.dims; d++)
    across *= d == dim ? 1 : item(ends.from, "whole", d);
  for (int r = 0; r < ranks; r++) {
    int64_t hi = lo + n / ranks + (r < n % ranks);
    sdg_range_t own = {lo, hi},
                need = ends.adjoint ? sdg_window_need_adjoint(&window, own)
                                    : sdg_window_need(&window, own);
    rows += (need.lo < lo ? lo - (need.lo > 0 ? need.lo : 0) : 0) +
            (need.hi > hi ? (need.hi < n ? need.hi : n) - hi : 0);
    lo = hi;
  }
  return rows * across * element_bytes(plan, &f);
}
