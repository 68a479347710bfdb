// SPDX-License-Identifier: Apache-2.0
// Scatters addends to their owners, which add them.
#include "rules/kit/scatter_add.h"

#include "rules/kit/merge.h"

sdg_status_t sdg_scatter_add_open(sdg_plan_t *plan,
                                  const sdg_tagging_t *tagging,
                                  const sdg_placement_t *placement,
                                  const sdg_placement_t *terms,
                                  const sdg_box_t *need, const int64_t *period,
                                  int from, int to, sdg_scatter_add_t *out) {
  *out = (sdg_scatter_add_t){.from = from,
                             .to = to,
                             .me = tagging->me,
                             .copies = (sdg_placement_axes(terms) &
                                        ~sdg_placement_axes(placement)) != 0,
                             .own = sdg_tagging_own(tagging, placement)};
  return sdg_scatter_back(plan, tagging, placement, terms, need, period,
                          from < 0 ? to : from, &out->back);
}

// A box of a slab as a tensor.
static sdg_subcall_tensor_t part_of(int slab, const sdg_box_t *box,
                                    sdg_type_t type) {
  return (sdg_subcall_tensor_t){.slab = slab, .box = *box, .type = type};
}

// Overwrites the target with this rank's own addends.
static sdg_status_t own_put(sdg_plan_t *plan, const sdg_scatter_add_t *back,
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

// sum = sum + addends of a slab, in the same box of both.
static sdg_status_t add(sdg_plan_t *plan, int slab, const sdg_box_t *box,
                        sdg_type_t type, const sdg_subcall_tensor_t *sum) {
  sdg_subcall_tensor_t addends = part_of(slab, box, type);
  sdg_subcall_tensor_t there = part_of(sum->slab, box, sum->type);
  return sdg_box_empty(box)
             ? SDG_OK
             : sdg_subcall_transform(plan, 1, &addends, 1, &there);
}

// Adds the addends received from the peers [first, last).
static sdg_status_t received_add(sdg_plan_t *plan,
                                 const sdg_scatter_add_t *back, sdg_type_t type,
                                 int first, int last,
                                 const sdg_subcall_tensor_t *sum) {
  for (int i = 0; i < back->back.transfer.recvs; i++) {
    const sdg_message_t *message = &back->back.transfer.recv[i];
    if (message->peer >= first && message->peer < last)
      SDG_TRY(add(plan, back->back.landed[i], &message->box, type, sum));
  }
  return SDG_OK;
}

// Sums all addends in the order of the ranks, so that ranks with the same
// elements get the same bits.
static sdg_status_t copies_add(sdg_plan_t *plan, const sdg_scatter_add_t *back,
                               sdg_type_t type,
                               const sdg_subcall_tensor_t *sum) {
  sdg_box_t has = {.dims = back->own.dims};
  if (back->from >= 0)
    has = sdg_box_intersect(&plan->slab[back->from].box, &back->own);
  SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, sum->slab, &back->own));
  SDG_TRY(received_add(plan, back, type, 0, back->me, sum));
  SDG_TRY(add(plan, back->from, &has, type, sum));
  return received_add(plan, back, type, back->me, SDG_RANKS_MAX, sum);
}

sdg_status_t sdg_scatter_add_close(sdg_plan_t *plan,
                                   const sdg_scatter_add_t *back,
                                   sdg_type_t type) {
  sdg_subcall_tensor_t sum = part_of(back->to, &back->own, type);
  if (sdg_box_empty(&back->own))
    return SDG_OK;
  // Addends of narrow types are summed in float, so that not every sum is
  // rounded.
  bool wide = back->copies ||
              (back->back.transfer.recvs > 0 && sdg_merge_type(type) != type);
  if (wide) {
    sum.type = sdg_merge_type(type);
    SDG_TRY(sdg_plan_scratch_of(plan, &back->own, sdg_merge_bytes(sum.type),
                                back->to, &sum.slab));
  }
  if (back->copies) {
    SDG_TRY(copies_add(plan, back, type, &sum));
  } else {
    SDG_TRY(own_put(plan, back, type, &sum));
    SDG_TRY(received_add(plan, back, type, 0, SDG_RANKS_MAX, &sum));
  }
  sdg_subcall_tensor_t result = part_of(back->to, &back->own, type);
  return wide ? sdg_subcall_transform(plan, 1, &sum, 0, &result) : SDG_OK;
}

sdg_status_t sdg_scatter_add_add(sdg_plan_t *plan,
                                 const sdg_scatter_add_t *back,
                                 sdg_type_t type) {
  const sdg_transfer_t *transfer = &back->back.transfer;
  const sdg_subcall_tensor_t sum = part_of(back->to, &back->own, type);
  for (int i = 0; i < transfer->locals; i++) {
    const sdg_message_t *local = &transfer->local[i];
    sdg_box_t image = sdg_box_shift(&local->box, local->shift);
    sdg_subcall_tensor_t from = part_of(back->from, &image, type);
    sdg_subcall_tensor_t to = part_of(back->to, &local->box, type);
    SDG_TRY(sdg_subcall_transform(plan, 1, &from, 1, &to));
  }
  return received_add(plan, back, type, 0, SDG_RANKS_MAX, &sum);
}

sdg_status_t sdg_scatter_add_sum(sdg_plan_t *plan, sdg_axes_t axes,
                                 const sdg_box_t *own, int from, int to,
                                 sdg_type_t type) {
  const sdg_scatter_add_t back = {.from = from, .to = to, .own = *own};
  sdg_subcall_tensor_t sum = part_of(to, own, sdg_merge_type(type));
  sdg_subcall_tensor_t result = part_of(to, own, type);
  SDG_TRY(
      sdg_plan_scratch_of(plan, own, sdg_merge_bytes(sum.type), to, &sum.slab));
  if (!sdg_box_empty(own))
    SDG_TRY(own_put(plan, &back, type, &sum));
  plan->reduce_axes = axes;
  SDG_TRY(sdg_plan_reduce(plan, sum.slab, sum.type, SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  return sdg_box_empty(own) ? SDG_OK
                            : sdg_subcall_transform(plan, 1, &sum, 0, &result);
}

void sdg_scatter_add_fini(sdg_scatter_add_t *back) {
  sdg_fetch_fini(&back->back);
}
