// SPDX-License-Identifier: Apache-2.0
// What sundog_halo writes around a piece, index by index.
#include <string.h>

#include "rules/halo/halo.h"
#include "src/sundog.h"
#include "tests/unit/random.h"

enum { CASES = 20000, DIMS = 3 };

typedef struct drawn {
  sdg_halo_t halo;
  sdg_box_t own;
  int64_t whole[SDG_DIMS_MAX];
} drawn_t;

static drawn_t draw(void) {
  drawn_t c;
  memset(&c, 0, sizeof c);
  c.own.dims = DIMS;
  for (int d = 0; d < DIMS; d++) {
    c.whole[d] = random_in(1, 4);
    c.own.dim[d].lo = random_in(0, c.whole[d] - 1);
    c.own.dim[d].hi = random_in(c.own.dim[d].lo + 1, c.whole[d]);
    c.halo.before[d] = random_in(0, 5);
    c.halo.after[d] = random_in(0, 5);
    c.halo.border[d] = (int)random_in(SUNDOG_LEAVE, SUNDOG_ZERO);
  }
  return c;
}

static bool holds(const sdg_box_t *box, const int64_t *at) {
  bool in = !sdg_box_empty(box);
  for (int d = 0; d < box->dims; d++)
    in &= at[d] >= box->dim[d].lo && at[d] < box->dim[d].hi;
  return in;
}

// What becomes of an element of `out`: 'w' one of the whole's, '0', or '-'.
static char becomes(const drawn_t *c, const int64_t *at) {
  char what = 'w';
  for (int d = 0; d < DIMS; d++) {
    bool beyond = at[d] < 0 || at[d] >= c->whole[d];
    if (beyond && c->halo.border[d] == SUNDOG_LEAVE)
      return '-';
    if (beyond && c->halo.border[d] == SUNDOG_ZERO)
      what = '0';
  }
  return what;
}

START_TEST(every_element_is_in_the_boxes_of_its_kind) {
  for (int64_t n = random_cases(CASES); n > 0; n--) {
    drawn_t c = draw();
    sdg_box_t zero[2 * SDG_DIMS_MAX];
    sdg_box_t box = sdg_halo_box(&c.halo, &c.own);
    sdg_box_t need = sdg_halo_need(&c.halo, &c.own, c.whole);
    int zeros = sdg_halo_zeros(&c.halo, &c.own, c.whole, zero);
    int64_t at[DIMS];
    for (at[0] = box.dim[0].lo; at[0] < box.dim[0].hi; at[0]++)
      for (at[1] = box.dim[1].lo; at[1] < box.dim[1].hi; at[1]++)
        for (at[2] = box.dim[2].lo; at[2] < box.dim[2].hi; at[2]++) {
          bool is_zero = false;
          for (int z = 0; z < zeros; z++)
            is_zero |= holds(&zero[z], at);
          char what = becomes(&c, at);
          REQUIRE(holds(&need, at) == (what == 'w'));
          REQUIRE(is_zero == (what == '0'));
        }
    REQUIRE(sdg_box_contains(&box, &need));
    for (int z = 0; z < zeros; z++)
      REQUIRE(sdg_box_contains(&box, &zero[z]));
  }
}
END_TEST

START_TEST(only_dimensions_that_wrap_have_a_period) {
  const sdg_halo_t halo = {.border = {SUNDOG_WRAP, SUNDOG_ZERO, SUNDOG_LEAVE}};
  const int64_t whole[SDG_DIMS_MAX] = {4, 5, 6};
  int64_t period[SDG_DIMS_MAX];
  sdg_halo_periods(&halo, DIMS, whole, period);
  REQUIRE(period[0] == 4 && period[1] == 0 && period[2] == 0);
  REQUIRE(period[DIMS] == 0);
}
END_TEST

START_TEST(a_rank_without_elements_needs_none) {
  const sdg_halo_t halo = {
      .before = {2}, .after = {2}, .border = {SUNDOG_ZERO}};
  const sdg_box_t own = {1, {{3, 3}}};
  const int64_t whole[SDG_DIMS_MAX] = {9};
  sdg_box_t zero[2 * SDG_DIMS_MAX];
  sdg_box_t need = sdg_halo_need(&halo, &own, whole);
  sdg_box_t box = sdg_halo_box(&halo, &own);
  REQUIRE(sdg_box_empty(&need) && sdg_box_empty(&box));
  REQUIRE(sdg_halo_zeros(&halo, &own, whole, zero) == 0);
}
END_TEST

START_TEST(examples_of_the_header_hold) {
  const sdg_halo_t halo = {.before = {1}, .after = {2}};
  const sdg_box_t own = {1, {{4, 9}}};
  sdg_box_t box = sdg_halo_box(&halo, &own);
  REQUIRE(box.dim[0].lo == 3 && box.dim[0].hi == 11);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("halo");
  TCase *cases = tcase_create("halo");
  tcase_set_timeout(cases, 300);
  tcase_add_test(cases, every_element_is_in_the_boxes_of_its_kind);
  tcase_add_test(cases, only_dimensions_that_wrap_have_a_period);
  tcase_add_test(cases, a_rank_without_elements_needs_none);
  tcase_add_test(cases, examples_of_the_header_hold);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
