/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor in pieces on three ranks, and a plan with an exchange that computes
 * with it. */
#ifndef SDG_TESTS_UNIT_EXCHANGE_SHARD_H
#define SDG_TESTS_UNIT_EXCHANGE_SHARD_H

#include <stdlib.h>

#include "src/exchange/exec.h"
#include "src/geometry/transfer.h"
#include "tests/unit/fake_cuda.h"
#include "tests/unit/random.h"

enum { ROWS = 23, COLUMNS = 5, RANKS = 3, CALLS = 12 };

/* The rows of an input are cut over the ranks; y[i] = x[i-2] + x[i] + x[i+2],
 * with zeros outside. The program changes `x` from call to call. */
typedef struct shard {
  bool by_column; // memory order: messages are packed
  sdg_range_t own;
  float x[ROWS * COLUMNS];
  float y[CALLS][ROWS * COLUMNS];
} shard_t;

typedef struct task {
  shard_t *shard;
  float value; // the program's next x: value * (1 + global index)
  float *x, *y;
  int64_t stride[2];
} task_t;

static const int64_t first_row[RANKS + 1] = {0, 11, 13, ROWS};

static inline void strides(const shard_t *shard, int64_t *out) {
  out[0] = shard->by_column ? 1 : COLUMNS;
  out[1] = shard->by_column ? shard->own.hi - shard->own.lo : 1;
}

static inline void x_write(void *argument) {
  const task_t *task = argument;
  const sdg_range_t own = task->shard->own;
  int64_t stride[2];
  strides(task->shard, stride);
  for (int64_t i = own.lo; i < own.hi; i++)
    for (int64_t j = 0; j < COLUMNS; j++)
      task->shard->x[(i - own.lo) * stride[0] + j * stride[1]] =
          task->value * (float)(1 + i * COLUMNS + j);
}

/* task->x begins at row own.lo - 2 of the assembled input. */
static inline void y_compute(void *argument) {
  const task_t *task = argument;
  const sdg_range_t own = task->shard->own;
  int64_t to[2];
  strides(task->shard, to);
  for (int64_t i = 0; i < own.hi - own.lo; i++)
    for (int64_t j = 0; j < COLUMNS; j++) {
      const float *x = task->x + i * task->stride[0] + j * task->stride[1];
      task->y[i * to[0] + j * to[1]] =
          x[0] + x[2 * task->stride[0]] + x[4 * task->stride[0]];
    }
}

static int failing_status;

static inline int sub_call(void *state, int index, const sdg_call_t *call,
                           const sdg_exec_t *exec) {
  (void)index;
  static task_t task[256];
  static int next;
  task_t *mine = &task[next++ % 256];
  int slab = *(int *)state;
  *mine = (task_t){.shard = (shard_t *)(uintptr_t)call->args,
                   .x = sdg_exec_address(exec, slab),
                   .y = call->operand[1].data};
  memcpy(mine->stride, exec->plan->slab[slab].stride, sizeof mine->stride);
  fake_cuda_enqueue(exec->stream, y_compute, mine);
  return failing_status;
}

static inline sdg_box_t rows_box(int64_t lo, int64_t hi) {
  return (sdg_box_t){.dims = 2, .dim = {{lo, hi}, {0, COLUMNS}}};
}

static inline sdg_call_t call_of(shard_t *shard, float *y) {
  sdg_call_t call = {.entry_name = "test", .operands = 2, .args = shard};
  for (int i = 0; i < 2; i++) {
    call.operand[i] = (sdg_operand_t){.elem_bytes = sizeof(float), .dims = 2};
    strides(shard, call.operand[i].stride);
  }
  call.operand[0].data = shard->x;
  call.operand[1].data = y;
  return call;
}

static inline sdg_plan_t *plan_create(void) {
  sdg_plan_t *plan;
  REQUIRE(!sdg_plan_create("test", &plan));
  return plan;
}

static inline sdg_plan_t *plan_make(const sdg_call_t *call, int rank) {
  sdg_plan_t *plan = plan_create();
  plan->axes = 1;
  sdg_box_t owned[RANKS], need[RANKS];
  for (int r = 0; r < RANKS; r++) {
    owned[r] = rows_box(first_row[r], first_row[r + 1]);
    need[r] = rows_box(first_row[r] - 2, first_row[r + 1] + 2);
  }
  sdg_transfer_t transfer;
  REQUIRE(!sdg_transfer_plan(owned, need, RANKS, rank, NULL, &transfer));
  int x, assembled, slab[16];
  REQUIRE(!sdg_plan_operand(plan, call, 0, &owned[rank], &x));
  REQUIRE(!sdg_plan_scratch(plan, &need[rank], x, &assembled));
  REQUIRE(!sdg_plan_messages(plan, &transfer, x, &assembled, 1, slab));
  REQUIRE(!sdg_plan_exchange(plan));
  sdg_box_t above = rows_box(-2, 0), below = rows_box(ROWS, ROWS + 2);
  REQUIRE(!sdg_plan_zero(plan, SDG_LANE_MAIN, assembled, &above));
  REQUIRE(!sdg_plan_zero(plan, SDG_LANE_MAIN, assembled, &below));
  REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, x, assembled, NULL, NULL,
                         SDG_COPY_STRIP));
  REQUIRE(!sdg_plan_join(plan, SDG_LANE_MAIN));
  for (int i = 0; i < transfer.recvs; i++)
    if (slab[i] >= 0)
      REQUIRE(!sdg_plan_copy(plan, SDG_LANE_MAIN, slab[i], assembled, NULL,
                             NULL, SDG_COPY_HALO));
  REQUIRE(!sdg_plan_call(plan, 0));
  sdg_transfer_fini(&transfer);
  static int kept;
  kept = assembled;
  plan->state = &kept;
  plan->run = sub_call;
  return plan;
}

static inline float x_at(float value, int64_t i, int64_t j) {
  return i < 0 || i >= ROWS ? 0 : value * (float)(1 + i * COLUMNS + j);
}

static inline void y_check(const shard_t *shard, const float *y, float value) {
  int64_t stride[2];
  strides(shard, stride);
  for (int64_t i = shard->own.lo; i < shard->own.hi; i++)
    for (int64_t j = 0; j < COLUMNS; j++) {
      float is = y[(i - shard->own.lo) * stride[0] + j * stride[1]];
      float want =
          x_at(value, i - 2, j) + x_at(value, i, j) + x_at(value, i + 2, j);
      REQUIRE_MSG(is == want, "row %d column %d: %g instead of %g", (int)i,
                  (int)j, (double)is, (double)want);
    }
}

#endif
