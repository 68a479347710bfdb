// SPDX-License-Identifier: Apache-2.0
// Decides which steps of a plan can be carried out before its call.
#include "src/plan/prefetch.h"

static size_t slab_bytes(const sdg_slab_t *slab) {
  return (size_t)sdg_box_count(&slab->box) * (size_t)slab->elem_bytes;
}

// Returns true if another slab overlaps with this slab's memory.
static bool slab_is_shared(const sdg_plan_t *plan, const sdg_slab_t *slab) {
  size_t end = slab->offset_bytes + slab_bytes(slab);
  for (int i = 0; i < plan->slabs; i++) {
    const sdg_slab_t *other = &plan->slab[i];
    if (other != slab && other->operand == slab->operand &&
        other->offset_bytes < end &&
        slab->offset_bytes < other->offset_bytes + slab_bytes(other))
      return true;
  }
  return false;
}

static void slab_keep(sdg_plan_t *plan, int index) {
  sdg_slab_t *slab = &plan->slab[index];
  if (slab->operand != SDG_SLAB_SCRATCH || slab_is_shared(plan, slab))
    return;
  slab->operand = SDG_SLAB_KEPT;
  slab->offset_bytes = plan->kept_bytes;
  plan->kept_bytes += sdg_plan_aligned(slab_bytes(slab));
}

void sdg_plan_keep(sdg_plan_t *plan) {
  for (int i = 0; i < plan->steps; i++)
    if (plan->step[i].lane == SDG_LANE_COMM &&
        plan->step[i].kind == SDG_STEP_COPY)
      slab_keep(plan, plan->step[i].to);
  for (int i = 0; i < plan->parcels; i++)
    slab_keep(plan, plan->parcel[i].slab);
}

static bool parcels_are_early(const sdg_plan_t *plan, const sdg_step_t *step,
                              int operand) {
  for (int i = step->parcel; i < step->parcel + step->parcels; i++) {
    const sdg_parcel_t *parcel = &plan->parcel[i];
    int of = plan->slab[parcel->slab].operand;
    if (of != SDG_SLAB_KEPT && (of != operand || !parcel->is_send))
      return false;
  }
  return true;
}

bool sdg_plan_is_early(const sdg_plan_t *plan, int operand) {
  int exchanges = 0;
  for (int i = 0; i < plan->steps; i++) {
    const sdg_step_t *step = &plan->step[i];
    if (step->lane != SDG_LANE_COMM) {
      if (exchanges == 0) // a step here may write what the exchange sends
        return false;
    } else if (step->kind == SDG_STEP_EXCHANGE) {
      exchanges++;
      if (!parcels_are_early(plan, step, operand))
        return false;
    } else if (exchanges > 0 && step->kind == SDG_STEP_JOIN) {
      continue; // no step on this lane follows it
    } else if (exchanges > 0 || step->kind != SDG_STEP_COPY ||
               plan->slab[step->slab].operand != operand ||
               plan->slab[step->to].operand != SDG_SLAB_KEPT) {
      return false;
    }
  }
  return exchanges == 1;
}
