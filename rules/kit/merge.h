/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a reduced dimension have to bring together. Inside rules/
 * only.
 *
 * A field is a tensor with one element for each set of elements that are
 * reduced: its extent is 1 in the reduced dimensions. */
#ifndef SDG_RULES_KIT_MERGE_H
#define SDG_RULES_KIT_MERGE_H

#include "rules/kit/subcall.h"
#include "rules/place/op.h"

/* The ranks that hold the elements of one set; they have the same field. */
typedef struct sdg_merge {
  sdg_axes_t axes;         /* 0: one rank has them all */
  int ranks, me;           /* along these axes, in the communicator's order */
  int rank[SDG_RANKS_MAX]; /* of the job */
} sdg_merge_t;

/* `reduced` says it of each dimension of the placement. */
void sdg_merge_init(const sdg_tagging_t *tagging,
                    const sdg_placement_t *placement, const bool *reduced,
                    sdg_merge_t *out);

/* The field of the elements in `box`. */
sdg_box_t sdg_merge_field(const sdg_box_t *box, const bool *reduced);

/* Scratch for a field, nested in memory as slab `like`. */
sdg_status_t sdg_merge_scratch(sdg_plan_t *plan, const sdg_box_t *field,
                               int like, sdg_type_t type,
                               sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Scratch for `count` fields, one packed field after the other along
 * dimension `dim`, which is reduced. */
sdg_status_t sdg_merge_fields(sdg_plan_t *plan, const sdg_box_t *field, int dim,
                              int count, int like, sdg_type_t type,
                              sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* `count` of these fields, from `first` on. */
sdg_subcall_tensor_t sdg_merge_slot(const sdg_subcall_tensor_t *fields, int dim,
                                    int first, int count);

/* The type in which results of ranks are brought together, double or float; -1
 * for a type that is not reduced. */
sdg_type_t sdg_merge_type(sdg_type_t type);
int sdg_merge_bytes(sdg_type_t type);

/* An operand as a slab: in the shard view it is this rank's box of it, in the
 * whole view all of it. */
sdg_status_t sdg_merge_operand(sdg_plan_t *plan, const sdg_call_t *call,
                               int index, const sdg_box_t *own,
                               int *out_slab) SDG_MUST_CHECK;

/* An empty plan with sub-calls, and why it is the strategy; whole view
 * (`output` >= 0): with a share that has this one output. */
sdg_status_t sdg_merge_open(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_merge_t *merge, const char *strategy,
                            const char *why, int output,
                            const sdg_placement_t *placement,
                            sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
