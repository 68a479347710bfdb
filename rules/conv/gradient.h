/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of a convolution on split tensors: the sub-calls that their plans
 * are made of, and the geometry of the gradient of the data. In the terms of
 * rules/conv/rule.h x, w and y stand for themselves or their gradients. Inside
 * rules/ only. */
#ifndef SDG_RULES_CONV_GRADIENT_H
#define SDG_RULES_CONV_GRADIENT_H

#include "rules/conv/rule.h"
#include "rules/kit/subcall.h"

/* ---- sub-calls ----------------------------------------------------------- */

/* What the entries have in common of their arguments; NULL and 0 where one has
 * none. */
typedef struct sdg_conv_gradient_arguments {
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x_desc, y_desc;
  cudnnFilterDescriptor_t w_desc;
  const void *w; /* where it is read */
  cudnnConvolutionDescriptor_t conv_desc;
  int algo; /* cudnnConvolutionBwdDataAlgo_t or ...FilterAlgo_t */
  void *workspace;
  size_t workspace_bytes;
  const void *alpha, *beta;
} sdg_conv_gradient_arguments_t;
sdg_conv_gradient_arguments_t
sdg_conv_gradient_arguments(const sdg_call_t *call);

/* What happens to the values that a sub-call finds in its output. */
typedef enum sdg_conv_gradient_old {
  SDG_CONV_GRADIENT_BETA,  /* scaled by the program's beta */
  SDG_CONV_GRADIENT_ADD,   /* added to */
  SDG_CONV_GRADIENT_CLEAR, /* overwritten */
} sdg_conv_gradient_old_t;

/* Where a sub-call finds its tensors: slabs of the plan; w is that of the
 * filter's gradient, or of the filter where taps of it are read. */
typedef struct sdg_conv_gradient_slabs {
  int x, y, w;
} sdg_conv_gradient_slabs_t;

/* Adds the sub-call that computes this piece to a plan of sdg_subcalls_open().
 * *out_refusal: the vendor's status if its library does not take the piece;
 * that failure is not reported. */
sdg_status_t sdg_conv_gradient_add(const sdg_conv_t *conv,
                                   const sdg_call_t *call, sdg_plan_t *plan,
                                   const sdg_window_piece_t *piece,
                                   const sdg_conv_gradient_slabs_t *slabs,
                                   sdg_conv_gradient_old_t old,
                                   int *out_refusal) SDG_MUST_CHECK;

/* The same for a part of the filter's gradient: of each dimension, these taps.
 * What it makes is added. */
sdg_status_t sdg_conv_gradient_add_taps(
    const sdg_conv_t *conv, const sdg_call_t *call, sdg_plan_t *plan,
    const sdg_window_piece_t *piece, const sdg_range_t *taps,
    const sdg_conv_gradient_slabs_t *slabs, int *out_refusal) SDG_MUST_CHECK;
/* The gradient of the data through these taps of the filter alone, of which
 * slabs->w is all. Overwrites. */
sdg_status_t sdg_conv_gradient_add_through(
    const sdg_conv_t *conv, const sdg_call_t *call, sdg_plan_t *plan,
    const sdg_window_piece_t *piece, const sdg_range_t *taps,
    const sdg_conv_gradient_slabs_t *slabs, int *out_refusal) SDG_MUST_CHECK;
/* The descriptor of these taps of the call's filter, which the caller destroys.
 */
sdg_status_t
sdg_conv_gradient_filter(const sdg_call_t *call, const sdg_conv_t *conv,
                         const sdg_range_t *taps,
                         cudnnFilterDescriptor_t *out) SDG_MUST_CHECK;

/* `wanted` where the vendor's library takes it for this piece, otherwise its
 * own choice, and the workspace. The vendor's status if it takes none. */
cudnnStatus_t
sdg_conv_gradient_choose(const sdg_call_t *call,
                         const sdg_conv_descriptors_t *descriptors,
                         cudnnFilterDescriptor_t w, int wanted, int *out_algo,
                         size_t *out_workspace_bytes);

