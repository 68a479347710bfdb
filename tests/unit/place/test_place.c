// SPDX-License-Identifier: Apache-2.0
// How the ranks' agreed extents are understood, section by section.
#include "rules/place/place.h"

#include "tests/unit/agreed.h"
#include "tests/unit/harness.h"
#include "tests/unit/fake_cuda.h"

enum { RANKS = AGREED_RANKS, H = 2, W = 3 };
static const int64_t channels[RANKS] = {3, 3, 3};

// One operand of a call, read by the first section of the rules.
typedef struct reading {
  sdg_rules_t rules;
  sdg_call_t call;
  sdg_place_t place[SDG_PLACES_MAX];
  int places;
  sdg_status_t status;
} reading_t;

static void read_by(const char *text, sdg_family_t family, sdg_role_t role,
                    const int64_t *h, const int64_t *w, reading_t *out) {
  agreed_rules(text, &out->rules);
  out->call = (sdg_call_t){.entry_name = "cudnnTest", .family = family};
  agreed_add(&out->call, role, channels, h, w);
  out->status = sdg_place_list(&out->call, 0, &out->rules.section[0],
                               &out->rules, out->place, &out->places);
}

static void end(reading_t *reading) {
  sdg_place_free(reading->place, reading->places);
  sdg_rules_fini(&reading->rules);
}

static bool has(const reading_t *reading, int which, int64_t h, int64_t w) {
  const sdg_placement_t *placement = &reading->place[which].placement;
  return sdg_placement_extent(placement, H) == h &&
         sdg_placement_extent(placement, W) == w;
}

static void ones_body(int rank) {
  static const struct {
    sdg_family_t family;
    bool repeats;
  } rows[] = {{SDG_FAMILY_CONV, false},     {SDG_FAMILY_POOL, false},
              {SDG_FAMILY_NORM, false},     {SDG_FAMILY_POINTWISE, true},
              {SDG_FAMILY_REDUCE, true},    {SDG_FAMILY_SOFTMAX, true},
              {SDG_FAMILY_ATTENTION, false}};
  const int64_t one[RANKS] = {1, 1, 1}, more[RANKS] = {2, 1, 1},
                w[RANKS] = {9, 9, 9};
  (void)rank;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    reading_t r;
    bool named = rows[i].family != SDG_FAMILY_ATTENTION;
    read_by("[shard a]\nsplit = H\n", rows[i].family, SDG_ROLE_X, one, w, &r);
    REQUIRE(!r.status && (r.places > 0) == named);
    REQUIRE(!named || has(&r, 0, rows[i].repeats ? 1 : RANKS, 9));
    end(&r);
    read_by("[shard a]\nsplit = H\n", rows[i].family, SDG_ROLE_X, more, w, &r);
    REQUIRE(!r.status && (!named || has(&r, 0, RANKS + 1, 9)));
    end(&r);
  }
}

START_TEST(one_row_on_every_rank_is_the_same_where_ops_repeat_it) {
  fake_cuda_ranks_run("y=3", ones_body);
}
END_TEST

static void order_body(int rank) {
  const int64_t h[RANKS] = {12, 12, 12}, w[RANKS] = {3, 3, 3};
  reading_t r;
  (void)rank;
  read_by("[shard a]\nmatch = H=36\nsplit = H:y\n"
          "[shard b]\nmatch = H=12\nsplit = W:y\n",
          SDG_FAMILY_CONV, SDG_ROLE_Y, h, w, &r);
  REQUIRE(!r.status && r.places == 2); // section a matches it
  REQUIRE(has(&r, 0, 36, 3) && r.place[0].section == &r.rules.section[0]);
  REQUIRE(has(&r, 1, 12, 3) && !r.place[1].section);
  end(&r);
  read_by("[shard a]\nmatch = W=9 H=8\nsplit = H:y\n"
          "[shard b]\nmatch = H=12\nsplit = W:y\n",
          SDG_FAMILY_CONV, SDG_ROLE_Y, h, w, &r);
  REQUIRE(!r.status && r.places == 3);
  REQUIRE(has(&r, 0, 36, 3) && has(&r, 1, 12, 9) && has(&r, 2, 12, 3));
  REQUIRE(r.place[1].section == &r.rules.section[1]);
  end(&r);
}

START_TEST(the_section_of_the_call_comes_before_the_operands_own) {
  fake_cuda_ranks_run("y=3", order_body);
}
END_TEST

static void differing_body(int rank) {
  const int64_t h[RANKS] = {4, 4, 4}, w[RANKS] = {3, 4, 5};
  reading_t r;
  sdg_seen_t seen;
  (void)rank;
  read_by("[shard a]\nsplit = H\n", SDG_FAMILY_CONV, SDG_ROLE_X, h, w, &r);
  REQUIRE(r.status == SDG_E_EXTENTS && r.places == 0);
  end(&r);
  // A scale that is cut like an activation has no other reading.
  read_by("[shard a]\nsplit = H\n", SDG_FAMILY_NORM, SDG_ROLE_SCALE, h, w, &r);
  REQUIRE(!r.status && r.places == 0);
  end(&r);
  read_by("[shard a]\nmatch = W>=4\nsplit = H\n", SDG_FAMILY_CONV, SDG_ROLE_X,
          h, w, &r);
  REQUIRE(sdg_place_section(&r.call, 0, &r.rules, &seen) ==
          &r.rules.section[0]);
  REQUIRE(seen.yes == 2 && seen.no == 0);
  end(&r);
  read_by("[shard a]\nmatch = W=3\nsplit = H\n", SDG_FAMILY_CONV, SDG_ROLE_X, h,
          w, &r);
  REQUIRE(sdg_place_section(&r.call, 0, &r.rules, &seen) ==
          &r.rules.section[0]);
  REQUIRE(seen.yes == 0 && seen.no == 2);
  end(&r);
}

START_TEST(extents_that_make_no_tensor_have_no_reading) {
  fake_cuda_ranks_run("y=3", differing_body);
}
END_TEST

static void lacking_body(int rank) {
  const int64_t h[RANKS] = {4, 4, 4}, w[RANKS] = {9, 9, 9};
  reading_t r;
  sdg_seen_t seen;
  (void)rank;
  read_by("[shard a]\nsplit = D\n", SDG_FAMILY_CONV, SDG_ROLE_X, h, w, &r);
  REQUIRE(!r.status && r.places == 0);
  REQUIRE(!sdg_place_section(&r.call, 0, &r.rules, &seen));
  end(&r);
}

START_TEST(a_tensor_without_the_dimension_has_no_reading) {
  fake_cuda_ranks_run("y=3", lacking_body);
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("place");
  TCase *cases = tcase_create("place");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, one_row_on_every_rank_is_the_same_where_ops_repeat_it);
  tcase_add_test(cases, the_section_of_the_call_comes_before_the_operands_own);
  tcase_add_test(cases, extents_that_make_no_tensor_have_no_reading);
  tcase_add_test(cases, a_tensor_without_the_dimension_has_no_reading);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
