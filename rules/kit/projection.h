/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows of numbers with a matrix, as sub-calls: convolutions with
 * windows of one element. Inside rules/ only.
 *
 * Rows are tensors of n x columns x 1 x 1, packed; the matrix W is packed, row
 * by row: row k, column c at k columns + c. All of one type, float or double.
 *
 * Of several groups each has a matrix, W_g, one after the other, and its own
 * elements of every row, side by side: left is n x (groups x rows of W_g). */
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
