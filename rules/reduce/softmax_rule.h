/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax on split tensors: its call, its plans. Inside rules/ only. */
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
  int inputs, output; /* operands 0 .. inputs - 1, and the last one */
} sdg_softmax_t;

/* False where the real function refuses the call as it is, on every rank. */
bool sdg_softmax_read(const sdg_call_t *call, sdg_softmax_t *out);

/* Which dimensions the sums go over; out has SDG_DIMS_MAX. */
void sdg_softmax_reduced(const sdg_softmax_t *softmax, int dims, bool *out);

/* What decides a plan beside descriptors: which operands share memory or are
 * NULL, a bit each. */
uint64_t sdg_softmax_memory(const sdg_call_t *call);

/* See plan() and share() of sdg_op_t. */
sdg_status_t sdg_softmax_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_softmax_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
