// SPDX-License-Identifier: Apache-2.0
// Which queries of attention see which keys, against the definition.
#include "rules/graph/attention/sight.h"

#include "tests/unit/random.h"

enum { CASES = 100000, LONGEST = 20 };

static bool sees(const sdg_sight_t *sight, int64_t q, int64_t k) {
  return (!sight->right || q + sight->shift + sight->right_bound >= k) &&
         (!sight->left || k + sight->left_bound > q + sight->shift);
}

static sdg_range_t range_draw(int64_t extent) {
  int64_t lo = random_in(0, extent - 1);
  return (sdg_range_t){lo, random_in(lo + 1, extent)};
}

static sdg_sight_t sight_draw(void) {
  return (sdg_sight_t){.right = random_in(0, 2) > 0,
                       .left = random_in(0, 1) > 0,
                       .right_bound = random_in(0, 2) ? random_in(0, 4) : 0,
                       .left_bound = random_in(1, 6),
                       .shift = random_in(0, 1) ? random_in(-5, 5) : 0};
}

static void extend(sdg_range_t *range, int64_t at) {
  bool none = range->hi <= range->lo;
  range->lo = none || at < range->lo ? at : range->lo;
  range->hi = none || at >= range->hi ? at + 1 : range->hi;
}

START_TEST(a_block_has_what_is_seen_and_nothing_else) {
  int64_t cases = random_cases(CASES), seen = 0, bounded = 0;
  for (int64_t c = 0; c < cases; c++) {
    sdg_sight_t sight = sight_draw();
    sdg_range_t queries = range_draw(LONGEST), keys = range_draw(LONGEST);
    sdg_range_t rows = {0, 0}, columns = {0, 0};
    for (int64_t q = queries.lo; q < queries.hi; q++)
      for (int64_t k = keys.lo; k < keys.hi; k++)
        if (sees(&sight, q, k)) {
          extend(&rows, q);
          extend(&columns, k);
        }
    sdg_sight_block_t block = sdg_sight_block(&sight, queries, keys);
    REQUIRE(block.queries.lo == rows.lo && block.queries.hi == rows.hi);
    REQUIRE(block.keys.lo == columns.lo && block.keys.hi == columns.hi);
    REQUIRE(!block.right || block.right_bound >= 0);
    REQUIRE(!block.left || block.left_bound >= 1);
    bool hides = false;
    for (int64_t q = rows.lo; q < rows.hi; q++) {
      int count = 0;
      for (int64_t k = columns.lo; k < columns.hi; k++) {
        int64_t row = q - rows.lo, column = k - columns.lo;
        bool is = (!block.right || row + block.right_bound >= column) &&
                  (!block.left || column + block.left_bound > row);
        REQUIRE(is == sees(&sight, q, k));
        count += is;
        hides |= !is;
      }
      REQUIRE(count > 0); // no row whose softmax is of nothing
    }
    REQUIRE(hides == (block.right || block.left));
    seen += rows.hi > rows.lo;
    bounded += hides;
  }
  ck_assert(seen > cases / 4 && bounded > cases / 8);
}
END_TEST

START_TEST(keys_and_queries_are_those_of_the_definition) {
  int64_t cases = random_cases(CASES);
  for (int64_t c = 0; c < cases; c++) {
    sdg_sight_t sight = sight_draw();
    sdg_range_t queries = range_draw(LONGEST), keys = {0, LONGEST};
    sdg_range_t rows = {0, 0}, columns = {0, 0};
    for (int64_t q = queries.lo; q < queries.hi; q++)
      for (int64_t k = 0; k < LONGEST; k++)
        if (sees(&sight, q, k)) {
          extend(&columns, k);
          extend(&rows, q);
        }
    sdg_range_t all = sdg_sight_keys(&sight, queries, keys);
    REQUIRE(all.lo == columns.lo && all.hi == columns.hi);
    sdg_range_t those = sdg_sight_queries(&sight, queries, keys);
    REQUIRE(those.lo == rows.lo && those.hi == rows.hi);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("sight");
  TCase *cases = tcase_create("sight");
  tcase_set_timeout(cases, 600);
  tcase_add_test(cases, a_block_has_what_is_seen_and_nothing_else);
  tcase_add_test(cases, keys_and_queries_are_those_of_the_definition);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
