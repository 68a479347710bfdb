/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a convolution's filter and bias on split tensors. Inside rules/
 * only.
 *
 * A rank sums over the rows of dy that it owns, from an x that holds all that
 * their windows see. In each dimension the real function runs in place either
 * on all of the rank's rows, if they are in phase (sdg_window_view), with the
 * op's own padding, which is wrong at a seam; or without padding on the rows
 * whose windows lie in the rank's own x. What it leaves out is added by strips:
 * rows of dy that it did not see, with their x; and rows whose windows leave
 * the view, with an x that is zero inside it. */
#ifndef SDG_RULES_CONVWGRAD_H
#define SDG_RULES_CONVWGRAD_H

#include "rules/convgrad.h"

enum { SDG_WGRAD_PIECES_MAX = 1 + 4 * SDG_DIMS_MAX };

/* What the real function computes in place. */
typedef struct sdg_wgrad_view {
  sdg_window_piece_t piece;
  sdg_box_t right; /* rows of piece.y whose windows do not leave piece.x */
} sdg_wgrad_view_t;

/* A rank's rows of dy, channels included. */
sdg_box_t sdg_wgrad_owned(const sdg_window_op_t *op);
/* `x`: the rows of x, in every dimension, that the rank's memory has right;
 * with wrap they are those it owns. False if no row is right. */
bool sdg_wgrad_view(const sdg_window_op_t *op, const sdg_box_t *x,
                    sdg_wgrad_view_t *out);
/* sdg_conv_view_settle of what it would compute in place. */
void sdg_wgrad_settle(const sdg_call_t *call, sdg_conv_t *conv);
/* The sub-call for these rows of dy: on an x that covers out->x, not cut: rows
 * outside the domain are zeros, or wrapped. */
sdg_window_piece_t sdg_wgrad_strip(const sdg_window_op_t *op,
                                   const sdg_box_t *y);
/* All strips, which have nothing in common: with view NULL one, all owned rows;
 * otherwise first those of which the view computes nothing, *out_full many,
 * then those whose x is zero inside the view's. `out` has room for
 * SDG_WGRAD_PIECES_MAX; returns their number. */
int sdg_wgrad_strips(const sdg_window_op_t *op, const sdg_wgrad_view_t *view,
                     int *out_full, sdg_window_piece_t *out);

sdg_status_t sdg_wgrad_plan(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_wgrad_share(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_wgrad_answer(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              int *out_vendor) SDG_MUST_CHECK;

/* The bias: no windows. */
sdg_status_t sdg_bgrad_plan(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_bgrad_share(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
