// SPDX-License-Identifier: Apache-2.0
// Boxes against sets of points.
#include "src/geometry/box.h"

#include "tests/unit/random.h"

enum { CASES = 100000, SIDE = 6 };

static sdg_box_t random_box(int dims) {
  sdg_box_t box = {.dims = dims};
  for (int d = 0; d < dims; d++) {
    box.dim[d].lo = random_in(0, SIDE);
    box.dim[d].hi = random_in(0, SIDE); // empty about half of the time
  }
  return box;
}

// The i-th point of [0, SIDE)^dims.
static bool has_point(const sdg_box_t *box, int i) {
  bool inside = true;
  for (int d = 0; d < box->dims; d++, i /= SIDE)
    inside &= i % SIDE >= box->dim[d].lo && i % SIDE < box->dim[d].hi;
  return inside;
}

static int points(int dims) {
  int count = 1;
  for (int d = 0; d < dims; d++)
    count *= SIDE;
  return count;
}

START_TEST(boxes_behave_as_sets_of_points) {
  for (int64_t i = random_cases(CASES); i > 0; i--) {
    int dims = (int)random_in(0, 3);
    sdg_box_t a = random_box(dims), b = random_box(dims);
    sdg_box_t both = sdg_box_intersect(&a, &b), left[2 * SDG_DIMS_MAX];
    int pieces = sdg_box_subtract(&a, &b, left);
    REQUIRE(pieces <= (dims ? 2 * dims : 1));
    int64_t in_a = 0;
    bool b_inside = true, same = true;
    for (int p = 0; p < points(dims); p++) {
      bool pa = has_point(&a, p), pb = has_point(&b, p);
      in_a += pa;
      b_inside &= pa || !pb;
      same &= pa == pb;
      REQUIRE(has_point(&both, p) == (pa && pb));
      int times = 0;
      for (int k = 0; k < pieces; k++)
        times += has_point(&left[k], p);
      REQUIRE(times == (pa && !pb));
    }
    REQUIRE(sdg_box_count(&a) == in_a);
    REQUIRE(sdg_box_empty(&a) == (in_a == 0));
    REQUIRE(sdg_box_contains(&a, &b) == b_inside);
    REQUIRE(sdg_box_equal(&a, &b) == same);
    for (int k = 0; k < pieces; k++)
      REQUIRE(!sdg_box_empty(&left[k]));
    for (int d = 0; sdg_box_empty(&both) && d < dims; d++)
      REQUIRE(both.dim[d].lo == 0 && both.dim[d].hi == 0);
  }
}
END_TEST

START_TEST(shift_moves_every_range) {
  sdg_box_t box = {.dims = 2, .dim = {{1, 3}, {0, 5}}};
  sdg_box_t moved = sdg_box_shift(&box, (int64_t[]){-4, 10});
  sdg_box_t want = {.dims = 2, .dim = {{-3, -1}, {10, 15}}};
  ck_assert(sdg_box_equal(&moved, &want));
}
END_TEST

START_TEST(boxes_of_different_dimensions_are_not_equal) {
  sdg_box_t a = {.dims = 1, .dim = {{0, 2}}};
  sdg_box_t b = {.dims = 2, .dim = {{0, 2}, {0, 1}}};
  ck_assert(!sdg_box_equal(&a, &b));
}
END_TEST

START_TEST(subtract_keeps_inner_ranges_whole) {
  sdg_box_t a = {.dims = 2, .dim = {{0, 4}, {0, 4}}};
  sdg_box_t b = {.dims = 2, .dim = {{1, 2}, {1, 4}}};
  sdg_box_t want[] = {
      {.dims = 2, .dim = {{0, 1}, {0, 4}}},
      {.dims = 2, .dim = {{2, 4}, {0, 4}}},
      {.dims = 2, .dim = {{1, 2}, {0, 1}}},
  };
  sdg_box_t left[4];
  ck_assert_int_eq(sdg_box_subtract(&a, &b, left), 3);
  for (int i = 0; i < 3; i++)
    ck_assert(sdg_box_equal(&left[i], &want[i]));
}
END_TEST

START_TEST(divisions_are_floor_and_ceiling) {
  for (int64_t b = 1; b <= 12; b++)
    for (int64_t a = -60; a <= 60; a++) {
      int64_t floor = sdg_floor_div(a, b), ceil = sdg_ceil_div(a, b);
      REQUIRE(floor * b <= a && a < (floor + 1) * b);
      REQUIRE((ceil - 1) * b < a && a <= ceil * b);
    }
  ck_assert_int_eq(sdg_floor_div(-1, 2), -1);
  ck_assert_int_eq(sdg_ceil_div(-1, 2), 0);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("box");
  TCase *cases = tcase_create("box");
  tcase_set_timeout(cases, 120);
  tcase_add_test(cases, boxes_behave_as_sets_of_points);
  tcase_add_test(cases, shift_moves_every_range);
  tcase_add_test(cases, boxes_of_different_dimensions_are_not_equal);
  tcase_add_test(cases, subtract_keeps_inner_ranges_whole);
  tcase_add_test(cases, divisions_are_floor_and_ceiling);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
