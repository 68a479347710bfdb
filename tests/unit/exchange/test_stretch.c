// SPDX-License-Identifier: Apache-2.0
// Copies that follow one another, launched as one graph once they come again.
#include "src/exchange/stretch.h"

#include <string.h>

#include "tests/unit/fake_cuda.h"
#include "tests/unit/random.h"

enum { ROWS = 4, COLUMNS = 3, COUNT = ROWS * COLUMNS, MOVED = 12 };

// A call that turns the order of the rows around, a copy for each row but
// the last one, which becomes 0.
typedef struct pair {
  float x[MOVED][COUNT], y[MOVED][COUNT];
} pair_t;
static pair_t pair;

static sdg_box_t rows_box(int64_t lo, int64_t hi) {
  return (sdg_box_t){.dims = 2, .dim = {{lo, hi}, {0, COLUMNS}}};
}

static void call_make(sdg_call_t *out) {
  *out = (sdg_call_t){.entry_name = "test", .operands = 2};
  for (int i = 0; i < 2; i++)
    out->operand[i] = (sdg_operand_t){.elem_bytes = sizeof(float),
                                      .dims = 2,
                                      .extent = {ROWS, COLUMNS},
                                      .stride = {COLUMNS, 1}};
}

static sdg_plan_t *plan_make(const sdg_call_t *call, int rows) {
  sdg_plan_t *plan;
  sdg_box_t all = rows_box(0, ROWS), last = rows_box(ROWS - 1, ROWS);
  int x, y;
  REQUIRE(!sdg_plan_create("test", &plan));
  REQUIRE(!sdg_plan_operand(plan, call, 0, &all, &x));
  REQUIRE(!sdg_plan_operand(plan, call, 1, &all, &y));
  for (int i = 0; i < rows; i++) {
    // Unequal distances: no two of them go together.
    static const int to[] = {2, 0, 1};
    sdg_box_t row = rows_box(to[i], to[i] + 1);
    const int64_t shift[SDG_DIMS_MAX] = {to[i] - i};
    REQUIRE(
        !sdg_plan_copy(plan, SDG_LANE_MAIN, x, y, shift, &row, SDG_COPY_STRIP));
  }
  REQUIRE(!sdg_plan_zero(plan, SDG_LANE_MAIN, y, &last));
  REQUIRE(!sdg_plan_finish(plan, SDG_OK, &plan));
  sdg_stretch_find(plan);
  return plan;
}

// Makes a call with tensors `at`, whose x is new, and looks at its y.
static void call_run(const sdg_plan_t *plan, int at, int stream) {
  static int value;
  sdg_call_t call;
  sdg_outcome_t outcome;
  value++;
  call_make(&call);
  call.operand[0].data = pair.x[at];
  call.operand[1].data = pair.y[at];
  for (int i = 0; i < COUNT; i++)
    pair.x[at][i] = (float)(value * 100 + i);
  memset(pair.y[at], 0xff, sizeof pair.y[at]);
  REQUIRE(!sdg_exec_run(plan, &call, fake_cuda_stream(stream), NULL, &outcome));
  fake_cuda_drain();
  static const int from[] = {1, 2, 0};
  for (int i = 0; i < COUNT; i++)
    REQUIRE(pair.y[at][i] ==
            (i / COLUMNS == ROWS - 1
                 ? 0
                 : pair.x[at][from[i / COLUMNS] * COLUMNS + i % COLUMNS]));
}

static void again_body(int rank) {
  (void)rank;
  sdg_call_t call;
  call_make(&call);
  sdg_plan_t *plan = plan_make(&call, 3);
  for (int i = 0; i < 5; i++) {
    REQUIRE(sdg_stretch_graphs() == (i > 1));
    call_run(plan, 0, 1 + i % 2); // the stream is no part of a graph
  }
  // Tensors take turns.
  for (int i = 0; i < 24; i++)
    call_run(plan, i % SDG_STRETCH_SLOTS, 1);
  REQUIRE(sdg_stretch_graphs() == SDG_STRETCH_SLOTS);
  sdg_plan_destroy(plan);
  REQUIRE(sdg_stretch_graphs() == 0);
}

START_TEST(a_stretch_that_comes_again_becomes_a_graph) {
  fake_cuda_ranks_run("y=1", again_body);
}
END_TEST

