/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax over elements that several ranks hold: each rank's share of the
 * result. Inside rules/ only.
 *
 * A rank knows the maximum m of its own elements x and, from a LOG softmax over
 * them alone, log s with s = sum exp(x - m). Let M be the largest m of all
 * ranks. Rank r has the share w_r: w = softmax over the ranks of
 * z = (m - M) + log s. The ranks then sum w_r times their own softmax. Nothing
 * cancels, because maxima are subtracted before anything is added.
 *
 * Example: own x = (0, 0), the other rank's (0, 0, 0, 0): m = M = 0, z = (log
 * 2, log 4), w = 1/3. */
#ifndef SDG_RULES_KIT_SOFTMAX_MERGE_H
#define SDG_RULES_KIT_SOFTMAX_MERGE_H

#include "rules/kit/merge.h"

typedef struct sdg_softmax_merge {
  int dim, ranks; /* the ranks' fields lie along `dim` */
  sdg_type_t type;
  sdg_box_t field;
  sdg_subcall_tensor_t fields;
  /* This rank's fields, which the caller fills: m (-inf for a set that has no
   * elements on this rank) and log s. After sdg_softmax_merge_make `max` is
   * the rank's share. */
  sdg_subcall_tensor_t max, log_sum;
} sdg_softmax_merge_t;

/* Adds zeroed scratch for one field per rank. Each has the box `field`, and its
 * dimensions are ordered in memory like those of slab `like`. */
sdg_status_t sdg_softmax_merge_open(sdg_plan_t *plan, const sdg_merge_t *merge,
                                    const sdg_box_t *field, int dim, int like,
                                    sdg_type_t type,
                                    sdg_softmax_merge_t *out) SDG_MUST_CHECK;
/* Gathers all ranks' fields, by a sum over the plan's reduce_axes. */
sdg_status_t
sdg_softmax_merge_sum(sdg_plan_t *plan,
                      const sdg_softmax_merge_t *shares) SDG_MUST_CHECK;
/* Turns every rank's m and log s into the shares, or into their logarithms if
 * `log`. */
sdg_status_t sdg_softmax_merge_make(sdg_plan_t *plan,
                                    const sdg_softmax_merge_t *shares,
                                    bool log) SDG_MUST_CHECK;

/* y = softmax(x) of tensors of four or five dimensions, over dimension 1 in
 * mode CHANNEL; y may be x. */
sdg_status_t sdg_softmax_add(sdg_plan_t *plan, cudnnSoftmaxAlgorithm_t algo,
                             cudnnSoftmaxMode_t mode,
                             const sdg_subcall_tensor_t *x,
                             const sdg_subcall_tensor_t *y) SDG_MUST_CHECK;

#endif
