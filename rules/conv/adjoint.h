/* SPDX-License-Identifier: Apache-2.0 */
/* The other way to make the gradient of a convolution's data: each rank makes,
 * of the rows of dy that it owns, all rows of dx that these touch; those that
 * others own go to them, and are added there (rules/kit/scatter_add.h). What
 * travels has the channels of x, where a halo of dy has those of y. Inside
 * rules/ only.
 *
 * Of half and bfloat16, partial sums would be rounded, or overflow, where one
 * device goes on in float: there it is always the halo. */
#ifndef SDG_RULES_CONV_ADJOINT_H
#define SDG_RULES_CONV_ADJOINT_H

#include "rules/conv/gradient.h"

/* Sides of a rank's own rows of dx: below and above them in each dimension. */
enum { SDG_CONV_ADJOINT_SIDES = 2 * SDG_DIMS_MAX };

/* Whether the call is carried out in this way: asked for, or fewer elements
 * travel. The same on every rank. *out_why: a string constant. */
bool sdg_conv_adjoint_chosen(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_conv_data_t *dgrad,
                             const char **out_why);

/* What `rank` of the job makes on one side: rows of dx that its rows of dy
 * touch, those of its own left out, channels included. All sides of a rank are
 * disjoint. In a periodic dimension they may lie outside the domain: images of
 * rows inside. Empty where there are none.
 * k=3, s=1, p=1, 10 rows, dy [5,10), dx [5,10): touched are [4,10), so that the
 * side below is [4,5), the one above empty. */
sdg_box_t sdg_conv_adjoint_side(const sdg_conv_data_t *dgrad,
                                const sdg_tagging_t *tagging, int rank,
                                int side);
/* This rank's own rows that its own rows of dy touch and no others do. */
sdg_box_t sdg_conv_adjoint_inner(const sdg_conv_data_t *dgrad);

/* Rows that are made by one sub-call: inner ones, or single rows through those
 * taps of the filter by which own outputs see them. So no row of zeros stands
 * for a row of dy that another rank has: an infinite weight times zero would be
 * NaN. */
typedef struct sdg_conv_adjoint_part {
  sdg_window_piece_t piece; /* keep: the rows; x contains them */
  sdg_range_t taps[SDG_DIMS_MAX];
  bool all; /* the whole filter */
} sdg_conv_adjoint_part_t;
/* A rank makes no more parts than that; with more, dy is brought. */
enum { SDG_CONV_ADJOINT_PARTS = 32 };
/* All that this rank's dy touches, disjoint, the inner rows first where there
 * are any; `out` may be NULL. Returns their number. */
int sdg_conv_adjoint_parts(const sdg_conv_data_t *dgrad,
                           sdg_conv_adjoint_part_t *out);
/* All own rows made in place, of all own rows of dy, of which `keep`, the inner
 * ones, come out right; false where no padding makes exactly these. */
bool sdg_conv_adjoint_in_place(const sdg_conv_data_t *dgrad,
                               sdg_window_piece_t *out);

/* The plan, of a call that was chosen for it. Whole view: without its share. */
sdg_status_t sdg_conv_adjoint_plan(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   const sdg_conv_data_t *dgrad,
                                   const char *why,
                                   sdg_plan_t **out_plan) SDG_MUST_CHECK;

#endif
