/* SPDX-License-Identifier: Apache-2.0 */
/* Random convolutions over split tensors, and their gradients on the whole
 * tensors. */
#ifndef SDG_TESTS_UNIT_CONV_PROBLEM_H
#define SDG_TESTS_UNIT_CONV_PROBLEM_H

#include "rules/conv/filter.h"
#include "rules/vendor/args.h"
#include "src/job/job.h"
#include "tests/unit/random.h"

enum { DIMS = 4, MAX = 12, ELEMENTS = 8192, AXES = 2 };

/* Dimensions 2 and 3 are split over the first and second axis of the mesh;
 * sometimes N instead of dimension 3. */
typedef struct problem {
  bool wrap[DIMS], refuse_views, sums, adjoint;
  float beta;
  int axis_of[DIMS]; // -1: not split
  int64_t x_extent[DIMS], y_extent[DIMS];
  sdg_window_t window[DIMS];
  sdg_part_t x_part[DIMS], y_part[DIMS];
  sdg_strategy_t strategy;
} problem_t;

static inline float y_value(const int64_t *at) {
  return (float)((at[0] * 3 + at[1] * 5 + at[2] * 7 + at[3] * 11) % 13 - 6);
}

static inline float x_value(const int64_t *at) {
  return (float)((at[0] * 5 + at[1] * 3 + at[2] * 11 + at[3] * 7) % 9 - 4);
}

static inline float old_value(const int64_t *at) {
  return (float)((at[0] + at[1] * 3 + at[2] * 5 + at[3]) % 7);
}

static inline float weight(int64_t k, int64_t c, int64_t i, int64_t j) {
  return (float)(1 + (k * 7 + c * 2 + i * 3 + j) % 5);
}

/* Returns whether a tap of an output sees row `at`, in one dimension. */
static inline bool sees(const problem_t *p, int d, int64_t o, int64_t tap,
                        int64_t at) {
  const sdg_window_t *w = &p->window[d];
  int64_t row = o * w->stride - w->pad + tap * w->dilation;
  if (p->wrap[d])
    row -= p->x_extent[d] * sdg_floor_div(row, p->x_extent[d]);
  return row == at;
}

static inline float x_want(const problem_t *p, const int64_t *at) {
  float sum = p->beta == 0 ? 0 : p->beta * old_value(at);
  for (int64_t h = 0; h < p->y_extent[2]; h++)
    for (int64_t i = 0; i < p->window[2].kernel; i++) {
      if (!sees(p, 2, h, i, at[2]))
        continue;
      for (int64_t w = 0; w < p->y_extent[3]; w++)
        for (int64_t j = 0; j < p->window[3].kernel; j++)
          for (int64_t k = 0; sees(p, 3, w, j, at[3]) && k < p->y_extent[1];
               k++)
            sum +=
                weight(k, at[1], i, j) * y_value((int64_t[]){at[0], k, h, w});
    }
  return sum;
}

/* Returns the row of x that a tap of an output sees, in one dimension; -1:
 * padding. */
static inline int64_t seen_by(const problem_t *p, int d, int64_t o,
                              int64_t tap) {
  const sdg_window_t *w = &p->window[d];
  int64_t row = o * w->stride - w->pad + tap * w->dilation;
  if (p->wrap[d])
    row -= p->x_extent[d] * sdg_floor_div(row, p->x_extent[d]);
  return row < p->x_extent[d] ? row : -1;
}

/* Returns the filter's gradient from the outputs in a box. */
static inline float w_want(const problem_t *p, const sdg_box_t *y,
                           const int64_t *at) {
  float sum = p->beta == 0 ? 0 : p->beta * old_value(at);
  for (int64_t n = y->dim[0].lo; n < y->dim[0].hi; n++)
    for (int64_t h = y->dim[2].lo; h < y->dim[2].hi; h++)
      for (int64_t w = y->dim[3].lo; w < y->dim[3].hi; w++) {
        int64_t row = seen_by(p, 2, h, at[2]), column = seen_by(p, 3, w, at[3]);
        if (row >= 0 && column >= 0)
          sum += y_value((int64_t[]){n, at[0], h, w}) *
                 x_value((int64_t[]){n, at[1], row, column});
      }
  return sum;
}

/* ---- drawing ------------------------------------------------------------- */

static inline int64_t extent_of(const sdg_box_t *box, int d) {
  return box->dim[d].hi - box->dim[d].lo;
}

/* A random order of dimensions, with gaps. */
static inline void strides_random(const sdg_box_t *box, bool gaps,
                                  int64_t *out) {
  static const int orders[3][DIMS] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {2, 0, 1, 3}};
  const int *order = orders[random_in(0, 2)];
  int64_t stride = 1;
  for (int i = DIMS - 1; i >= 0; i--) {
    out[order[i]] = stride;
    stride *= extent_of(box, order[i]) + (gaps ? random_in(0, 1) : 0);
  }
  REQUIRE(stride <= ELEMENTS);
}

