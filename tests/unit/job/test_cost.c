// SPDX-License-Identifier: Apache-2.0
// What work costs devices of several kinds, and groups of unlike ranks.
#include "src/job/cost.h"

#include <math.h>

#include "tests/unit/harness.h"

static bool equal(const sdg_cost_t *a, const sdg_cost_t *b) {
  return a->copy_bytes_s == b->copy_bytes_s && a->launch_us == b->launch_us &&
         a->strip_us == b->strip_us && a->run_bytes == b->run_bytes;
}

static bool alike(int major, int minor, int as_major, int as_minor) {
  sdg_cost_t a = sdg_cost_of(major, minor, 5120);
  sdg_cost_t b = sdg_cost_of(as_major, as_minor, 0);
  return equal(&a, &b);
}

START_TEST(a_device_gets_the_last_row_that_is_not_above_it) {
  REQUIRE(alike(8, 0, 8, 0) && alike(9, 0, 9, 0) && alike(10, 0, 10, 0));
  REQUIRE(alike(8, 6, 8, 0) && alike(8, 9, 8, 0));
  REQUIRE(alike(10, 3, 10, 0) && alike(12, 0, 10, 0));
  REQUIRE(alike(7, 5, 8, 0)); // below all
  REQUIRE(!alike(8, 0, 9, 0) && !alike(9, 0, 10, 0));
  REQUIRE(sdg_cost_of(9, 0, 6144).copy_bytes_s == 1.3e12);
}
END_TEST

START_TEST(the_host_device_has_a_row_of_its_own) {
  sdg_cost_t host = sdg_cost_of(9, 0, 64), gpu = sdg_cost_of(9, 0, 5120);
  REQUIRE(!equal(&host, &gpu));
  REQUIRE(host.copy_bytes_s < gpu.copy_bytes_s);
  sdg_cost_t other = sdg_cost_of(8, 0, 64), a100 = sdg_cost_of(8, 0, 0);
  REQUIRE(equal(&other, &a100));
}
END_TEST

START_TEST(the_slowest_number_of_any_rank_counts) {
  const sdg_cost_t a = {1e12, 5, 40, 64}, b = {2e12, 4, 50, 0};
  const sdg_cost_t slowest = {1e12, 5, 50, 64}, none = {0, 0, 0, 0};
  sdg_cost_t ab = sdg_cost_slowest(&a, &b), ba = sdg_cost_slowest(&b, &a);
  REQUIRE(equal(&ab, &slowest) && equal(&ba, &slowest));
  ab = sdg_cost_slowest(&a, &none);
  ba = sdg_cost_slowest(&none, &a);
  REQUIRE(equal(&ab, &none) && equal(&ba, &none));
}
END_TEST

START_TEST(numbers_that_no_device_has_are_not_sound) {
  const sdg_cost_t good[] = {{0, 0, 0, 0}, {1, 0, 0, 0}, {1.3e12, 5, 42, 64}};
  const sdg_cost_t bad[] = {{-1, 0, 0, 0},  {1, -1, 0, 0},  {1, 0, -1, 0},
                            {1, 0, 0, -1},  {NAN, 0, 0, 0}, {1, INFINITY, 0, 0},
                            {1, 0, NAN, 0}, {1, 0, 0, NAN}};
  for (int i = 0; i < 3; i++)
    REQUIRE(sdg_cost_sound(&good[i]));
  for (int i = 0; i < 8; i++)
    REQUIRE(!sdg_cost_sound(&bad[i]));
}
END_TEST

START_TEST(the_option_replaces_the_devices_row) {
  char *environment[] = {"SUNDOG_COST=2e9,3,4.5,48", NULL};
  REQUIRE(!sdg_options_load(environment));
  sdg_cost_t mine = sdg_cost_mine();
  REQUIRE(mine.copy_bytes_s == 0); // not prepared
  REQUIRE(!sdg_cost_prepare());
  mine = sdg_cost_mine();
  REQUIRE(mine.copy_bytes_s == 2e9 && mine.launch_us == 3 &&
          mine.strip_us == 4.5 && mine.run_bytes == 48);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cost");
  TCase *cases = tcase_create("cost");
  tcase_add_test(cases, a_device_gets_the_last_row_that_is_not_above_it);
  tcase_add_test(cases, the_host_device_has_a_row_of_its_own);
  tcase_add_test(cases, the_slowest_number_of_any_rank_counts);
  tcase_add_test(cases, numbers_that_no_device_has_are_not_sound);
  tcase_add_test(cases, the_option_replaces_the_devices_row);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
