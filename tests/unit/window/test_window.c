// SPDX-License-Identifier: Apache-2.0
// Windows, formula by formula, against a naive op: ownership, needs, cuts.
#include "rules/window/window.h"

#include <inttypes.h>
#include <string.h>

#include "tests/unit/random_window.h"

// `owner` and no other rank has the element.
static void owner_check(const sdg_part_t *part, int64_t at, int owner) {
  for (int r = 0; r < part->pieces; r++) {
    bool owns = at >= part->offset[r] && at < part->offset[r + 1];
    REQUIRE(owns == (r == owner));
  }
}

START_TEST(output_count_is_what_fits) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(0, 40);
    REQUIRE(sdg_window_outputs(&w, n) == outputs_naive(&w, n));
  }
}
END_TEST

START_TEST(every_output_is_owned_by_its_centre) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    int64_t c = w.dilation * (w.kernel - 1) / 2;
    sdg_part_t x = random_part(n, (int)random_in(1, 8)), y;
    REQUIRE(sdg_window_part(&w, &x, outputs, &y) == SDG_OK);
    REQUIRE(y.pieces == x.pieces);
    REQUIRE(y.offset[0] == 0);
    REQUIRE(sdg_part_extent(&y) == outputs);
    for (int64_t o = 0; o < outputs; o++) {
      int owner = 0;
      for (int r = 1; r < x.pieces; r++)
        owner += x.offset[r] <= o * w.stride - w.pad + c;
      owner_check(&y, o, owner);
    }
    sdg_part_fini(&x);
    sdg_part_fini(&y);
  }
}
END_TEST

START_TEST(every_input_is_owned_by_the_output_centred_before_it) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    int64_t c = w.dilation * (w.kernel - 1) / 2;
    sdg_part_t y = random_part(outputs, (int)random_in(1, 8)), x;
    REQUIRE(sdg_window_part_adjoint(&w, &y, n, &x) == SDG_OK);
    REQUIRE(sdg_part_extent(&x) == n);
    for (int64_t at = 0; at < n; at++) {
      int owner = 0;
      for (int r = 1; r < y.pieces; r++)
        owner += y.offset[r] * w.stride - w.pad + c <= at;
      owner_check(&x, at, owner);
    }
    sdg_part_fini(&x);
    sdg_part_fini(&y);
  }
}
END_TEST

START_TEST(need_is_from_first_to_last_input_touched) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    sdg_range_t y = {random_in(0, 20), 0};
    y.hi = y.lo + random_in(0, 10);
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int64_t o = y.lo; o < y.hi; o++)
      for (int64_t j = 0; j < w.kernel; j++) {
        int64_t at = o * w.stride - w.pad + j * w.dilation;
        first = at < first ? at : first;
        last = at > last ? at : last;
      }
    sdg_range_t need = sdg_window_need(&w, y);
    REQUIRE(need.lo == (y.lo < y.hi ? first : 0));
    REQUIRE(need.hi == (y.lo < y.hi ? last + 1 : 0));
  }
}
END_TEST

START_TEST(adjoint_need_is_from_first_to_last_output_that_spans) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    sdg_range_t x = {random_in(0, n), 0};
    x.hi = random_in(x.lo, n);
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int64_t o = 0; o < outputs; o++) {
      int64_t lo = o * w.stride - w.pad;
      int64_t hi = lo + (w.kernel - 1) * w.dilation + 1;
      if (x.lo < x.hi && lo < x.hi && hi > x.lo) {
        first = o < first ? o : first;
        last = o > last ? o : last;
      }
    }
    sdg_range_t need = sdg_range_cut(sdg_window_need_adjoint(&w, x), outputs);
    if (last == INT64_MIN) {
      REQUIRE(need.lo >= need.hi);
    } else {
      REQUIRE(need.lo == first);
      REQUIRE(need.hi == last + 1);
    }
  }
}
END_TEST

START_TEST(adjoint_need_of_all_images_has_every_output_that_wraps) {
  for (int64_t i = random_cases(CASES / 10); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 20), outputs = sdg_window_outputs(&w, n);
    int64_t piece = random_in(0, n - 1);
    sdg_range_t images = sdg_window_images(&w, n, outputs);
    for (int64_t o = 0; o < outputs; o++) {
      bool touches = false, spans = false, found = false;
      for (int64_t j = 0; j < w.kernel; j++) {
        int64_t at = o * w.stride - w.pad + j * w.dilation;
        touches |= at - n * sdg_floor_div(at, n) == piece;
      }
      for (int64_t at = 0; at < sdg_window_span(&w); at++) {
        int64_t row = o * w.stride - w.pad + at;
        spans |= row - n * sdg_floor_div(row, n) == piece;
      }
      for (int64_t m = images.lo; m < images.hi; m++) {
        sdg_range_t need = sdg_window_need_adjoint(
            &w, (sdg_range_t){piece + m * n, piece + m * n + 1});
        found |= o >= need.lo && o < need.hi;
      }
      REQUIRE(found || !touches);
      REQUIRE(spans || !found);
    }
  }
}
END_TEST

