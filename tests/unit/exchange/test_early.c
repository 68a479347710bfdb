// SPDX-License-Identifier: Apache-2.0
// Exchanges that come before their call: with an earlier one, or into what was
// fetched.
#include "src/exchange/exec.h"

#include <string.h>

#include "src/comm/comm.h"
#include "tests/unit/exchange/shard.h"

// Steps read x from scratch, to which it was fetched before.
static void rehomed_body(int rank) {
  static shard_t shard;
  shard.own = (sdg_range_t){rank, rank + 1};
  sdg_box_t row = rows_box(0, 1);
  sdg_call_t call = call_of(&shard, shard.y[0]);
  sdg_plan_t *plan = plan_create();
  int x, y, room, own;
  REQUIRE(!sdg_plan_operand(plan, &call, 0, &row, &x));
  REQUIRE(!sdg_plan_operand(plan, &call, 1, &row, &y));
  REQUIRE(
      !sdg_plan_copy(plan, SDG_LANE_MAIN, x, y, NULL, NULL, SDG_COPY_STRIP));
  REQUIRE(!sdg_plan_scratch(plan, &row, x, &room));
  sdg_plan_rehome(plan, 0, room);
  REQUIRE(plan->slab[x].operand == SDG_SLAB_SCRATCH);
  REQUIRE(plan->slab[y].operand == 1);
  REQUIRE(!sdg_plan_operand(plan, &call, 0, &row, &own));
  REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, own, room, NULL, NULL,
                         SDG_COPY_ACTIVATION));
  REQUIRE(!sdg_plan_advance(plan, 1));
  REQUIRE(plan->step[0].copy == SDG_COPY_ACTIVATION);
  task_t task = {.shard = &shard, .value = 1}, *kept = &task;
  sdg_outcome_t outcome;
  fake_cuda_enqueue(fake_cuda_stream(1), x_write, kept);
  REQUIRE(!sdg_exec_run(plan, &call, fake_cuda_stream(1), NULL, &outcome));
  fake_cuda_drain();
  sdg_plan_destroy(plan);
  for (int64_t j = 0; j < COLUMNS; j++)
    REQUIRE(shard.y[0][j] == (float)(1 + rank * COLUMNS + j));
}

START_TEST(a_fetched_tensor_replaces_an_operand) {
  fake_cuda_ranks_run("y=3", rehomed_body);
}
END_TEST

// Two calls with different x on different streams. The exchange of the second
// is made with that of the first, or before the first if that has none.
static void prefetch_run(int rank, bool by_column, bool along) {
  static shard_t shard[2];
  static task_t task[2];
  sdg_call_t call[2];
  sdg_plan_t *plan[2];
  for (int s = 0; s < 2; s++) {
    shard[s].by_column = by_column;
    shard[s].own = (sdg_range_t){first_row[rank], first_row[rank + 1]};
    call[s] = call_of(&shard[s], shard[s].y[0]);
    plan[s] = plan_make(&call[s], rank);
    task[s] = (task_t){.shard = &shard[s], .value = (float)(s + 1)};
    fake_cuda_enqueue(fake_cuda_stream(1), x_write, &task[s]);
  }
  sdg_plan_t *none = plan_create();
  sdg_outcome_t outcome;
  const sdg_prefetch_t prefetch = {plan[1], &call[1]};
  REQUIRE(!sdg_plan_is_early(plan[1], 0));
  sdg_plan_keep(plan[1]);
  REQUIRE(sdg_plan_is_early(plan[1], 0) && !sdg_plan_is_early(plan[1], 1));
  REQUIRE(!sdg_exec_run_how(
      along ? plan[0] : none, &call[0], fake_cuda_stream(1), NULL,
      &(sdg_exec_how_t){.prefetch = &prefetch}, &outcome));
  if (!along) // a call in between uses the scratch
    REQUIRE(
        !sdg_exec_run(plan[0], &call[0], fake_cuda_stream(1), NULL, &outcome));
  REQUIRE(!sdg_exec_run_how(plan[1], &call[1], fake_cuda_stream(2), NULL,
                            &(sdg_exec_how_t){.rest = true}, &outcome));
  REQUIRE(outcome.calls == 1);
  fake_cuda_drain();
  for (int s = 0; s < 2; s++) {
    y_check(&shard[s], shard[s].y[0], (float)(s + 1));
    sdg_plan_destroy(plan[s]);
  }
  sdg_plan_destroy(none);
}

static void early_body(int rank) {
  (void)fake_cuda_stream(2);
  for (int order = 0; order < FAKE_CUDA_ORDERS; order++)
    for (int kind = 0; kind < 4; kind++) {
      fake_cuda_order((fake_cuda_order_t)order);
      prefetch_run(rank, kind % 2, kind / 2);
    }
}

START_TEST(an_exchange_may_come_before_its_call) {
  fake_cuda_ranks_run("y=3", early_body);
}
END_TEST

// Cases of a row that goes to another rank: whether it can be sent early.
enum { EARLY, WRITTEN_BEFORE, TWICE, ARRIVES_IN_PLACE, SHARED };
static bool is_early(int what) {
  static shard_t shard;
  sdg_box_t row = rows_box(0, 1);
  sdg_message_t message = {.peer = 1, .box = row};
  sdg_transfer_t both = {
      .send = &message, .sends = 1, .recv = &message, .recvs = 1};
  shard.own = (sdg_range_t){0, 1};
  sdg_call_t call = call_of(&shard, shard.y[0]);
  sdg_plan_t *plan = plan_create();
  int x, y, landed, within;
  plan->axes = 1;
  ck_assert(!sdg_plan_operand(plan, &call, 0, &row, &x));
  ck_assert(!sdg_plan_operand(plan, &call, 1, &row, &y));
  if (what == WRITTEN_BEFORE)
    ck_assert(!sdg_plan_zero(plan, SDG_LANE_MAIN, x, &row));
  for (int i = 0; i <= (what == TWICE); i++) {
    ck_assert(!sdg_plan_messages(plan, &both, x, &y, what == ARRIVES_IN_PLACE,
                                 &landed));
    ck_assert(!sdg_plan_exchange(plan));
  }
  if (what == SHARED) // it is at another place than in the program's memory
    ck_assert(!sdg_plan_within(plan, landed, 0, &row, x, &within));
  sdg_plan_keep(plan);
  bool prefetch = sdg_plan_is_early(plan, 0);
  sdg_plan_destroy(plan);
  return prefetch;
}

START_TEST(an_exchange_that_reads_only_the_operand_can_be_early) {
  ck_assert(is_early(EARLY));
  ck_assert(!is_early(WRITTEN_BEFORE));
  ck_assert(!is_early(TWICE));
  ck_assert(!is_early(ARRIVES_IN_PLACE));
  ck_assert(!is_early(SHARED));
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("early");
  TCase *cases = tcase_create("early");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, a_fetched_tensor_replaces_an_operand);
  tcase_add_test(cases, an_exchange_may_come_before_its_call);
  tcase_add_test(cases, an_exchange_that_reads_only_the_operand_can_be_early);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
