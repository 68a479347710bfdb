// SPDX-License-Identifier: Apache-2.0
// Which operand of a call leads, and where the others must be.
#include "rules/place/colocate.h"

#include <string.h>

#include "rules/place/tagging.h"
#include "tests/unit/agreed.h"
#include "tests/unit/random.h"
#include "tests/unit/fake_cuda.h"

enum { RANKS = AGREED_RANKS };
static const int64_t channels[] = {3, 3, 3};

static sdg_status_t alike(const sdg_call_t *call, sdg_colocation_t *colocation,
                          int lead) {
  (void)call;
  return sdg_colocate_alike(colocation, lead);
}

static sdg_rules_t rules; // of the current case

// Colocates x, z and y, in this order, by these rules.
static sdg_colocate_result_t met(const char *text, sdg_family_t family,
                                 const int64_t size[][2][RANKS], int operands,
                                 sdg_tagging_t *tagging,
                                 sdg_colocation_t *out) {
  static const sdg_role_t role[] = {SDG_ROLE_X, SDG_ROLE_Z, SDG_ROLE_Y};
  static sdg_call_t call;
  sdg_op_t op = {.family = family, .colocate = alike};
  const sdg_section_t *section;
  bool local;
  sdg_colocate_result_t found;
  call = (sdg_call_t){.entry_name = "cudnnTest", .family = family};
  for (int i = 0; i < operands; i++)
    agreed_add(&call, role[operands == 2 ? 2 * i : i], channels, size[i][0],
               size[i][1]);
  agreed_rules(text, &rules);
  REQUIRE(!sdg_tagging_derive(&call, &rules, &section, &local, tagging));
  REQUIRE(section);
  REQUIRE(!sdg_colocate_find(&call, &rules, &op, tagging, out, &found));
  return found;
}

static const char rows_only[] = "[shard a]\nsplit = H\n";
#define EVEN                                                                   \
  { 4, 4, 4 }
#define WIDE                                                                   \
  { 9, 9, 9 }

static void end(sdg_tagging_t *tagging, sdg_colocation_t *colocation) {
  sdg_colocate_fini(colocation);
  sdg_tagging_fini(tagging);
  sdg_rules_fini(&rules);
}

static void alike_body(int rank) {
  (void)rank;
  const int64_t size[][2][RANKS] = {{EVEN, WIDE}, {EVEN, WIDE}, {EVEN, WIDE}};
  sdg_tagging_t tagging;
  sdg_colocation_t colocation;
  REQUIRE(met(rows_only, SDG_FAMILY_SOFTMAX, size, 3, &tagging, &colocation) ==
          SDG_COLOCATE_NOTHING);
  end(&tagging, &colocation);
}

START_TEST(operands_with_the_same_cuts_are_not_moved) {
  fake_cuda_ranks_run("y=3", alike_body);
}
END_TEST

static void rows_body(int rank) {
  const int64_t size[][2][RANKS] = {
      {{2, 3, 7}, WIDE}, {{12, 12, 12}, WIDE}, {EVEN, WIDE}};
  const int64_t first[] = {0, 2, 5}, even[] = {0, 4, 8};
  sdg_tagging_t tagging;
  sdg_colocation_t colocation;
  // The first operand leads; z is whole on every rank.
  REQUIRE(met(rows_only, SDG_FAMILY_SOFTMAX, size, 3, &tagging, &colocation) ==
          SDG_COLOCATE_MOVES);
  REQUIRE(!sdg_colocate_moves(&colocation, 0) &&
          sdg_colocate_moves(&colocation, 1) &&
          sdg_colocate_moves(&colocation, 2));
  REQUIRE(sdg_placement_axes(&tagging.placement[1]) == 0);
  for (int i = 0; i < 3; i++) {
    sdg_box_t at = sdg_placement_box(sdg_colocate_at(&colocation, i),
                                     colocation.tagging.mesh, rank);
    REQUIRE(at.dim[2].lo == first[rank]);
  }
  sdg_box_t y =
      sdg_placement_box(&tagging.placement[2], tagging.mesh, tagging.rank);
  REQUIRE(y.dim[2].lo == even[rank]);
  end(&tagging, &colocation);
  // In elementwise ops an output leads.
  REQUIRE(met(rows_only, SDG_FAMILY_POINTWISE, size, 3, &tagging,
              &colocation) == SDG_COLOCATE_MOVES);
  REQUIRE(sdg_colocate_moves(&colocation, 0) &&
          sdg_colocate_moves(&colocation, 1) &&
          !sdg_colocate_moves(&colocation, 2));
  end(&tagging, &colocation);
}

