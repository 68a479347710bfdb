/* SPDX-License-Identifier: Apache-2.0 */
/* Computes strips of equal extents by one sub-call. They lie in scratch one
 * behind the other, as images of one tensor. Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_STACK_H
#define SDG_RULES_WINDOW_STACK_H

#include "rules/window/op.h"
#include "src/plan/plan.h"

/* Where a sub-call finds its tensors. */
typedef struct sdg_window_slabs {
  int x, y, z;  /* slabs of the plan; z -1: no z */
  bool program; /* the program's own tensors, unchanged */
} sdg_window_slabs_t;

/* Whether boxes have equal extents. */
bool sdg_window_stack_alike(const sdg_box_t *a, const sdg_box_t *b);
/* A box of `count` times as many images. */
sdg_box_t sdg_window_stack_box(const sdg_box_t *box, int count);
/* Whether, in the order of the strides `like`, a second such box would lie
 * behind the first one. */
bool sdg_window_stack_fits(const sdg_box_t *box, const int64_t *like);

/* Strips with equal extents and paddings form a stack. out_lead[i] is the first
 * strip of the stack of strip i. `like`: strides of the program's tensors,
 * first x, then tensors that are cut like y. Strips are packed in the order of
 * these strides. If images are not outermost in one of them, every strip is a
 * stack of its own. */
void sdg_window_stacks_find(const sdg_window_piece_t *strip, int strips,
                            const int64_t *const *like, int likes,
                            int *out_lead);
/* The number of strips in the stack that begins with strip `first`; 0 if no
 * stack begins there. `lead`: from sdg_window_stacks_find. */
int sdg_window_stack_size(const int *lead, int strips, int first);
/* The piece that computes a stack of `count` strips like `strip`. Its `keep`
 * is that of `strip`. */
sdg_window_piece_t sdg_window_stack_piece(const sdg_window_piece_t *strip,
                                          int count);

/* Adds scratch for `size` strips with the extents of `strip`, packed like the
 * slabs `like`: each slab of *io_all covers them as images from the first
 * strip's first one on. Where `like` is -1, *io_all stays as it is. */
sdg_status_t sdg_window_stack_open(sdg_plan_t *plan,
                                   const sdg_window_piece_t *strip, int size,
                                   const sdg_window_slabs_t *like,
                                   sdg_window_slabs_t *io_all) SDG_MUST_CHECK;
/* Adds the slabs of strip number `at` of the stack; they are the stack's own if
 * it has one strip. `like` is that of the stack. */
sdg_status_t
sdg_window_stack_strip(sdg_plan_t *plan, const sdg_window_slabs_t *all, int at,
                       const sdg_window_piece_t *strip,
                       const sdg_window_slabs_t *like,
                       sdg_window_slabs_t *io_slabs) SDG_MUST_CHECK;

#endif
