// SPDX-License-Identifier: Apache-2.0
// Formulas for sliding windows over split dimensions.
#include "rules/window/window.h"

int64_t sdg_window_span(const sdg_window_t *window) {
  return window->dilation * (window->kernel - 1) + 1;
}

int64_t sdg_window_outputs(const sdg_window_t *window, int64_t x_extent) {
  int64_t room = x_extent + 2 * window->pad - sdg_window_span(window);
  return room < 0 ? 0 : room / window->stride + 1;
}

// The distance from the window's first input to its centre, rounded down.
static int64_t centre(const sdg_window_t *window) {
  return (sdg_window_span(window) - 1) / 2;
}

// The part of `to_extent` with inner boundaries clamp(scale(b), 0, to_extent).
// The first and last boundary are unchanged: outputs whose centre is in the
// padding belong to the first and last piece.
static sdg_status_t part_map(const sdg_window_t *window, const sdg_part_t *from,
                             int64_t to_extent,
                             int64_t (*scale)(const sdg_window_t *, int64_t),
                             sdg_part_t *out_to) {
  sdg_part_t to;
  SDG_TRY(sdg_part_copy(from, &to));
  for (int i = 1; i < to.pieces; i++) {
    int64_t b = scale(window, from->offset[i]);
    to.offset[i] = sdg_max64(0, sdg_min64(b, to_extent));
  }
  to.offset[to.pieces] = to_extent;
  *out_to = to;
  return SDG_OK;
}

static int64_t to_output(const sdg_window_t *window, int64_t b) {
  return sdg_ceil_div(b + window->pad - centre(window), window->stride);
}

static int64_t to_input(const sdg_window_t *window, int64_t b) {
  return b * window->stride - window->pad + centre(window);
}

sdg_status_t sdg_window_part(const sdg_window_t *window, const sdg_part_t *x,
                             int64_t y_extent, sdg_part_t *out_y) {
  return part_map(window, x, y_extent, to_output, out_y);
}

sdg_status_t sdg_window_part_adjoint(const sdg_window_t *window,
                                     const sdg_part_t *y, int64_t x_extent,
                                     sdg_part_t *out_x) {
  return part_map(window, y, x_extent, to_input, out_x);
}

sdg_range_t sdg_window_need(const sdg_window_t *window, sdg_range_t y) {
  if (sdg_range_empty(y))
    return (sdg_range_t){0, 0};
  return (sdg_range_t){
      y.lo * window->stride - window->pad,
      (y.hi - 1) * window->stride - window->pad + sdg_window_span(window),
  };
}

sdg_range_t sdg_window_need_adjoint(const sdg_window_t *window, sdg_range_t x) {
  if (sdg_range_empty(x))
    return (sdg_range_t){0, 0};
  int64_t reach = sdg_window_span(window) - 1;
  return (sdg_range_t){
      sdg_ceil_div(x.lo + window->pad - reach, window->stride),
      sdg_floor_div(x.hi - 1 + window->pad, window->stride) + 1,
  };
}

// The taps of an output that lie in `x`; may be empty.
static sdg_range_t taps_in(const sdg_window_t *window, int64_t output,
                           sdg_range_t x) {
  int64_t at = output * window->stride - window->pad;
  return (sdg_range_t){
      sdg_max64(0, sdg_ceil_div(x.lo - at, window->dilation)),
      sdg_min64(window->kernel,
                sdg_floor_div(x.hi - 1 - at, window->dilation) + 1),
  };
}

int sdg_window_runs(const sdg_window_t *window, sdg_range_t y, sdg_range_t x,
                    sdg_window_run_t *out) {
  int count = 0;
  sdg_window_run_t run = {.y = {0, 0}};
  sdg_range_t seen = sdg_window_need_adjoint(window, x);
  // Outputs with all taps in `x` form one run, which may be long.
  sdg_range_t full = {
      sdg_ceil_div(x.lo + window->pad, window->stride),
      sdg_floor_div(x.hi + window->pad - sdg_window_span(window),
                    window->stride) +
          1};
  y = (sdg_range_t){sdg_max64(y.lo, seen.lo), sdg_min64(y.hi, seen.hi)};
  for (int64_t o = y.lo; o < y.hi; o++) {
    sdg_range_t taps = taps_in(window, o, x);
    if (sdg_range_empty(taps))
      continue;
    bool same = count > 0 && run.y.hi == o && run.taps.lo == taps.lo &&
                run.taps.hi == taps.hi;
    if (!same) {
      run = (sdg_window_run_t){{o, o}, taps};
      count++;
    }
    if (o >= full.lo && o < full.hi)
      o = sdg_min64(full.hi, y.hi) - 1;
    run.y.hi = o + 1;
    if (out)
      out[count - 1] = run;
  }
  return count;
}

