/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that bring every rank's need from the owners. Pure.
 *
 * One mechanism for halos wider than a neighbour, uneven parts, corners of
 * multi-dimensional splits, redistribution, gather and scatter: each message
 * is the intersection of a need with an owner's box. */
#ifndef SDG_SRC_GEOMETRY_TRANSFER_H
#define SDG_SRC_GEOMETRY_TRANSFER_H

#include "src/base/status.h"
#include "src/geometry/box.h"

/* One rectangular message. `box` is in global coordinates, inside what the
 * owner holds. In the receiver's coordinates it lies at box + shift; shift is
 * zero except for periodic dimensions, where a need outside [0, period)
 * receives a wrapped image. */
typedef struct sdg_message {
  int peer; /* index in the group */
  sdg_box_t box;
  int64_t shift[SDG_DIMS_MAX];
} sdg_message_t;

/* What rank `me` of a group sends, receives, and copies from itself. The
 * k-th message that p sends to q is the k-th that q receives from p: both
 * lists are ordered by peer, then by box. */
typedef struct sdg_transfer {
  int sends, recvs, locals;
  sdg_message_t *send;  /* peer = receiver */
  sdg_message_t *recv;  /* peer = owner */
  sdg_message_t *local; /* peer = me: own elements that the need contains,
                           wrapped images included */
} sdg_transfer_t;

/* owned[r], need[r]: boxes of the `ranks` members of the group. Owned boxes
 * are disjoint; either may be empty. period[d] > 0 marks dimension d as
 * periodic with that extent, 0 as not; NULL: none. Needs outside the domain
 * of a dimension that is not periodic are nobody's: they are not sent. A need
 * may reach over several periods. Every rank computes its own list alone, from
 * the same arguments but `me`. */
sdg_status_t sdg_transfer_plan(const sdg_box_t *owned, const sdg_box_t *need,
                               int ranks, int me, const int64_t *period,
                               sdg_transfer_t *out_transfer) SDG_MUST_CHECK;
void sdg_transfer_fini(sdg_transfer_t *transfer);

/* Turns a transfer into its adjoint, "send back and add": what was received
 * goes back to its owner. In a reversed transfer the sender reads at
 * box + shift and the receiver adds at box; the same holds of `local`. The
 * order of messages between two ranks stays common to both. Twice is the
 * original. */
void sdg_transfer_reverse(sdg_transfer_t *transfer);

/* Elements received from other ranks: the halo's volume. */
int64_t sdg_transfer_received(const sdg_transfer_t *transfer);

#endif
