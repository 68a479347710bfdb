/* SPDX-License-Identifier: Apache-2.0 */
/* The second way to compute a convolution's data gradient, by scatter-add: each
 * rank computes, from the rows of dy that it owns, all rows of dx that they
 * touch. It sends rows that other ranks own to them, and these add them
 * (rules/kit/scatter_add.h). The messages have the channels of x; the messages
 * of the first way, a halo of dy, have the channels of y. Inside rules/ only.
 *
 * Calls in half and bfloat16 always use the halo: their partial sums would be
 * rounded or overflow, where a single device continues in float. */
#ifndef SDG_RULES_CONV_ADJOINT_H
#define SDG_RULES_CONV_ADJOINT_H

#include "rules/conv/gradient.h"

/* Sides of a rank's own rows of dx: one below and one above them in each
 * dimension. */
enum { SDG_CONV_ADJOINT_SIDES = 2 * SDG_DIMS_MAX };

/* Whether the call uses scatter-add: because that was asked for, or because
 * fewer elements travel. Every rank gets the same answer. *out_why: a string
 * constant. */
bool sdg_conv_adjoint_chosen(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_conv_data_t *dgrad,
                             const char **out_why);

/* What `rank` of the job computes on one side: the rows of dx that its rows of
 * dy touch and that it does not own, channels included. All sides of a rank are
 * disjoint. In a periodic dimension they may lie outside the domain, as images
 * of rows inside. Empty if no row is touched on that side.
 * k=3, s=1, p=1, 10 rows, dy [5,10), dx [5,10): dy touches [4,10), so the side
 * below is [4,5) and the side above is empty. */
sdg_box_t sdg_conv_adjoint_side(const sdg_conv_data_t *dgrad,
                                const sdg_tagging_t *tagging, int rank,
                                int side);
/* The rows of dx owned by this rank that only its own rows of dy touch. */
sdg_box_t sdg_conv_adjoint_inner(const sdg_conv_data_t *dgrad);

/* Rows that one sub-call computes: the inner ones, or single rows through only
 * those taps of the filter through which own outputs see them. No row of zeros
 * replaces a row of dy of another rank, because an infinite weight times zero
 * would be NaN. */
typedef struct sdg_conv_adjoint_part {
  sdg_window_piece_t piece; /* keep: the rows; x contains them */
  sdg_range_t taps[SDG_DIMS_MAX];
  bool all; /* the whole filter */
} sdg_conv_adjoint_part_t;
/* The largest number of parts of a rank; calls with more use a halo of dy. */
enum { SDG_CONV_ADJOINT_PARTS = 32 };
/* All rows that this rank's dy touches, as disjoint parts, inner rows (if any)
 * first. `out` may be NULL. Returns the number of parts. */
int sdg_conv_adjoint_parts(const sdg_conv_data_t *dgrad,
                           sdg_conv_adjoint_part_t *out);
/* Computes all own rows in place from all own rows of dy; `keep`, the inner
 * rows, are right. False if no padding yields exactly these rows. */
bool sdg_conv_adjoint_in_place(const sdg_conv_data_t *dgrad,
                               sdg_window_piece_t *out);

/* The plan of a call for which sdg_conv_adjoint_chosen() is true. In the whole
 * view the plan has no share yet. */
sdg_status_t sdg_conv_adjoint_plan(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   const sdg_conv_data_t *dgrad,
                                   const char *why,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
