// SPDX-License-Identifier: Apache-2.0
// The pieces of a graph's convolution in one dimension, against every pair of
// an output and a tap.
#include "rules/graph/boxes.h"

#include "tests/unit/random.h"

enum { CASES = 200000 };

typedef struct draw {
  sdg_window_dim_t dim;
  int64_t post;
} draw_t;

static int64_t span_of(const sdg_window_t *w) {
  return w->dilation * (w->kernel - 1) + 1;
}

static draw_t drawn(void) {
  draw_t draw;
  do {
    sdg_window_t *w = &draw.dim.window;
    *w = (sdg_window_t){.kernel = random_in(1, 6),
                        .stride = random_in(1, 8),
                        .dilation = random_in(1, 4)};
    w->pad = random_in(0, span_of(w) + 1);
    draw.post = random_in(0, span_of(w) + 1);
    draw.dim.x_extent = random_in(1, 40);
    draw.dim.wrap = false;
    draw.dim.y_extent =
        draw.dim.x_extent + w->pad + draw.post < span_of(w)
            ? 0
            : (draw.dim.x_extent + w->pad + draw.post - span_of(w)) /
                      w->stride +
                  1;
  } while (draw.dim.y_extent < 1);
  return draw;
}

static sdg_range_t range_within(int64_t extent) {
  int64_t lo = random_in(0, extent - 1);
  return (sdg_range_t){lo, random_in(lo + 1, extent)};
}

// cuDNN's relation of extents, and that output 0 of the piece is the first of
// range.y with the same phase.
static void range_check(const draw_t *draw, const sdg_graph_range_t *range) {
  const sdg_window_t *w = &draw->dim.window;
  int64_t x = range->x.hi - range->x.lo, y = range->y.hi - range->y.lo;
  REQUIRE(range->pre >= 0 && range->post >= 0 && x >= 1 && y >= 1);
  int64_t room = x + range->pre + range->post - span_of(w);
  REQUIRE(room >= 0 && room / w->stride + 1 == y);
  REQUIRE(range->x.lo - range->pre == range->y.lo * w->stride - w->pad);
  REQUIRE(range->x.lo >= 0 && range->x.hi <= draw->dim.x_extent);
  REQUIRE(range->y.lo >= 0 && range->y.hi <= draw->dim.y_extent);
}

START_TEST(outputs_see_the_same_inputs_in_a_piece) {
  for (int i = 0; i < CASES; i++) {
    draw_t draw = drawn();
    const sdg_window_t *w = &draw.dim.window;
    draw.dim.y = range_within(draw.dim.y_extent);
    sdg_graph_range_t range = sdg_graph_range(&draw.dim, draw.post);
    bool sees = false; // some output sees more than padding
    for (int64_t o = draw.dim.y.lo; o < draw.dim.y.hi; o++)
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t at = o * w->stride - w->pad + j * w->dilation;
        bool inside = at >= 0 && at < draw.dim.x_extent;
        sees |= inside;
        REQUIRE(inside == (at >= range.x.lo && at < range.x.hi));
      }
    if (sees) {
      REQUIRE(range.y.lo == draw.dim.y.lo && range.y.hi == draw.dim.y.hi);
      range_check(&draw, &range);
    }
  }
}
END_TEST

START_TEST(inputs_get_all_addends_in_a_piece) {
  for (int i = 0; i < CASES; i++) {
    draw_t draw = drawn();
    const sdg_window_t *w = &draw.dim.window;
    draw.dim.x = range_within(draw.dim.x_extent);
    sdg_graph_range_t range = sdg_graph_range_back(&draw.dim);
    bool seen = false;
    for (int64_t o = 0; o < draw.dim.y_extent; o++)
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t at = o * w->stride - w->pad + j * w->dilation;
        if (at < draw.dim.x.lo || at >= draw.dim.x.hi)
          continue;
        seen = true;
        REQUIRE(o >= range.y.lo && o < range.y.hi);
      }
    REQUIRE(range.x.lo == draw.dim.x.lo && range.x.hi == draw.dim.x.hi);
    if (seen)
      range_check(&draw, &range);
  }
}
END_TEST

START_TEST(windows_are_whole_where_a_gradient_depends_on_that) {
  for (int i = 0; i < CASES; i++) {
    draw_t draw = drawn();
    const sdg_window_t *w = &draw.dim.window;
    draw.dim.window.dilation = 1;
    draw.dim.y_extent =
        draw.dim.x_extent + w->pad + draw.post < w->kernel
            ? 0
            : (draw.dim.x_extent + w->pad + draw.post - w->kernel) / w->stride +
                  1;
    if (draw.dim.y_extent < 1)
      continue;
    draw.dim.x = range_within(draw.dim.x_extent);
    sdg_graph_range_t back = sdg_graph_range_back(&draw.dim);
    sdg_graph_range_t range = sdg_graph_range_whole(&draw.dim, &back);
    if (back.y.lo >= back.y.hi)
      continue;
    range_check(&draw, &range);
    REQUIRE(range.y.lo == back.y.lo && range.y.hi == back.y.hi);
    REQUIRE(range.x.lo <= draw.dim.x.lo && range.x.hi >= draw.dim.x.hi);
    for (int64_t o = range.y.lo; o < range.y.hi; o++)
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t at = o * w->stride - w->pad + j;
        bool inside = at >= 0 && at < draw.dim.x_extent;
        REQUIRE(inside == (at >= range.x.lo && at < range.x.hi));
      }
  }
}
END_TEST

