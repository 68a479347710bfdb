// SPDX-License-Identifier: Apache-2.0
// Gradients of windowed ops against a naive op: rows that are right in place,
// strips, images, and cuts of whole tensors.
#include "rules/window/back.h"

#include <inttypes.h>
#include <string.h>

#include "tests/unit/random.h"

enum { CASES = 60000, ROWS = 160, TAPS = 9 };

// One dimension of an op, and its input. Rows of dy that must not count have a
// value that shows in the result.
typedef struct op {
  sdg_window_dim_t dim;
  int64_t weight[TAPS], y[ROWS];
} op_t;

static const int64_t poison = INT64_C(1) << 40;

static void op_draw(op_t *op) {
  sdg_window_t *w = &op->dim.window;
  do {
    *w = (sdg_window_t){.kernel = random_in(1, TAPS),
                        .stride = random_in(1, 12),
                        .dilation = random_in(1, 4)};
    if (random_in(0, 1))
      w->stride = random_in(1, 3);
    w->pad = random_in(0, 2) ? random_in(0, w->kernel * w->dilation + 2)
                             : w->dilation * (w->kernel - 1) / 2;
    op->dim.x_extent = random_in(1, 40);
    op->dim.y_extent = sdg_window_outputs(w, op->dim.x_extent);
    op->dim.wrap = random_in(0, 2) == 0;
  } while (op->dim.y_extent < 1);
  REQUIRE(op->dim.y_extent <= ROWS);
  for (int64_t j = 0; j < w->kernel; j++)
    op->weight[j] = random_in(1, 9);
  for (int64_t o = 0; o < op->dim.y_extent; o++)
    op->y[o] = random_in(1, 99);
}

// Returns row i of x as on one device; with wrap, i is in the unrolled x.
static int64_t want(const op_t *op, int64_t i) {
  const sdg_window_t *w = &op->dim.window;
  int64_t sum = 0, n = op->dim.x_extent;
  for (int64_t o = 0; o < op->dim.y_extent; o++)
    for (int64_t j = 0; j < w->kernel; j++) {
      int64_t at = o * w->stride - w->pad + j * w->dilation;
      if (op->dim.wrap ? at - n * sdg_floor_div(at - i, n) == i : at == i)
        sum += op->weight[j] * op->y[o];
    }
  return sum;
}

// Returns the row of dy, which must be in `known`; outside the domain it is 0.
static int64_t y_at(const op_t *op, int64_t o, sdg_range_t known) {
  if (o < 0 || o >= op->dim.y_extent)
    return 0;
  return o >= known.lo && o < known.hi ? op->y[o] : poison;
}

// Adds the real function's result for rows `y` of dy to the rows `x`.
static void run(const op_t *op, const sdg_window_cut_t *cut, sdg_range_t known,
                int64_t *out) {
  sdg_window_t w = op->dim.window;
  w.pad = cut->pad;
  int64_t rows = cut->x.hi - cut->x.lo;
  REQUIRE_MSG(sdg_window_outputs(&w, rows) == cut->y.hi - cut->y.lo,
              "no legal call: %" PRId64 " rows from %" PRId64, rows,
              cut->y.hi - cut->y.lo);
  for (int64_t l = 0; l < rows; l++)
    for (int64_t t = 0; t < cut->y.hi - cut->y.lo; t++)
      for (int64_t j = 0; j < w.kernel; j++)
        if (t * w.stride - w.pad + j * w.dilation == l)
          out[l] += op->weight[j] * y_at(op, cut->y.lo + t, known);
}

static sdg_range_t need_of(const op_t *op, sdg_range_t x, int64_t image) {
  sdg_box_t box = {.dims = 1, .dim = {x}};
  return sdg_window_back_need(1, &op->dim, &box, &image).dim[0];
}

static void strip_check(const op_t *op, sdg_range_t rows) {
  int64_t sum[ROWS] = {0}, n = op->dim.x_extent;
  const sdg_window_t *w = &op->dim.window;
  int64_t span = sdg_window_span(w);
  sdg_range_t images = {0, 1}, common;
  if (op->dim.wrap)
    images = sdg_window_images(w, n, op->dim.y_extent);
  bool alike = sdg_window_back_rows(w, rows, n, images, &common);
  REQUIRE(alike || (w->stride > span && images.hi - images.lo > 1));
  for (int64_t m = images.lo; m < images.hi; m++) {
    if (!alike)
      REQUIRE(
          sdg_window_back_rows(w, rows, n, (sdg_range_t){m, m + 1}, &common));
    sdg_range_t moved = {common.lo + m * n, common.hi + m * n};
    sdg_window_cut_t cut = sdg_window_back_strip(w, moved);
    REQUIRE(cut.pad >= 0 && cut.pad < span);
    REQUIRE(cut.x.lo == moved.lo && cut.x.hi == moved.hi);
    REQUIRE(common.lo <= rows.lo && common.hi >= rows.hi);
    // Few rows are computed without use.
    REQUIRE(common.lo > rows.lo - w->stride && common.hi < rows.hi + span);
    int64_t made[ROWS] = {0};
    REQUIRE(cut.x.hi - cut.x.lo <= ROWS);
    run(op, &cut, need_of(op, rows, m), made);
    for (int64_t i = rows.lo; i < rows.hi; i++)
      sum[i - rows.lo] += made[i - common.lo];
  }
  for (int64_t i = rows.lo; i < rows.hi; i++)
    REQUIRE_MSG(sum[i - rows.lo] == want(op, i),
                "row %" PRId64 " of [%" PRId64 ",%" PRId64 ")", i, rows.lo,
                rows.hi);
}

