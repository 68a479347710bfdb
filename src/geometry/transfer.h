/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the messages that send to every rank what it needs from the ranks
 * that own it. Pure.
 *
 * One mechanism serves halos wider than a neighbour, uneven parts, corners of
 * multi-dimensional splits, redistribution, gather and scatter: each message
 * is the intersection of a rank's need with an owner's box. */
#ifndef SDG_SRC_GEOMETRY_TRANSFER_H
#define SDG_SRC_GEOMETRY_TRANSFER_H

#include "src/base/status.h"
#include "src/geometry/box.h"

/* One rectangular message. `box` is in global coordinates, inside the owner's
 * box. In the receiver's coordinates it is at box + shift; shift is 0 except
 * in periodic dimensions, where a need outside [0, period) receives a wrapped
 * image. */
typedef struct sdg_message {
  int peer; /* index in the group */
  sdg_box_t box;
  int64_t shift[SDG_DIMS_MAX];
} sdg_message_t;

/* What rank `me` of a group sends, receives, and copies from itself. The k-th
 * message that p sends to q is the k-th that q receives from p: both lists are
 * sorted by peer, then by box. */
typedef struct sdg_transfer {
  int sends, recvs, locals;
  sdg_message_t *send; /* peer = receiver */
  sdg_message_t *recv; /* peer = owner */
  /* The peer is `me`: own elements inside the own need, wrapped images
   * included. */
  sdg_message_t *local;
} sdg_transfer_t;

/* owned[r] and need[r] are boxes of the `ranks` members of the group. Owned
 * boxes are disjoint; boxes may be empty. period[d] > 0 makes dimension d
 * periodic with that extent; 0: not periodic; period NULL: no dimension is
 * periodic. A need outside the domain of a non-periodic dimension has no owner
 * and is not sent. A need may span several periods. Every rank computes its
 * own list from the same arguments, except `me`. */
sdg_status_t sdg_transfer_plan(const sdg_box_t *owned, const sdg_box_t *need,
                               int ranks, int me, const int64_t *period,
                               sdg_transfer_t *out_transfer) SDG_MUST_CHECK;
void sdg_transfer_fini(sdg_transfer_t *transfer);

/* Turns a transfer into its adjoint: each receiver sends its data back, and
 * the owner adds it. In a reversed transfer the sender reads at box + shift
 * and the receiver adds at box; `local` likewise. The two ranks keep a common
 * order of messages. Reversing twice restores the original. */
void sdg_transfer_reverse(sdg_transfer_t *transfer);

#endif
