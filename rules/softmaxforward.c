// SPDX-License-Identifier: Apache-2.0
// The steps of softmax forward, where the ranks along a dimension share its
// sum.
//
// Of its own elements a rank has the maximum m and, by LOG softmax of
// them alone, log s, s = sum exp(x - m). M being the largest m, rank r has the
// share w_r of all: w = softmax over the ranks of z = (m - M) + log s, and
//
//   y = softmax(own x) w,   log y = log softmax(own x) + log w.
//
// Nothing cancels: differences of maxima are taken before anything is added.
// Example: own x = (0, 0), the other rank's (0, 0, 0, 0): m = M = 0,
// z = (log 2, log 4), w = 1/3, y = 1/2 * 1/3.
//
// Elements of -inf alone have no softmax of their own, NaN, but a share of 0.
#include <math.h>

#include "rules/softmaxplan.h"

#include "rules/vendor.h"

static cudnnStatus_t forward(const sdg_subcall_run_t *run,
                             cudnnSoftmaxAlgorithm_t algo,
                             cudnnSoftmaxMode_t mode) {
  return sdg_cudnn_get()->cudnnSoftmaxForward(
      run->handle, algo, mode, &run->scalar[0], run->descriptor[0],
      run->data[0], &run->scalar[1], run->descriptor[1], run->data[1]);
}

static cudnnStatus_t own_log_run(const sdg_subcall_run_t *run) {
  return forward(run, CUDNN_SOFTMAX_LOG, sdg_softmax_program(run).mode);
}

static cudnnStatus_t own_run(const sdg_subcall_run_t *run) {
  return forward(run, CUDNN_SOFTMAX_ACCURATE, sdg_softmax_program(run).mode);
}

static cudnnStatus_t ranks_log_run(const sdg_subcall_run_t *run) {
  return forward(run, CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_CHANNEL);
}

static cudnnStatus_t ranks_run(const sdg_subcall_run_t *run) {
  return forward(run, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL);
}

static sdg_status_t forward_add(const sdg_softmax_maker_t *m,
                                cudnnStatus_t (*fn)(const sdg_subcall_run_t *),
                                const sdg_subcall_tensor_t *x,
                                const sdg_subcall_tensor_t *y) {
  sdg_subcall_t sub = {
      .fn = fn,
      .tensors = 2,
      .tensor = {*x, *y},
      .scalar = {sdg_scalar(y->type, 1), sdg_scalar(y->type, 0)}};
  return sdg_subcall_add(m->plan, &sub);
}

// c = alpha (a + b) + beta c with the program's alpha and beta.
static cudnnStatus_t sum_run(const sdg_subcall_run_t *run) {
  sdg_softmax_t p = sdg_softmax_program(run);
  return sdg_cudnn_get()->cudnnOpTensor(
      run->handle, run->op, p.alpha, run->descriptor[0], run->data[0], p.alpha,
      run->descriptor[1], run->data[1], p.beta, run->descriptor[2],
      run->data[2]);
}

// m and log s of this rank's elements; `result` is LOG softmax of them.
static sdg_status_t own_fill(sdg_softmax_maker_t *m,
                             const sdg_subcall_tensor_t *x,
                             const sdg_subcall_tensor_t *most,
                             const sdg_subcall_tensor_t *log_sum,
                             const sdg_subcall_tensor_t *zero) {
  SDG_TRY(sdg_softmax_reduce(m, CUDNN_REDUCE_TENSOR_MAX, 1, x, most));
  SDG_TRY(forward_add(m, own_log_run, x, &m->result));
  SDG_TRY(
      sdg_softmax_reduce(m, CUDNN_REDUCE_TENSOR_MAX, -1, &m->result, log_sum));
  return sdg_subcall_op_numbers(m->plan, CUDNN_OP_TENSOR_MAX, 1, log_sum, 1,
                                zero, log_sum);
}

// From every rank's m and log s to the shares, in place of m.
static sdg_status_t shares_make(sdg_softmax_maker_t *m,
                                const sdg_subcall_tensor_t *fields) {
  int ranks = m->merge.ranks;
  sdg_subcall_tensor_t all =
      sdg_merge_slot(fields, SDG_SOFTMAX_ALONG, 0, ranks);
  sdg_subcall_tensor_t sums =
      sdg_merge_slot(fields, SDG_SOFTMAX_ALONG, ranks, ranks);
  sdg_subcall_tensor_t most;
  SDG_TRY(sdg_softmax_field(m, &most));
  SDG_TRY(
      sdg_subcall_reduce(m->plan, CUDNN_REDUCE_TENSOR_MAX, 1, &all, 0, &most));
  SDG_TRY(sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, &all, -1, &most, 0,
                         &all));
  SDG_TRY(
      sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, &all, 1, &sums, 0, &all));
  bool log = m->softmax.algo == CUDNN_SOFTMAX_LOG;
  return forward_add(m, log ? ranks_log_run : ranks_run, &all, &all);
}

static sdg_status_t forward_finish(sdg_softmax_maker_t *m,
                                   const sdg_subcall_tensor_t *x,
                                   const sdg_subcall_tensor_t *share,
                                   const sdg_subcall_tensor_t *zero) {
  bool log = m->softmax.algo == CUDNN_SOFTMAX_LOG;
  sdg_subcall_tensor_t bound = *zero;
  if (!log) {
    SDG_TRY(forward_add(m, own_run, x, &m->result));
    SDG_TRY(sdg_softmax_bound(m, 1, &bound));
  }
  // A NaN of -inf alone becomes a number, which the share makes nothing of.
  SDG_TRY(sdg_subcall_op_numbers(m->plan, CUDNN_OP_TENSOR_MIN, 1, &m->result, 1,
                                 &bound, &m->result));
  if (log)
    return sdg_subcall_op_by(m->plan, CUDNN_OP_TENSOR_ADD, sum_run, &m->result,
                             share, &m->operand[m->softmax.output]);
  return sdg_subcall_op_by(m->plan, CUDNN_OP_TENSOR_MUL, sdg_softmax_product,
                           &m->result, share, &m->operand[m->softmax.output]);
}

sdg_status_t sdg_softmax_forward(sdg_softmax_maker_t *m) {
  int me = m->merge.me, ranks = m->merge.ranks;
  sdg_subcall_tensor_t fields, x, zero;
  SDG_TRY(sdg_merge_fields(m->plan, &m->field, SDG_SOFTMAX_ALONG, 2 * ranks,
                           m->operand[0].slab, m->type, &fields));
  sdg_subcall_tensor_t most = sdg_merge_slot(&fields, SDG_SOFTMAX_ALONG, me, 1);
  sdg_subcall_tensor_t log_sum =
      sdg_merge_slot(&fields, SDG_SOFTMAX_ALONG, ranks + me, 1);
  SDG_TRY(sdg_plan_zero(m->plan, SDG_LANE_MAIN, fields.slab, &fields.box));
  if (m->empty) {
    if (!sdg_box_empty(&m->field))
      SDG_TRY(sdg_subcall_set(m->plan, -INFINITY, &most));
  } else {
    SDG_TRY(sdg_softmax_bound(m, 0, &zero));
    SDG_TRY(sdg_softmax_widen(m, 0, &m->result, &x));
    SDG_TRY(own_fill(m, &x, &most, &log_sum, &zero));
  }
  SDG_TRY(sdg_plan_reduce(m->plan, fields.slab, m->type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  if (m->empty)
    return SDG_OK;
  SDG_TRY(shares_make(m, &fields));
  return forward_finish(m, &x, &most, &zero);
}
