// SPDX-License-Identifier: Apache-2.0
// The steps of softmax forward, where the ranks along a dimension share its
// sum.
//
// With the rank's share w of all (rules/kit/softmax_merge.h),
//
//   y = softmax(own x) w,   log y = log softmax(own x) + log w.
//
// If all elements of a rank are -inf, their own softmax is NaN and their share
// is 0; y must be 0 there.
#include <math.h>

#include "rules/kit/softmax_merge.h"
#include "rules/reduce/softmax_plan.h"
#include "rules/vendor/vendor.h"

// c = alpha (a + b) + beta c with the program's alpha and beta.
static cudnnStatus_t sum_run(const sdg_subcall_run_t *run) {
  sdg_softmax_t p = sdg_softmax_program(run);
  return sdg_cudnn_get()->cudnnOpTensor(
      run->handle, run->op, p.alpha, run->descriptor[0], run->data[0], p.alpha,
      run->descriptor[1], run->data[1], p.beta, run->descriptor[2],
      run->data[2]);
}

// Computes m and log s of this rank's elements. `result` becomes their LOG
// softmax.
static sdg_status_t own_fill(sdg_softmax_maker_t *m,
                             const sdg_subcall_tensor_t *x,
                             const sdg_subcall_tensor_t *max,
                             const sdg_subcall_tensor_t *log_sum,
                             const sdg_subcall_tensor_t *zero) {
  SDG_TRY(sdg_softmax_reduce(m, CUDNN_REDUCE_TENSOR_MAX, 1, x, max));
  SDG_TRY(sdg_softmax_add(m->plan, CUDNN_SOFTMAX_LOG, m->softmax.mode, x,
                          &m->result));
  SDG_TRY(
      sdg_softmax_reduce(m, CUDNN_REDUCE_TENSOR_MAX, -1, &m->result, log_sum));
  return sdg_subcall_op_numbers(m->plan, CUDNN_OP_TENSOR_MAX, 1, log_sum, 1,
                                zero, log_sum);
}

static sdg_status_t forward_finish(sdg_softmax_maker_t *m,
                                   const sdg_subcall_tensor_t *x,
                                   const sdg_subcall_tensor_t *share,
                                   const sdg_subcall_tensor_t *zero) {
  bool log = m->softmax.algo == CUDNN_SOFTMAX_LOG;
  sdg_subcall_tensor_t bound = *zero;
  if (!log) {
    SDG_TRY(sdg_softmax_add(m->plan, CUDNN_SOFTMAX_ACCURATE, m->softmax.mode, x,
                            &m->result));
    SDG_TRY(sdg_softmax_bound(m, 1, &bound));
  }
  // NaN from elements that are all -inf becomes a number, which the share
  // multiplies by zero.
  SDG_TRY(sdg_subcall_op_numbers(m->plan, CUDNN_OP_TENSOR_MIN, 1, &m->result, 1,
                                 &bound, &m->result));
  if (log)
    return sdg_subcall_op_by(m->plan, CUDNN_OP_TENSOR_ADD, sum_run, &m->result,
                             share, &m->operand[m->softmax.output]);
  return sdg_subcall_op_by(m->plan, CUDNN_OP_TENSOR_MUL, sdg_softmax_product,
                           &m->result, share, &m->operand[m->softmax.output]);
}

sdg_status_t sdg_softmax_forward(sdg_softmax_maker_t *m) {
  sdg_softmax_merge_t shares;
  sdg_subcall_tensor_t x, zero;
  SDG_TRY(sdg_softmax_merge_open(m->plan, &m->merge, &m->field,
                                 SDG_SOFTMAX_ALONG, m->operand[0].slab, m->type,
                                 &shares));
  if (m->empty) {
    if (!sdg_box_empty(&m->field))
      SDG_TRY(sdg_subcall_set(m->plan, -INFINITY, &shares.max));
  } else {
    SDG_TRY(sdg_softmax_bound(m, 0, &zero));
    SDG_TRY(sdg_softmax_widen(m, 0, &m->result, &x));
    SDG_TRY(own_fill(m, &x, &shares.max, &shares.log_sum, &zero));
  }
  SDG_TRY(sdg_softmax_merge_sum(m->plan, &shares));
  if (m->empty)
    return SDG_OK;
  SDG_TRY(sdg_softmax_merge_make(m->plan, &shares,
                                 m->softmax.algo == CUDNN_SOFTMAX_LOG));
  return forward_finish(m, &x, &shares.max, &zero);
}
