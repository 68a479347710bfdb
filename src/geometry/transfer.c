// SPDX-License-Identifier: Apache-2.0
// Intersects needs with owners' boxes, wrapped images included, to make
// messages.
#include "src/geometry/transfer.h"

#include <assert.h>
#include <stdlib.h>

// Returns the images of an owner's range that overlap a need: shifts m *
// period with m in [lo, hi). Owner [8,10), need [-3,12), period 10: m = -1
// puts the owner at [-2,0), m = 0 at [8,10); m = 1 at [18,20) is outside:
// [-1,1).
static sdg_range_t images(sdg_range_t owner, sdg_range_t need, int64_t period) {
  if (period <= 0)
    return (sdg_range_t){0, 1};
  return (sdg_range_t){
      sdg_floor_div(need.lo - owner.hi, period) + 1,
      sdg_ceil_div(need.hi - owner.lo, period),
  };
}

// Lists all messages that carry elements of `owned` into `need`, in ascending
// order of their images, last dimension fastest. Both ranks of a pair call
// this with the same arguments, hence agree on the order. Returns their
// number; with out NULL it only counts.
static int pair_messages(const sdg_box_t *owned, const sdg_box_t *need,
                         const int64_t *period, int peer, sdg_message_t *out) {
  if (sdg_box_empty(owned) || sdg_box_empty(need))
    return 0;
  int dims = owned->dims, count = 0;
  sdg_range_t image[SDG_DIMS_MAX];
  int64_t m[SDG_DIMS_MAX];
  for (int d = 0; d < dims; d++) {
    image[d] = images(owned->dim[d], need->dim[d], period ? period[d] : 0);
    m[d] = image[d].lo;
    if (image[d].hi <= image[d].lo)
      return 0;
  }
  for (;;) {
    sdg_message_t message = {.peer = peer};
    int64_t back[SDG_DIMS_MAX];
    for (int d = 0; d < dims; d++) {
      message.shift[d] = period ? m[d] * period[d] : 0;
      back[d] = -message.shift[d];
    }
    sdg_box_t wanted = sdg_box_shift(need, back);
    message.box = sdg_box_intersect(&wanted, owned);
    if (!sdg_box_empty(&message.box)) {
      if (out)
        out[count] = message;
      count++;
    }
    int d = dims - 1;
    for (; d >= 0 && ++m[d] == image[d].hi; d--)
      m[d] = image[d].lo;
    if (d < 0)
      return count;
  }
}

static sdg_message_t *messages_alloc(int count) {
  // One more than needed: malloc(0) may return NULL, which would not be a
  // failure.
  return malloc(((size_t)count + 1) * sizeof(sdg_message_t));
}

sdg_status_t sdg_transfer_plan(const sdg_box_t *owned, const sdg_box_t *need,
                               int ranks, int me, const int64_t *period,
                               sdg_transfer_t *out_transfer) {
  assert(me >= 0 && me < ranks);
  sdg_transfer_t plan = {.sends = 0};
  for (int r = 0; r < ranks; r++) {
    if (owned[r].dims != owned[me].dims || need[r].dims != owned[me].dims)
      return sdg_fail(SDG_E_INTERNAL,
                      "transfer between boxes of %d, %d and "
                      "%d dimensions",
                      owned[me].dims, owned[r].dims, need[r].dims);
    if (r == me) {
      plan.locals = pair_messages(&owned[me], &need[me], period, me, NULL);
    } else {
      plan.sends += pair_messages(&owned[me], &need[r], period, r, NULL);
      plan.recvs += pair_messages(&owned[r], &need[me], period, r, NULL);
    }
  }
  plan.send = messages_alloc(plan.sends);
  plan.recv = messages_alloc(plan.recvs);
  plan.local = messages_alloc(plan.locals);
  if (!plan.send || !plan.recv || !plan.local) {
    sdg_status_t status = sdg_fail(SDG_E_NO_MEMORY, "%d messages of a transfer",
                                   plan.sends + plan.recvs + plan.locals);
    sdg_transfer_fini(&plan);
    return status;
  }
  sdg_message_t *send = plan.send, *recv = plan.recv;
  for (int r = 0; r < ranks; r++) {
    if (r == me) {
      pair_messages(&owned[me], &need[me], period, me, plan.local);
    } else {
      send += pair_messages(&owned[me], &need[r], period, r, send);
      recv += pair_messages(&owned[r], &need[me], period, r, recv);
    }
  }
  *out_transfer = plan;
  return SDG_OK;
}

void sdg_transfer_fini(sdg_transfer_t *transfer) {
  free(transfer->send);
  free(transfer->recv);
  free(transfer->local);
  *transfer = (sdg_transfer_t){.sends = 0};
}

void sdg_transfer_reverse(sdg_transfer_t *transfer) {
  sdg_transfer_t forward = *transfer;
  transfer->sends = forward.recvs;
  transfer->send = forward.recv;
  transfer->recvs = forward.sends;
  transfer->recv = forward.send;
}
