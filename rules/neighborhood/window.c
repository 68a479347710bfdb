// SPDX-License-Identifier: Apache-2.0
// Windows of neighbourhood attention, step by step.
#include "rules/neighborhood/window.h"

static sdg_range_t range_intersect(sdg_range_t a, sdg_range_t b) {
  sdg_range_t both = {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
  return both.lo < both.hi ? both : (sdg_range_t){0, 0};
}

// The steps of a window in the middle of the grid.
static sdg_range_t steps_inside(const sdg_neighborhood_window_t *dim) {
  int64_t before = dim->causal ? dim->kernel - 1 : dim->kernel / 2;
  return (sdg_range_t){-before, dim->kernel - before};
}

sdg_range_t
sdg_neighborhood_window_steps(const sdg_neighborhood_window_t *dim) {
  if (dim->causal || dim->cut)
    return steps_inside(dim);
  return (sdg_range_t){1 - dim->kernel, dim->kernel};
}

// Only the first and the last queries have steps beyond those of the middle. Of
// the places that are equal modulo the dilation, these are [0, k - step) and
// the last k + step.
sdg_range_t
sdg_neighborhood_window_queries(const sdg_neighborhood_window_t *dim,
                                int64_t step) {
  sdg_range_t inside = steps_inside(dim), all = {0, dim->extent};
  int64_t shift = step * dim->dilation, full = dim->kernel * dim->dilation;
  if (step >= inside.hi)
    return range_intersect(all, (sdg_range_t){0, full - shift});
  if (step < inside.lo)
    return range_intersect(
        all, (sdg_range_t){dim->extent - full - shift, dim->extent});
  return range_intersect(all, (sdg_range_t){-shift, dim->extent - shift});
}

int64_t sdg_neighborhood_window_slot(const sdg_neighborhood_window_t *dim,
                                     int64_t step) {
  return step - sdg_floor_div(step, dim->kernel) * dim->kernel;
}

sdg_range_t sdg_neighborhood_window_need(const sdg_neighborhood_window_t *dim,
                                         sdg_range_t queries) {
  sdg_range_t steps = sdg_neighborhood_window_steps(dim), need = {0, 0};
  for (int64_t step = steps.lo; step < steps.hi; step++) {
    sdg_range_t seeing =
        range_intersect(sdg_neighborhood_window_queries(dim, step), queries);
    if (seeing.lo == seeing.hi)
      continue;
    int64_t shift = step * dim->dilation;
    bool first = need.lo == need.hi;
    if (first || seeing.lo + shift < need.lo)
      need.lo = seeing.lo + shift;
    if (first || seeing.hi + shift > need.hi)
      need.hi = seeing.hi + shift;
  }
  return need;
}
