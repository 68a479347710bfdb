/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of normalisations whose statistics several ranks compute together.
 * Inside rules/ only. */
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
  sdg_axes_t sum;   /* the subset of `axes` over which gradients are summed */
  sdg_axes_t more;  /* per sample: those over which samples are summed, too */
  sdg_box_t own;    /* this rank's elements; may be empty in the whole view */
  sdg_box_t params; /* the program's scales and statistics */
  int64_t count;    /* own elements that share a mean; 0: own is empty */
  int64_t total;    /* elements of all ranks that share a mean */
  int ranks, place; /* number of these ranks, and this rank's index */
  bool even;        /* they have equal counts, and there are several */
  bool has_zero;    /* `zero` is there: zeros that earlier steps have made */
  sdg_subcall_tensor_t zero;
  bool per_sample; /* each sample has statistics of its own */
  int rows;        /* the dimension of tables along which each rank has a row */
  bool packs;      /* sub-calls use packed copies, never parts of the program's
                    * tensors */
  /* This rank's parts of the program's tensors, or packed copies of them. */
  sdg_subcall_tensor_t tensor[SDG_NORM_TENSORS];
} sdg_norm_maker_t;

/* Adds steps that compute the mean and the variance of all ranks' x. The
 * variance is divided by `total`, not by total - 1. The mean is written to
 * `mean`, the variance to scratch. `waste` has x's extents and type and is
 * overwritten. */
sdg_status_t
sdg_norm_statistics(sdg_norm_maker_t *m, const sdg_subcall_tensor_t *waste,
                    const sdg_subcall_tensor_t *mean,
                    sdg_subcall_tensor_t *out_variance) SDG_MUST_CHECK;
/* inverse = 1 / sqrt(variance + epsilon). */
sdg_status_t
sdg_norm_inverse(sdg_norm_maker_t *m, const sdg_subcall_tensor_t *variance,
                 const sdg_subcall_tensor_t *inverse) SDG_MUST_CHECK;

/* Adds all steps of one call to an opened plan. */
sdg_status_t sdg_norm_forward(sdg_norm_maker_t *m) SDG_MUST_CHECK;
sdg_status_t sdg_norm_backward(sdg_norm_maker_t *m) SDG_MUST_CHECK;

/* Adds scratch for statistics: _constant fills it with `value`, 1 or 0;
 * _scratch leaves it unset. */
sdg_status_t sdg_norm_scratch(sdg_norm_maker_t *m,
                              sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
sdg_status_t sdg_norm_constant(sdg_norm_maker_t *m, int value,
                               sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Adds packed scratch of `type` with the extents of this rank's part of a
 * tensor. */
sdg_status_t sdg_norm_copy(sdg_norm_maker_t *m, sdg_norm_tensor_t like,
                           sdg_type_t type,
                           sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Two sums in one slab, which are reduced together. `both` is one tensor of the
 * two, with extent 2 in dimension m->rows. */
typedef struct sdg_norm_pair {
  int slab;
  sdg_subcall_tensor_t sum[2], both;
} sdg_norm_pair_t;
sdg_status_t sdg_norm_pair(sdg_norm_maker_t *m,
                           sdg_norm_pair_t *out) SDG_MUST_CHECK;
sdg_status_t sdg_norm_pair_zero(sdg_norm_maker_t *m,
                                const sdg_norm_pair_t *pair) SDG_MUST_CHECK;
/* Whether sub-calls use the same memory for two of the program's tensors. */
bool sdg_norm_aliased(const sdg_norm_maker_t *m, sdg_norm_tensor_t a,
                      sdg_norm_tensor_t b);
/* A tensor that may be overwritten: the output `y` if none of `later` (which
 * ends with SDG_NORM_TENSORS) shares its memory, otherwise scratch of the same
 * shape. */
sdg_status_t sdg_norm_overwritable(sdg_norm_maker_t *m, sdg_norm_tensor_t y,
                                   const sdg_norm_tensor_t *later,
                                   sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

#endif