sdg_range_t sdg_window_run_inputs(const sdg_window_t *window,
                                  const sdg_window_run_t *run) {
  return (sdg_range_t){
      run->y.lo * window->stride - window->pad +
          run->taps.lo * window->dilation,
      (run->y.hi - 1) * window->stride - window->pad +
          (run->taps.hi - 1) * window->dilation + 1,
  };
}

sdg_range_t sdg_window_images(const sdg_window_t *window, int64_t x_extent,
                              int64_t y_extent) {
  if (x_extent < 1 || y_extent < 1)
    return (sdg_range_t){0, 0};
  sdg_range_t seen = sdg_window_need(window, (sdg_range_t){0, y_extent});
  return (sdg_range_t){sdg_floor_div(seen.lo, x_extent),
                       sdg_ceil_div(seen.hi, x_extent)};
}

sdg_range_t sdg_range_cut(sdg_range_t range, int64_t extent) {
  sdg_range_t cut = {sdg_max64(range.lo, 0), sdg_min64(range.hi, extent)};
  return sdg_range_empty(cut) ? (sdg_range_t){0, 0} : cut;
}

// The rows of a view whose need is inside the view. Needs increase with the
// row, so these rows are one range. If the view ends at the domain's end, no
// row is excluded there: behind that end is the op's padding, which the real
// call adds itself. A periodic dimension has no such end.
static sdg_range_t right_rows(const sdg_window_dim_t *dim,
                              const sdg_window_view_t *view) {
  const sdg_window_t *w = &dim->window;
  sdg_range_t right = view->y;
  if (dim->wrap || view->x.lo > 0) // o*s - p >= xa
    right.lo =
        sdg_max64(right.lo, sdg_ceil_div(view->x.lo + w->pad, w->stride));
  if (dim->wrap || view->x.hi < dim->x_extent) // o*s - p + span <= xb
    right.hi = sdg_min64(
        right.hi,
        sdg_floor_div(view->x.hi + w->pad - sdg_window_span(w), w->stride) + 1);
  return sdg_range_empty(right) ? (sdg_range_t){0, 0} : right;
}

sdg_window_view_t sdg_window_view(const sdg_window_dim_t *dim) {
  const sdg_window_t *w = &dim->window;
  sdg_window_view_t none = {.x = {0, 0}}, view;
  if (sdg_range_empty(dim->x) || sdg_range_empty(dim->y))
    return none;
  view.y.lo = sdg_max64(dim->y.lo, sdg_ceil_div(dim->x.lo, w->stride));
  view.x.lo = view.y.lo * w->stride;
  view.y.hi = sdg_min64(
      dim->y.hi, view.y.lo + sdg_window_outputs(w, dim->x.hi - view.x.lo));
  int64_t longest =
      (view.y.hi - view.y.lo) * w->stride + sdg_window_span(w) - 1 - 2 * w->pad;
  view.x.hi = sdg_min64(dim->x.hi, view.x.lo + longest);
  if (sdg_range_empty(view.y) || sdg_range_empty(view.x))
    return none;
  view.right = right_rows(dim, &view);
  return view;
}

sdg_range_t sdg_window_inner(const sdg_window_dim_t *dim) {
  const sdg_window_view_t all = {.x = {0, dim->x_extent}, .y = dim->y};
  return dim->wrap ? right_rows(dim, &all) : dim->y;
}

sdg_range_t sdg_window_within(const sdg_window_dim_t *dim) {
  const sdg_window_t *w = &dim->window;
  return (sdg_range_t){
      sdg_max64(dim->y.lo, sdg_ceil_div(dim->x.lo + w->pad, w->stride)),
      sdg_min64(
          dim->y.hi,
          sdg_floor_div(dim->x.hi + w->pad - sdg_window_span(w), w->stride) +
              1),
  };
}

