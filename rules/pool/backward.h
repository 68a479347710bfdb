/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of a gradient of pooling: which rows of dx come of which
 * windows, and what a rank must see to make them. In the terms of
 * rules/pool/rule.h x stands for dx, too, and y for dy. Inside rules/ only. */
#ifndef SDG_RULES_POOL_BACKWARD_H
#define SDG_RULES_POOL_BACKWARD_H

#include "rules/pool/rule.h"

/* One image of the domain of x (sdg_window_images): what windows see there of
 * a periodic dimension is rows of x, too. */
typedef struct sdg_pool_image {
  int64_t at[SDG_DIMS_MAX]; /* in domains */
  sdg_transfer_t transfer;  /* of y and dy: the windows that touch own rows */
} sdg_pool_image_t;

typedef struct sdg_pool_backward {
  sdg_pool_t pool;
  bool reads; /* x and y: a maximum is where they are equal */
  bool communicates;
  sdg_transfer_t transfer; /* of x: all that those windows see */
  int images;
  sdg_pool_image_t *image; /* the first is the domain itself */
} sdg_pool_backward_t;

/* Pure in what the ranks agreed on, so it fails on every rank alike: the errors
 * of sdg_pool_init, and SDG_E_OPERANDS_DIFFER. */
sdg_status_t sdg_pool_backward_init(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_pool_backward_t *out) SDG_MUST_CHECK;
/* In the whole view: nothing to send. *out_can as of sdg_window_op_init_whole.
 */
sdg_status_t sdg_pool_backward_init_whole(const sdg_call_t *call,
                                          const sdg_tagging_t *tagging,
                                          sdg_pool_backward_t *out,
                                          bool *out_can) SDG_MUST_CHECK;
/* The part of sdg_pool_backward_init that knows no vendor: images and transfers
 * of a back whose pool's operands and op are set, and `reads`. */
sdg_status_t
sdg_pool_backward_fill(sdg_pool_backward_t *back,
                       const sdg_tagging_t *tagging) SDG_MUST_CHECK;
void sdg_pool_backward_fini(sdg_pool_backward_t *back);

/* What `rank` of the job needs of y, as `image`, and all images together, which
 * may go around its ends (src/geometry/ring.h), and of x, around the domain
 * where it is periodic, to make its rows of dx. */
sdg_box_t sdg_pool_backward_need_as(const sdg_pool_backward_t *back,
                                    const sdg_tagging_t *tagging,
                                    const int64_t *image, int rank);
sdg_box_t sdg_pool_backward_need_y(const sdg_pool_backward_t *back,
                                   const sdg_tagging_t *tagging, int rank);
sdg_box_t sdg_pool_backward_need_x(const sdg_pool_backward_t *back,
                                   const sdg_tagging_t *tagging, int rank);

/* What the real function makes in place; `keep` are the owned rows of dx that
 * all windows of the whole op have touched alike, empty if there are none.
 * Shard view: with its own padding. */
sdg_window_piece_t sdg_pool_backward_view(const sdg_pool_backward_t *back);
/* The rows of dx that are made apart, as disjoint boxes: with extend all of
 * them, otherwise those that the view does not make right. `out` has room for
 * 2 * SDG_DIMS_MAX; returns their number. */
int sdg_pool_backward_strips(const sdg_pool_backward_t *back, bool extend,
                             sdg_box_t *out);
/* The sub-call that makes the rows `want` of dx, or adds image `index` to them:
 * x and dx cover out->x, which contains `want`, in the domain's own
 * coordinates; y and dy cover out->y. What lies of out->y outside the domain
 * must have a dy of zero; rows that no need contains may have any values. False
 * if that image adds nothing; never false of the first. */
bool sdg_pool_backward_piece(const sdg_pool_backward_t *back,
                             const sdg_box_t *want, int index,
                             sdg_window_piece_t *out);

/* Whether what is in dx counts: the call's beta is not 0. */
bool sdg_pool_backward_reads_old(const sdg_call_t *call);
/* The plan of a gradient whose windows are not the whole, in either view. */
sdg_status_t sdg_pool_backward_make(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    const sdg_pool_backward_t *back,
                                    sdg_plan_t **out_plan) SDG_MUST_CHECK;

sdg_status_t sdg_pool_backward_plan(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_pool_backward_share(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
