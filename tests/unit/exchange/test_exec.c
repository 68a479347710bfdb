// SPDX-License-Identifier: Apache-2.0
// Plans carried out on several ranks whose streams run in the worst order.
#include "src/exchange/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/comm/comm.h"
#include "tests/unit/exchange/shard.h"

// Makes calls on the streams that `stream_of` names, without waiting. The
// program writes x before each.
static void calls_run(int rank, bool by_column, int (*stream_of)(int call)) {
  static shard_t shard;
  static task_t task[CALLS];
  shard.by_column = by_column;
  shard.own = (sdg_range_t){first_row[rank], first_row[rank + 1]};
  sdg_call_t call = call_of(&shard, shard.y[0]);
  sdg_plan_t *plan = plan_make(&call, rank);
  for (int c = 0; c < CALLS; c++) {
    int index = stream_of(c);
    cudaStream_t stream = fake_cuda_stream(index);
    task[c] = (task_t){.shard = &shard, .value = (float)(c + 1)};
    fake_cuda_enqueue(stream, x_write, &task[c]);
    sdg_outcome_t outcome;
    call.operand[1].data = shard.y[c];
    REQUIRE(!sdg_exec_run(plan, &call, stream, NULL, &outcome));
    REQUIRE(outcome.vendor == failing_status);
    REQUIRE(outcome.calls == (failing_status ? 0 : 1));
  }
  fake_cuda_drain();
  for (int c = 0; c < CALLS; c++)
    y_check(&shard, shard.y[c], (float)(c + 1));
  sdg_plan_destroy(plan);
}

static int same_stream(int call) {
  (void)call;
  return 1;
}

static void in_order_body(int rank) {
  (void)fake_cuda_stream(2);
  for (int order = 0; order < 2 * FAKE_CUDA_ORDERS; order++) {
    fake_cuda_order((fake_cuda_order_t)(order / 2));
    calls_run(rank, order % 2, same_stream);
  }
}

START_TEST(lanes_order_messages_between_the_programs_work) {
  fake_cuda_ranks_run("y=3", in_order_body);
}
END_TEST

// The program writes x on the streams of the calls and waits for each, so only
// the plans' shared scratch needs an order.
static void two_streams_body(int rank) {
  (void)fake_cuda_stream(2);
  static shard_t shard[2];
  static task_t task[2];
  for (int order = 0; order < 2 * FAKE_CUDA_ORDERS; order++) {
    fake_cuda_order((fake_cuda_order_t)(order / 2));
    bool renew = order % 2;
    sdg_plan_t *plan[2];
    for (int s = 0; s < 2; s++) {
      shard[s].own = (sdg_range_t){first_row[rank], first_row[rank + 1]};
      task[s] = (task_t){.shard = &shard[s], .value = (float)(s + 1)};
      x_write(&task[s]);
    }
    for (int s = 0; s < 2; s++) {
      sdg_call_t call = call_of(&shard[s], shard[s].y[0]);
      plan[s] = plan_make(&call, rank);
      sdg_outcome_t outcome;
      cudaStream_t stream = fake_cuda_stream(renew ? 1 : 2 - s);
      REQUIRE(!sdg_exec_run(plan[s], &call, stream, NULL, &outcome));
      if (renew)
        fake_cuda_stream_renew(1);
    }
    fake_cuda_drain();
    for (int s = 0; s < 2; s++) {
      y_check(&shard[s], shard[s].y[0], (float)(s + 1));
      sdg_plan_destroy(plan[s]);
    }
  }
}

START_TEST(scratch_passes_from_stream_to_stream_in_the_calls_order) {
  fake_cuda_ranks_run("y=3", two_streams_body);
}
END_TEST

static void failing_body(int rank) {
  (void)fake_cuda_stream(2);
  failing_status = rank == 1 ? 9 : 0;
  calls_run(rank, false, same_stream);
}

