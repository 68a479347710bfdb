/* SPDX-License-Identifier: Apache-2.0 */
/* One call of an op with a sliding window, as one rank of a split tensor sees
 * it: which outputs the ranks own, which inputs these need, and in which pieces
 * the rank computes them. Inside rules/ only. */
#ifndef SDG_RULES_WINDOW_OP_H
#define SDG_RULES_WINDOW_OP_H

#include "rules/place/op.h"
#include "rules/window/window.h"
#include "src/geometry/transfer.h"

enum { SDG_PIECES_MAX = 1 + 2 * SDG_DIMS_MAX };

/* The op's description of itself. */
typedef struct sdg_window_spec {
  int x, y; /* operands; y -1: a query without it */
  /* One window per dimension; {1,1,1,0} where nothing slides. */
  sdg_window_t window[SDG_DIMS_MAX];
  /* Padding at the high side beyond window.pad; negative: less. Not 0 for
   * graphs only, which have no views of it (sdg_window_op_view). */
  int64_t pad_more[SDG_DIMS_MAX];
  /* > 0: every output sees all channels of x, and y has this many channels
   * (convolution). 0: each channel is independent (pooling). */
  int64_t y_channels;
  /* True: the op treats rows beyond the domain in its own way, not as zeros. A
   * maximum ignores them, a mean may not count them, an infinite weight times
   * zero would be NaN. */
  bool own_border;
  /* True: the window covers the whole dimension, and every rank has its one
   * output. */
  bool everyones[SDG_DIMS_MAX];
} sdg_window_spec_t;

/* All in global coordinates. If every output sees all channels, dim[1]
 * counts all channels as one element; the boxes contain the channels of x and
 * y. */
typedef struct sdg_window_op {
  int dims;
  sdg_placement_t y_placement;
  sdg_window_dim_t dim[SDG_DIMS_MAX]; /* this rank's */
  sdg_box_t x_box, y_box;             /* owned by this rank */
  bool whole;                         /* whole view: the boxes are full */
  bool mixes;                         /* every output sees all channels */
  bool own_border;                    /* as in the spec */
  bool communicates;                  /* some rank needs what it does not own */
  /* True: sub-calls in place use the op's own padding, even if it computes many
   * wrong outputs, because the vendor's library accepts no other. */
  bool padded;
  /* True: the vendor's library is slow on what would be computed in place, so
   * `auto` extends. */
  bool slow_in_place;
  sdg_transfer_t transfer; /* of x, for this rank's outputs */
  sdg_price_t price;       /* rules/window/cost.h */
  /* Not NULL: x is on other ranks, and the rank assembles all that it needs of
   * it; x_box is where x would be. Borrowed from the tagging. */
  const sdg_remote_t *remote;
} sdg_window_op_t;

/* Depends only on what the ranks agreed on, so it fails on all ranks or on
 * none: SDG_E_ARGUMENT, SDG_E_SPLIT_DIMENSION, SDG_E_OUTPUT_EXTENT,
 * SDG_E_EMPTY_SHARD. */
sdg_status_t sdg_window_op_init(const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_window_spec_t *spec,
                                sdg_window_op_t *out) SDG_MUST_CHECK;
void sdg_window_op_fini(sdg_window_op_t *op);

/* SDG_E_SPLIT_DIMENSION if channels are split although every output sees all of
 * them. */
sdg_status_t
sdg_window_op_whole_channels(const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const sdg_window_spec_t *spec) SDG_MUST_CHECK;

/* The parts of sdg_window_op_init, for both views. _dims: the geometry of every
 * dimension. _place: the placement of y, by the owner of each window's centre.
 * _own: the ranges that `rank` of the job owns; every rank owns channels that
 * are counted as one element. _need: the box of x that this rank needs, with
 * the real channels. */
sdg_status_t sdg_window_op_dims(sdg_window_op_t *op, const sdg_call_t *call,
                                const sdg_tagging_t *tagging,
                                const sdg_window_spec_t *spec) SDG_MUST_CHECK;
/* Whether dimension `d` is periodic and windows extend across its end. */
bool sdg_window_op_periodic(const sdg_call_t *call,
                            const sdg_tagging_t *tagging,
                            const sdg_window_spec_t *spec, int d);
/* Cuts y beside x at the windows' centres; with of_x = false x beside y. `of`
 * is where the first one is, `extent` are those of the other one. */
sdg_status_t sdg_window_op_beside(const sdg_window_spec_t *spec,
                                  const sdg_placement_t *of, bool of_x,
                                  const sdg_mesh_t *mesh, const int64_t *extent,
                                  sdg_placement_t *out) SDG_MUST_CHECK;
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