// ---- examples stated in the header -----------------------------------------

// Returns the input row that local output `local` of a cut reads through tap j;
// -1 if it is padding that the real op adds.
static int64_t cut_tap(const sdg_window_t *w, const sdg_window_cut_t *cut,
                       int64_t local, int64_t j) {
  int64_t at = local * w->stride - cut->pad + j * w->dilation;
  return at >= 0 && at < cut->x.hi - cut->x.lo ? cut->x.lo + at : -1;
}

START_TEST(a_cut_makes_the_owned_outputs_of_the_whole) {
  int64_t cuts = 0, wholes = 0;
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_dim_t dim = {.window = random_window(7)};
    const sdg_window_t *w = &dim.window;
    dim.x_extent = random_in(1, 30);
    dim.y_extent = sdg_window_outputs(w, dim.x_extent);
    if (dim.y_extent < 1)
      continue;
    dim.y.lo = random_in(0, dim.y_extent - 1);
    dim.y.hi = random_in(dim.y.lo + 1, dim.y_extent);
    sdg_range_t rows = {0, 0};
    bool around = random_in(0, 1);
    if (around) {
      rows.lo = random_in(0, dim.x_extent - 1);
      rows.hi = random_in(rows.lo + 1, dim.x_extent);
    }
    sdg_window_cut_t cut = sdg_window_cut_around(&dim, rows);
    sdg_window_t padded = *w;
    padded.pad = cut.pad;
    // The cut is inside the tensors, and has exactly the outputs of the real
    // op.
    REQUIRE(cut.x.lo >= 0 && cut.x.hi <= dim.x_extent && cut.x.lo < cut.x.hi);
    REQUIRE(cut.y.lo >= 0 && cut.y.hi <= dim.y_extent);
    REQUIRE(cut.pad >= 0 && cut.pad <= w->pad);
    REQUIRE(sdg_window_outputs(&padded, cut.x.hi - cut.x.lo) ==
            cut.y.hi - cut.y.lo);
    REQUIRE(cut.y.lo <= dim.y.lo && cut.y.hi >= dim.y.hi);
    REQUIRE(rows.hi == 0 || (cut.x.lo <= rows.lo && cut.x.hi >= rows.hi));
    // Every output is at its place in the whole op.
    REQUIRE(cut.x.lo - cut.pad == cut.y.lo * w->stride - w->pad);
    for (int64_t o = dim.y.lo; o < dim.y.hi; o++)
      for (int64_t j = 0; j < w->kernel; j++) {
        int64_t should = o * w->stride - w->pad + j * w->dilation;
        if (should < 0 || should >= dim.x_extent)
          should = -1;
        REQUIRE(cut_tap(w, &cut, o - cut.y.lo, j) == should);
      }
    // If the windows are inside the domain, nothing is computed twice.
    sdg_range_t need = sdg_window_need(w, dim.y);
    if (!around && need.lo >= 0 && need.hi <= dim.x_extent)
      REQUIRE(cut.pad == 0 && cut.y.lo == dim.y.lo && cut.y.hi == dim.y.hi);
    if (around)
      continue;
    // At most a stride and the paddings more than the need.
    REQUIRE(cut.x.lo >= need.lo - w->stride - 2 * w->pad);
    bool whole = cut.y.hi - cut.y.lo == dim.y_extent;
    wholes += whole && dim.y.hi - dim.y.lo < dim.y_extent;
    cuts += !whole;
  }
  // Pieces of few rows are often all padding, but most can be cut.
  REQUIRE(cuts > 3 * wholes);
}
END_TEST

START_TEST(without_padding_all_computed_rows_are_right) {
  int64_t tried = 0;
  for (int64_t i = random_cases(60000); i > 0; i--) {
    sdg_window_dim_t dim = {.window = random_window(7),
                            .x_extent = random_in(1, 60),
                            .wrap = random_in(0, 3) == 0};
    sdg_window_t *w = &dim.window;
    dim.y_extent = sdg_window_outputs(w, dim.x_extent);
    dim.x.lo = random_in(0, dim.x_extent);
    dim.x.hi = random_in(dim.x.lo, dim.x_extent);
    dim.y.lo = random_in(0, dim.y_extent);
    dim.y.hi = random_in(dim.y.lo, dim.y_extent);
    sdg_window_view_t view = sdg_window_view(&dim), bare;
    if (!sdg_window_bare(&dim, &view, &bare))
      continue;
    tried++;
    REQUIRE(bare.x.lo >= dim.x.lo && bare.x.hi <= dim.x.hi);
    REQUIRE(bare.y.lo >= dim.y.lo && bare.y.hi <= dim.y.hi);
    REQUIRE(bare.right.lo == bare.y.lo && bare.right.hi == bare.y.hi);
    if (view.right.lo < view.right.hi)
      REQUIRE(bare.y.lo <= view.right.lo && bare.y.hi >= view.right.hi);
    // A legal call; each window sees the same as in the whole op.
    sdg_window_t none = *w;
    none.pad = 0;
    REQUIRE(sdg_window_outputs(&none, bare.x.hi - bare.x.lo) ==
            bare.y.hi - bare.y.lo);
    REQUIRE(bare.y.lo * w->stride - w->pad == bare.x.lo);
  }
  REQUIRE(tried > 1000 || random_cases(60000) < 60000);
}
END_TEST