START_TEST(a_refused_sub_call_leaves_no_other_rank_waiting) {
  fake_cuda_ranks_run("y=3", failing_body);
}
END_TEST

// Rank 0 sends all its data and receives nothing; then the program overwrites
// the data.
static void sender_body(int rank) {
  (void)fake_cuda_stream(2);
  static shard_t shard;
  shard.own = (sdg_range_t){first_row[rank], first_row[rank + 1]};
  sdg_call_t call = call_of(&shard, shard.y[0]);
  sdg_plan_t *plan = plan_create();
  plan->axes = 1;
  sdg_box_t owned[RANKS], need[RANKS];
  for (int r = 0; r < RANKS; r++) {
    owned[r] = rows_box(first_row[r], first_row[r + 1]);
    need[r] = r == 1 ? owned[0] : rows_box(0, 0);
  }
  sdg_transfer_t transfer;
  int x, slab[16];
  REQUIRE(!sdg_transfer_plan(owned, need, RANKS, rank, NULL, &transfer));
  REQUIRE(!sdg_plan_operand(plan, &call, 0, &owned[rank], &x));
  REQUIRE(!sdg_plan_messages(plan, &transfer, x, NULL, 0, slab));
  REQUIRE(!sdg_plan_exchange(plan));
  if (transfer.recvs == 1) {
    int y;
    REQUIRE(!sdg_plan_operand(plan, &call, 1, &owned[0], &y));
    REQUIRE(!sdg_plan_join(plan, SDG_LANE_MAIN));
    REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, slab[0], y, NULL, NULL,
                           SDG_COPY_HALO));
  }
  sdg_comm_t *comm; // made while all ranks are here: rank 2 exchanges nothing
  REQUIRE(!sdg_comm_get(plan->axes, &comm));
  task_t before = {.shard = &shard, .value = 1}, after = {&shard, 2, 0, 0, {0}};
  fake_cuda_order(FAKE_CUDA_COMM_LATE);
  fake_cuda_enqueue(fake_cuda_stream(1), x_write, &before);
  sdg_outcome_t outcome;
  REQUIRE(!sdg_exec_run(plan, &call, fake_cuda_stream(1), NULL, &outcome));
  fake_cuda_enqueue(fake_cuda_stream(1), x_write, &after);
  fake_cuda_drain();
  for (int64_t i = 0; rank == 1 && i < first_row[1] * COLUMNS; i++)
    REQUIRE(shard.y[0][i] == (float)(1 + i));
  sdg_transfer_fini(&transfer);
  sdg_plan_destroy(plan);
}

START_TEST(sent_data_may_be_overwritten_after_the_call) {
  fake_cuda_ranks_run("y=3", sender_body);
}
END_TEST

static void one_gpu_body(int rank) {
  sdg_comm_t *comm;
  if (rank > 0)
    fake_cuda_share_gpu();
  REQUIRE(sdg_comm_get(1, &comm) == SDG_E_ONE_GPU);
  REQUIRE(strstr(sdg_last_error(), "ranks 1 and 2 are on GPU 0000:07:00.0"));
}

// NCCL takes each rank for a machine of its own.
static void told_apart_body(int rank) {
  char number[12];
  sdg_comm_t *comm;
  snprintf(number, sizeof number, "%d", rank);
  setenv("NCCL_HOSTID", number, 1);
  if (rank > 0)
    fake_cuda_share_gpu();
  REQUIRE(sdg_comm_get(1, &comm) == SDG_OK);
}

