// SPDX-License-Identifier: Apache-2.0
// Assembles tensors in scratch.
#include "rules/kit/assemble.h"

sdg_status_t sdg_assemble_own(sdg_plan_t *plan, const sdg_transfer_t *transfer,
                              const sdg_box_t *domain, int from, int to,
                              sdg_copy_kind_t kind) {
  sdg_box_t outside[2 * SDG_DIMS_MAX];
  int count = sdg_box_subtract(&plan->slab[to].box, domain, outside);
  for (int i = 0; i < count; i++)
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, to, &outside[i]));
  for (int i = 0; i < transfer->locals; i++) {
    const sdg_message_t *local = &transfer->local[i];
    sdg_box_t box = sdg_box_shift(&local->box, local->shift);
    SDG_TRY(
        sdg_plan_copy(plan, SDG_LANE_MAIN, from, to, local->shift, &box, kind));
  }
  return SDG_OK;
}

sdg_status_t sdg_assemble_received(sdg_plan_t *plan,
                                   const sdg_transfer_t *transfer,
                                   const int *message, int to) {
  for (int i = 0; i < transfer->recvs; i++)
    if (message[i] >= 0)
      SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, message[i], to, NULL, NULL,
                            SDG_COPY_HALO));
  return SDG_OK;
}
