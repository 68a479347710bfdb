// SPDX-License-Identifier: Apache-2.0
// Which neighbouring copies of a plan one copy may carry out.
#include "src/plan/steps.h"

#include "tests/unit/harness.h"

enum { ROWS = 20, COLUMNS = 6 };

typedef struct made {
  sdg_plan_t *plan;
  int x; // the program's tensor
  int all, strip[3];
} made_t;

static sdg_box_t rows(int64_t lo, int64_t hi) {
  return (sdg_box_t){.dims = 2, .dim = {{lo, hi}, {0, COLUMNS}}};
}

static sdg_plan_t *plan_create(void) {
  sdg_plan_t *plan;
  REQUIRE(!sdg_plan_create("test", &plan));
  return plan;
}

// Three strips of four rows each, one behind the other in scratch.
static made_t make(void) {
  made_t m = {.plan = plan_create()};
  static sdg_call_t call = {
      .operands = 1,
      .operand[0] = {.elem_bytes = 4, .dims = 2, .stride = {COLUMNS, 1}}};
  sdg_box_t own = rows(0, ROWS), twelve = rows(0, 12);
  REQUIRE(!sdg_plan_operand(m.plan, &call, 0, &own, &m.x));
  REQUIRE(!sdg_plan_scratch(m.plan, &twelve, m.x, &m.all));
  for (int i = 0; i < 3; i++) {
    sdg_box_t box = rows(6 * i, 6 * i + 4);
    REQUIRE(!sdg_plan_within(m.plan, m.all, (size_t)i * 4 * COLUMNS * 4, &box,
                             m.x, &m.strip[i]));
  }
  return m;
}

static void copy(made_t *m, int from, int to, int64_t lo, int64_t hi) {
  sdg_box_t box = rows(lo, hi);
  REQUIRE(!sdg_plan_copy(m->plan, SDG_LANE_MAIN, from, to, NULL, &box,
                         SDG_COPY_STRIP));
}

static int copies(const made_t *m, int step) {
  return m->plan->step[step].copies;
}

// Three rows of six elements, 200 apart.
START_TEST(scratch_with_gaps_has_the_last_gap) {
  sdg_plan_t *plan = plan_create();
  static const int64_t stride[SDG_DIMS_MAX] = {200, 1};
  sdg_box_t box = rows(2, 5);
  int slab;
  REQUIRE(!sdg_plan_strided(plan, &box, stride, stride, 4, &slab));
  REQUIRE(plan->scratch_bytes >= 3 * 200 * 4);
  sdg_plan_destroy(plan);
}
END_TEST

START_TEST(copies_into_strips_are_one_group) {
  made_t m = make();
  for (int i = 0; i < 3; i++)
    copy(&m, m.x, m.strip[i], 6 * i, 6 * i + 4);
  sdg_plan_group_copies(m.plan);
  REQUIRE(copies(&m, 0) == 3 && copies(&m, 1) == 2 && copies(&m, 2) == 1);
  sdg_plan_destroy(m.plan);
}
END_TEST

START_TEST(copies_of_other_shapes_are_apart) {
  made_t m = make();
  copy(&m, m.x, m.strip[0], 0, 4);
  copy(&m, m.x, m.strip[1], 6, 9);
  sdg_plan_group_copies(m.plan);
  REQUIRE(copies(&m, 0) == 1 && copies(&m, 1) == 1);
  sdg_plan_destroy(m.plan);
}
END_TEST

START_TEST(a_copy_of_what_another_wrote_comes_after_it) {
  made_t m = make();
  copy(&m, m.x, m.strip[0], 0, 4);
  // Both from the program's tensor, but the second one also writes there.
  copy(&m, m.strip[0], m.x, 0, 4);
  copy(&m, m.all, m.strip[1], 6, 9);
  copy(&m, m.strip[1], m.all, 6, 9);
  sdg_plan_group_copies(m.plan);
  for (int i = 0; i < 4; i++)
    REQUIRE(copies(&m, i) == 1);
  sdg_plan_destroy(m.plan);
}
END_TEST

START_TEST(copies_to_the_same_place_keep_their_order) {
  made_t m = make();
  copy(&m, m.x, m.strip[0], 0, 3);
  copy(&m, m.x, m.strip[0], 1, 4);
  sdg_plan_group_copies(m.plan);
  REQUIRE(copies(&m, 0) == 1);
  sdg_plan_destroy(m.plan);
}
END_TEST

START_TEST(copies_between_operands_keep_their_order) {
  made_t m = make();
  sdg_slab_t other = m.plan->slab[m.x];
  m.plan->slab[m.strip[0]] = other;
  m.plan->slab[m.strip[0]].operand = 1; // may be the same memory
  copy(&m, m.x, m.strip[0], 0, 3);
  copy(&m, m.x, m.strip[0], 4, 7);
  sdg_plan_group_copies(m.plan);
  REQUIRE(copies(&m, 0) == 1);
  sdg_plan_destroy(m.plan);
}
END_TEST

START_TEST(moved_steps_are_grouped_again) {
  made_t m = make();
  sdg_plan_t *plan;
  copy(&m, m.x, m.strip[0], 0, 4);
  copy(&m, m.x, m.strip[1], 6, 10);
  REQUIRE(!sdg_plan_finish(m.plan, SDG_OK, &plan));
  REQUIRE(copies(&m, 0) == 2);
  REQUIRE(!sdg_plan_join(m.plan, SDG_LANE_MAIN));
  copy(&m, m.x, m.strip[2], 12, 16);
  REQUIRE(!sdg_plan_advance(m.plan, 1)); // strip 1, the join, strip 2, strip 0
  REQUIRE(copies(&m, 0) == 1 && copies(&m, 2) == 2);
  sdg_plan_destroy(plan);
}
END_TEST

START_TEST(no_plan_is_handed_out_as_none) {
  sdg_plan_t none, *plan = &none;
  REQUIRE(!sdg_plan_finish(NULL, SDG_OK, &plan));
  REQUIRE(!plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("copies");
  TCase *cases = tcase_create("copies");
  tcase_add_test(cases, scratch_with_gaps_has_the_last_gap);
  tcase_add_test(cases, copies_into_strips_are_one_group);
  tcase_add_test(cases, copies_of_other_shapes_are_apart);
  tcase_add_test(cases, a_copy_of_what_another_wrote_comes_after_it);
  tcase_add_test(cases, copies_to_the_same_place_keep_their_order);
  tcase_add_test(cases, copies_between_operands_keep_their_order);
  tcase_add_test(cases, moved_steps_are_grouped_again);
  tcase_add_test(cases, no_plan_is_handed_out_as_none);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
