// SPDX-License-Identifier: Apache-2.0
// Computes and adds the messages between any two placements of a tensor.
#include "rules/kit/fetch.h"

#include <stdlib.h>
#include <string.h>

bool sdg_fetch_communicates(const sdg_tagging_t *tagging,
                            const sdg_placement_t *from,
                            const sdg_box_t *need) {
  for (int r = 0; r < tagging->ranks; r++) {
    sdg_box_t owned =
        sdg_placement_box(from, tagging->mesh, tagging->rank_list[r]);
    if (!sdg_box_empty(&need[r]) && !sdg_box_contains(&owned, &need[r]))
      return true;
  }
  return false;
}

// Plans a transfer between the ranks whose positions differ only along the axes
// over which `among` is split. Other ranks neither send nor receive.
static sdg_status_t transfer_make(const sdg_tagging_t *tagging,
                                  const sdg_placement_t *placement,
                                  const sdg_placement_t *among,
                                  const sdg_box_t *need, const int64_t *period,
                                  sdg_transfer_t *out) {
  int copy[SDG_RANKS_MAX];
  int members = sdg_placement_group(among, tagging->mesh, tagging->rank, copy);
  size_t ranks = (size_t)tagging->ranks;
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * ranks, "boxes of %d ranks", tagging->ranks));
  sdg_box_t *wanted = owned + ranks;
  for (size_t r = 0; r < ranks; r++) {
    owned[r].dims = wanted[r].dims = placement->dims;
    for (int m = 0; m < members; m++)
      if (copy[m] == tagging->rank_list[r]) {
        owned[r] = sdg_placement_box(placement, tagging->mesh, copy[m]);
        wanted[r] = need[r];
      }
  }
  sdg_status_t status = sdg_transfer_plan(owned, wanted, tagging->ranks,
                                          tagging->me, period, out);
  free(owned);
  return status;
}

sdg_status_t sdg_fetch_transfer(const sdg_tagging_t *tagging,
                                const sdg_placement_t *placement,
                                const sdg_box_t *need, const int64_t *period,
                                sdg_transfer_t *out) {
  // Together these ranks have one copy of the tensor.
  return transfer_make(tagging, placement, placement, need, period, out);
}

static sdg_status_t messages_add(sdg_plan_t *plan, sdg_fetch_t *fetch) {
  SDG_TRY(SDG_ALLOCATE(fetch->landed, fetch->transfer.recvs + 1, "a transfer"));
  return sdg_plan_messages(plan, &fetch->transfer, fetch->from, &fetch->into,
                           fetch->into == SDG_SLAB_SCRATCH ? 0 : 1,
                           fetch->landed);
}

sdg_status_t sdg_fetch_open(sdg_plan_t *plan, const sdg_tagging_t *tagging,
                            const sdg_placement_t *placement,
                            const sdg_box_t *need, int from, int into,
                            sdg_fetch_t *out) {
  *out = (sdg_fetch_t){.from = from, .into = into};
  SDG_TRY(sdg_fetch_transfer(tagging, placement, need, NULL, &out->transfer));
  return messages_add(plan, out);
}

bool sdg_fetch_returns(const sdg_tagging_t *tagging,
                       const sdg_placement_t *placement,
                       const sdg_placement_t *terms, const sdg_box_t *need) {
  int member[SDG_RANKS_MAX];
  for (int r = 0; r < tagging->ranks; r++) {
    int rank = tagging->rank_list[r];
    int members = sdg_placement_group(terms, tagging->mesh, rank, member);
    for (int m = 0; m < members; m++) {
      sdg_box_t theirs = sdg_placement_box(placement, tagging->mesh, member[m]);
      sdg_box_t both = sdg_box_intersect(&need[r], &theirs);
      if (member[m] != rank && !sdg_box_empty(&need[r]) &&
          !sdg_box_empty(&both))
        return true;
    }
  }
  return false;
}

sdg_status_t sdg_scatter_transfer(const sdg_tagging_t *tagging,
                                  const sdg_placement_t *placement,
                                  const sdg_placement_t *terms,
                                  const sdg_box_t *need, const int64_t *period,
                                  sdg_transfer_t *out) {
  SDG_TRY(transfer_make(tagging, placement, terms, need, period, out));
  sdg_transfer_reverse(out);
  // The sender has an image's addends beyond the end of the dimension; the
  // receiver adds them to the element itself.
  for (int i = 0; i < out->sends; i++) {
    sdg_message_t *image = &out->send[i];
    image->box = sdg_box_shift(&image->box, image->shift);
  }
  for (int i = 0; i < out->recvs; i++)
    memset(out->recv[i].shift, 0, sizeof out->recv[i].shift);
  return SDG_OK;
}

sdg_status_t sdg_scatter_back(sdg_plan_t *plan, const sdg_tagging_t *tagging,
                              const sdg_placement_t *placement,
                              const sdg_placement_t *terms,
                              const sdg_box_t *need, const int64_t *period,
                              int from, sdg_fetch_t *out) {
  *out = (sdg_fetch_t){.from = from, .into = SDG_SLAB_SCRATCH};
  SDG_TRY(sdg_scatter_transfer(tagging, placement, terms, need, period,
                               &out->transfer));
  return messages_add(plan, out);
}

sdg_status_t sdg_fetch_own(sdg_plan_t *plan, const sdg_fetch_t *fetch) {
  for (int i = 0; i < fetch->transfer.locals; i++)
    SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, fetch->from, fetch->into, NULL,
                          &fetch->transfer.local[i].box, SDG_COPY_ACTIVATION));
  return SDG_OK;
}

sdg_status_t sdg_fetch_land(sdg_plan_t *plan, const sdg_fetch_t *fetch) {
  for (int i = 0; i < fetch->transfer.recvs; i++)
    if (fetch->landed[i] >= 0)
      SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, fetch->landed[i], fetch->into,
                            NULL, NULL, SDG_COPY_HALO));
  return SDG_OK;
}

void sdg_fetch_fini(sdg_fetch_t *fetch) {
  sdg_transfer_fini(&fetch->transfer);
  free(fetch->landed);
}