// An exchange without messages; a sum of all ranks' rows; the maximum of these,
// which changes nothing; and rank 2 gets rank 0's row.
static sdg_plan_t *sums_make(const sdg_call_t *call, int rank) {
  sdg_plan_t *plan = plan_create();
  plan->axes = plan->reduce_axes = 1;
  sdg_box_t row = rows_box(0, 1);
  sdg_box_t owned[RANKS] = {row, rows_box(0, 0), rows_box(0, 0)};
  sdg_box_t need[RANKS] = {rows_box(0, 0), rows_box(0, 0), row};
  sdg_transfer_t first, second;
  int x, y, sum, landed[RANKS];
  REQUIRE(!sdg_transfer_plan(owned, owned, RANKS, rank, NULL, &first));
  REQUIRE(!sdg_transfer_plan(owned, need, RANKS, rank, NULL, &second));
  REQUIRE(!sdg_plan_operand(plan, call, 0, &row, &x));
  REQUIRE(!sdg_plan_operand(plan, call, 1, &row, &y));
  REQUIRE(!sdg_plan_scratch(plan, &row, x, &sum));
  REQUIRE(!sdg_plan_messages(plan, &first, x, NULL, 0, landed));
  REQUIRE(!sdg_plan_exchange(plan)); // no rank has messages
  REQUIRE(
      !sdg_plan_copy(plan, SDG_LANE_MAIN, x, sum, NULL, NULL, SDG_COPY_STRIP));
  REQUIRE(!sdg_plan_reduce(plan, sum, 0, SDG_COMBINE_SUM));
  REQUIRE(!sdg_plan_reduce(plan, sum, 0, SDG_COMBINE_MAX));
  REQUIRE(!sdg_plan_messages(plan, &second, sum, NULL, 0, landed));
  REQUIRE(!sdg_plan_exchange(plan));
  REQUIRE(!sdg_plan_join(plan, SDG_LANE_MAIN));
  REQUIRE(
      !sdg_plan_copy(plan, SDG_LANE_MAIN, sum, y, NULL, NULL, SDG_COPY_STRIP));
  for (int i = 0; i < second.recvs; i++)
    REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, landed[i], y, NULL, NULL,
                           SDG_COPY_HALO));
  sdg_transfer_fini(&first);
  sdg_transfer_fini(&second);
  return plan;
}

// The program writes x, the plan runs once, and all work is carried out.
static void plan_finish(sdg_plan_t *plan, const sdg_call_t *call,
                        shard_t *shard, float value) {
  task_t task = {.shard = shard, .value = value};
  cudaStream_t stream = fake_cuda_stream(1);
  sdg_outcome_t outcome;
  fake_cuda_enqueue(stream, x_write, &task);
  REQUIRE(!sdg_exec_run(plan, call, stream, NULL, &outcome));
  fake_cuda_drain();
  sdg_plan_destroy(plan);
}

static void sums_body(int rank) {
  (void)fake_cuda_stream(2);
  static shard_t shard;
  shard.own = (sdg_range_t){rank, rank + 1};
  for (int k = 0; k < CALLS; k++) {
    sdg_call_t call = call_of(&shard, shard.y[k]);
    sdg_plan_t *plan = sums_make(&call, rank);
    fake_cuda_order((fake_cuda_order_t)(k % FAKE_CUDA_ORDERS));
    plan_finish(plan, &call, &shard, (float)(k + 1));
    for (int64_t j = 0; j < COLUMNS; j++) {
      float sum = 0;
      for (int64_t r = 0; r < RANKS; r++)
        sum += (float)(k + 1) * (float)(1 + r * COLUMNS + j);
      REQUIRE(shard.y[k][j] == sum);
    }
  }
}

START_TEST(sums_over_ranks_wait_for_the_lane_before_and_are_waited_for) {
  fake_cuda_ranks_run("y=3", sums_body);
}
END_TEST

