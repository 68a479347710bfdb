/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of parameters: each rank computes a gradient from its own
 * activations, the ranks sum these, and the program's beta is applied once.
 * Inside rules/ only. */
#ifndef SDG_RULES_KIT_GRADIENT_SUM_H
#define SDG_RULES_KIT_GRADIENT_SUM_H

#include "rules/place/op.h"

typedef struct sdg_gradient_sum {
  int operand; /* the gradient */
  int output;  /* its slab */
  /* The slab where sub-calls put this rank's part: the output, or scratch of
   * the same shape. */
  int part;
  sdg_type_t type; /* of that slab */
  /* True: the first sub-call scales the old values by the program's beta.
   * False: it overwrites them. */
  bool takes_beta;
  const void *(*beta)(const sdg_call_t *call); /* the program's */
  /* The sum is multiplied by the program's alpha, in place of each sub-call's
   * result. */
  bool scales;
} sdg_gradient_sum_t;

/* Adds the slab or slabs for operand `index` to a plan opened by
 * sdg_subcalls_open(). The ranks along `axes` sum their parts; if `axes` is 0,
 * this rank's part is the whole gradient. */
sdg_status_t sdg_gradient_sum_open(sdg_plan_t *plan, const sdg_call_t *call,
                                   int index, sdg_axes_t axes,
                                   const void *(*beta)(const sdg_call_t *call),
                                   sdg_gradient_sum_t *out) SDG_MUST_CHECK;
/* For sub-calls whose result may have another type than the gradient. If the
 * gradient is narrower than float and ranks are summed, sum->type becomes
 * float, so that no rank's part is rounded or overflows, and alpha is applied
 * to the sum. */
sdg_status_t sdg_gradient_sum_widen(sdg_plan_t *plan, const sdg_call_t *call,
                                    sdg_gradient_sum_t *sum) SDG_MUST_CHECK;
/* If alpha is infinite, applies it to the sum instead of each rank's part,
 * because infinite parts of both signs would add up to NaN. */
sdg_status_t
sdg_gradient_sum_scale_last(sdg_plan_t *plan, const sdg_call_t *call,
                            sdg_gradient_sum_t *sum) SDG_MUST_CHECK;
/* Whole view: adds the gradient to the share as an output that every rank gets
 * in full. It is also read unless `beta` is zero. */
sdg_status_t sdg_gradient_sum_share(sdg_share_t *share, const sdg_call_t *call,
                                    int index, const void *beta) SDG_MUST_CHECK;
/* For a rank that has no part, or whose sub-calls only add: sets its part to
 * zero, or to the old values times beta. */
sdg_status_t
sdg_gradient_sum_prefill(sdg_plan_t *plan, const sdg_call_t *call,
                         const sdg_gradient_sum_t *sum) SDG_MUST_CHECK;
/* Call it after the sub-calls: sums over the ranks and applies beta. */
sdg_status_t
sdg_gradient_sum_close(sdg_plan_t *plan, const sdg_call_t *call,
                       const sdg_gradient_sum_t *sum) SDG_MUST_CHECK;

#endif
