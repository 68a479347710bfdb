/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches boxes of a tensor: sends them from the ranks that own them, under any
 * placement, to the ranks that need them. Inside rules/ only. */
#ifndef SDG_RULES_KIT_FETCH_H
#define SDG_RULES_KIT_FETCH_H

#include "rules/place/op.h"
#include "src/geometry/transfer.h"

/* One tensor that is being exchanged. */
typedef struct sdg_fetch {
  sdg_transfer_t transfer;
  int *landed; /* slab of each received message, -1: in place */
  int from, into;
} sdg_fetch_t;

/* True if some rank of the tagging's group needs elements that it does not
 * have. Every rank gets the same answer. need[i] is the need of the group's
 * i-th rank, in global coordinates, inside the domain. */
bool sdg_fetch_communicates(const sdg_tagging_t *tagging,
                            const sdg_placement_t *from, const sdg_box_t *need);

/* Computes this rank's messages for a tensor at `placement`, among the ranks of
 * the tagging. `period` is that of sdg_transfer_plan. If several ranks have the
 * same elements, each receiver gets them from the one that has the same
 * position along the split's axes. A rank sends itself no message. */
sdg_status_t sdg_fetch_transfer(const sdg_tagging_t *tagging,
                                const sdg_placement_t *placement,
                                const sdg_box_t *need, const int64_t *period,
                                sdg_transfer_t *out) SDG_MUST_CHECK;

/* Adds this rank's messages to the plan's next exchange. They are sent from
 * slab `from`, which covers the rank's box of `placement`, and received into
 * slab `into`, which covers the rank's need. With SDG_SLAB_SCRATCH no message
 * arrives in place. If the plan has axes, they must be the tagging's. */
sdg_status_t sdg_fetch_open(sdg_plan_t *plan, const sdg_tagging_t *tagging,
                            const sdg_placement_t *placement,
                            const sdg_box_t *need, int from, int into,
                            sdg_fetch_t *out) SDG_MUST_CHECK;
/* Copies the needed elements that this rank owns from slab `from` to slab
 * `into`. Call it before or after the exchange. */
sdg_status_t sdg_fetch_own(sdg_plan_t *plan,
                           const sdg_fetch_t *fetch) SDG_MUST_CHECK;
/* Copies received messages to slab `into`, except those that have arrived
 * there. Call it after the exchange and its join. */
sdg_status_t sdg_fetch_land(sdg_plan_t *plan,
                            const sdg_fetch_t *fetch) SDG_MUST_CHECK;
/* The reverse of a fetch: sends addends from slab `from`, which covers the
 * rank's need, back to the owners of the elements. Ranks whose positions differ
 * only along the axes over which `terms` is split have different addends; other
 * ranks have equal ones. Each owner gets every different addend once, also if
 * several ranks own the same elements. Received messages lie in slabs of their
 * own, in ascending order of their senders: out->landed[i] has the box
 * out->transfer.recv[i].box. The rank's addends for its own elements are in
 * out->transfer.local: the element at `box` gets the addend at box + shift. In
 * dimensions with a `period` (NULL: in none), addends may belong to images of
 * elements beyond the end of the dimension. The caller adds the addends. */
sdg_status_t sdg_scatter_back(sdg_plan_t *plan, const sdg_tagging_t *tagging,
                              const sdg_placement_t *placement,
                              const sdg_placement_t *terms,
                              const sdg_box_t *need, const int64_t *period,
                              int from, sdg_fetch_t *out) SDG_MUST_CHECK;
/* The messages of sdg_scatter_back alone, for a caller that says where they
 * arrive. */
sdg_status_t sdg_scatter_transfer(const sdg_tagging_t *tagging,
                                  const sdg_placement_t *placement,
                                  const sdg_placement_t *terms,
                                  const sdg_box_t *need, const int64_t *period,
                                  sdg_transfer_t *out) SDG_MUST_CHECK;
/* True if some rank of the tagging's group has addends for another rank. Every
 * rank gets the same answer. */
bool sdg_fetch_returns(const sdg_tagging_t *tagging,
                       const sdg_placement_t *placement,
                       const sdg_placement_t *terms, const sdg_box_t *need);
/* Accepts an opened fetch, or one that is all zeros. */
void sdg_fetch_fini(sdg_fetch_t *fetch);

#endif
