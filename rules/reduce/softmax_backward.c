// SPDX-License-Identifier: Apache-2.0
// The steps of softmax backward, where the ranks along a dimension share its
// sum.
#include "rules/reduce/softmax_plan.h"

#include <cudnn.h>
#include <float.h>

#include "rules/vendor/vendor.h"

// result = dy - sum. The vendor's function takes operands of one type.
static sdg_status_t difference_make(sdg_softmax_maker_t *m,
                                    const sdg_subcall_tensor_t *sum) {
  sdg_subcall_tensor_t dy;
  SDG_TRY(sdg_softmax_widen(m, 1, &m->result, &dy));
  return sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, &dy, -1, sum, 0,
                        &m->result);
}

// dx = y (dy - sum of y dy).
static sdg_status_t backward_make(sdg_softmax_maker_t *m) {
  sdg_subcall_tensor_t sum, y = m->operand[0];
  SDG_TRY(sdg_softmax_field(m, &sum));
  if (m->empty) {
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, sum.slab, &sum.box));
  } else {
    SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MUL, 1, &y, 1,
                           &m->operand[1], 0, &m->result));
    SDG_TRY(
        sdg_softmax_reduce(m, CUDNN_REDUCE_TENSOR_ADD, 1, &m->result, &sum));
  }
  SDG_TRY(sdg_plan_reduce(m->plan, sum.slab, m->type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  if (m->empty)
    return SDG_OK;
  SDG_TRY(difference_make(m, &sum));
  SDG_TRY(sdg_softmax_widen(m, 0, NULL, &y));
  // The output may be the first operand, but not the second; dx may be y.
  const sdg_subcall_tensor_t *first = m->in_place ? &m->result : &y;
  return sdg_subcall_op_by(m->plan, CUDNN_OP_TENSOR_MUL, sdg_softmax_product,
                           first, m->in_place ? &y : &m->result,
                           &m->operand[m->softmax.output]);
}

static cudnnStatus_t backward_log(const sdg_subcall_run_t *run,
                                  cudnnSoftmaxMode_t mode, const void *alpha) {
  return sdg_cudnn_get()->cudnnSoftmaxBackward(
      run->handle, CUDNN_SOFTMAX_LOG, mode, alpha, run->descriptor[0],
      run->data[0], run->descriptor[1], run->data[1], &run->scalar[1],
      run->descriptor[1], run->data[1]);
}

static cudnnStatus_t own_backward_run(const sdg_subcall_run_t *run) {
  return backward_log(run, sdg_softmax_program(run).mode, &run->scalar[0]);
}

static cudnnStatus_t own_scaled_run(const sdg_subcall_run_t *run) {
  return backward_log(run, sdg_softmax_program(run).mode,
                      sdg_softmax_program(run).alpha);
}

static cudnnStatus_t pair_run(const sdg_subcall_run_t *run) {
  return backward_log(run, CUDNN_SOFTMAX_MODE_CHANNEL, &run->scalar[0]);
}

// Adds a LOG softmax gradient, which overwrites dy.
static sdg_status_t
backward_log_add(const sdg_softmax_maker_t *m,
                 cudnnStatus_t (*fn)(const sdg_subcall_run_t *),
                 const sdg_subcall_tensor_t *y,
                 const sdg_subcall_tensor_t *dy) {
  sdg_subcall_t sub = {
      .fn = fn,
      .tensors = 2,
      .tensor = {*y, *dy},
      .scalar = {sdg_scalar(dy->type, 1), sdg_scalar(dy->type, 0)}};
  return sdg_subcall_add(m->plan, &sub);
}

// The part of a tensor that has this rank's first element along each reduced
// dimension.
static sdg_subcall_tensor_t first_of(const sdg_softmax_maker_t *m,
                                     const sdg_subcall_tensor_t *tensor) {
  sdg_subcall_tensor_t first = *tensor;
  for (int d = 0; d < first.box.dims; d++)
    if (m->reduced[d])
      first.box.dim[d].hi = first.box.dim[d].lo + 1;
  return first;
}

// Computes dx of this rank's first elements. The vendor's function runs on
// pairs, whose second element makes their sum equal to the sum over all ranks.
// *out is a slot of scratch with the result.
static sdg_status_t first_make(sdg_softmax_maker_t *m,
                               const sdg_subcall_tensor_t *sum,
                               sdg_subcall_tensor_t *out) {
  sdg_subcall_tensor_t y, dy, first[2];
  SDG_TRY(sdg_merge_fields(m->plan, &m->field, SDG_SOFTMAX_ALONG, 2,
                           m->operand[0].slab, m->type, &y));
  SDG_TRY(sdg_merge_fields(m->plan, &m->field, SDG_SOFTMAX_ALONG, 2,
                           m->operand[0].slab, m->type, &dy));
  for (int i = 0; i < 2; i++)
    first[i] = first_of(m, &m->operand[i]);
  sdg_subcall_tensor_t y_own = sdg_merge_slot(&y, SDG_SOFTMAX_ALONG, 0, 1);
  sdg_subcall_tensor_t own = sdg_merge_slot(&dy, SDG_SOFTMAX_ALONG, 0, 1);
  sdg_subcall_tensor_t rest = sdg_merge_slot(&dy, SDG_SOFTMAX_ALONG, 1, 1);
  SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, y.slab, &y.box));
  SDG_TRY(sdg_subcall_transform(m->plan, 1, &first[0], 0, &y_own));
  SDG_TRY(sdg_subcall_transform(m->plan, 1, &first[1], 0, &own));
  SDG_TRY(
      sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, sum, -1, &own, 0, &rest));
  SDG_TRY(backward_log_add(m, pair_run, &y, &dy));
  *out = own;
  return SDG_OK;
}

