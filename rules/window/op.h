/* SPDX-License-Identifier: Apache-2.0 */
/* One call of an op with a sliding window, as one rank of a split tensor sees
 * it: who owns which outputs, what they need, in which pieces they are made.
 * Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_OP_H
#define SDG_RULES_WINDOW_OP_H

#include "rules/place/op.h"
#include "rules/window/window.h"
#include "src/geometry/transfer.h"

enum { SDG_PIECES_MAX = 1 + 2 * SDG_DIMS_MAX };

/* What the op says of itself. */
typedef struct sdg_window_spec {
  int x, y; /* operands; y -1: a query without it */
  /* One window per dimension; {1,1,1,0} where nothing slides. */
  sdg_window_t window[SDG_DIMS_MAX];
  /* > 0: every output sees all channels of x and y has so many (convolution);
   * 0: each channel is for itself (pooling). */
  int64_t y_channels;
  /* What lies beyond the domain is the op's own affair, and no zeros: a
   * maximum does not see it, a mean may not count it, an infinite weight times
   * zero would be NaN. */
  bool own_border;
  /* The one output of a window over all of a dimension is every rank's. */
  bool everyones[SDG_DIMS_MAX];
} sdg_window_spec_t;

/* In global coordinates. Where outputs see all channels, dim[1] is a
 * placeholder of one element, and the boxes have the channels of x and y. */
typedef struct sdg_window_op {
  int dims;
  sdg_placement_t y_placement;
  sdg_window_dim_t dim[SDG_DIMS_MAX]; /* this rank's */
  sdg_box_t x_box, y_box;             /* owned by this rank */
  bool whole;                         /* view: the boxes are all there is */
  bool mixes;                         /* every output sees all channels */
  bool own_border;                    /* of the spec */
  bool communicates;                  /* some rank needs what it does not own */
  /* What is computed in place has the op's padding, however much of it is in
   * vain: the vendor's library takes nothing else. */
  bool padded;
  sdg_transfer_t transfer; /* of x, for this rank's outputs */
  /* Not NULL: x is elsewhere, and the rank assembles all that it needs of it;
   * x_box is where it would be. Borrowed from the tagging. */
  const sdg_remote_t *remote;
} sdg_window_op_t;

/* Pure in what the ranks agreed on, so it fails on every rank alike:
 * SDG_E_ARGUMENT, SDG_E_SPLIT_DIMENSION, SDG_E_OUTPUT_EXTENT,
 * SDG_E_EMPTY_SHARD. */
sdg_status_t sdg_window_op_init(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_window_spec_t *spec,
                                sdg_window_op_t *out) SDG_MUST_CHECK;
void sdg_window_op_fini(sdg_window_op_t *op);

/* SDG_E_SPLIT_DIMENSION where channels are split that every output sees. */
sdg_status_t
sdg_window_op_whole_channels(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_window_spec_t *spec) SDG_MUST_CHECK;

/* The parts of sdg_window_op_init, for both views: the geometry of every
 * dimension; the placement of y by the owner of each window's centre; the
 * ranges that `rank` of the job owns, the channel placeholder its one element;
 * what it needs of x, channels included. */
sdg_status_t sdg_window_op_dims(sdg_window_op_t *op, const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_window_spec_t *spec) SDG_MUST_CHECK;
/* Whether dimension `d` is periodic, and windows look around its end. */
bool sdg_window_op_periodic(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_window_spec_t *spec, int d);
sdg_status_t sdg_window_op_place(const sdg_window_op_t *op,
                                 const sdg_tagging_t *tagging,
                                 const sdg_window_spec_t *spec,
                                 sdg_placement_t *out) SDG_MUST_CHECK;
void sdg_window_op_own(const sdg_window_op_t *op, const sdg_tagging_t *tagging,
                       const sdg_window_spec_t *spec, int rank,
                       sdg_window_dim_t *out);
sdg_box_t sdg_window_op_need(const sdg_window_op_t *op,
                             const sdg_tagging_t *tagging,
                             const sdg_window_spec_t *spec, int rank);

/* `x` without what lies outside the domain, in dimensions that have an end. */
sdg_box_t sdg_window_op_domain(const sdg_window_op_t *op, const sdg_box_t *x);

/* The op of the whole view, where the program's tensors are there in full:
 * boxes are all of them, and the transfer is the rank's own need. y is where
 * the tagging says, or where the window's centre is. *out_can is false, and
 * nothing is filled, where the call cannot be shared by the ranks: then all of
 * them make the program's call. SDG_E_SPLIT_DIMENSION and SDG_E_TENSOR_TYPE
 * where that would not see the rows around a periodic dimension. */
sdg_status_t sdg_window_op_init_whole(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      const sdg_window_spec_t *spec,
                                      sdg_window_op_t *out,
                                      bool *out_can) SDG_MUST_CHECK;

/* Whether a call that the ranks do not share may be made by each of them:
 * SDG_E_SPLIT_DIMENSION, SDG_E_TENSOR_TYPE where not, as above. */
sdg_status_t sdg_window_op_alone(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_window_spec_t *spec) SDG_MUST_CHECK;

/* Whether windows see rows around a periodic dimension, on some rank: then the
 * program's own call is not what is asked for. */
bool sdg_window_op_wraps(const sdg_window_op_t *op);
/* The transfer of what is there in full: its images in `need`, which may lie
 * around the op's periodic dimensions. */
sdg_status_t sdg_window_op_local(const sdg_window_op_t *op,
                                 const sdg_box_t *all, const sdg_box_t *need,
                                 sdg_transfer_t *out) SDG_MUST_CHECK;

/* A piece of the outputs, and the sub-call that makes it: the op on an x that
 * covers `x`, with these paddings. */
typedef struct sdg_window_piece {
  sdg_box_t x, y;
  sdg_box_t keep;        /* what of y comes out right, and is wanted */
  int pad[SDG_DIMS_MAX]; /* per dimension */
  bool bare; /* in place, with other paddings than the op's (sdg_window_bare) */
} sdg_window_piece_t;

/* Whole view: the piece of the tensors that this rank computes in place, all
 * owned outputs but those that see rows around a periodic dimension; false if
 * there are none. */
bool sdg_window_op_cut(const sdg_window_op_t *op, sdg_window_piece_t *out);

/* The piece that the real function makes on the program's own tensors; false if
 * none of it comes out right. */
bool sdg_window_op_view(const sdg_window_op_t *op, sdg_window_piece_t *out);

/* What is to be computed. First the piece that the real function makes in place
 * (out_in_place true), then the strips that overwrite; with extend one strip,
 * all owned outputs. None where the rank owns no outputs. `out` has room for
 * SDG_PIECES_MAX; returns their number. */
int sdg_window_op_pieces(const sdg_window_op_t *op, bool extend,
                         bool *out_in_place, sdg_window_piece_t *out);

/* All owned outputs as one sub-call, to choose an algorithm by: on an x that
 * covers out->x, not cut, as if rows outside the domain were there. */
sdg_window_piece_t sdg_window_op_everything(const sdg_window_op_t *op);

/* Whether this rank assembles all of its input: asked for, or there is nothing
 * that it could compute in place. What a rank does with its own buffers is its
 * own affair: messages are the same either way. */
bool sdg_window_op_extends(const sdg_window_op_t *op, sdg_strategy_t strategy);

/* True if the program's own call is all there is to do. */
bool sdg_window_op_is_literal(const sdg_window_op_t *op);

#endif
