/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of neighbourhood attention as sub-calls: of a rank that has
 * all the keys and values that its queries see. Inside rules/ only.
 *
 * Keys at one step from their queries are a box, and so are the queries that
 * have one there (rules/neighborhood/window.h). For each step in every
 * dimension, a scalar product is a product of two boxes, and its sum over a
 * head's channels; it is put into the step's slot. Softmax over slots makes
 * weights. Sums of weighted values, and the gradients, are products of boxes
 * that are added, step by step.
 *
 * Tensors of the arithmetic are packed, their dimensions nested in order, so
 * that N and heads are one dimension of them: G, channels of a head, grid; that
 * is at most five, which cuDNN's functions take. */
#ifndef SDG_RULES_NEIGHBORHOOD_ATTEND_H
#define SDG_RULES_NEIGHBORHOOD_ATTEND_H

#include "rules/kit/subcall.h"
#include "rules/neighborhood/plan.h"

/* `q` is not empty. In the coordinates of the operands, N C and the grid. */
typedef struct sdg_neighborhood_attend {
  sdg_plan_t *plan;
  const sdg_neighborhood_t *shape;
  sdg_type_t type;         /* of the arithmetic: float or double */
  sdg_subcall_tensor_t q;  /* this rank's, in memory of the program */
  sdg_subcall_tensor_t o;  /* backward: the gradient of o, an input */
  sdg_subcall_tensor_t dq; /* backward */
  int k, v;                /* packed scratch of the arithmetic's type: what
                              sdg_neighborhood_need says */
  int dk, dv;              /* backward: such scratch, to which is added */
  int64_t block_bytes;     /* about so much more scratch */
} sdg_neighborhood_attend_t;

sdg_status_t sdg_neighborhood_attend_forward(const sdg_neighborhood_attend_t *a)
    SDG_MUST_CHECK;
sdg_status_t sdg_neighborhood_attend_backward(
    const sdg_neighborhood_attend_t *a) SDG_MUST_CHECK;

#endif
