// SPDX-License-Identifier: Apache-2.0
// Storage of what the ranks read of a shared call's operands.
#include "src/share.h"

#include <stdlib.h>

sdg_share_t *sdg_share_create(sdg_placement_t *placement, int output,
                              int ranks) {
  sdg_share_t *share = calloc(1, sizeof *share);
  if (!share)
    return NULL;
  share->placement = *placement;
  share->output = output;
  share->ranks = ranks;
  *placement = (sdg_placement_t){.dims = 0};
  return share;
}

void sdg_share_destroy(sdg_share_t *share) {
  if (!share)
    return;
  sdg_placement_fini(&share->placement);
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    free(share->reads[i]);
  free(share);
}

sdg_status_t sdg_share_reads(sdg_share_t *share, int index,
                             sdg_box_t **out_boxes) {
  share->reads[index] =
      calloc((size_t)share->ranks, sizeof *share->reads[index]);
  if (!share->reads[index])
    return sdg_fail(SDG_E_NO_MEMORY, "boxes of %d ranks", share->ranks);
  *out_boxes = share->reads[index];
  return SDG_OK;
}