static inline sdg_part_t part_random(int64_t extent, int pieces) {
  sdg_part_t part;
  REQUIRE(!sdg_part_parse("even", extent, pieces, &part));
  for (int i = 1; i < pieces; i++)
    part.offset[i] = random_in(part.offset[i - 1] + 1, extent - (pieces - i));
  return part;
}

static inline int pieces_of(const problem_t *p, int d) {
  return p->axis_of[d] < 0 ? 1 : sdg_job_mesh()->size[p->axis_of[d]];
}

static inline bool windows_draw(problem_t *p) {
  for (int d = 0; d < DIMS; d++) {
    int pieces = pieces_of(p, d);
    p->x_extent[d] = d < 2 ? random_in(1, 2) : random_in(pieces, MAX);
    if (d == 0)
      p->x_extent[d] += pieces - 1;
    p->window[d] = (sdg_window_t){1, 1, 1, 0};
    if (d >= 2)
      p->window[d] = (sdg_window_t){random_in(1, 5), random_in(1, 4),
                                    random_in(1, 2), random_in(0, 4)};
    p->y_extent[d] = sdg_window_outputs(&p->window[d], p->x_extent[d]);
    p->wrap[d] = d >= 2 && random_in(0, 4) == 0;
    if (p->y_extent[d] < pieces)
      return false;
  }
  p->y_extent[1] = random_in(1, 3);
  // One element on every rank may be the same element, so sundog refuses it.
  return p->x_extent[2] > pieces_of(p, 2) || p->y_extent[2] > pieces_of(p, 2) ||
         p->x_extent[3] > pieces_of(p, 3) || p->y_extent[3] > pieces_of(p, 3);
}

static inline bool all_hold(const sdg_part_t *part) {
  for (int i = 0; i < part->pieces; i++)
    if (sdg_part_size(part, i) < 1)
      return false;
  return true;
}

/* Draws the same on every rank, because the state of random numbers is the
 * same. */
static inline void problem_draw(problem_t *p) {
  static const sdg_strategy_t strategies[] = {
      SDG_STRATEGY_AUTO, SDG_STRATEGY_AUTO, SDG_STRATEGY_EXTEND};
  const sdg_mesh_t *mesh = sdg_job_mesh();
  bool batch = random_in(0, 4) == 0;
  *p = (problem_t){.strategy = strategies[random_in(0, 2)],
                   .adjoint = random_in(0, 2) == 0,
                   .refuse_views = random_in(0, 4) == 0,
                   .sums = random_in(0, 3),
                   .beta = (float)random_in(0, 2),
                   .axis_of = {batch && mesh->axes > 1 ? 1 : -1, -1, 0,
                               !batch && mesh->axes > 1 ? 1 : -1}};
  while (!windows_draw(p))
    ;
  // Images of a periodic domain that begin in different phases of the stride
  // are computed in one strip only if the windows overlap.
  for (int d = 2; d < DIMS; d++)
    if (p->wrap[d] && p->window[d].stride > sdg_window_span(&p->window[d]))
      p->refuse_views = false;
  for (int d = 0; d < DIMS; d++) {
    if (p->axis_of[d] < 0)
      continue;
    int pieces = mesh->size[p->axis_of[d]];
    p->x_part[d] = part_random(p->x_extent[d], pieces);
    REQUIRE(!sdg_window_part(&p->window[d], &p->x_part[d], p->y_extent[d],
                             &p->y_part[d]));
    if (all_hold(&p->y_part[d]) && random_in(0, 2))
      continue;
    // Any other parts are legal.
    sdg_part_fini(&p->y_part[d]);
    p->y_part[d] = part_random(p->y_extent[d], pieces);
  }
}

static inline void problem_free(problem_t *p) {
  for (int d = 0; d < DIMS; d++) {
    sdg_part_fini(&p->x_part[d]);
    sdg_part_fini(&p->y_part[d]);
  }
}

static inline void placement_make(const problem_t *p, const int64_t *extent,
                                  const sdg_part_t *part,
                                  sdg_placement_t *out) {
  REQUIRE(!sdg_placement_init(DIMS, extent, out));
  for (int d = 0; d < DIMS; d++) {
    const sdg_split_t split = {.axes = 1, .axis = {p->axis_of[d]}};
    if (p->axis_of[d] >= 0)
      REQUIRE(!sdg_placement_split(out, sdg_job_mesh(), d, &split, &part[d]));
  }
}

#endif
