/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a convolution on split tensors: the sub-calls of their plans,
 * and the geometry of the data gradient. As in rules/conv/rule.h, x, w and y
 * stand for themselves or for their gradients. Inside rules/ only. */
#ifndef SDG_RULES_CONV_GRADIENT_H
#define SDG_RULES_CONV_GRADIENT_H

#include "rules/conv/rule.h"
#include "rules/kit/subcall.h"

/* ---- sub-calls ----------------------------------------------------------- */

/* The program's beta, for sdg_gradient_sum_open(). */
const void *sdg_conv_gradient_beta(const sdg_call_t *call);

/* How a sub-call treats the values that it finds in its output. */
typedef enum sdg_conv_gradient_old {
  SDG_CONV_GRADIENT_BETA,  /* scaled by the program's beta */
  SDG_CONV_GRADIENT_ADD,   /* added to */
  SDG_CONV_GRADIENT_CLEAR, /* overwritten */
} sdg_conv_gradient_old_t;

/* The plan's slabs of a sub-call's tensors. w is the slab of the filter's
 * gradient, or of the filter if the sub-call reads some of its taps. */
typedef struct sdg_conv_gradient_slabs {
  int x, y, w;
  bool unscaled; /* the program's alpha is applied to a sum of results */
} sdg_conv_gradient_slabs_t;

/* Adds the sub-call that computes this piece to a plan opened by
 * sdg_subcalls_open(). *out_refusal: the vendor's status if its library rejects
 * the piece; that failure is not reported. */
sdg_status_t sdg_conv_gradient_add(const sdg_conv_t *conv,
                                   const sdg_call_t *call, sdg_plan_t *plan,
                                   const sdg_window_piece_t *piece,
                                   const sdg_conv_gradient_slabs_t *slabs,
                                   sdg_conv_gradient_old_t old,
                                   int *out_refusal) SDG_MUST_CHECK;

/* The same for a part of the filter's gradient: only the taps `taps`[d] of each
 * dimension d. The result is added to the output. */
sdg_status_t sdg_conv_gradient_add_taps(
    const sdg_conv_t *conv, const sdg_call_t *call, sdg_plan_t *plan,
    const sdg_window_piece_t *piece, const sdg_range_t *taps,
    const sdg_conv_gradient_slabs_t *slabs, int *out_refusal) SDG_MUST_CHECK;
/* The data gradient through these taps of the filter only; slabs->w holds the
 * whole filter. Overwrites its output. */
sdg_status_t sdg_conv_gradient_add_through(
    const sdg_conv_t *conv, const sdg_call_t *call, sdg_plan_t *plan,
    const sdg_window_piece_t *piece, const sdg_range_t *taps,
    const sdg_conv_gradient_slabs_t *slabs, int *out_refusal) SDG_MUST_CHECK;
/* Creates the descriptor of these taps of the call's filter. The caller
 * destroys it. */
sdg_status_t
sdg_conv_gradient_filter(const sdg_call_t *call, const sdg_conv_t *conv,
                         const sdg_range_t *taps,
                         cudnnFilterDescriptor_t *out) SDG_MUST_CHECK;

/* How a rank computes a gradient. Each rank decides this for itself: messages,
 * and what it reads and writes, are the same. */
typedef enum sdg_conv_way {
  SDG_CONV_IN_PLACE, /* on the program's tensors, and in strips for the rest */
  SDG_CONV_PACKED, /* the same, from a packed copy of the operand whose strides
                      engines reject: dy for the data, x for the filter */
  SDG_CONV_EXTENDED, /* all rows at once, from an assembled operand */
  SDG_CONV_APART, /* the same, and the program's own dx, or dy of the filter's
                     gradient, is replaced by a packed copy */
  SDG_CONV_WAYS,  /* no way is left */
} sdg_conv_way_t;

/* ---- the gradient of the data -------------------------------------------- */

/* One image of the domain of x (sdg_window_images). What outputs see in the
 * image is added to the rows of x. */
typedef struct sdg_conv_data_image {
  int64_t at[SDG_DIMS_MAX]; /* unit: extents of the domain */
  sdg_transfer_t transfer;  /* of dy, for this rank's rows */
} sdg_conv_data_image_t;

typedef struct sdg_conv_data {
  sdg_conv_t conv;
  bool communicates; /* some rank needs what it does not own */
  bool apart;        /* SDG_CONV_APART */
  int images;
  sdg_conv_data_image_t *image; /* the first is the domain itself */
} sdg_conv_data_t;

/* Depends only on what the ranks agreed on, so it fails on all ranks or on
 * none: the errors of sdg_conv_init, and SDG_E_OUTPUT_EXTENT if dy cannot have
 * its extents for a dx of this size. */
