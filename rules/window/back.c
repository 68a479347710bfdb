// SPDX-License-Identifier: Apache-2.0
// Formulas for windows that run backwards.
#include "rules/window/back.h"

// The rows that windows see only as part of the domain itself, not as an image.
static sdg_range_t seen_once(const sdg_window_dim_t *dim, sdg_range_t rows) {
  if (dim->wrap) {
    sdg_range_t seen =
        sdg_window_need(&dim->window, (sdg_range_t){0, dim->y_extent});
    rows.lo = sdg_max64(rows.lo, seen.hi - dim->x_extent);
    rows.hi = sdg_min64(rows.hi, seen.lo + dim->x_extent);
  }
  return sdg_range_empty(rows) ? (sdg_range_t){0, 0} : rows;
}

sdg_range_t sdg_window_back_right(const sdg_window_dim_t *dim,
                                  const sdg_window_view_t *view) {
  const sdg_window_t *w = &dim->window;
  int64_t span = sdg_window_span(w);
  sdg_range_t right = view->x;
  // The window of the output before the view must end before the row, that of
  // the output behind the view must begin behind it.
  if (view->y.lo > 0)
    right.lo =
        sdg_max64(right.lo, (view->y.lo - 1) * w->stride - w->pad + span);
  if (view->y.hi < dim->y_extent)
    right.hi = sdg_min64(right.hi, view->y.hi * w->stride - w->pad);
  return seen_once(dim, right);
}

sdg_range_t sdg_window_back_inner(const sdg_window_dim_t *dim) {
  return seen_once(dim, dim->x);
}

// The rows that the real function computes with this padding. If it can compute
// more or fewer, the fewest that reach `to`.
static sdg_range_t rows_made(const sdg_window_t *w, sdg_range_t y, int64_t pad,
                             int64_t to) {
  int64_t from = y.lo * w->stride - w->pad + pad;
  int64_t least = (y.hi - y.lo - 1) * w->stride + sdg_window_span(w) - 2 * pad;
  return (sdg_range_t){from, sdg_max64(from + least, to)};
}

// The outputs that see the rows. If no output sees the first rows
// (stride > span), the output before them is included, because rows are counted
// from an output.
static sdg_range_t outputs_for(const sdg_window_t *w, sdg_range_t x) {
  sdg_range_t y = sdg_window_need_adjoint(w, x);
  y.lo = sdg_min64(y.lo, sdg_floor_div(x.lo + w->pad, w->stride));
  return y;
}

// The largest padding with which rows y yield all of x: as many rows before and
// behind x are skipped.
static int64_t pad_max(const sdg_window_t *w, sdg_range_t y, sdg_range_t x) {
  return sdg_min64(x.lo + w->pad - y.lo * w->stride,
                   y.hi * w->stride - w->pad + sdg_window_span(w) - 1 - x.hi);
}

// The largest padding less than the span for which `from` is the first computed
// row; negative if none exists.
static int64_t pad_at(const sdg_window_t *w, int64_t from) {
  int64_t reach = sdg_window_span(w) - 1, above = reach - (from + w->pad);
  return reach - (above - w->stride * sdg_floor_div(above, w->stride));
}

bool sdg_window_back_rows(const sdg_window_t *window, sdg_range_t x,
                          int64_t period, sdg_range_t images,
                          sdg_range_t *out_rows) {
  for (int64_t from = x.lo; from > x.lo - window->stride; from--) {
    int64_t least = sdg_window_span(window);
    for (int64_t m = images.lo; m < images.hi; m++)
      least = sdg_min64(least, pad_at(window, from + m * period));
    if (least < 0)
      continue;
    // Padding is equal at both ends, so rows behind x are computed that a wider
    // padding would skip.
    *out_rows = (sdg_range_t){from, x.hi + sdg_window_span(window) - 1 - least};
    return true;
  }
  return false;
}

sdg_window_cut_t sdg_window_back_strip(const sdg_window_t *window,
                                       sdg_range_t rows) {
  sdg_window_t padded = *window;
  padded.pad = pad_at(window, rows.lo);
  int64_t first = (rows.lo + window->pad - padded.pad) / window->stride;
  int64_t outputs = sdg_window_outputs(&padded, rows.hi - rows.lo);
  return (sdg_window_cut_t){rows, {first, first + outputs}, padded.pad};
}

