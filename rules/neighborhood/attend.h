/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of neighbourhood attention as sub-calls, on a rank that has
 * all keys and values that its queries see. Inside rules/ only.
 *
 * A step is the distance from a query to a key. The keys at one step from their
 * queries are a box, and so are the queries that have a key at that step
 * (rules/neighborhood/window.h). For each step in every dimension, the
 * sub-calls multiply a box of queries and a box of keys, sum over a head's
 * channels, and store the sums in the step's slot. A softmax over slots yields
 * the weights. Sums of weighted values, and the gradients, are products of
 * boxes that are added step by step.
 *
 * The arithmetic's tensors are packed and their dimensions are nested in order,
 * so N and heads form one dimension, G. The dimensions are G, channels of a
 * head, grid: at most five, which cuDNN's functions accept. */
#ifndef SDG_RULES_NEIGHBORHOOD_ATTEND_H
#define SDG_RULES_NEIGHBORHOOD_ATTEND_H

#include "rules/kit/subcall.h"
#include "rules/neighborhood/plan.h"

/* `q` is not empty. Boxes are in the coordinates of the operands: N, C and the
 * grid. */
typedef struct sdg_neighborhood_attend {
  sdg_plan_t *plan;
  const sdg_neighborhood_t *shape;
  sdg_type_t type;         /* of the arithmetic: float or double */
  sdg_subcall_tensor_t q;  /* this rank's queries, in the program's memory */
  sdg_subcall_tensor_t o;  /* backward: the gradient of o, an input */
  sdg_subcall_tensor_t dq; /* backward */
  int k, v;                /* packed scratch in the arithmetic's type; covers
                            * sdg_neighborhood_need() */
  int dk, dv;              /* backward: the same kind of scratch; gradients are
                            * added to it */
  int64_t block_bytes;     /* further scratch, in bytes, approximately */
} sdg_neighborhood_attend_t;

/* Add the sub-calls to a->plan. _forward writes o. _backward writes dq, and
 * adds to dk and dv. */
sdg_status_t sdg_neighborhood_attend_forward(const sdg_neighborhood_attend_t *a)
    SDG_MUST_CHECK;
sdg_status_t sdg_neighborhood_attend_backward(
    const sdg_neighborhood_attend_t *a) SDG_MUST_CHECK;

#endif
