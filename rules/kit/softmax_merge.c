// SPDX-License-Identifier: Apache-2.0
// The ranks' shares in a softmax: a softmax over the ranks' own sums.
#include "rules/kit/softmax_merge.h"

#include <stdlib.h>

#include "rules/vendor/vendor.h"

sdg_status_t sdg_softmax_merge_open(sdg_plan_t *plan, const sdg_merge_t *merge,
                                    const sdg_box_t *field, int dim, int like,
                                    sdg_type_t type, sdg_softmax_merge_t *out) {
  *out = (sdg_softmax_merge_t){
      .dim = dim, .ranks = merge->ranks, .type = type, .field = *field};
  SDG_TRY(sdg_merge_fields(plan, field, dim, 2 * merge->ranks, like, type,
                           &out->fields));
  out->max = sdg_merge_slot(&out->fields, dim, merge->me, 1);
  out->log_sum = sdg_merge_slot(&out->fields, dim, merge->ranks + merge->me, 1);
  return sdg_plan_zero(plan, SDG_LANE_MAIN, out->fields.slab, &out->fields.box);
}

sdg_status_t sdg_softmax_merge_sum(sdg_plan_t *plan,
                                   const sdg_softmax_merge_t *shares) {
  SDG_TRY(sdg_plan_reduce(plan, shares->fields.slab, shares->type,
                          SDG_COMBINE_SUM));
  return sdg_plan_join(plan, SDG_LANE_MAIN);
}

// What a sub-call keeps besides its tensors.
typedef struct how {
  cudnnSoftmaxAlgorithm_t algo;
  cudnnSoftmaxMode_t mode;
} how_t;

static cudnnStatus_t softmax_run(const sdg_subcall_run_t *run) {
  const how_t *how = run->op;
  return sdg_cudnn_get()->cudnnSoftmaxForward(
      run->handle, how->algo, how->mode, &run->scalar[0], run->descriptor[0],
      run->data[0], &run->scalar[1], run->descriptor[1], run->data[1]);
}

sdg_status_t sdg_softmax_add(sdg_plan_t *plan, cudnnSoftmaxAlgorithm_t algo,
                             cudnnSoftmaxMode_t mode,
                             const sdg_subcall_tensor_t *x,
                             const sdg_subcall_tensor_t *y) {
  how_t *how;
  SDG_TRY(SDG_ALLOCATE(how, 1, "a plan"));
  *how = (how_t){algo, mode};
  sdg_subcall_t sub = {
      .fn = softmax_run,
      .tensors = 2,
      .tensor = {*x, *y},
      .scalar = {sdg_scalar(y->type, 1), sdg_scalar(y->type, 0)},
      .op = how,
      .op_destroy = free};
  return sdg_subcall_add(plan, &sub);
}

sdg_status_t sdg_softmax_merge_make(sdg_plan_t *plan,
                                    const sdg_softmax_merge_t *shares,
                                    bool log) {
  int ranks = shares->ranks, dim = shares->dim;
  sdg_subcall_tensor_t all = sdg_merge_slot(&shares->fields, dim, 0, ranks);
  sdg_subcall_tensor_t sums =
      sdg_merge_slot(&shares->fields, dim, ranks, ranks);
  sdg_subcall_tensor_t max;
  SDG_TRY(sdg_merge_scratch(plan, &shares->field, shares->fields.slab,
                            shares->type, &max));
  SDG_TRY(sdg_subcall_reduce(plan, CUDNN_REDUCE_TENSOR_MAX, 1, &all, 0, &max));
  SDG_TRY(
      sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, &all, -1, &max, 0, &all));
  SDG_TRY(
      sdg_subcall_op(plan, CUDNN_OP_TENSOR_ADD, 1, &all, 1, &sums, 0, &all));
  return sdg_softmax_add(plan, log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE,
                         CUDNN_SOFTMAX_MODE_CHANNEL, &all, &all);
}