// Replaces infinities by the largest finite numbers. This rank's sum is
// subtracted from that of all ranks, and infinity minus infinity would be NaN.
static sdg_status_t finite_make(sdg_softmax_maker_t *m,
                                const sdg_subcall_tensor_t *field) {
  double max = m->type == CUDNN_DATA_DOUBLE ? DBL_MAX : (double)FLT_MAX;
  sdg_subcall_tensor_t bound;
  SDG_TRY(sdg_softmax_bound(m, max, &bound));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MIN, 1, field, 1, &bound, 0,
                         field));
  return sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_MAX, 1, field, -1, &bound, 0,
                        field);
}

// Gives y the type and strides of `result`, as the vendor's function wants. If
// `result` was the output and has other strides than y, it becomes scratch.
static sdg_status_t y_make(sdg_softmax_maker_t *m, sdg_subcall_tensor_t *y) {
  *y = m->operand[0];
  bool typed = y->type == m->type;
  if (typed && sdg_subcall_strides_equal(m->plan, y, &m->result))
    return SDG_OK;
  if (m->in_place) {
    m->in_place = false;
    SDG_TRY(sdg_merge_scratch(m->plan, &m->own, y->slab, m->type, &m->result));
    if (typed && sdg_subcall_strides_equal(m->plan, y, &m->result))
      return SDG_OK;
  }
  SDG_TRY(sdg_merge_scratch(m->plan, &m->own, m->result.slab, m->type, y));
  return sdg_subcall_transform(m->plan, 1, &m->operand[0], 0, y);
}

// log: dx = dy - exp(y) sum of dy. The real function computes the sum itself.
// The other ranks' part of the sum is added to this rank's first elements of
// dy; dx of these elements, which is then wrong, is computed separately.
static sdg_status_t backward_log_make(sdg_softmax_maker_t *m) {
  const sdg_subcall_tensor_t *output = &m->operand[m->softmax.output];
  sdg_subcall_tensor_t sum, mine, y, made;
  SDG_TRY(sdg_softmax_field(m, &sum));
  if (m->empty) {
    SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, sum.slab, &sum.box));
  } else {
    SDG_TRY(sdg_softmax_field(m, &mine));
    SDG_TRY(y_make(m, &y));
    SDG_TRY(sdg_subcall_transform(m->plan, 1, &m->operand[1], 0, &m->result));
    SDG_TRY(
        sdg_softmax_reduce(m, CUDNN_REDUCE_TENSOR_ADD, 1, &m->result, &mine));
    SDG_TRY(sdg_subcall_transform(m->plan, 1, &mine, 0, &sum));
    SDG_TRY(finite_make(m, &mine));
  }
  SDG_TRY(sdg_plan_reduce(m->plan, sum.slab, m->type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  if (m->empty)
    return SDG_OK;
  SDG_TRY(first_make(m, &sum, &made));
  sdg_subcall_tensor_t first = first_of(m, &m->result);
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, &sum, -1, &mine, 1,
                         &first));
  SDG_TRY(backward_log_add(m, m->in_place ? own_scaled_run : own_backward_run,
                           &y, &m->result));
  // alpha and beta are applied once: in place, beta is 0.
  if (m->in_place)
    return sdg_subcall_store(m->plan, true, &made, &first);
  SDG_TRY(sdg_subcall_transform(m->plan, 1, &made, 0, &first));
  return sdg_subcall_store(m->plan, true, &m->result, output);
}

sdg_status_t sdg_softmax_backward(sdg_softmax_maker_t *m) {
  return m->softmax.algo == CUDNN_SOFTMAX_LOG ? backward_log_make(m)
                                              : backward_make(m);
}