bool sdg_window_back_of(const sdg_window_t *window, sdg_range_t y,
                        sdg_range_t rows, sdg_range_t *out_seen,
                        sdg_window_cut_t *out) {
  sdg_range_t need = sdg_window_need_adjoint(window, rows);
  y = (sdg_range_t){sdg_max64(y.lo, need.lo), sdg_min64(y.hi, need.hi)};
  if (sdg_range_empty(rows) || sdg_range_empty(y))
    return false;
  sdg_range_t seen = sdg_window_need(window, y);
  seen =
      (sdg_range_t){sdg_max64(seen.lo, rows.lo), sdg_min64(seen.hi, rows.hi)};
  if (sdg_range_empty(seen)) // between two windows
    return false;
  int64_t pad =
      sdg_min64(pad_max(window, y, seen), sdg_window_span(window) - 1);
  *out = (sdg_window_cut_t){rows_made(window, y, pad, seen.hi), y, pad};
  *out_seen = seen;
  return true;
}

bool sdg_window_back_seen(const sdg_window_dim_t *dim, sdg_range_t rows,
                          sdg_window_cut_t *out) {
  const sdg_range_t all = {0, dim->y_extent};
  sdg_range_t seen;
  return sdg_window_back_of(&dim->window, all, rows, &seen, out);
}

bool sdg_window_back_exact(const sdg_window_dim_t *dim, sdg_window_cut_t *out) {
  const sdg_window_t *w = &dim->window;
  if (sdg_range_empty(dim->x) || sdg_range_empty(dim->y))
    return false;
  int64_t pad = dim->x.lo - (dim->y.lo * w->stride - w->pad);
  int64_t rows = dim->x.hi - dim->x.lo, outputs = dim->y.hi - dim->y.lo;
  int64_t least = (outputs - 1) * w->stride + sdg_window_span(w) - 2 * pad;
  *out = (sdg_window_cut_t){dim->x, dim->y, pad};
  return pad >= 0 && (pad == w->pad || pad < sdg_window_span(w)) &&
         rows >= least && rows < least + w->stride;
}

static bool inside(sdg_range_t range, sdg_range_t of) {
  return range.lo >= of.lo && range.hi <= of.hi;
}

bool sdg_window_back_bare(const sdg_window_dim_t *dim,
                          const sdg_window_view_t *view, sdg_range_t right,
                          sdg_window_cut_t *out) {
  sdg_range_t made;
  if (sdg_range_empty(right) ||
      !sdg_window_back_rows(&dim->window, right, dim->x_extent,
                            (sdg_range_t){0, 1}, &made))
    return false;
  sdg_window_cut_t cut = sdg_window_back_strip(&dim->window, made);
  int64_t rows = view->x.hi - view->x.lo, vain = rows - (made.hi - made.lo);
  if (!inside(cut.x, dim->x) || !inside(cut.y, dim->y) ||
      vain * SDG_WINDOW_WRONG_ONE_IN < rows || vain <= 0)
    return false;
  *out = cut;
  return true;
}

sdg_window_cut_t sdg_window_back_cut(const sdg_window_dim_t *dim) {
  const sdg_window_t *w = &dim->window;
  sdg_range_t y = outputs_for(w, dim->x);
  for (;;) {
    y = (sdg_range_t){sdg_max64(y.lo, 0), sdg_min64(y.hi, dim->y_extent)};
    bool everything = y.lo == 0 && y.hi == dim->y_extent;
    int64_t max_pad = pad_max(w, y, dim->x);
    // Rows are cut at 0 and at the domain's end.
    int64_t least = sdg_max64(0, w->pad - y.lo * w->stride);
    least = sdg_max64(least, (y.hi - 1) * w->stride + sdg_window_span(w) -
                                 w->pad - dim->x_extent);
    if (y.lo < y.hi && (least <= max_pad || everything)) {
      int64_t pad = everything ? w->pad : max_pad;
      return (sdg_window_cut_t){
          everything ? (sdg_range_t){0, dim->x_extent}
                     : rows_made(w, y, pad, dim->x.hi),
          y,
          pad,
      };
    }
    y = (sdg_range_t){y.lo - 1, y.hi + 1};
  }
}

sdg_box_t sdg_window_back_need(int dims, const sdg_window_dim_t *dim,
                               const sdg_box_t *x, const int64_t *image) {
  sdg_box_t need = {.dims = dims};
  if (sdg_box_empty(x))
    return need;
  for (int d = 0; d < dims; d++) {
    int64_t shift = image[d] * dim[d].x_extent;
    sdg_range_t rows = {x->dim[d].lo + shift, x->dim[d].hi + shift};
    need.dim[d] = sdg_range_cut(sdg_window_need_adjoint(&dim[d].window, rows),
                                dim[d].y_extent);
  }
  return sdg_box_empty(&need) ? (sdg_box_t){.dims = dims} : need;
}
