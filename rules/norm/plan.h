/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of normalisations whose statistics are shared by several ranks. Inside
 * rules/ only. */
#ifndef SDG_RULES_NORM_PLAN_H
#define SDG_RULES_NORM_PLAN_H

#include "rules/norm/call.h"
#include "rules/norm/subcall.h"

/* A plan being made. */
typedef struct sdg_norm_maker {
  const sdg_call_t *call;
  const sdg_norm_t *norm;
  sdg_plan_t *plan;
  sdg_type_t type;  /* of scales and statistics: float or double */
  sdg_axes_t axes;  /* along which ranks share statistics */
  sdg_axes_t sum;   /* of these, those that gradients are summed over */
  sdg_box_t own;    /* this rank's elements; may be empty in the whole view */
  sdg_box_t params; /* of scales and statistics, as the program has them */
  int64_t count;    /* of own elements that share a mean; 0: own is empty */
  int64_t total;    /* of all ranks' */
  bool packs;       /* no sub-call gets a part of a program's tensor */
  /* The program's tensors, cut to what is this rank's; or packed copies. */
  sdg_subcall_tensor_t tensor[SDG_NORM_TENSORS];
} sdg_norm_maker_t;

/* Steps that make mean and variance (over `total`, not one less) of all ranks'
 * x: `mean` is where they write the mean, the variance is in scratch. `waste`:
 * x's extents and type, overwritten. */
sdg_status_t
sdg_norm_statistics(sdg_norm_maker_t *m, const sdg_subcall_tensor_t *waste,
                    const sdg_subcall_tensor_t *mean,
                    sdg_subcall_tensor_t *out_variance) SDG_MUST_CHECK;
/* inverse = 1 / sqrt(variance + epsilon). */
sdg_status_t
sdg_norm_inverse(sdg_norm_maker_t *m, const sdg_subcall_tensor_t *variance,
                 const sdg_subcall_tensor_t *inverse) SDG_MUST_CHECK;

/* All steps of one call, on a plan that is opened. */
sdg_status_t sdg_norm_forward(sdg_norm_maker_t *m) SDG_MUST_CHECK;
sdg_status_t sdg_norm_backward(sdg_norm_maker_t *m) SDG_MUST_CHECK;

/* Scratch for statistics: of value 1 or 0, or not set yet. */
sdg_status_t sdg_norm_scratch(sdg_norm_maker_t *m,
                              sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
sdg_status_t sdg_norm_constant(sdg_norm_maker_t *m, int value,
                               sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Packed scratch with the extents of what is this rank's of a tensor, for
 * elements of `type`. */
sdg_status_t sdg_norm_copy(sdg_norm_maker_t *m, sdg_norm_tensor_t like,
                           sdg_type_t type,
                           sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Two sums in one slab, to be reduced together; `both` is one tensor of them,
 * of extent 2 in its first dimension. */
typedef struct sdg_norm_pair {
  int slab;
  sdg_subcall_tensor_t sum[2], both;
} sdg_norm_pair_t;
sdg_status_t sdg_norm_pair(sdg_norm_maker_t *m,
                           sdg_norm_pair_t *out) SDG_MUST_CHECK;
sdg_status_t sdg_norm_pair_zero(sdg_norm_maker_t *m,
                                const sdg_norm_pair_t *pair) SDG_MUST_CHECK;
/* Whether two of the program's tensors are the same memory to sub-calls. */
bool sdg_norm_aliased(const sdg_norm_maker_t *m, sdg_norm_tensor_t a,
                      sdg_norm_tensor_t b);
/* The output `y` if it may be overwritten before `later` are read (ends with
 * SDG_NORM_TENSORS), otherwise scratch like it. */
sdg_status_t sdg_norm_waste(sdg_norm_maker_t *m, sdg_norm_tensor_t y,
                            const sdg_norm_tensor_t *later,
                            sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

#endif