bool sdg_window_bare(const sdg_window_dim_t *dim, const sdg_window_view_t *view,
                     sdg_window_view_t *out) {
  sdg_range_t inner = sdg_window_within(dim), right = view->right;
  if (sdg_range_empty(inner) ||
      (!sdg_range_empty(right) && (inner.lo > right.lo || inner.hi < right.hi)))
    return false;
  int64_t rows = view->y.hi - view->y.lo;
  int64_t gain = rows + inner.hi - inner.lo - 2 * (right.hi - right.lo);
  if (gain == 0 || gain * SDG_WINDOW_WRONG_ONE_IN < rows)
    return false;
  *out =
      (sdg_window_view_t){sdg_window_need(&dim->window, inner), inner, inner};
  return true;
}

sdg_window_cut_t sdg_window_cut(const sdg_window_dim_t *dim) {
  return sdg_window_cut_around(dim, (sdg_range_t){0, 0});
}

// Padding is right at an end of the domain; at an end inside the domain only
// superfluous outputs see it. Padding behind x implies equal padding before x.
// So x begins either that much later than the first output requires, or at 0. A
// padding of p always suffices: y_extent outputs extend at most p beyond the
// domain.
sdg_window_cut_t sdg_window_cut_around(const sdg_window_dim_t *dim,
                                       sdg_range_t rows) {
  const sdg_window_t *w = &dim->window;
  sdg_range_t need = sdg_window_need(w, dim->y);
  int64_t behind = sdg_max64(need.hi - dim->x_extent, 0);
  sdg_range_t in = {sdg_max64(sdg_min64(need.lo, dim->x_extent - 1), 0),
                    sdg_min64(sdg_max64(need.hi, 1), dim->x_extent)};
  if (!sdg_range_empty(rows))
    in = (sdg_range_t){sdg_min64(in.lo, rows.lo), sdg_max64(in.hi, rows.hi)};
  sdg_window_cut_t cut = {.pad = behind};
  int64_t first = sdg_floor_div(in.lo + w->pad - behind, w->stride);
  cut.x = (sdg_range_t){first * w->stride - w->pad + behind, in.hi};
  if (need.lo < 0 || first < 0 || cut.x.lo < 0) {
    first = sdg_min64(dim->y.lo, sdg_floor_div(w->pad - behind, w->stride));
    cut.pad = w->pad - first * w->stride;
    cut.x.lo = 0;
  }
  sdg_window_t padded = *w;
  padded.pad = cut.pad;
  cut.y.lo = first;
  cut.y.hi = first + sdg_window_outputs(&padded, cut.x.hi - cut.x.lo);
  return cut;
}

int sdg_window_strips(int dims, const sdg_window_dim_t *dim,
                      const sdg_window_view_t *view, sdg_window_strip_t *out) {
  sdg_box_t owned = {.dims = dims}, right = {.dims = dims};
  sdg_box_t redo[2 * SDG_DIMS_MAX];
  for (int d = 0; d < dims; d++) {
    owned.dim[d] = dim[d].y;
    right.dim[d] = view[d].right;
  }
  int count = sdg_box_subtract(&owned, &right, redo);
  for (int i = 0; i < count; i++) {
    out[i].y = redo[i];
    out[i].x = (sdg_box_t){.dims = dims};
    for (int d = 0; d < dims; d++)
      out[i].x.dim[d] = sdg_window_need(&dim[d].window, redo[i].dim[d]);
  }
  return count;
}

sdg_box_t sdg_window_need_box(int dims, const sdg_window_dim_t *dim,
                              const sdg_box_t *y) {
  sdg_box_t need = {.dims = dims};
  if (sdg_box_empty(y))
    return need;
  for (int d = 0; d < dims; d++) {
    need.dim[d] = sdg_window_need(&dim[d].window, y->dim[d]);
    if (!dim[d].wrap)
      need.dim[d] = sdg_range_cut(need.dim[d], dim[d].x_extent);
  }
  return need;
}