sdg_status_t sdg_conv_data_init(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_conv_data_t *out) SDG_MUST_CHECK;
/* The same in the whole view: the op's boxes are the full tensors, and the
 * tagging also places dx. *out_can is that of sdg_window_op_init_whole. */
sdg_status_t sdg_conv_data_init_whole(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_conv_data_t *out,
                                      bool *out_can) SDG_MUST_CHECK;
void sdg_conv_data_fini(sdg_conv_data_t *dgrad);

/* _owned: this rank's rows of dx. _need: what `rank` of the job needs of dy for
 * its own rows, all images together; the box may extend across dy's ends
 * (src/geometry/ring.h). Channels included. */
sdg_box_t sdg_conv_data_owned(const sdg_conv_data_t *dgrad);
sdg_box_t sdg_conv_data_need(const sdg_conv_data_t *dgrad,
                             const sdg_tagging_t *tagging, int rank);

/* Number of elements of dy that the tagging's ranks need from each other. */
int64_t sdg_conv_data_halo(const sdg_conv_data_t *dgrad,
                           const sdg_tagging_t *tagging);

/* Sets the op's price (rules/window/cost.h). SDG_E_NO_MEMORY. */
sdg_status_t sdg_conv_data_weigh(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_conv_data_t *dgrad) SDG_MUST_CHECK;
/* Calls sdg_conv_view_settle with what would be computed in place. */
void sdg_conv_data_settle(const sdg_call_t *call, sdg_conv_data_t *dgrad);
/* The way to try first. */
sdg_conv_way_t sdg_conv_data_first(const sdg_conv_data_t *dgrad,
                                   sdg_strategy_t strategy);
/* The way to try if the vendor's library rejects a piece of *io_way. PACKED is
 * left out if `auto` finds that this rank's device extends in less time.
 * SDG_E_NO_MEMORY. */
sdg_status_t sdg_conv_data_next(const sdg_call_t *call,
                                const sdg_conv_data_t *dgrad,
                                sdg_strategy_t strategy,
                                sdg_conv_way_t *io_way) SDG_MUST_CHECK;
/* Whether the program's own call, unchanged, gives the right result. */
bool sdg_conv_data_is_literal(const sdg_conv_data_t *dgrad);
/* What the real function computes in place. `keep` are the rows of dx that are
 * right and wanted; empty if no row is. Shard view: with the op's own
 * padding. */
sdg_window_piece_t sdg_conv_data_view(const sdg_conv_data_t *dgrad);
/* The rows of dx that are computed separately, as disjoint boxes: with extend
 * all rows, otherwise those that the view does not compute right. `out` has
 * room for 2 * SDG_DIMS_MAX; returns the number of boxes. */
int sdg_conv_data_strips(const sdg_conv_data_t *dgrad, bool extend,
                         sdg_box_t *out);
/* The sub-call that adds image `index` to the rows `want`, from a dy that
 * covers out->y to a dx that covers out->x, which contains all of `want` that
 * outputs see. out->y is inside the domain. False if the image adds nothing;
 * always true if no dimension is periodic. */
bool sdg_conv_data_piece(const sdg_conv_data_t *dgrad, const sdg_box_t *want,
                         int index, sdg_window_piece_t *out);
/* One of these sub-calls for all of the rank's rows, for the choice of an
 * algorithm. */
sdg_window_piece_t sdg_conv_data_sample(const sdg_conv_data_t *dgrad);
/* The box of dx where these sub-calls are added up. Normally the first of them
 * covers it and overwrites it. *out_sums: around an end the first image has not
 * all rows of `want`, as rows of zeros would turn infinite weights into NaN;
 * all images are added to the old values times beta. */
sdg_box_t sdg_conv_data_made(const sdg_conv_data_t *dgrad,
                             const sdg_box_t *want, bool *out_sums);
/* Whether rows `want`, made as box `made`, are computed in a copy. */
bool sdg_conv_data_is_apart(const sdg_conv_data_t *dgrad, const sdg_box_t *made,
                            const sdg_box_t *want);
/* Which strips one sub-call computes (sdg_window_stacks_find), and the piece of
 * each; x and y are the program's strides. False if strips are not single
 * sub-calls into memory apart: around the ends of periodic dimensions, or one
 * strip that is all rows. */
bool sdg_conv_data_stacks(const sdg_conv_data_t *dgrad, const sdg_box_t *want,
                          int strips, const int64_t *x, const int64_t *y,
                          sdg_window_piece_t *out_piece, int *out_lead);

sdg_op_plan_t sdg_conv_data_plan SDG_MUST_CHECK;
sdg_op_plan_t sdg_conv_data_share SDG_MUST_CHECK;
sdg_op_answer_t sdg_conv_data_answer SDG_MUST_CHECK;

#endif