START_TEST(the_view_is_padded_if_little_work_is_wasted) {
  sdg_window_dim_t dim = {.window = {3, 1, 1, 1},
                          .x_extent = 300,
                          .y_extent = 300,
                          .x = {100, 164},
                          .y = {100, 164}};
  sdg_window_view_t view = sdg_window_view(&dim), bare;
  ck_assert(sdg_window_bare(&dim, &view, &bare)); // 2 of 64
  ck_assert(bare.x.lo == 100 && bare.x.hi == 164);
  ck_assert(bare.y.lo == 101 && bare.y.hi == 163);
  dim.x.hi = dim.y.hi = 165; // 2 of 65
  view = sdg_window_view(&dim);
  ck_assert(!sdg_window_bare(&dim, &view, &bare));
  // At an end of the domain, padding makes a row right.
  dim.x = dim.y = (sdg_range_t){0, 20};
  view = sdg_window_view(&dim);
  ck_assert(!sdg_window_bare(&dim, &view, &bare));
}
END_TEST

START_TEST(the_cut_of_the_header_holds) {
  sdg_window_dim_t dim = {
      .window = {3, 1, 1, 1}, .x_extent = 10, .y_extent = 10, .y = {5, 10}};
  sdg_window_cut_t cut = sdg_window_cut(&dim);
  ck_assert_int_eq(cut.x.lo, 4);
  ck_assert_int_eq(cut.x.hi, 10);
  ck_assert_int_eq(cut.y.lo, 4);
  ck_assert_int_eq(cut.y.hi, 10);
  ck_assert_int_eq(cut.pad, 1);
  dim = (sdg_window_dim_t){
      .window = {1, 3, 1, 0}, .x_extent = 10, .y_extent = 4, .y = {1, 2}};
  cut = sdg_window_cut_around(&dim, (sdg_range_t){4, 6});
  ck_assert_int_eq(cut.x.lo, 3);
  ck_assert_int_eq(cut.x.hi, 6);
  ck_assert_int_eq(cut.y.lo, 1);
  ck_assert_int_eq(cut.y.hi, 2);
  ck_assert_int_eq(cut.pad, 0);
}
END_TEST

START_TEST(examples_of_the_header_hold) {
  sdg_window_t w = {.kernel = 3, .stride = 2, .dilation = 1, .pad = 1};
  sdg_part_t x, y, back;
  ck_assert(sdg_part_from_sizes(2, (int64_t[]){5, 5}, &x) == SDG_OK);
  ck_assert_int_eq(sdg_window_outputs(&w, 10), 5);
  ck_assert(sdg_window_part(&w, &x, 5, &y) == SDG_OK);
  ck_assert_int_eq(y.offset[1], 3);
  ck_assert(sdg_window_part_adjoint(&w, &y, 10, &back) == SDG_OK);
  ck_assert_int_eq(back.offset[1], 6);
  sdg_range_t need = sdg_window_need(&w, (sdg_range_t){0, 3});
  ck_assert(need.lo == -1 && need.hi == 6);
  need = sdg_window_need_adjoint(&w, (sdg_range_t){5, 10});
  ck_assert(need.lo == 2 && need.hi == 6);
  sdg_window_dim_t dim = {
      .window = w, .x_extent = 10, .y_extent = 5, .x = {5, 10}, .y = {3, 5}};
  sdg_window_view_t view = sdg_window_view(&dim);
  ck_assert(view.x.lo == 6 && view.x.hi == 10);
  ck_assert(view.y.lo == 3 && view.y.hi == 5);
  ck_assert(view.right.lo == 4 && view.right.hi == 5);
  w = (sdg_window_t){.kernel = 3, .stride = 1, .dilation = 1, .pad = 1};
  sdg_range_t images = sdg_window_images(&w, 10, 10);
  ck_assert(images.lo == -1 && images.hi == 2);
  sdg_part_fini(&x);
  sdg_part_fini(&y);
  sdg_part_fini(&back);
}
END_TEST

