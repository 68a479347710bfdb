// SPDX-License-Identifier: Apache-2.0
// The gradient of a convolution's bias on split tensors: the sum of each rank's
// dy, summed over the ranks.
#include <stdlib.h>

#include "rules/conv/filter.h"
#include "rules/kit/gradient_sum.h"
#include "rules/kit/merge.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "rules/window/plan.h"

enum { DY, DB }; // the sub-call's tensors

static int dy_of(const sdg_call_t *call) {
  return sdg_call_operand(call, SDG_ROLE_DY);
}

static int db_of(const sdg_call_t *call) {
  return sdg_call_operand(call, SDG_ROLE_DBIAS);
}

typedef struct op {
  sdg_conv_gradient_old_t old;
  bool unscaled; // by alpha
} op_t;

static cudnnStatus_t bias_run(const sdg_subcall_run_t *run) {
  const op_t *op = run->op;
  sdg_rebind_t own;
  sdg_rebind_init(run->call, &own);
  sdg_rebind_tensor(&own, SDG_ROLE_DY, run->descriptor[DY], run->data[DY]);
  sdg_rebind_tensor(&own, SDG_ROLE_DBIAS, run->descriptor[DB], run->data[DB]);
  if (op->old != SDG_CONV_GRADIENT_BETA)
    sdg_rebind_scalar(&own, SDG_BETA, &run->scalar[0]);
  if (op->unscaled)
    sdg_rebind_scalar(&own, SDG_ALPHA, &run->scalar[1]);
  return (cudnnStatus_t)sdg_rebind_invoke(&own);
}

static sdg_status_t call_add(const sdg_call_t *call, sdg_plan_t *plan, int dy,
                             const sdg_box_t *box,
                             const sdg_gradient_sum_t *sum) {
  op_t *op;
  SDG_TRY(SDG_ALLOCATE(op, 1, "a plan"));
  *op =
      (op_t){sum->takes_beta ? SDG_CONV_GRADIENT_BETA : SDG_CONV_GRADIENT_CLEAR,
             sum->scales};
  sdg_type_t type = call->operand[dy_of(call)].type;
  sdg_subcall_t sub = {
      .fn = bias_run,
      .tensors = 2,
      .tensor = {[DY] = {dy, *box, type, NULL},
                 [DB] = sdg_subcall_slab(plan, sum->part,
                                         call->operand[db_of(call)].type)},
      .scalar = {sdg_scalar(type, 0), sdg_scalar(type, 1)},
      .op = op,
      .op_destroy = free,
  };
  return sdg_subcall_add(plan, &sub);
}

// The sum of dy in float, which the vendor's gradient of the bias cannot give.
static sdg_status_t reduction_add(const sdg_call_t *call, sdg_plan_t *plan,
                                  int dy, const sdg_box_t *box,
                                  const sdg_gradient_sum_t *sum) {
  sdg_subcall_tensor_t from = {
      .slab = dy, .box = *box, .type = call->operand[dy_of(call)].type};
  sdg_subcall_tensor_t to = sdg_subcall_slab(plan, sum->part, sum->type);
  for (int d = 0; d < box->dims; d++)
    if (d != 1 && box->dim[d].hi - box->dim[d].lo > 1) {
      SDG_TRY(sdg_merge_reducible(plan, &from));
      return sdg_subcall_reduce(plan, CUDNN_REDUCE_TENSOR_ADD, 1, &from, 0,
                                &to);
    }
  return sdg_subcall_transform(plan, 1, &from, 0, &to); // nothing to reduce
}

// `there`: the box of dy in memory; `own`: this rank's part of it.
static sdg_status_t plan_fill(const sdg_call_t *call, sdg_plan_t *plan,
                              sdg_axes_t axes, const sdg_box_t *there,
                              const sdg_box_t *own) {
  sdg_gradient_sum_t sum;
  int dy;
  SDG_TRY(sdg_subcalls_open(plan, call));
  SDG_TRY(sdg_plan_operand(plan, call, dy_of(call), there, &dy));
  SDG_TRY(sdg_gradient_sum_open(plan, call, db_of(call), axes,
                                sdg_conv_gradient_beta, &sum));
  SDG_TRY(sdg_gradient_sum_widen(plan, call, &sum));
  SDG_TRY(sdg_gradient_sum_scale_last(plan, call, &sum));
  if (sdg_box_empty(own))
    SDG_TRY(sdg_gradient_sum_prefill(plan, call, &sum));
  else if (sum.type != call->operand[db_of(call)].type)
    SDG_TRY(reduction_add(call, plan, dy, own, &sum));
  else
    SDG_TRY(call_add(call, plan, dy, own, &sum));
  return sdg_gradient_sum_close(plan, call, &sum);
}

static sdg_status_t plan_make(const sdg_call_t *call, sdg_axes_t axes,
                              const sdg_box_t *there, const sdg_box_t *own,
                              sdg_plan_t **out_plan) {
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("sum", &plan));
  plan->why =
      "the rank computes the sum for its own piece; the ranks' sums are added";
  sdg_status_t status = plan_fill(call, plan, axes, there, own);
  return sdg_plan_finish(plan, status, out_plan);
}

static sdg_status_t call_check(const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  if (dy_of(call) < 0 || db_of(call) < 0)
    return sdg_fail(SDG_E_ARGUMENT, "%s: a descriptor is NULL",
                    call->entry_name);
  if (tagging->placement[dy_of(call)].split[1].axes)
    return sdg_fail(SDG_E_SPLIT_DIMENSION, "C of %s", call->entry_name);
  return SDG_OK;
}

sdg_status_t sdg_conv_bias_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) {
  SDG_TRY(call_check(call, tagging));
  if (!tagging->sum_axes)
    return sdg_window_plan_literal(0, out_plan);
  SDG_TRY(sdg_tagging_sure(call, tagging));
  sdg_box_t own = sdg_tagging_own(tagging, &tagging->placement[dy_of(call)]);
  return plan_make(call, tagging->sum_axes, &own, &own, out_plan);
}

static sdg_status_t share_fill(sdg_share_t *share, const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  SDG_TRY(sdg_gradient_sum_share(share, call, db_of(call),
                                 sdg_conv_gradient_beta(call)));
  int dy = dy_of(call);
  return sdg_share_reads_own(share, dy, &tagging->placement[dy], tagging->mesh);
}

sdg_status_t sdg_conv_bias_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) {
  *out_plan = NULL;
  if (dy_of(call) < 0 || db_of(call) < 0)
    return SDG_OK;
  const sdg_operand_t *dy = &call->operand[dy_of(call)];
  const sdg_operand_t *db = &call->operand[db_of(call)];
  const sdg_placement_t *placement = &tagging->placement[dy_of(call)];
  // A call that cannot be shared runs on every rank; the real function reports
  // its errors.
  if (!dy->data || !db->data || dy->elem_bytes == 0 || db->elem_bytes == 0 ||
      db->dims != dy->dims || placement->dims != dy->dims ||
      placement->split[1].axes)
    return SDG_OK;
  sdg_share_t *share;
  SDG_TRY(sdg_share_create(sdg_mesh_ranks(tagging->mesh), &share));
  sdg_box_t there = sdg_operand_box(dy);
  sdg_box_t own = sdg_tagging_own(tagging, placement);
  sdg_status_t status;
  SDG_TRY_GOTO(share_fill(share, call, tagging), fail);
  SDG_TRY_GOTO(plan_make(call, tagging->sum_axes, &there, &own, out_plan),
               fail);
fail:
  return sdg_plan_finish_share(share, status, out_plan);
}
