/* SPDX-License-Identifier: Apache-2.0 */
/* Brings boxes of a tensor to the ranks that need them, from however it is
 * placed. Inside rules/ only. */
#ifndef SDG_RULES_KIT_FETCH_H
#define SDG_RULES_KIT_FETCH_H

#include "rules/place/op.h"
#include "src/geometry/transfer.h"

/* One tensor on its way. */
typedef struct sdg_fetch {
  sdg_transfer_t transfer;
  int *landed; /* slab of each received message, -1: in place */
  int from, into;
} sdg_fetch_t;

/* True if some rank of the tagging's group needs what it does not have: the
 * same on all. need[i] is that of the group's i-th rank, in global coordinates,
 * inside the domain. */
bool sdg_fetch_communicates(const sdg_tagging_t *tagging,
                            const sdg_placement_t *from, const sdg_box_t *need);

/* This rank's messages of a tensor that is at `placement`, among the ranks of
 * the tagging; period: as of sdg_transfer_plan. What several ranks have alike,
 * each rank gets from one whose place along the split's axes it shares: no
 * message for what it has itself. */
sdg_status_t sdg_fetch_transfer(const sdg_tagging_t *tagging,
                                const sdg_placement_t *placement,
                                const sdg_box_t *need, const int64_t *period,
                                sdg_transfer_t *out) SDG_MUST_CHECK;

/* Adds this rank's messages of a tensor in slab `from`, which covers what
 * `placement` gives the rank, to the plan's next exchange; they are for slab
 * `into`, which covers the rank's need; SDG_SLAB_SCRATCH: none arrives in
 * place. Where the plan has axes they are the tagging's. */
sdg_status_t sdg_fetch_open(sdg_plan_t *plan, const sdg_tagging_t *tagging,
                            const sdg_placement_t *placement,
                            const sdg_box_t *need, int from, int into,
                            sdg_fetch_t *out) SDG_MUST_CHECK;
/* What the rank has itself, into place; before or after the exchange. */
sdg_status_t sdg_fetch_own(sdg_plan_t *plan,
                           const sdg_fetch_t *fetch) SDG_MUST_CHECK;
/* What was received, into place; after the exchange and its join. */
sdg_status_t sdg_fetch_land(sdg_plan_t *plan,
                            const sdg_fetch_t *fetch) SDG_MUST_CHECK;
/* The other way: what slab `from`, which covers the rank's need, has for the
 * owners goes back to them. Ranks that differ only along the axes that `terms`
 * is split over have different addends, others the same: an owner, and each of
 * several that have the same elements, gets one of each. Messages that arrive,
 * in ascending order of their senders, lie in slabs of their own,
 * out->landed[i] with the box out->transfer.recv[i].box; what is the rank's own
 * is out->transfer.local, at box + shift, for elements at box. Where
 * `period` has a number (NULL: nowhere), addends may be of images of elements
 * around the end of that dimension. The op adds them. */
sdg_status_t sdg_scatter_back(sdg_plan_t *plan, const sdg_tagging_t *tagging,
                              const sdg_placement_t *placement,
                              const sdg_placement_t *terms,
                              const sdg_box_t *need, const int64_t *period,
                              int from, sdg_fetch_t *out) SDG_MUST_CHECK;
/* True if some rank of the tagging's group has addends for another one: the
 * same on all. */
bool sdg_fetch_returns(const sdg_tagging_t *tagging,
                       const sdg_placement_t *placement,
                       const sdg_placement_t *terms, const sdg_box_t *need);
/* Of an opened one, or of all zeros. */
void sdg_fetch_fini(sdg_fetch_t *fetch);

#endif