// The same for each image, with rows of dy inside the domain.
static void seen_check(const op_t *op, sdg_range_t rows) {
  int64_t sum[ROWS] = {0}, n = op->dim.x_extent;
  sdg_range_t images = {0, 1};
  if (op->dim.wrap)
    images = sdg_window_images(&op->dim.window, n, op->dim.y_extent);
  for (int64_t m = images.lo; m < images.hi; m++) {
    sdg_window_cut_t cut;
    sdg_range_t moved = {rows.lo + m * n, rows.hi + m * n};
    int64_t made[ROWS] = {0};
    if (!sdg_window_back_seen(&op->dim, moved, &cut))
      continue;
    REQUIRE(cut.pad >= 0 && cut.pad < sdg_window_span(&op->dim.window));
    REQUIRE(cut.y.lo >= 0 && cut.y.hi <= op->dim.y_extent);
    REQUIRE(cut.x.hi - cut.x.lo <= ROWS);
    run(op, &cut, need_of(op, rows, m), made);
    for (int64_t i = rows.lo; i < rows.hi; i++)
      if (i + m * n >= cut.x.lo && i + m * n < cut.x.hi)
        sum[i - rows.lo] += made[i + m * n - cut.x.lo];
  }
  for (int64_t i = rows.lo; i < rows.hi; i++)
    REQUIRE(sum[i - rows.lo] == want(op, i));
}

static int64_t bares; // how many were tried

// The rows that the view makes right, with fewer rows without use.
static void bare_check(const op_t *op, const sdg_window_view_t *view,
                       sdg_range_t right) {
  sdg_window_cut_t cut;
  int64_t made[ROWS] = {0};
  if (!sdg_window_back_bare(&op->dim, view, right, &cut))
    return;
  REQUIRE(cut.x.lo >= op->dim.x.lo && cut.x.hi <= op->dim.x.hi);
  REQUIRE(cut.y.lo >= op->dim.y.lo && cut.y.hi <= op->dim.y.hi);
  REQUIRE(cut.x.hi - cut.x.lo < view->x.hi - view->x.lo);
  run(op, &cut, op->dim.y, made);
  for (int64_t i = right.lo; i < right.hi; i++)
    REQUIRE(made[i - cut.x.lo] == want(op, i));
  bares++;
}

// Computes the owned rows by the real function, then the other rows by strips.
static void rank_check(const op_t *op) {
  sdg_window_view_t view = sdg_window_view(&op->dim);
  sdg_range_t right = {0, 0};
  if (view.y.lo < view.y.hi) {
    int64_t made[ROWS] = {0};
    sdg_window_cut_t cut = {view.x, view.y, op->dim.window.pad};
    run(op, &cut, op->dim.y, made);
    right = sdg_window_back_right(&op->dim, &view);
    for (int64_t i = right.lo; i < right.hi; i++)
      REQUIRE(made[i - view.x.lo] == want(op, i));
    bare_check(op, &view, right);
  }
  if (right.lo >= right.hi)
    right = (sdg_range_t){op->dim.x.hi, op->dim.x.hi};
  REQUIRE(right.lo >= op->dim.x.lo && right.hi <= op->dim.x.hi);
  if (op->dim.x.lo < right.lo)
    strip_check(op, (sdg_range_t){op->dim.x.lo, right.lo});
  seen_check(op, op->dim.x);
  if (right.hi < op->dim.x.hi)
    strip_check(op, (sdg_range_t){right.hi, op->dim.x.hi});
}

static sdg_range_t range_random(int64_t extent) {
  sdg_range_t range = {random_in(0, extent), 0};
  range.hi = random_in(range.lo, extent);
  return range;
}

START_TEST(rows_of_every_rank_are_those_of_one_device) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    op_t op;
    op_draw(&op);
    for (int rank = 0; rank < 4; rank++) {
      op.dim.x = range_random(op.dim.x_extent);
      op.dim.y = range_random(op.dim.y_extent);
      if (rank == 0) { // all of it
        op.dim.x = (sdg_range_t){0, op.dim.x_extent};
        op.dim.y = (sdg_range_t){0, op.dim.y_extent};
      }
      rank_check(&op);
    }
  }
  REQUIRE(bares > CASES / 100 || random_cases(CASES) < CASES);
}
END_TEST