START_TEST(operands_in_other_rows_are_fetched_to_the_leading_operands_rows) {
  fake_cuda_ranks_run("y=3", rows_body);
}
END_TEST

static void sections_body(int rank) {
  (void)rank;
  // y has its own section, which splits columns.
  const int64_t size[][2][RANKS] = {{EVEN, WIDE}, {{12, 12, 12}, {2, 3, 4}}};
  sdg_tagging_t tagging;
  sdg_colocation_t colocation;
  REQUIRE(met("[shard a]\nmatch = W=9 H=12\nsplit = H:y\n"
              "[shard b]\nmatch = H=12\nsplit = W:y\n",
              SDG_FAMILY_SOFTMAX, size, 2, &tagging,
              &colocation) == SDG_COLOCATE_MOVES);
  REQUIRE(!sdg_colocate_moves(&colocation, 0) &&
          sdg_colocate_moves(&colocation, 1));
  REQUIRE(tagging.placement[1].split[3].axes == 1);
  REQUIRE(sdg_colocate_at(&colocation, 1)->split[2].axes == 1);
  REQUIRE(strcmp(colocation.tagging.section->name, "a") == 0);
  end(&tagging, &colocation);
}

START_TEST(an_operands_own_section_decides_its_place) {
  fake_cuda_ranks_run("y=3", sections_body);
}
END_TEST

static void other_sizes_body(int rank) {
  (void)rank;
  const int64_t size[][2][RANKS] = {{EVEN, WIDE}, {{4, 4, 5}, WIDE}};
  sdg_tagging_t tagging;
  sdg_colocation_t colocation;
  REQUIRE(met(rows_only, SDG_FAMILY_SOFTMAX, size, 2, &tagging, &colocation) ==
          SDG_COLOCATE_NOTHING);
  REQUIRE(sdg_placement_extent(&tagging.placement[1], 2) == 13);
  end(&tagging, &colocation);
}

START_TEST(operands_of_other_sizes_keep_their_place) {
  fake_cuda_ranks_run("y=3", other_sizes_body);
}
END_TEST

static void broadcast_body(int rank) {
  (void)rank;
  // A row that all ranks have is not moved; its columns are cut like the
  // others.
  const int64_t one[RANKS] = {1, 1, 1};
  int64_t size[2][2][RANKS] = {{{0}, {2, 3, 4}}, {{12, 12, 12}, {5, 2, 2}}};
  memcpy(size[0][0], one, sizeof one);
  sdg_tagging_t tagging;
  sdg_colocation_t colocation;
  REQUIRE(met("[shard a]\nsplit = W\n", SDG_FAMILY_POINTWISE,
              (const int64_t(*)[2][RANKS])size, 2, &tagging,
              &colocation) == SDG_COLOCATE_MOVES);
  REQUIRE(sdg_colocate_moves(&colocation, 0) &&
          !sdg_colocate_moves(&colocation, 1));
  REQUIRE(sdg_placement_extent(sdg_colocate_at(&colocation, 0), 2) == 1);
  REQUIRE(sdg_colocate_at(&colocation, 0)->part[3].offset[1] == 5);
  end(&tagging, &colocation);
}

START_TEST(broadcast_operands_are_cut_only_where_they_have_elements) {
  fake_cuda_ranks_run("y=3", broadcast_body);
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("colocate");
  TCase *cases = tcase_create("colocate");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, operands_with_the_same_cuts_are_not_moved);
  tcase_add_test(
      cases, operands_in_other_rows_are_fetched_to_the_leading_operands_rows);
  tcase_add_test(cases, an_operands_own_section_decides_its_place);
  tcase_add_test(cases, operands_of_other_sizes_keep_their_place);
  tcase_add_test(cases,
                 broadcast_operands_are_cut_only_where_they_have_elements);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
