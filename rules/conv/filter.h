/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a convolution's filter and bias on split tensors. Inside rules/
 * only.
 *
 * A rank sums over the rows of dy that it owns, from an x that holds all that
 * their windows see. In each dimension that is split the real function runs in
 * place on the rows whose windows lie in the rank's own x, without padding; in
 * the others with the op's own. What it leaves out is added by strips: rows of
 * dy that it did not see, with their x. Where windows leave the domain, a strip
 * is of rows that see it through the same taps, and makes the gradient of these
 * taps alone: no row of zeros stands for what is not there, as infinities times
 * zero would not be zero. */
#ifndef SDG_RULES_CONV_FILTER_H
#define SDG_RULES_CONV_FILTER_H

#include "rules/conv/gradient.h"

/* What the real function computes in place. `x`: the rows of x, in every
 * dimension, that the rank's memory has right; with wrap they are those it
 * owns. False if there is nothing. */
bool sdg_conv_filter_view(const sdg_window_op_t *op, const sdg_box_t *x,
                          sdg_window_piece_t *out);
/* sdg_conv_view_settle of what it would compute in place. */
void sdg_conv_filter_settle(const sdg_call_t *call, sdg_conv_t *conv);
/* Whether this rank assembles all of x: asked for, there is nothing in place,
 * or engines do not take it well. */
bool sdg_conv_filter_extends(const sdg_window_op_t *op, const sdg_box_t *x,
                             sdg_strategy_t strategy,
                             sdg_window_piece_t *out_view);
/* A sub-call apart from the view. */
typedef struct sdg_conv_filter_strip {
  sdg_window_piece_t piece;
  sdg_range_t taps[SDG_DIMS_MAX]; /* of the filter: what is made of it */
  bool all;                       /* they are all of it */
} sdg_conv_filter_strip_t;
/* All strips, which have nothing in common: what the view leaves out, with view
 * NULL everything that the rank computes. Those of all taps come first.
 * *out_strips is freed by the caller. SDG_E_NO_MEMORY. */
sdg_status_t sdg_conv_filter_strips(const sdg_window_op_t *op,
                                    const sdg_window_piece_t *view,
                                    sdg_conv_filter_strip_t **out_strips,
                                    int *out_count) SDG_MUST_CHECK;

sdg_status_t sdg_conv_filter_plan(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_filter_share(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_filter_answer(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    int *out_vendor) SDG_MUST_CHECK;

/* The bias: no windows. */
sdg_status_t sdg_conv_bias_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_bias_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
