/* SPDX-License-Identifier: Apache-2.0 */
/* Multiplies rows of numbers by a matrix, in sub-calls: convolutions with
 * windows of one element. Inside rules/ only.
 *
 * Rows are packed tensors of n x columns x 1 x 1. The matrix W is packed
 * row-major: row k, column c is at k * columns + c. All tensors have the same
 * type, float or double.
 *
 * With several groups each group has its own matrix W_g, stored one after the
 * other, and its own elements of every row, side by side: left is n x
 * (groups * rows of W_g). */
#ifndef SDG_RULES_KIT_PROJECTION_H
#define SDG_RULES_KIT_PROJECTION_H

#include "rules/kit/subcall.h"

typedef struct sdg_projection {
  sdg_subcall_tensor_t left;   /* n x rows of W */
  sdg_subcall_tensor_t matrix; /* W, as a tensor of 1 x groups x rows x columns
                                */
  sdg_subcall_tensor_t right;  /* n x columns of W */
  cudnnMathType_t math;
} sdg_projection_t;

/* right = left W */
sdg_status_t sdg_projection_right(sdg_plan_t *plan,
                                  const sdg_projection_t *p) SDG_MUST_CHECK;
/* left = right W^T */
sdg_status_t sdg_projection_left(sdg_plan_t *plan,
                                 const sdg_projection_t *p) SDG_MUST_CHECK;
/* W = left^T right */
sdg_status_t sdg_projection_matrix(sdg_plan_t *plan,
                                   const sdg_projection_t *p) SDG_MUST_CHECK;

#endif
