// SPDX-License-Identifier: Apache-2.0
// Sends addends back to who owns them, and adds them there.
#include "rules/sendback.h"

#include "rules/merge.h"

sdg_status_t sdg_sendback_open(sdg_plan_t *plan, const sdg_tagging_t *tagging,
                               const sdg_placement_t *placement,
                               const sdg_box_t *need, int from, int to,
                               sdg_sendback_t *out) {
  *out = (sdg_sendback_t){
      .from = from,
      .to = to,
      .own = sdg_placement_box(placement, tagging->mesh, tagging->rank)};
  return sdg_bring_back(plan, tagging, placement, need, from < 0 ? to : from,
                        &out->back);
}

// The part of a slab.
static sdg_subcall_tensor_t part_of(int slab, const sdg_box_t *box,
                                    sdg_type_t type) {
  return (sdg_subcall_tensor_t){.slab = slab, .box = *box, .type = type};
}

// This rank's own addends, in place of what is there.
static sdg_status_t own_put(sdg_plan_t *plan, const sdg_sendback_t *back,
                            sdg_type_t type, const sdg_subcall_tensor_t *sum) {
  sdg_box_t has = {.dims = back->own.dims};
  if (back->from >= 0)
    has = sdg_box_intersect(&plan->slab[back->from].box, &back->own);
  if (!sdg_box_equal(&has, &back->own))
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, sum->slab, &back->own));
  if (sdg_box_empty(&has) || back->from == sum->slab)
    return SDG_OK;
  if (sum->type == type)
    return sdg_plan_copy(plan, SDG_LANE_MAIN, back->from, sum->slab, NULL, &has,
                         SDG_COPY_ACTIVATION);
  sdg_subcall_tensor_t mine = part_of(back->from, &has, type);
  sdg_subcall_tensor_t there = part_of(sum->slab, &has, sum->type);
  return sdg_subcall_transform(plan, 1, &mine, 0, &there);
}

sdg_status_t sdg_sendback_close(sdg_plan_t *plan, const sdg_sendback_t *back,
                                sdg_type_t type) {
  sdg_subcall_tensor_t sum = part_of(back->to, &back->own, type);
  if (sdg_box_empty(&back->own))
    return SDG_OK;
  // Addends that are rounded to few bits are not rounded at every sum, too.
  bool wide = back->back.transfer.recvs > 0 && sdg_merge_type(type) != type;
  if (wide) {
    sum.type = sdg_merge_type(type);
    SDG_TRY(sdg_plan_scratch_of(plan, &back->own, sdg_merge_bytes(sum.type),
                                back->to, &sum.slab));
  }
  SDG_TRY(own_put(plan, back, type, &sum));
  for (int i = 0; i < back->back.transfer.recvs; i++) {
    const sdg_box_t *box = &back->back.transfer.recv[i].box;
    sdg_subcall_tensor_t theirs = part_of(back->back.landed[i], box, type);
    sdg_subcall_tensor_t there = part_of(sum.slab, box, sum.type);
    SDG_TRY(sdg_subcall_transform(plan, 1, &theirs, 1, &there));
  }
  sdg_subcall_tensor_t result = part_of(back->to, &back->own, type);
  return wide ? sdg_subcall_transform(plan, 1, &sum, 0, &result) : SDG_OK;
}

sdg_status_t sdg_sendback_sum(sdg_plan_t *plan, sdg_axes_t axes,
                              const sdg_box_t *own, int from, int to,
                              sdg_type_t type) {
  const sdg_sendback_t back = {.from = from, .to = to, .own = *own};
  sdg_subcall_tensor_t sum = part_of(to, own, sdg_merge_type(type));
  sdg_subcall_tensor_t result = part_of(to, own, type);
  if (sdg_box_empty(own))
    return SDG_OK;
  SDG_TRY(
      sdg_plan_scratch_of(plan, own, sdg_merge_bytes(sum.type), to, &sum.slab));
  SDG_TRY(own_put(plan, &back, type, &sum));
  plan->reduce_axes = axes;
  SDG_TRY(sdg_plan_reduce(plan, sum.slab, sum.type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  return sdg_subcall_transform(plan, 1, &sum, 0, &result);
}

void sdg_sendback_fini(sdg_sendback_t *back) {
  sdg_bring_fini(&back->back);
}