// A row is summed over one axis, and in the second call also over the other
// axis; y gets the sum.
static void axes_body(int rank) {
  (void)fake_cuda_stream(2);
  static shard_t shard;
  shard.own = (sdg_range_t){rank, rank + 1};
  sdg_box_t row = rows_box(0, 1);
  for (int k = 0; k < 2; k++) {
    sdg_call_t call = call_of(&shard, shard.y[k]);
    sdg_plan_t *plan = plan_create();
    int x, y, sum;
    REQUIRE(!sdg_plan_operand(plan, &call, 0, &row, &x));
    REQUIRE(!sdg_plan_operand(plan, &call, 1, &row, &y));
    REQUIRE(!sdg_plan_scratch(plan, &row, x, &sum));
    REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, x, sum, NULL, NULL,
                           SDG_COPY_STRIP));
    for (int i = 0; i <= k; i++) {
      plan->reduce_axes = (sdg_axes_t)1 << i;
      REQUIRE(!sdg_plan_reduce(plan, sum, 0, SDG_COMBINE_SUM));
    }
    REQUIRE(!sdg_plan_join(plan, SDG_LANE_MAIN));
    REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, sum, y, NULL, NULL,
                           SDG_COPY_STRIP));
    plan_finish(plan, &call, &shard, 1);
    for (int64_t j = 0; j < COLUMNS; j++) {
      float found = 0;
      for (int r = 0; r < 4; r++) // a=2, b=2: rank r is at r / 2, r % 2
        if (k == 1 || r % 2 == rank % 2)
          found += (float)(1 + r * COLUMNS + j);
      REQUIRE(shard.y[k][j] == found);
    }
  }
}

START_TEST(a_plan_sums_over_several_sets_of_axes) {
  fake_cuda_ranks_run("a=2,b=2", axes_body);
}
END_TEST

// A row goes to the next rank along one axis, then along the other axis.
static void exchanges_body(int rank) {
  (void)fake_cuda_stream(2);
  static shard_t shard;
  shard.own = (sdg_range_t){rank, rank + 1};
  sdg_box_t row = rows_box(0, 1);
  sdg_call_t call = call_of(&shard, shard.y[0]);
  sdg_plan_t *plan = plan_create();
  int slab[3], nowhere;
  REQUIRE(!sdg_plan_operand(plan, &call, 0, &row, &slab[0]));
  REQUIRE(!sdg_plan_scratch(plan, &row, slab[0], &slab[1]));
  REQUIRE(!sdg_plan_operand(plan, &call, 1, &row, &slab[2]));
  for (int i = 0; i < 2; i++) {
    int other = i ? !(rank % 2) : !(rank / 2); // a=2, b=2: at r / 2, r % 2
    sdg_message_t message = {.peer = other, .box = row};
    sdg_transfer_t both = {
        .send = &message, .sends = 1, .recv = &message, .recvs = 1};
    plan->axes = (sdg_axes_t)1 << i;
    REQUIRE(
        !sdg_plan_messages(plan, &both, slab[i], &slab[i + 1], 1, &nowhere));
    REQUIRE(nowhere == -1);
    REQUIRE(!sdg_plan_exchange(plan));
  }
  plan_finish(plan, &call, &shard, 1);
  for (int64_t j = 0; j < COLUMNS; j++)
    REQUIRE(shard.y[0][j] == (float)(1 + (3 - rank) * COLUMNS + j));
}

START_TEST(a_plan_exchanges_over_several_sets_of_axes) {
  fake_cuda_ranks_run("a=2,b=2", exchanges_body);
}
END_TEST

