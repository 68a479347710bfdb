/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of parameters: a sum over ranks, of what each computes on its own
 * activations, and the program's beta, once. Inside rules/ only. */
#ifndef SDG_RULES_KIT_GRADIENT_SUM_H
#define SDG_RULES_KIT_GRADIENT_SUM_H

#include "rules/place/op.h"

typedef struct sdg_gradient_sum {
  int operand; /* the gradient */
  int output;  /* its slab */
  /* Where sub-calls put this rank's part: the output or scratch like it. */
  int part;
  /* The first of them replaces what is there by old values times the program's
   * beta; otherwise by nothing. */
  bool takes_beta;
  const void *(*beta)(const sdg_call_t *call); /* the program's */
} sdg_gradient_sum_t;

/* Adds the slab, or slabs, for operand `index` to a plan of
 * sdg_subcalls_open(). To be summed over `axes`, 0: this rank's part is all. */
sdg_status_t sdg_gradient_sum_open(sdg_plan_t *plan, const sdg_call_t *call,
                                   int index, sdg_axes_t axes,
                                   const void *(*beta)(const sdg_call_t *call),
                                   sdg_gradient_sum_t *out) SDG_MUST_CHECK;
/* Whole view: the gradient as an output of a shared call, all of it on every
 * rank, and read where `beta` is not zero. */
sdg_status_t sdg_gradient_sum_share(sdg_share_t *share, const sdg_call_t *call,
                                    int index, const void *beta) SDG_MUST_CHECK;
/* This rank has no part, or only adds to one: it is zero, or old values times
 * beta. */
sdg_status_t
sdg_gradient_sum_nothing(sdg_plan_t *plan, const sdg_call_t *call,
                         const sdg_gradient_sum_t *sum) SDG_MUST_CHECK;
/* After the sub-calls: sums, and applies beta. */
sdg_status_t
sdg_gradient_sum_close(sdg_plan_t *plan, const sdg_call_t *call,
                       const sdg_gradient_sum_t *sum) SDG_MUST_CHECK;

#endif