START_TEST(the_middle_of_a_same_convolution_is_right_in_place) {
  const sdg_window_dim_t dim = {.window = {3, 1, 1, 1},
                                .x_extent = 30,
                                .y_extent = 30,
                                .x = {10, 20},
                                .y = {10, 20}};
  sdg_window_view_t view = sdg_window_view(&dim);
  sdg_range_t right = sdg_window_back_right(&dim, &view);
  ck_assert_int_eq((int)right.lo, 11);
  ck_assert_int_eq((int)right.hi, 19);
  sdg_window_cut_t bare;
  ck_assert(sdg_window_back_bare(&dim, &view, right, &bare));
  ck_assert(bare.x.lo == 11 && bare.x.hi == 19);
  ck_assert(bare.y.lo == 10 && bare.y.hi == 20);
  ck_assert_int_eq((int)bare.pad, 2);
  sdg_range_t row = {10, 11}, made;
  ck_assert(
      sdg_window_back_rows(&dim.window, row, 30, (sdg_range_t){0, 1}, &made));
  ck_assert_int_eq((int)(made.hi - made.lo), 1);
  sdg_window_cut_t cut = sdg_window_back_strip(&dim.window, made);
  ck_assert_int_eq((int)(cut.y.hi - cut.y.lo), 3);
}
END_TEST

START_TEST(owned_rows_are_made_in_place_of_whole_tensors) {
  int64_t wide = 0, cases = random_cases(CASES);
  for (int64_t i = cases; i > 0; i--) {
    op_t op;
    op_draw(&op);
    op.dim.wrap = false;
    op.dim.x = range_random(op.dim.x_extent);
    if (op.dim.x.lo == op.dim.x.hi)
      continue;
    sdg_window_cut_t cut = sdg_window_back_cut(&op.dim);
    REQUIRE(cut.pad >= 0);
    REQUIRE(cut.y.lo >= 0 && cut.y.hi <= op.dim.y_extent);
    REQUIRE(cut.x.lo >= 0 && cut.x.hi <= op.dim.x_extent);
    REQUIRE(cut.x.lo <= op.dim.x.lo && cut.x.hi >= op.dim.x.hi);
    int64_t made[ROWS] = {0};
    run(&op, &cut, need_of(&op, op.dim.x, 0), made);
    for (int64_t row = op.dim.x.lo; row < op.dim.x.hi; row++)
      REQUIRE(made[row - cut.x.lo] == want(&op, row));
    const sdg_window_t *w = &op.dim.window;
    wide += cut.x.hi - cut.x.lo > op.dim.x.hi - op.dim.x.lo +
                                      2 * (sdg_window_span(w) + w->stride) +
                                      2 * w->pad;
  }
  REQUIRE_MSG(wide * 20 < cases, "%" PRId64 " of %" PRId64 " make much more",
              wide, cases);
}
END_TEST

// Returns whether some output sees the row around the end of the domain.
static bool seen_around(const sdg_window_dim_t *dim, int64_t row) {
  const sdg_window_t *w = &dim->window;
  for (int64_t o = 0; o < dim->y_extent; o++)
    for (int64_t j = 0; j < w->kernel; j++) {
      int64_t at = o * w->stride - w->pad + j * w->dilation;
      if (at != row && (at - row) % dim->x_extent == 0)
        return true;
    }
  return false;
}

START_TEST(inner_rows_are_seen_as_themselves_only) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    op_t op;
    op_draw(&op);
    const sdg_window_t *w = &op.dim.window;
    op.dim.x = range_random(op.dim.x_extent);
    sdg_range_t inner = sdg_window_back_inner(&op.dim);
    bool gaps = w->dilation > 1 || w->stride > w->kernel;
    for (int64_t row = op.dim.x.lo; row < op.dim.x.hi; row++) {
      bool in = row >= inner.lo && row < inner.hi;
      bool around = op.dim.wrap && seen_around(&op.dim, row);
      REQUIRE(!in || !around);
      REQUIRE(in || around || gaps);
    }
  }
  const sdg_window_dim_t dim = {.window = {3, 1, 1, 1},
                                .x_extent = 10,
                                .y_extent = 10,
                                .x = {0, 5},
                                .wrap = true};
  sdg_range_t inner = sdg_window_back_inner(&dim);
  REQUIRE(inner.lo == 1 && inner.hi == 5);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("windowback");
  TCase *cases = tcase_create("windowback");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, rows_of_every_rank_are_those_of_one_device);
  tcase_add_test(cases, the_middle_of_a_same_convolution_is_right_in_place);
  tcase_add_test(cases, owned_rows_are_made_in_place_of_whole_tensors);
  tcase_add_test(cases, inner_rows_are_seen_as_themselves_only);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
