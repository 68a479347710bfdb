/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax on split tensors: its call and its plans. Inside rules/ only. */
#ifndef SDG_RULES_REDUCE_SOFTMAX_RULE_H
#define SDG_RULES_REDUCE_SOFTMAX_RULE_H

#include <cudnn.h>

#include "rules/place/op.h"

/* One call of either direction. */
typedef struct sdg_softmax {
  bool backward;
  cudnnSoftmaxAlgorithm_t algo;
  cudnnSoftmaxMode_t mode;
  const void *alpha, *beta;
  int inputs, output; /* inputs are operands 0 .. inputs - 1, the output is the
                       * last */
} sdg_softmax_t;

/* False if the real function rejects the call on every rank. */
bool sdg_softmax_read(const sdg_call_t *call, sdg_softmax_t *out);

/* Which dimensions the sums extend over; `out` has SDG_DIMS_MAX elements. */
void sdg_softmax_reduced(const sdg_softmax_t *softmax, int dims, bool *out);

/* See plan() and share() of sdg_op_t. */
sdg_op_plan_t sdg_softmax_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_softmax_share SDG_MUST_CHECK;

#endif
