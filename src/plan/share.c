// SPDX-License-Identifier: Apache-2.0
// Stores what each rank reads of the operands of a divided call.
#include "src/plan/share.h"

#include <stdlib.h>

sdg_status_t sdg_share_create(int ranks, sdg_share_t **out) {
  sdg_share_t *share;
  SDG_TRY(SDG_ALLOCATE(share, 1, "a plan"));
  share->ranks = ranks;
  *out = share;
  return SDG_OK;
}

void sdg_share_destroy(sdg_share_t *share) {
  if (!share)
    return;
  for (int i = 0; i < share->outputs; i++)
    sdg_placement_fini(&share->output[i].placement);
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    free(share->reads[i]);
  free(share);
}

sdg_status_t sdg_share_output(sdg_share_t *share, int operand,
                              const sdg_placement_t *placement) {
  SDG_TRY(
      sdg_placement_copy(placement, &share->output[share->outputs].placement));
  share->output[share->outputs++].operand = operand;
  return SDG_OK;
}

const sdg_placement_t *sdg_share_placement(const sdg_share_t *share,
                                           int operand) {
  for (int i = 0; i < share->outputs; i++)
    if (share->output[i].operand == operand)
      return &share->output[i].placement;
  return NULL;
}

sdg_status_t sdg_share_reads(sdg_share_t *share, int index,
                             sdg_box_t **out_boxes) {
  SDG_TRY(SDG_ALLOCATE(share->reads[index], share->ranks, "boxes of %d ranks",
                       share->ranks));
  *out_boxes = share->reads[index];
  return SDG_OK;
}

sdg_status_t sdg_share_reads_own(sdg_share_t *share, int index,
                                 const sdg_placement_t *placement,
                                 const sdg_mesh_t *mesh) {
  sdg_box_t *boxes;
  SDG_TRY(sdg_share_reads(share, index, &boxes));
  for (int r = 0; r < share->ranks; r++)
    boxes[r] = sdg_placement_box(placement, mesh, r);
  return SDG_OK;
}