// The rank's own rows, as the program's own execution sees them, beside all.
START_TEST(own_executions_are_right_where_windows_see_own_rows) {
  int kept = 0;
  for (int i = 0; i < CASES; i++) {
    draw_t draw = drawn();
    sdg_window_dim_t *dim = &draw.dim;
    const sdg_window_t *w = &dim->window;
    dim->wrap = random_in(0, 3) == 0;
    dim->x = range_within(dim->x_extent);
    dim->y = range_within(dim->y_extent);
    sdg_range_t right = sdg_graph_right(dim, draw.post);
    int64_t room = dim->x.hi - dim->x.lo + w->pad + draw.post - span_of(w);
    int64_t outputs = room < 0 ? 0 : room / w->stride + 1;
    for (int64_t o = dim->y.lo; o < dim->y.hi; o++) {
      bool same = outputs == dim->y.hi - dim->y.lo;
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t at = o * w->stride - w->pad + j * w->dilation;
        int64_t own = (o - dim->y.lo) * w->stride - w->pad + j * w->dilation;
        bool inside = dim->wrap || (at >= 0 && at < dim->x_extent);
        bool seen = own >= 0 && own < dim->x.hi - dim->x.lo;
        same &= inside == seen && (!inside || own + dim->x.lo == at);
      }
      bool said = o >= right.lo && o < right.hi;
      REQUIRE(!said || same); // it may say less, where windows jump over rows
      kept += said;
    }
    if (dim->x.lo == dim->y.lo * w->stride && !dim->wrap && w->dilation == 1 &&
        outputs == dim->y.hi - dim->y.lo)
      for (int64_t o = dim->y.lo; o < dim->y.hi; o++) {
        int64_t lo = o * w->stride - w->pad, hi = lo + w->kernel;
        bool within = (lo >= dim->x.lo || dim->x.lo == 0) &&
                      (hi <= dim->x.hi || dim->x.hi == dim->x_extent);
        REQUIRE(within == (o >= right.lo && o < right.hi));
      }
  }
  ck_assert_int_gt(kept, CASES / 100);
}
END_TEST

// An output j of the program's own execution adds to rows j*s - p on of the
// rank's own; row 0 is x.lo.
START_TEST(own_gradients_are_right_where_no_other_output_adds) {
  int kept = 0, wrong = 0;
  for (int i = 0; i < CASES; i++) {
    draw_t draw = drawn();
    sdg_window_dim_t *dim = &draw.dim;
    const sdg_window_t *w = &dim->window;
    dim->x = range_within(dim->x_extent);
    dim->y = range_within(dim->y_extent);
    if (random_in(0, 1)) // parts of a program that has the op's phase
      dim->x.lo = dim->y.lo * w->stride;
    if (dim->x.lo >= dim->x.hi)
      continue;
    sdg_range_t right = sdg_graph_right_back(dim, draw.post);
    int64_t rows = dim->x.hi - dim->x.lo, outputs = dim->y.hi - dim->y.lo;
    int64_t span = span_of(w), room = rows + w->pad + draw.post - span;
    bool fits = room >= 0 && room / w->stride + 1 == outputs;
    REQUIRE(fits || right.lo >= right.hi ||
            (rows == dim->x_extent && outputs == dim->y_extent));
    for (int64_t x = dim->x.lo; x < dim->x.hi; x++) {
      bool same = true, others = false; // addends; outputs between those
      for (int64_t o = 0; o < dim->y_extent; o++) {
        bool owned = o >= dim->y.lo && o < dim->y.hi;
        int64_t from = o * w->stride - w->pad;
        int64_t own = (o - dim->y.lo) * w->stride - w->pad;
        others |= !owned && x >= from && x < from + span;
        for (int64_t j = 0; j < w->kernel; j++) {
          bool adds = from + j * w->dilation == x;
          bool added = owned && own + j * w->dilation == x - dim->x.lo;
          same &= adds == added;
        }
      }
      bool said = x >= right.lo && x < right.hi;
      REQUIRE(!said || same); // it may say less, where windows jump over rows
      // Exactly, but for rows between windows and behind the last one.
      if (fits && dim->x.lo == dim->y.lo * w->stride && w->stride <= span &&
          x < (dim->y_extent - 1) * w->stride - w->pad + span)
        REQUIRE(said == !others);
      kept += said;
      wrong += fits && !said && !same;
    }
  }
  ck_assert_int_gt(kept, CASES / 100);
  ck_assert_int_gt(wrong, CASES / 100);
}
END_TEST

// All that a strip reads is what the rank gets where it computes all its rows.
START_TEST(strips_of_gradients_read_what_the_whole_piece_reads) {
  for (int i = 0; i < CASES; i++) {
    draw_t draw = drawn();
    draw.dim.x = range_within(draw.dim.x_extent);
    sdg_graph_range_t all = sdg_graph_range_back(&draw.dim);
    sdg_range_t strip = range_within(draw.dim.x.hi - draw.dim.x.lo);
    strip.lo += draw.dim.x.lo;
    strip.hi += draw.dim.x.lo;
    draw.dim.x = strip;
    sdg_graph_range_t part = sdg_graph_range_back(&draw.dim);
    if (part.y.lo < part.y.hi)
      REQUIRE(part.y.lo >= all.y.lo && part.y.hi <= all.y.hi);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("graphboxes");
  TCase *cases = tcase_create("graphboxes");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, outputs_see_the_same_inputs_in_a_piece);
  tcase_add_test(cases, inputs_get_all_addends_in_a_piece);
  tcase_add_test(cases, windows_are_whole_where_a_gradient_depends_on_that);
  tcase_add_test(cases, own_executions_are_right_where_windows_see_own_rows);
  tcase_add_test(cases, own_gradients_are_right_where_no_other_output_adds);
  tcase_add_test(cases, strips_of_gradients_read_what_the_whole_piece_reads);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