static void moving_body(int rank) {
  (void)rank;
  sdg_call_t call;
  call_make(&call);
  sdg_plan_t *plan = plan_make(&call, 3);
  for (int i = 0; i < 5 * MOVED; i++) // forgotten before they come again
    call_run(plan, i % MOVED, 1);
  REQUIRE(sdg_stretch_graphs() == 0);
  for (int i = 0; i < 100; i++) // each graph is launched once
    call_run(plan, i / 2 % MOVED, 1);
  REQUIRE(sdg_stretch_graphs() == 0);
  sdg_plan_destroy(plan);
}

START_TEST(graphs_that_are_not_launched_again_are_given_up) {
  fake_cuda_ranks_run("y=1", moving_body);
}
END_TEST

static void bound_body(int rank) {
  (void)rank;
  enum { PLANS = SDG_STRETCH_GRAPHS + 9 };
  static sdg_plan_t *plan[PLANS];
  sdg_call_t call;
  call_make(&call);
  for (int p = 0; p < PLANS; p++) {
    plan[p] = plan_make(&call, 3);
    for (int i = 0; i < 3; i++)
      call_run(plan[p], 0, 1);
  }
  REQUIRE(sdg_stretch_graphs() == SDG_STRETCH_GRAPHS);
  call_run(plan[0], 0, 1); // its graph was the oldest
  sdg_stretch_forget();
  REQUIRE(sdg_stretch_graphs() == 0);
  for (int p = 0; p < PLANS; p++)
    sdg_plan_destroy(plan[p]);
}

START_TEST(a_thread_has_so_many_graphs_and_no_more) {
  fake_cuda_ranks_run("y=1", bound_body);
}
END_TEST

static void eager_body(int rank) {
  (void)rank;
  sdg_call_t call;
  call_make(&call);
  sdg_plan_t *few = plan_make(&call, 1), *failing = plan_make(&call, 3);
  REQUIRE(!few->stretches && failing->stretches);
  fake_cuda_captures_fail(true);
  for (int i = 0; i < 4; i++)
    call_run(failing, 0, 1);
  fake_cuda_captures_fail(false);
  call_run(failing, 0, 1);
  REQUIRE(sdg_stretch_graphs() == 0);
  sdg_plan_destroy(few);
  sdg_plan_destroy(failing);
}

START_TEST(few_copies_and_failed_captures_stay_eager) {
  fake_cuda_ranks_run("y=1", eager_body);
}
END_TEST

// Own rows into a strip, a wait for messages, and one more row.
static void join_body(int rank) {
  (void)rank;
  sdg_call_t call;
  call_make(&call);
  for (int kind = 0; kind < 2; kind++) {
    sdg_plan_t *plan;
    sdg_box_t all = rows_box(0, ROWS);
    int x, y;
    REQUIRE(!sdg_plan_create("test", &plan));
    REQUIRE(!sdg_plan_operand(plan, &call, 0, &all, &x));
    REQUIRE(!sdg_plan_operand(plan, &call, 1, &all, &y));
    for (int i = 0; i < ROWS; i++) {
      sdg_box_t row = rows_box(i, i + 1);
      if (i == 2)
        REQUIRE(!sdg_plan_join(plan, SDG_LANE_MAIN));
      REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, x, y, NULL, &row,
                             kind ? SDG_COPY_ACTIVATION : SDG_COPY_STRIP));
    }
    sdg_stretch_find(plan);
    REQUIRE(plan->step[kind ? 2 : 0].kind == SDG_STEP_JOIN);
    REQUIRE((plan->stretches == NULL) == (kind == 1));
    sdg_plan_destroy(plan);
  }
}

START_TEST(a_wait_moves_ahead_of_strips_but_not_of_a_whole_shard) {
  fake_cuda_ranks_run("y=1", join_body);
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("stretch");
  TCase *cases = tcase_create("stretch");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, a_stretch_that_comes_again_becomes_a_graph);
  tcase_add_test(cases, graphs_that_are_not_launched_again_are_given_up);
  tcase_add_test(cases, a_thread_has_so_many_graphs_and_no_more);
  tcase_add_test(cases, few_copies_and_failed_captures_stay_eager);
  tcase_add_test(cases, a_wait_moves_ahead_of_strips_but_not_of_a_whole_shard);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
