/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax of elements that several ranks have: which share of it falls to
 * each rank. Inside rules/ only.
 *
 * Of its own elements x a rank knows the maximum m and, by LOG softmax of them
 * alone, log s, s = sum exp(x - m). M being the largest m, rank r has the share
 * w_r of all: w = softmax over the ranks of z = (m - M) + log s. What is then
 * summed over the ranks is w_r times the rank's own softmax. Nothing cancels:
 * differences of maxima are taken before anything is added.
 *
 * Example: own x = (0, 0), the other rank's (0, 0, 0, 0): m = M = 0,
 * z = (log 2, log 4), w = 1/3. */
#ifndef SDG_RULES_KIT_SOFTMAX_MERGE_H
#define SDG_RULES_KIT_SOFTMAX_MERGE_H

#include "rules/kit/merge.h"

typedef struct sdg_softmax_merge {
  int dim, ranks; /* fields of ranks lie along `dim` */
  sdg_type_t type;
  sdg_box_t field;
  sdg_subcall_tensor_t fields;
  /* This rank's, to be filled: m, -inf where it has no elements of a set, and
   * log s. Then `most` is its share. */
  sdg_subcall_tensor_t most, log_sum;
} sdg_softmax_merge_t;

/* Room for the fields, which are `field` each, with zeros in it; nested in
 * memory as slab `like`. */
sdg_status_t sdg_softmax_merge_open(sdg_plan_t *plan, const sdg_merge_t *merge,
                                    const sdg_box_t *field, int dim, int like,
                                    sdg_type_t type,
                                    sdg_softmax_merge_t *out) SDG_MUST_CHECK;
/* Brings the fields together, over the plan's reduce_axes. */
sdg_status_t
sdg_softmax_merge_sum(sdg_plan_t *plan,
                      const sdg_softmax_merge_t *shares) SDG_MUST_CHECK;
/* From every rank's m and log s to the shares, or their logarithms. */
sdg_status_t sdg_softmax_merge_make(sdg_plan_t *plan,
                                    const sdg_softmax_merge_t *shares,
                                    bool log) SDG_MUST_CHECK;

/* y = softmax(x) over dimension 1 of tensors of four or five, y may be x. */
sdg_status_t sdg_softmax_add(sdg_plan_t *plan, cudnnSoftmaxAlgorithm_t algo,
                             const sdg_subcall_tensor_t *x,
                             const sdg_subcall_tensor_t *y) SDG_MUST_CHECK;

#endif
