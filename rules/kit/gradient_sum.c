// SPDX-License-Identifier: Apache-2.0
// Sums gradients of parameters over ranks.
#include "rules/kit/gradient_sum.h"

#include <math.h>
#include <stdlib.h>

#include "rules/kit/subcall.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// Whether the ranks sum this gradient in float. In a half type, each rank's
// part would be rounded to few bits, or overflow although the sum does not.
static bool sums_in_float(const sdg_operand_t *operand) {
  return operand->type == CUDNN_DATA_HALF ||
         operand->type == CUDNN_DATA_BFLOAT16;
}

sdg_status_t sdg_gradient_sum_open(sdg_plan_t *plan, const sdg_call_t *call,
                                   int index, sdg_axes_t axes,
                                   const void *(*beta)(const sdg_call_t *call),
                                   sdg_gradient_sum_t *out) {
  sdg_box_t box = sdg_operand_box(&call->operand[index]);
  *out = (sdg_gradient_sum_t){
      .operand = index, .type = call->operand[index].type, .beta = beta};
  plan->reduce_axes = axes;
  SDG_TRY(sdg_plan_operand(plan, call, index, &box, &out->output));
  out->part = out->output;
  out->takes_beta = axes == 0;
  // NCCL sums contiguous memory.
  if (axes == 0 || (sdg_call_scalar_value(call, beta(call)) == 0 &&
                    sdg_plan_is_packed(plan, out->output)))
    return SDG_OK;
  return sdg_plan_scratch(plan, &box, out->output, &out->part);
}

sdg_status_t sdg_gradient_sum_widen(sdg_plan_t *plan, const sdg_call_t *call,
                                    sdg_gradient_sum_t *sum) {
  const sdg_operand_t *operand = &call->operand[sum->operand];
  sdg_box_t box = sdg_operand_box(operand);
  if (!plan->reduce_axes || !sums_in_float(operand))
    return SDG_OK;
  sum->type = CUDNN_DATA_FLOAT;
  sum->scales = true;
  return sdg_plan_scratch_of(plan, &box, sizeof(float), sum->output,
                             &sum->part);
}

sdg_status_t sdg_gradient_sum_scale_last(sdg_plan_t *plan,
                                         const sdg_call_t *call,
                                         sdg_gradient_sum_t *sum) {
  sdg_box_t box = sdg_operand_box(&call->operand[sum->operand]);
  if (sum->scales || !isinf(sdg_call_scalar(call, SDG_ALPHA)))
    return SDG_OK;
  sum->scales = true;
  sum->takes_beta = false;
  return sum->part == sum->output
             ? sdg_plan_scratch(plan, &box, sum->output, &sum->part)
             : SDG_OK;
}

sdg_status_t sdg_gradient_sum_share(sdg_share_t *share, const sdg_call_t *call,
                                    int index, const void *beta) {
  const sdg_operand_t *operand = &call->operand[index];
  sdg_placement_t everywhere;
  SDG_TRY(sdg_placement_init(operand->dims, operand->extent, &everywhere));
  sdg_status_t status = sdg_share_output(share, index, &everywhere);
  sdg_placement_fini(&everywhere);
  if (status != SDG_OK || sdg_call_scalar_value(call, beta) == 0)
    return status;
  sdg_box_t *old;
  SDG_TRY(sdg_share_reads(share, index, &old));
  for (int r = 0; r < share->ranks; r++)
    old[r] = sdg_operand_box(operand);
  return SDG_OK;
}

// output = alpha sum + beta output.
typedef struct finish {
  bool scales;
  const void *(*beta)(const sdg_call_t *call);
} finish_t;

static cudnnStatus_t finish_run(const sdg_subcall_run_t *run) {
  const finish_t *finish = run->op;
  return sdg_cudnn_get()->cudnnTransformTensor(
      run->handle,
      finish->scales ? sdg_call_scalar_at(run->call, SDG_ALPHA)
                     : &run->scalar[0],
      run->descriptor[0], run->data[0], finish->beta(run->call),
      run->descriptor[1], run->data[1]);
}

static sdg_status_t finish_add(sdg_plan_t *plan, const sdg_gradient_sum_t *sum,
                               const sdg_subcall_tensor_t *from,
                               const sdg_subcall_tensor_t *to) {
  finish_t *finish;
  SDG_TRY(SDG_ALLOCATE(finish, 1, "a plan"));
  *finish = (finish_t){.scales = sum->scales, .beta = sum->beta};
  sdg_subcall_t sub = {.fn = finish_run,
                       .tensors = 2,
                       .tensor = {*from, *to},
                       .scalar = {sdg_scalar(to->type, 1)},
                       .op = finish,
                       .op_destroy = free};
  return sdg_subcall_add(plan, &sub);
}

sdg_status_t sdg_gradient_sum_prefill(sdg_plan_t *plan, const sdg_call_t *call,
                                      const sdg_gradient_sum_t *sum) {
  const sdg_box_t box = plan->slab[sum->part].box;
  sdg_type_t type = call->operand[sum->operand].type;
  if (!sum->takes_beta || sdg_call_scalar_value(call, sum->beta(call)) == 0)
    return sdg_plan_zero(plan, SDG_LANE_MAIN, sum->part, &box);
  int zeros;
  SDG_TRY(sdg_plan_scratch(plan, &box, sum->output, &zeros));
  SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, zeros, &box));
  sdg_subcall_tensor_t from = sdg_subcall_slab(plan, zeros, type);
  sdg_subcall_tensor_t to = sdg_subcall_slab(plan, sum->output, type);
  return finish_add(plan, sum, &from, &to);
}

sdg_status_t sdg_gradient_sum_close(sdg_plan_t *plan, const sdg_call_t *call,
                                    const sdg_gradient_sum_t *sum) {
  const sdg_operand_t *operand = &call->operand[sum->operand];
  if (!plan->reduce_axes && !sum->scales)
    return SDG_OK;
  sdg_subcall_tensor_t part = sdg_subcall_slab(plan, sum->part, sum->type);
  sdg_subcall_tensor_t output =
      sdg_subcall_slab(plan, sum->output, operand->type);
  sdg_subcall_tensor_t total = part;
  if (!plan->reduce_axes)
    return finish_add(plan, sum, &part, &output);
  if (sum->type == operand->type && sums_in_float(operand)) {
    total.type = CUDNN_DATA_FLOAT;
    SDG_TRY(sdg_plan_scratch_of(plan, &part.box, sizeof(float), sum->output,
                                &total.slab));
    SDG_TRY(sdg_subcall_transform(plan, 1, &part, 0, &total));
  }
  SDG_TRY(sdg_plan_reduce(plan, total.slab, total.type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  return total.slab == output.slab ? SDG_OK
                                   : finish_add(plan, sum, &total, &output);
}
