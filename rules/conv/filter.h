/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a convolution's filter and bias on split tensors. Inside rules/
 * only.
 *
 * A rank sums over the rows of dy that it owns, and needs all rows of x that
 * their windows see. The real function runs in place. In split dimensions it
 * runs without padding on the rows whose windows lie in the rank's own x; in
 * other dimensions it runs with the op's own padding. Strips add the rest: rows
 * of dy that the function did not see, with their x. If windows extend beyond
 * the domain, a strip consists of rows that see the domain through the same
 * taps, and computes the gradient of these taps only. No row of zeros replaces
 * rows beyond the domain, because infinity times zero is not zero. */
#ifndef SDG_RULES_CONV_FILTER_H
#define SDG_RULES_CONV_FILTER_H

#include "rules/conv/gradient.h"

/* What the real function computes in place. `x`: the rows of x, in every
 * dimension, that are valid in the rank's memory; with wrap these are the rows
 * that it owns. False if it can compute nothing in place. */
bool sdg_conv_filter_view(const sdg_window_op_t *op, const sdg_box_t *x,
                          sdg_window_piece_t *out);
/* Sets the op's price (rules/window/cost.h). SDG_E_NO_MEMORY. */
sdg_status_t sdg_conv_filter_weigh(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_conv_t *conv) SDG_MUST_CHECK;
/* Calls sdg_conv_view_settle with what would be computed in place. */
void sdg_conv_filter_settle(const sdg_call_t *call, sdg_conv_t *conv);
/* The way to try first, and what it would compute in place. */
sdg_status_t sdg_conv_filter_first(const sdg_call_t *call,
                                   const sdg_conv_t *conv,
                                   sdg_strategy_t strategy,
                                   sdg_window_piece_t *out_view,
                                   sdg_conv_way_t *out_way) SDG_MUST_CHECK;
/* As sdg_conv_data_next. */
sdg_status_t sdg_conv_filter_next(const sdg_call_t *call,
                                  const sdg_conv_t *conv,
                                  sdg_strategy_t strategy,
                                  sdg_conv_way_t *io_way) SDG_MUST_CHECK;
/* A sub-call apart from the view. */
typedef struct sdg_conv_filter_strip {
  sdg_window_piece_t piece;
  sdg_range_t taps[SDG_DIMS_MAX]; /* the taps whose gradient it computes */
  bool all;                       /* taps are the whole filter */
  /* The first strip of its stack (rules/window/stack.h), and, of a first one,
   * the number of strips in it; otherwise 0. Strips of some taps are stacks of
   * their own. */
  int lead, size;
} sdg_conv_filter_strip_t;
/* All strips, which are disjoint: what the view leaves out; everything that the
 * rank computes if `view` is NULL. Strips of all taps come first. `like`:
 * strides of the program's x and y. The caller frees *out_strips.
 * SDG_E_NO_MEMORY. */
sdg_status_t sdg_conv_filter_strips(const sdg_window_op_t *op,
                                    const sdg_window_piece_t *view,
                                    const int64_t *const like[2],
                                    sdg_conv_filter_strip_t **out_strips,
                                    int *out_count) SDG_MUST_CHECK;

sdg_op_plan_t sdg_conv_filter_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_conv_filter_share SDG_MUST_CHECK;
sdg_op_answer_t sdg_conv_filter_answer SDG_MUST_CHECK;

/* The gradient of the bias, which has no windows. */
sdg_op_plan_t sdg_conv_bias_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_conv_bias_share SDG_MUST_CHECK;

#endif
