// SPDX-License-Identifier: Apache-2.0
// Verdicts derived from the extents of all ranks.
#include "rules/place/tagging.h"

#include <string.h>

#include "tests/unit/agreed.h"
#include "tests/unit/brute.h"
#include "tests/unit/lanes.h"

// A tensor of [2, c[r], h[r], 8] on rank r, agreed.
static void operand_add(sdg_call_t *call, sdg_role_t role, const int64_t *c,
                        const int64_t *h) {
  static const int64_t w[] = {8, 8, 8};
  agreed_add(call, role, c, h, w);
}

static sdg_call_t call_of(sdg_family_t family, const int64_t *c,
                          const int64_t *h) {
  sdg_call_t call = {.entry_name = "cudnnTest", .family = family};
  operand_add(&call, SDG_ROLE_X, c, h);
  operand_add(&call, SDG_ROLE_Y, c, h);
  return call;
}

static const int64_t same[] = {3, 3, 3}, uneven[] = {90, 110, 120};

static sdg_status_t derive(const sdg_call_t *call, const sdg_rules_t *rules,
                           const char **out_section, sdg_tagging_t *out) {
  const sdg_section_t *section;
  bool local;
  sdg_status_t status = sdg_tagging_derive(call, rules, &section, &local, out);
  *out_section = status != SDG_OK ? "failed"
                 : section        ? section->name
                 : local          ? "local"
                                  : "none";
  return status;
}

static void expect(const sdg_call_t *call, const char *text,
                   const char *expected) {
  sdg_rules_t rules;
  sdg_tagging_t tagging = {0};
  const char *section;
  agreed_rules(text, &rules);
  sdg_status_t status = derive(call, &rules, &section, &tagging);
  REQUIRE_MSG(strcmp(section, expected) == 0, "%s instead of %s: %s", section,
              expected, sdg_last_error());
  REQUIRE(status == SDG_OK || status == SDG_E_EXTENTS);
  if (status == SDG_OK)
    sdg_tagging_fini(&tagging);
  sdg_rules_fini(&rules);
}

static void sections_body(int rank) {
  (void)rank;
  sdg_call_t call = call_of(SDG_FAMILY_CONV, same, uneven);
  // H is summed: 320.
  expect(&call,
         "[shard a]\nsplit = H\nmatch = H>=321\n"
         "[shard b]\nsplit = H\nmatch = H=320\n",
         "b");
  expect(&call, "[shard a]\nsplit = H\nmatch = H>=321\n", "none");
  expect(&call, "[local l]\nmatch = C=3\n[shard a]\nsplit = H\n", "local");
  expect(&call, "[shard a]\nsplit = H\nop = pool*\n", "none");
}

START_TEST(the_first_section_that_matches_global_extents_decides) {
  lanes_ranks_run("y=3", sections_body);
}
END_TEST

static void parting_body(int rank) {
  (void)rank;
  sdg_call_t call = call_of(SDG_FAMILY_CONV, same, uneven);
  const char *local = "[local l]\nmatch = H>=100\n[shard a]\nsplit = H\n";
  expect(&call, local, "failed");
  REQUIRE(strstr(sdg_last_error(), "rank 2 and does not on rank 0"));
  const int64_t channels[] = {4, 3, 4};
  call = call_of(SDG_FAMILY_CONV, channels, uneven);
  expect(&call, "[shard a]\nsplit = H\nmatch = C>=4\n", "failed");
  REQUIRE(strstr(sdg_last_error(), "does not on rank 1"));
  // Unequal channels are an error where the section matches on all ranks, too.
  expect(&call, "[shard a]\nsplit = H\nmatch = C>=3\n", "failed");
  expect(&call, "[shard a]\nsplit = H\nmatch = C>=5\n", "none");
}

START_TEST(ranks_that_see_different_matches_fail_alike) {
  lanes_ranks_run("y=3", parting_body);
}
END_TEST

static void placing_body(int rank) {
  const int64_t one[] = {1, 1, 1};
  sdg_rules_t rules;
  sdg_tagging_t tagging;
  const char *section;
  agreed_rules("[shard a]\nsplit = H\n", &rules);
  sdg_call_t call = call_of(SDG_FAMILY_POINTWISE, same, uneven);
  operand_add(&call, SDG_ROLE_Z, same, one);
  REQUIRE(!derive(&call, &rules, &section, &tagging));
  REQUIRE(tagging.ranks == 3 && tagging.me == rank);
  REQUIRE(tagging.placement[0].part[2].offset[1] == 90);
  REQUIRE(tagging.placement[0].part[2].offset[2] == 200);
  REQUIRE(sdg_placement_extent(&tagging.placement[1], 2) == 320);
  // One row on every rank is a bias, not three rows.
  REQUIRE(sdg_placement_extent(&tagging.placement[2], 2) == 1);
  sdg_tagging_fini(&tagging);
  // So it is of scales, in any op, which have no section of their own.
  call = call_of(SDG_FAMILY_NORM, same, uneven);
  operand_add(&call, SDG_ROLE_SCALE, same, one);
  operand_add(&call, SDG_ROLE_SCALE, same, uneven);
  REQUIRE(!derive(&call, &rules, &section, &tagging));
  REQUIRE(tagging.placement[2].split[2].axes == 0);
  REQUIRE(sdg_placement_extent(&tagging.placement[2], 2) == 1);
  REQUIRE(tagging.placement[3].part[2].offset[1] == 90);
  sdg_tagging_fini(&tagging);
  sdg_rules_fini(&rules);
}

START_TEST(activations_are_placed_where_the_ranks_hold_them) {
  lanes_ranks_run("y=3", placing_body);
}
END_TEST

static void passing_body(int rank) {
  (void)rank;
  sdg_rules_t rules;
  sdg_call_t call = call_of(SDG_FAMILY_CONV, same, uneven);
  agreed_rules("[shard a]\nsplit = H\nmatch = H>=1000\n", &rules);
  REQUIRE(sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
  agreed_rules("[shard a]\nsplit = H\n", &rules);
  REQUIRE(!sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
  // What only some ranks call local may not pass on those.
  agreed_rules("[local l]\nmatch = H>=100\n[shard a]\nsplit = H\n", &rules);
  REQUIRE(!sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
  // Another entry of the family may match.
  agreed_rules("[shard a]\nsplit = H\nop = cudnnPoolingForward\n", &rules);
  call.family = SDG_FAMILY_POOL;
  REQUIRE(!sdg_tagging_passes(&call, 0, &rules));
  sdg_rules_fini(&rules);
}

START_TEST(a_descriptor_passes_only_where_no_section_can_match) {
  lanes_ranks_run("y=3", passing_body);
}
END_TEST

int main(void) {
  lanes_install();
  Suite *suite = suite_create("tagging");
  TCase *cases = tcase_create("tagging");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, the_first_section_that_matches_global_extents_decides);
  tcase_add_test(cases, ranks_that_see_different_matches_fail_alike);
  tcase_add_test(cases, activations_are_placed_where_the_ranks_hold_them);
  tcase_add_test(cases, a_descriptor_passes_only_where_no_section_can_match);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
