/* SPDX-License-Identifier: Apache-2.0 */
/* The spatial-transformer sampler: its calls and plans. Inside rules/ only.
 *
 *   y[n,c,i,j] = x[n,c] between pixels, at the coordinates grid[n,i,j]
 *
 * The coordinates run from -1 to 1 over all of x, also for a rank that has a
 * piece of y and of the grid. The values of a grid are in device memory, so
 * that no rank knows which rows of x it needs: it fetches all rows of its
 * images and channels. Gradients of these go back to the owners, which add
 * them. */
#ifndef SDG_RULES_SAMPLER_PLAN_H
#define SDG_RULES_SAMPLER_PLAN_H

#include <stdbool.h>

#include "rules/place/op.h"

/* The tensors of a call; forward has the first three. */
typedef enum sdg_sampler_tensor {
  SDG_SAMPLER_X,
  SDG_SAMPLER_Y, /* backward: dy. The grid places its elements. */
  SDG_SAMPLER_GRID,
  SDG_SAMPLER_DX,
  SDG_SAMPLER_DGRID,
  SDG_SAMPLER_TENSORS,
} sdg_sampler_tensor_t;
bool sdg_sampler_is_backward(const sdg_call_t *call);
/* The index of a tensor's operand, -1 if the call has none. */
int sdg_sampler_operand(const sdg_call_t *call, sdg_sampler_tensor_t tensor);
const sdg_placement_t *sdg_sampler_at(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_sampler_tensor_t tensor);

/* What y or dy in `box` needs of x: its images and channels, all rows and
 * columns. Empty for an empty box. */
sdg_box_t sdg_sampler_need(const sdg_placement_t *x, const sdg_box_t *box);

/* _unfit: the index of an operand whose global extents do not match those of x;
 * -1 if all match. _unfit_fail: reports such an operand, SDG_E_OPERANDS_DIFFER.
 */
int sdg_sampler_unfit(const sdg_call_t *call, const sdg_tagging_t *tagging);
sdg_status_t sdg_sampler_unfit_fail(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    int index) SDG_MUST_CHECK;

/* Whole view: false if the vendor's library refuses the program's call for its
 * descriptors or its scalars. */
bool sdg_sampler_is_legal(const sdg_call_t *call);
/* Shard view: fails if the vendor's library would refuse the call of some rank
 * for its descriptors or scalars. The same on every rank: SDG_E_ARGUMENT,
 * SDG_E_NO_RULE. */
sdg_status_t sdg_sampler_check(const sdg_call_t *call) SDG_MUST_CHECK;

/* SDG_E_NO_RULE if a dimension is periodic. */
sdg_status_t sdg_sampler_edges(const sdg_call_t *call,
                               const sdg_tagging_t *tagging) SDG_MUST_CHECK;

/* Adds this rank's steps to an empty plan. In the whole view it has a share. */
sdg_status_t sdg_sampler_fill(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t *plan) SDG_MUST_CHECK;

/* Adds a call of the vendor's sampler on tensors of a plan, indexed by
 * sdg_sampler_tensor_t. `scaled` has one bit for each gradient: if it is set,
 * the call applies the program's alpha and beta, otherwise it overwrites the
 * gradient, and leaves an infinite alpha to sdg_sampler_finish_add. */
struct sdg_subcall_tensor;
sdg_status_t sdg_sampler_call_add(sdg_plan_t *plan, const sdg_call_t *call,
                                  const struct sdg_subcall_tensor *tensor,
                                  unsigned scaled) SDG_MUST_CHECK;
/* to = from + beta to, with the program's beta of that gradient. */
sdg_status_t
sdg_sampler_finish_add(sdg_plan_t *plan, sdg_sampler_tensor_t gradient,
                       const struct sdg_subcall_tensor *from,
                       const struct sdg_subcall_tensor *to) SDG_MUST_CHECK;

/* Functions of sdg_op_t. _sizes: the extents that the program has set the
 * spatial transformer to. */
int sdg_sampler_sizes(const sdg_call_t *call, int64_t *out);
sdg_status_t sdg_sampler_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) SDG_MUST_CHECK;
sdg_op_plan_t sdg_sampler_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_sampler_share SDG_MUST_CHECK;

#endif
