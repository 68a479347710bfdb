/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks exchange for a reduction over a dimension that is split.
 * Inside rules/ only.
 *
 * A field is a tensor with one element for each set of elements that are
 * reduced: its extent is 1 in the reduced dimensions. */
#ifndef SDG_RULES_KIT_MERGE_H
#define SDG_RULES_KIT_MERGE_H

#include "rules/kit/subcall.h"
#include "rules/place/op.h"

/* The ranks that hold the elements of one reduced set. All of them have the
 * same field. */
typedef struct sdg_merge {
  sdg_axes_t axes;         /* 0: one rank has all */
  int ranks, me;           /* along these axes, in the communicator's order */
  int rank[SDG_RANKS_MAX]; /* of the job */
} sdg_merge_t;

/* reduced[d] is true if dimension d of the placement is reduced. */
void sdg_merge_init(const sdg_tagging_t *tagging,
                    const sdg_placement_t *placement, const bool *reduced,
                    sdg_merge_t *out);

/* The field of the elements in `box`. */
sdg_box_t sdg_merge_field(const sdg_box_t *box, const bool *reduced);

/* The vendor reduces no bfloat16: replaces such a tensor by a copy in float. */
sdg_status_t sdg_merge_reducible(sdg_plan_t *plan,
                                 sdg_subcall_tensor_t *io) SDG_MUST_CHECK;

/* Adds scratch for a field, with its dimensions in the same order in memory as
 * those of slab `like`. */
sdg_status_t sdg_merge_scratch(sdg_plan_t *plan, const sdg_box_t *field,
                               int like, sdg_type_t type,
                               sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Adds scratch for `count` packed fields, one after the other along dimension
 * `dim`, which must be a reduced one. */
sdg_status_t sdg_merge_fields(sdg_plan_t *plan, const sdg_box_t *field, int dim,
                              int count, int like, sdg_type_t type,
                              sdg_subcall_tensor_t *out) SDG_MUST_CHECK;
/* Selects `count` of these fields, starting with field `first`. */
sdg_subcall_tensor_t sdg_merge_slot(const sdg_subcall_tensor_t *fields, int dim,
                                    int first, int count);

/* The type that the ranks use to combine their results, double or float; -1 for
 * a type that is not reduced. */
sdg_type_t sdg_merge_type(sdg_type_t type);
int sdg_merge_bytes(sdg_type_t type);

/* Adds an operand as a slab: in the shard view this rank's box of it, in the
 * whole view the whole tensor. */
sdg_status_t sdg_merge_operand(sdg_plan_t *plan, const sdg_call_t *call,
                               int index, const sdg_box_t *own,
                               int *out_slab) SDG_MUST_CHECK;

/* Creates an empty plan that takes sub-calls, with the strategy's name and the
 * reason for it. In the whole view (`output` >= 0) the plan has a share whose
 * only output is operand `output`. */
sdg_status_t sdg_merge_open(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_merge_t *merge, const char *strategy,
                            const char *why, int output,
                            const sdg_placement_t *placement,
                            sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
