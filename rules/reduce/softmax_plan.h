/* SPDX-License-Identifier: Apache-2.0 */
/* A softmax plan while it is being made, shared by forward and backward. Inside
 * rules/ only. */
#ifndef SDG_RULES_REDUCE_SOFTMAX_PLAN_H
#define SDG_RULES_REDUCE_SOFTMAX_PLAN_H

#include "rules/kit/merge.h"
#include "rules/reduce/softmax_rule.h"

enum {
  SDG_SOFTMAX_ALONG = 1
}; /* both modes reduce C: the ranks' fields lie along it */

typedef struct sdg_softmax_maker {
  const sdg_call_t *call;
  sdg_softmax_t softmax;
  bool reduced[SDG_DIMS_MAX];
  sdg_merge_t merge;
  sdg_plan_t *plan;
  sdg_type_t type; /* of the arithmetic */
  bool adds;       /* beta is not 0 */
  sdg_box_t own, field;
  bool empty; /* this rank has no elements */
  sdg_subcall_tensor_t operand[3];
  bool in_place; /* `result` is the output */
  sdg_subcall_tensor_t result;
} sdg_softmax_maker_t;

/* Adds the steps of a call whose sums extend over several ranks. */
sdg_status_t sdg_softmax_forward(sdg_softmax_maker_t *m) SDG_MUST_CHECK;
sdg_status_t sdg_softmax_backward(sdg_softmax_maker_t *m) SDG_MUST_CHECK;

/* The program's arguments. */
sdg_softmax_t sdg_softmax_program(const sdg_subcall_run_t *run);

/* c = alpha a b + beta c with the program's alpha and beta. */
cudnnStatus_t sdg_softmax_product(const sdg_subcall_run_t *run);

/* Adds a tensor of one element, `value`, that broadcasts against every tensor
 * to bound its elements. */
sdg_status_t sdg_softmax_bound(sdg_softmax_maker_t *m, double value,
                               sdg_subcall_tensor_t *out) SDG_MUST_CHECK;

/* Scratch for a field. */
sdg_status_t sdg_softmax_field(sdg_softmax_maker_t *m,
                               sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* An input as the arithmetic reads it: the operand itself, or a copy in another
 * type, in `room` (NULL: in new scratch). */
sdg_status_t sdg_softmax_widen(sdg_softmax_maker_t *m, int index,
                               const sdg_subcall_tensor_t *room,
                               sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* to = alpha op(from) over this rank's elements. */
sdg_status_t sdg_softmax_reduce(sdg_softmax_maker_t *m,
                                cudnnReduceTensorOp_t op, double alpha,
                                const sdg_subcall_tensor_t *from,
                                const sdg_subcall_tensor_t *to) SDG_MUST_CHECK;

#endif