// Three strips of x, taken and stored in this order.
static void strips_copied(int first, int second, int third) {
  static shard_t shard;
  const int order[] = {first, second, third};
  shard.own = (sdg_range_t){0, ROWS};
  memset(shard.y, 0, sizeof shard.y);
  task_t task = {.shard = &shard, .value = 1};
  x_write(&task);
  sdg_call_t call = call_of(&shard, shard.y[0]);
  sdg_plan_t *plan = plan_create(), *finished;
  sdg_box_t all = rows_box(0, ROWS), room = rows_box(0, 12);
  int x, y, scratch, strip[3];
  REQUIRE(!sdg_plan_operand(plan, &call, 0, &all, &x));
  REQUIRE(!sdg_plan_operand(plan, &call, 1, &all, &y));
  REQUIRE(!sdg_plan_scratch(plan, &room, x, &scratch));
  for (int i = 0; i < 3; i++) {
    sdg_box_t box = rows_box(6 * i, 6 * i + 4);
    REQUIRE(!sdg_plan_within(plan, scratch, (size_t)i * 4 * COLUMNS * 4, &box,
                             x, &strip[i]));
  }
  for (int i = 0; i < 6; i++) {
    int s = strip[order[i % 3]];
    REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, i < 3 ? x : s, i < 3 ? s : y,
                           NULL, NULL, SDG_COPY_STRIP));
  }
  REQUIRE(!sdg_plan_finish(plan, SDG_OK, &finished));
  REQUIRE(plan->step[0].copies == 3 && plan->step[3].copies == 3);
  sdg_outcome_t outcome;
  REQUIRE(!sdg_exec_run(plan, &call, fake_cuda_stream(0), NULL, &outcome));
  fake_cuda_drain();
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    int row = i / COLUMNS;
    bool copied = row < 18 && row % 6 < 4;
    REQUIRE(shard.y[0][i] == (copied ? shard.x[i] : 0));
  }
  sdg_plan_destroy(plan);
}

static void strips_body(int rank) {
  (void)rank;
  strips_copied(0, 1, 2);
  strips_copied(2, 1, 0);
  strips_copied(0, 2, 1);
  strips_copied(1, 0, 2);
}

START_TEST(copies_of_a_group_may_come_in_any_order) {
  fake_cuda_ranks_run("y=1", strips_body);
}
END_TEST

START_TEST(two_ranks_on_one_gpu_are_named_before_nccl_does) {
  fake_cuda_ranks_run("y=3", one_gpu_body);
}
END_TEST

START_TEST(ranks_with_different_nccl_hostids_may_share_a_gpu) {
  fake_cuda_ranks_run("y=3", told_apart_body);
}
END_TEST

static void devices_body(int rank) {
  (void)fake_cuda_stream(2);
  calls_run(rank, false, same_stream);
  static shard_t shard;
  shard.own = (sdg_range_t){rank, rank + 1};
  sdg_call_t call = call_of(&shard, shard.y[0]);
  sdg_plan_t *plan = sums_make(&call, rank);
  sdg_outcome_t outcome;
  fake_cuda_device(1);
  REQUIRE(sdg_exec_run(plan, &call, fake_cuda_stream(1), NULL, &outcome) ==
          SDG_E_DEVICES);
  REQUIRE(strstr(sdg_last_error(), "on device 3, and this one on device 1"));
  sdg_plan_destroy(plan);
}

START_TEST(a_rank_has_one_device) {
  fake_cuda_ranks_run("y=3", devices_body);
}
END_TEST

int main(void) {
  fake_cuda_install();
  Suite *suite = suite_create("exec");
  TCase *cases = tcase_create("exec");
  tcase_set_timeout(cases, 60);
  tcase_add_test(cases, lanes_order_messages_between_the_programs_work);
  tcase_add_test(cases,
                 scratch_passes_from_stream_to_stream_in_the_calls_order);
  tcase_add_test(cases, a_refused_sub_call_leaves_no_other_rank_waiting);
  tcase_add_test(cases, sent_data_may_be_overwritten_after_the_call);
  tcase_add_test(cases,
                 sums_over_ranks_wait_for_the_lane_before_and_are_waited_for);
  tcase_add_test(cases, a_plan_sums_over_several_sets_of_axes);
  tcase_add_test(cases, a_plan_exchanges_over_several_sets_of_axes);
  tcase_add_test(cases, copies_of_a_group_may_come_in_any_order);
  tcase_add_test(cases, two_ranks_on_one_gpu_are_named_before_nccl_does);
  tcase_add_test(cases, ranks_with_different_nccl_hostids_may_share_a_gpu);
  tcase_add_test(cases, a_rank_has_one_device);
  suite_add_tcase(suite, cases);
  return harness_run(suite);
}
