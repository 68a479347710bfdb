// SPDX-License-Identifier: Apache-2.0
// Ranges that go around the end of a dimension, against sets of rows.
#include "src/geometry/ring.h"

#include "tests/unit/random.h"

// Whether a row of a ring is in a range that may go around its end.
static bool on_ring(sdg_range_t range, int64_t row, int64_t extent) {
  for (int64_t i = range.lo; i < range.hi; i++)
    if (i - sdg_floor_div(i, extent) * extent == row)
      return true;
  return false;
}

static sdg_range_t ring_range(int64_t extent) {
  int64_t lo = random_in(-2 * extent, 2 * extent);
  return (sdg_range_t){lo, lo + random_in(1, extent + 2)};
}

START_TEST(rings_behave_as_sets_of_rows) {
  for (int64_t n = random_cases(200000); n > 0; n--) {
    int64_t extent[] = {random_in(1, 9)}, e = extent[0];
    sdg_box_t a = {1, {ring_range(e)}}, b = {1, {ring_range(e)}};
    sdg_box_t normal = sdg_ring_normal(&a, extent);
    sdg_box_t hull = sdg_ring_hull(&a, &b, extent);
    int64_t both = 0;
    bool contains = true;
    REQUIRE(normal.dim[0].lo >= 0 && normal.dim[0].lo < e);
    REQUIRE(sdg_box_count(&normal) <= e);
    REQUIRE(hull.dim[0].lo >= 0 && hull.dim[0].lo < e);
    for (int64_t row = 0; row < e; row++) {
      bool in_a = on_ring(a.dim[0], row, e), in_b = on_ring(b.dim[0], row, e);
      REQUIRE(on_ring(normal.dim[0], row, e) == in_a);
      REQUIRE(!(in_a || in_b) || on_ring(hull.dim[0], row, e));
      contains &= in_a || !in_b;
      both += in_a || in_b;
    }
    REQUIRE(sdg_ring_contains(&a, &b, extent) == contains);
    // No shorter range has all of these rows.
    for (int64_t lo = 0; lo < e; lo++) {
      sdg_box_t other = {1, {{lo, lo + sdg_box_count(&hull) - 1}}};
      REQUIRE(sdg_box_count(&hull) == both ||
              !sdg_ring_contains(&other, &a, extent) ||
              !sdg_ring_contains(&other, &b, extent));
    }
  }
}
END_TEST

START_TEST(rings_of_boxes_inside_the_domain_are_boxes) {
  const int64_t extent[] = {10, 4};
  sdg_box_t a = {2, {{0, 5}, {0, 4}}}, b = {2, {{5, 6}, {1, 2}}};
  sdg_box_t none = {.dims = 2}, hull = sdg_ring_hull(&a, &b, extent);
  sdg_box_t want = {2, {{0, 6}, {0, 4}}};
  REQUIRE(sdg_box_equal(&hull, &want));
  // Both ways round are as long: the one inside the domain.
  sdg_box_t first = {2, {{0, 1}, {0, 4}}}, middle = {2, {{5, 6}, {0, 4}}};
  hull = sdg_ring_hull(&middle, &first, extent);
  REQUIRE(sdg_box_equal(&hull, &want));
  hull = sdg_ring_hull(&none, &a, extent);
  REQUIRE(sdg_box_equal(&hull, &a));
  REQUIRE(sdg_ring_contains(&none, &none, extent));
  REQUIRE(!sdg_ring_contains(&none, &b, extent));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ring");
  TCase *cases = tcase_create("ring");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, rings_behave_as_sets_of_rows);
  tcase_add_test(cases, rings_of_boxes_inside_the_domain_are_boxes);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