/* `x` cut at the domain in dimensions that are not periodic. */
sdg_box_t sdg_window_op_domain(const sdg_window_op_t *op, const sdg_box_t *x);

/* The op in the whole view, where every rank has the program's tensors in full:
 * the boxes are the full tensors, and the transfer covers the rank's own need.
 * y is placed as the tagging says, otherwise by the window's centre. *out_can
 * is false, and nothing is filled, if the ranks cannot share the call: then
 * each rank makes the program's call. SDG_E_SPLIT_DIMENSION and
 * SDG_E_TENSOR_TYPE if that call would miss the rows across the end of a
 * periodic dimension. */
sdg_status_t sdg_window_op_init_whole(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      const sdg_window_spec_t *spec,
                                      sdg_window_op_t *out,
                                      bool *out_can) SDG_MUST_CHECK;

/* Checks whether each rank may make a call that they do not share:
 * SDG_E_SPLIT_DIMENSION or SDG_E_TENSOR_TYPE if that call would miss the rows
 * across the end of a periodic dimension. */
sdg_status_t sdg_window_op_alone(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_window_spec_t *spec) SDG_MUST_CHECK;

/* Whether, on some rank, windows see rows across the end of a periodic
 * dimension. The program's own call would then compute something else. */
bool sdg_window_op_wraps(const sdg_window_op_t *op);
/* The transfer on one rank that has the full tensor `all`: its images in
 * `need`, which may extend across the ends of the op's periodic dimensions. */
sdg_status_t sdg_window_op_local(const sdg_window_op_t *op,
                                 const sdg_box_t *all, const sdg_box_t *need,
                                 sdg_transfer_t *out) SDG_MUST_CHECK;

/* A piece of the outputs, and the sub-call that computes it: the op on an x
 * that covers `x`, with these paddings. */
typedef struct sdg_window_piece {
  sdg_box_t x, y;
  sdg_box_t keep;        /* the part of y that is right and wanted */
  int pad[SDG_DIMS_MAX]; /* per dimension */
  bool bare;             /* in place, with paddings that are not the op's
                          * (sdg_window_bare) */
} sdg_window_piece_t;

/* Whole view: the piece that this rank computes in place: all owned outputs
 * except those that see rows across the end of a periodic dimension. False if
 * no output remains. */
bool sdg_window_op_cut(const sdg_window_op_t *op, sdg_window_piece_t *out);

/* The piece that the real function computes on the program's own tensors; false
 * if none of it is right. */
bool sdg_window_op_view(const sdg_window_op_t *op, sdg_window_piece_t *out);

/* Lists what to compute: first the piece that the real function computes in
 * place (*out_in_place true), then the strips that overwrite its wrong outputs.
 * With extend: one strip, all owned outputs. Nothing if the rank owns no
 * outputs. `out` has room for SDG_PIECES_MAX; returns the number of pieces. */
int sdg_window_op_pieces(const sdg_window_op_t *op, bool extend,
                         bool *out_in_place, sdg_window_piece_t *out);

/* All owned outputs as one sub-call, for choosing an algorithm: on an x that
 * covers out->x, not cut, as if rows outside the domain existed. */
sdg_window_piece_t sdg_window_op_everything(const sdg_window_op_t *op);

/* Whether this rank assembles all of its input: because that was asked for,
 * because `auto` finds it cheaper for the slowest rank, or because the rank can
 * compute nothing in place. The last each rank decides for itself; messages are
 * the same either way. */
bool sdg_window_op_extends(const sdg_window_op_t *op, sdg_strategy_t strategy);
/* Whether `auto` finds it cheaper; the same on all ranks. */
static inline bool
sdg_window_op_is_cheaper_extended(const sdg_window_op_t *op) {
  return op->price.extend_us < op->price.repair_us;
}

/* Whether a piece has a y of its own, in scratch. A piece that computes all of
 * y, all of it right, writes the program's. */
bool sdg_window_op_is_apart(const sdg_window_op_t *op,
                            const sdg_window_piece_t *piece);

/* Answers an output-size query through the call's arguments with the extents of
 * this rank's y. The program may ask for the first `fewest` dimensions or
 * more. */
sdg_status_t sdg_window_op_answer(const sdg_call_t *call,
                                  const sdg_window_op_t *op,
                                  int fewest) SDG_MUST_CHECK;

/* True if the program's own call, unchanged, gives the right result. */
bool sdg_window_op_is_literal(const sdg_window_op_t *op);

#endif
