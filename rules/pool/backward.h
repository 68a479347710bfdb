/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of a pooling gradient: which windows contribute to which rows of
 * dx, and what a rank needs to compute them. As in rules/pool/rule.h, x also
 * stands for dx, and y for dy. Inside rules/ only. */
#ifndef SDG_RULES_POOL_BACKWARD_H
#define SDG_RULES_POOL_BACKWARD_H

#include "rules/pool/rule.h"

/* One image of the domain of x (sdg_window_images). In a periodic dimension
 * windows also see rows of x as images. */
typedef struct sdg_pool_image {
  int64_t at[SDG_DIMS_MAX]; /* unit: extents of the domain */
  sdg_transfer_t transfer;  /* of y and dy: the windows that touch own rows */
} sdg_pool_image_t;

typedef struct sdg_pool_backward {
  sdg_pool_t pool;
  bool reads; /* reads x and y, to find where they are equal: the maxima */
  bool communicates;
  sdg_transfer_t transfer; /* of x: all rows that those windows see */
  int images;
  sdg_pool_image_t *image; /* the first is the domain itself */
} sdg_pool_backward_t;

/* Depends only on what the ranks agreed on, so it fails on all ranks or on
 * none: the errors of sdg_pool_init, and SDG_E_OPERANDS_DIFFER. */
sdg_status_t sdg_pool_backward_init(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_pool_backward_t *out) SDG_MUST_CHECK;
/* Whole view: fills `out` like sdg_pool_backward_init; the transfers are copies
 * on this rank. *out_can is that of sdg_window_op_init_whole. */
sdg_status_t sdg_pool_backward_init_whole(const sdg_call_t *call,
                                          const sdg_tagging_t *tagging,
                                          sdg_pool_backward_t *out,
                                          bool *out_can) SDG_MUST_CHECK;
/* The vendor-independent part of sdg_pool_backward_init: fills images and
 * transfers of a `back` whose pool's operands and op are set, and whose `reads`
 * is set. */
sdg_status_t
sdg_pool_backward_fill(sdg_pool_backward_t *back,
                       const sdg_tagging_t *tagging) SDG_MUST_CHECK;
/* Sets the op's price (rules/window/cost.h). SDG_E_NO_MEMORY. */
sdg_status_t sdg_pool_backward_weigh(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     sdg_pool_backward_t *back) SDG_MUST_CHECK;
void sdg_pool_backward_fini(sdg_pool_backward_t *back);

/* What `rank` of the job needs to compute its rows of dx. _as: of y, for
 * `image` only. _y: of y, for all images together; the box may extend across
 * y's ends (src/geometry/ring.h). _x: of x, also across the ends of periodic
 * dimensions. */
sdg_box_t sdg_pool_backward_need_as(const sdg_pool_backward_t *back,
                                    const sdg_tagging_t *tagging,
                                    const int64_t *image, int rank);
sdg_box_t sdg_pool_backward_need_y(const sdg_pool_backward_t *back,
                                   const sdg_tagging_t *tagging, int rank);
sdg_box_t sdg_pool_backward_need_x(const sdg_pool_backward_t *back,
                                   const sdg_tagging_t *tagging, int rank);

/* What the real function computes in place. `keep` are the owned rows of dx
 * that get all their contributions there; empty if no row does. Shard view:
 * with the op's own padding. */
sdg_window_piece_t sdg_pool_backward_view(const sdg_pool_backward_t *back);
/* The rows of dx that are computed separately, as disjoint boxes: with extend
 * all rows, otherwise those that the view does not compute right. `out` has
 * room for 2 * SDG_DIMS_MAX; returns the number of boxes. */
int sdg_pool_backward_strips(const sdg_pool_backward_t *back, bool extend,
                             sdg_box_t *out);
/* The sub-call that computes the rows `want` of dx, or adds image `index` to
 * them. x and dx cover out->x, which contains `want`, in the domain's
 * coordinates; y and dy cover out->y. Elements of out->y outside the domain
 * must have a dy of zero; rows outside every need may have any values. False if
 * that image adds nothing; always true for the first. */
bool sdg_pool_backward_piece(const sdg_pool_backward_t *back,
                             const sdg_box_t *want, int index,
                             sdg_window_piece_t *out);

/* Whether the call reads the old dx: its beta is not 0. */
bool sdg_pool_backward_reads_old(const sdg_call_t *call);
/* The plan of a gradient whose windows are not global, in either view. */
sdg_status_t sdg_pool_backward_make(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    const sdg_pool_backward_t *back,
                                    sdg_plan_t **out_plan) SDG_MUST_CHECK;

/* plan() and share() of sdg_op_t for cudnnPoolingBackward. */
sdg_op_plan_t sdg_pool_backward_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_pool_backward_share SDG_MUST_CHECK;

#endif