/* Reports that no algorithm takes a piece: the vendor's status. */
sdg_status_t sdg_conv_gradient_refused(const sdg_call_t *call, int refusal);
/* Whether the library would refuse the program's own call, with its
 * descriptors, algorithm and workspace. */
bool sdg_conv_gradient_refused_own(const sdg_call_t *call);

/* True if a scalar of the call is absent or zero. */
bool sdg_conv_gradient_is_zero(const sdg_call_t *call, const void *scalar);

/* ---- the gradient of the data ---------------------------------------------
 */

/* One image of the domain of x (sdg_window_images): what outputs see there is
 * added to the rows of x. */
typedef struct sdg_conv_data_image {
  int64_t at[SDG_DIMS_MAX]; /* in domains */
  sdg_transfer_t transfer;  /* of dy, for this rank's rows */
} sdg_conv_data_image_t;

typedef struct sdg_conv_data {
  sdg_conv_t conv;
  bool communicates; /* some rank needs what it does not own */
  int images;
  sdg_conv_data_image_t *image; /* the first is the domain itself */
} sdg_conv_data_t;

/* Pure in what the ranks agreed on, so it fails on every rank alike: the errors
 * of sdg_conv_init, and SDG_E_OUTPUT_EXTENT where the extents of dx are none
 * that dy can be of. */
sdg_status_t sdg_conv_data_init(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_conv_data_t *out) SDG_MUST_CHECK;
/* The same in the whole view, where the boxes of the op are all of the tensors;
 * the tagging places dx, too. *out_can as of sdg_window_op_init_whole. */
sdg_status_t sdg_conv_data_init_whole(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_conv_data_t *out,
                                      bool *out_can) SDG_MUST_CHECK;
void sdg_conv_data_fini(sdg_conv_data_t *dgrad);

/* This rank's rows of dx; what `rank` of the job needs of dy for its own, all
 * images together, which may go around dy's ends (src/geometry/ring.h).
 * Channels included. */
sdg_box_t sdg_conv_data_owned(const sdg_conv_data_t *dgrad);
sdg_box_t sdg_conv_data_need(const sdg_conv_data_t *dgrad,
                             const sdg_tagging_t *tagging, int rank);

/* Elements of dy that the tagging's ranks need of each other. */
int64_t sdg_conv_data_halo(const sdg_conv_data_t *dgrad,
                           const sdg_tagging_t *tagging);

/* sdg_conv_view_settle of what it would make in place. */
void sdg_conv_data_settle(const sdg_call_t *call, sdg_conv_data_t *dgrad);
/* Whether this rank assembles all that it needs of dy. */
bool sdg_conv_data_extends(const sdg_conv_data_t *dgrad,
                           sdg_strategy_t strategy);
/* Whether the program's own call is all there is to do. */
bool sdg_conv_data_is_literal(const sdg_conv_data_t *dgrad);
/* What the real function makes in place; `keep` are the rows of dx that come
 * out right and are wanted, empty if there are none. Shard view: with its own
 * padding. */
sdg_window_piece_t sdg_conv_data_view(const sdg_conv_data_t *dgrad);
/* The rows of dx that are made apart, as disjoint boxes: with extend all of
 * them, otherwise those that the view does not make right. `out` has room for
 * 2 * SDG_DIMS_MAX; returns their number. */
int sdg_conv_data_strips(const sdg_conv_data_t *dgrad, bool extend,
                         sdg_box_t *out);
/* The sub-call that adds image `index` to the rows `want`: on a dy that covers
 * out->y, and a dx that covers out->x: of the first all of `want` and of others
 * what outputs see. Where that is possible, out->y is inside the domain. False
 * if that image adds nothing; never false of the first. */
bool sdg_conv_data_piece(const sdg_conv_data_t *dgrad, const sdg_box_t *want,
                         int index, sdg_window_piece_t *out);
/* What the dx of the first of those sub-calls covers. */
sdg_box_t sdg_conv_data_made(const sdg_conv_data_t *dgrad,
                             const sdg_box_t *want);

sdg_status_t sdg_conv_data_plan(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_data_share(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_plan_t **out_plan) SDG_MUST_CHECK;
sdg_status_t sdg_conv_data_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) SDG_MUST_CHECK;

#endif