START_TEST(one_rank_repairs_nothing_unless_it_wraps) {
  for (int64_t i = random_cases(CASES / 10); i > 0; i--) {
    sdg_window_t w = random_window(9);
    int64_t n = random_in(1, 40), outputs = sdg_window_outputs(&w, n);
    sdg_window_dim_t dim = {.window = w,
                            .x_extent = n,
                            .y_extent = outputs,
                            .x = {0, n},
                            .y = {0, outputs}};
    sdg_window_strip_t strip[2];
    sdg_window_view_t view = sdg_window_view(&dim);
    REQUIRE(sdg_window_strips(1, &dim, &view, strip) == 0);
    if (outputs > 0) { // exactly the program's call
      REQUIRE(view.x.lo == 0 && view.x.hi == n);
      REQUIRE(view.y.lo == 0 && view.y.hi == outputs);
    }
    dim.wrap = true;
    view = sdg_window_view(&dim);
    bool redo = sdg_window_strips(1, &dim, &view, strip) > 0;
    sdg_range_t need = sdg_window_need(&w, dim.y);
    REQUIRE(redo == (outputs > 0 && (need.lo < 0 || need.hi > n)));
  }
}
END_TEST

START_TEST(each_output_and_input_that_it_sees_is_in_one_run) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    sdg_window_t w = random_window(9);
    sdg_range_t y = {random_in(-5, 20), 0}, x = {random_in(-10, 40), 0};
    sdg_window_run_t run[2 * 9 + 1];
    y.hi = y.lo + random_in(0, 30);
    x.hi = x.lo + random_in(0, 30);
    int count = sdg_window_runs(&w, y, x, NULL), met = 0, meetings = 0;
    REQUIRE(count <= 2 * w.kernel + 1);
    REQUIRE(sdg_window_runs(&w, y, x, run) == count);
    for (int r = 0; r < count; r++) {
      sdg_range_t seen = sdg_window_run_inputs(&w, &run[r]);
      REQUIRE(run[r].y.lo < run[r].y.hi && run[r].taps.lo < run[r].taps.hi);
      REQUIRE(r == 0 || run[r - 1].y.hi <= run[r].y.lo);
      REQUIRE(seen.lo >= x.lo && seen.hi <= x.hi);
      met += (int)((run[r].y.hi - run[r].y.lo) *
                   (run[r].taps.hi - run[r].taps.lo));
    }
    for (int64_t o = y.lo; o < y.hi; o++)
      for (int64_t tap = 0; tap < w.kernel; tap++) {
        int64_t at = o * w.stride - w.pad + tap * w.dilation;
        meetings += at >= x.lo && at < x.hi;
      }
    REQUIRE_MSG(met == meetings, "%d meetings in runs of %d", met, meetings);
  }
}
END_TEST

START_TEST(the_runs_of_the_header_hold) {
  const sdg_window_t w = {3, 1, 1, 1};
  sdg_window_run_t run[7];
  REQUIRE(sdg_window_runs(&w, (sdg_range_t){0, 5}, (sdg_range_t){0, 4}, run) ==
          4);
  const int64_t want[4][4] = {
      {0, 1, 1, 3}, {1, 3, 0, 3}, {3, 4, 0, 2}, {4, 5, 0, 1}};
  for (int i = 0; i < 4; i++)
    REQUIRE(run[i].y.lo == want[i][0] && run[i].y.hi == want[i][1] &&
            run[i].taps.lo == want[i][2] && run[i].taps.hi == want[i][3]);
  sdg_range_t seen = sdg_window_run_inputs(&w, &run[0]);
  REQUIRE(seen.lo == 0 && seen.hi == 2);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("window");
  TCase *cases = tcase_create("window");
  tcase_set_timeout(cases, 600);
  tcase_add_test(cases, a_cut_makes_the_owned_outputs_of_the_whole);
  tcase_add_test(cases, the_cut_of_the_header_holds);
  tcase_add_test(cases, without_padding_all_computed_rows_are_right);
  tcase_add_test(cases, the_view_is_padded_if_little_work_is_wasted);
  tcase_add_test(cases, examples_of_the_header_hold);
  tcase_add_test(cases, output_count_is_what_fits);
  tcase_add_test(cases, every_output_is_owned_by_its_centre);
  tcase_add_test(cases, every_input_is_owned_by_the_output_centred_before_it);
  tcase_add_test(cases, need_is_from_first_to_last_input_touched);
  tcase_add_test(cases, adjoint_need_is_from_first_to_last_output_that_spans);
  tcase_add_test(cases, adjoint_need_of_all_images_has_every_output_that_wraps);
  tcase_add_test(cases, one_rank_repairs_nothing_unless_it_wraps);
  tcase_add_test(cases, each_output_and_input_that_it_sees_is_in_one_run);
  tcase_add_test(cases, the_runs_of_the_header_hold);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
