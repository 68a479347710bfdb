// SPDX-License-Identifier: Apache-2.0
// Brings neighbours' elements into the ghosts of the program's own tensors.
#include "rules/function/ghost.h"

#include <stdlib.h>

// A tensor's dimension. Coordinates count its ghosts at the lower end of the
// domain, unless it wraps: with 1 ghost, 8 rows are 1..9 of 10, or 0..8.
typedef struct axis {
  int64_t before, behind; // ghosts
  int64_t sees_before, sees_behind;
  int64_t extent; // of the whole, without ghosts
  bool wraps;
} axis_t;

static axis_t axis_of(const sdg_call_t *call, const sdg_tagging_t *tagging,
                      const int64_t *period, int index, int d) {
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  const sdg_placement_t *placement = &tagging->placement[index];
  int tensor = sdg_function_tensor_of(function, index);
  int i = sdg_function_extent_at(function, tensor, d);
  axis_t axis = {.extent = sdg_placement_extent(placement, d)};
  if (i < 0)
    return axis;
  const sdg_function_tensor_t *t = &function->tensor[tensor];
  bool sees =
      sdg_placement_splits(placement, d) && function->reach[t->dim[i]] > 0;
  axis.before = t->ghost[i].before;
  axis.behind = t->ghost[i].behind;
  if (sees) {
    axis.sees_before = sdg_min64(function->sees[t->dim[i]].before, axis.before);
    axis.sees_behind = sdg_min64(function->sees[t->dim[i]].behind, axis.behind);
  }
  axis.wraps = sees && period[d] > 0;
  return axis;
}

// What the rank has of the dimension, ghosts at the ends of the domain
// included.
static sdg_range_t owned_of(const axis_t *axis, sdg_range_t own) {
  if (axis->wraps)
    return own;
  return (sdg_range_t){own.lo == 0 ? 0 : own.lo + axis->before,
                       own.hi + axis->before +
                           (own.hi == axis->extent ? axis->behind : 0)};
}

// What it has to have before the call.
static sdg_range_t need_of(const axis_t *axis, sdg_range_t own) {
  int64_t shift = axis->wraps ? 0 : axis->before;
  sdg_range_t need = {own.lo + shift - axis->sees_before,
                      own.hi + shift + axis->sees_behind};
  if (axis->wraps)
    return need;
  int64_t end = axis->extent + axis->before + axis->behind;
  return (sdg_range_t){own.lo == 0 ? 0 : sdg_max64(need.lo, 0),
                       own.hi == axis->extent ? end : sdg_min64(need.hi, end)};
}

// What its memory has room for.
static sdg_range_t room_of(const axis_t *axis, sdg_range_t own) {
  int64_t shift = axis->wraps ? -axis->before : 0;
  return (sdg_range_t){own.lo + shift,
                       own.hi + shift + axis->before + axis->behind};
}

bool sdg_ghosts_filled(const sdg_call_t *call, const sdg_tagging_t *tagging,
                       int index) {
  static const int64_t none[SDG_DIMS_MAX];
  const sdg_operand_t *operand = &call->operand[index];
  bool filled = false;
  if (operand->is_output && !operand->is_updated)
    return false;
  for (int d = 0; d < operand->dims; d++) {
    axis_t axis = axis_of(call, tagging, none, index, d);
    filled |= axis.sees_before > 0 || axis.sees_behind > 0;
  }
  return filled;
}

typedef sdg_range_t range_of_t(const axis_t *axis, sdg_range_t own);

static sdg_box_t box_of(const sdg_call_t *call, const sdg_tagging_t *tagging,
                        const int64_t *period, int index, int rank,
                        range_of_t *range) {
  sdg_box_t box =
      sdg_placement_box(&tagging->placement[index], tagging->mesh, rank);
  for (int d = 0; d < box.dims; d++) {
    axis_t axis = axis_of(call, tagging, period, index, d);
    box.dim[d] = range(&axis, box.dim[d]);
  }
  return box;
}

// Ranks that differ only along axes that do not split the tensor have the same
// elements. Each receives from the ranks at its own position along these axes.
static sdg_status_t transfer_make(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  const int64_t *period, int index,
                                  sdg_transfer_t *out) {
  int member[SDG_RANKS_MAX], ranks = tagging->ranks;
  int members = sdg_placement_group(&tagging->placement[index], tagging->mesh,
                                    tagging->rank, member);
  sdg_box_t *owned;
  SDG_TRY(SDG_ALLOCATE(owned, 2 * (size_t)ranks, "boxes of %d ranks", ranks));
  sdg_box_t *need = owned + ranks;
  for (int r = 0; r < ranks; r++) {
    owned[r].dims = need[r].dims = call->operand[index].dims;
    for (int m = 0; m < members; m++)
      if (member[m] == tagging->rank_list[r]) {
        owned[r] = box_of(call, tagging, period, index, member[m], owned_of);
        need[r] = box_of(call, tagging, period, index, member[m], need_of);
      }
  }
  sdg_status_t status =
      sdg_transfer_plan(owned, need, ranks, tagging->me, period, out);
  free(owned);
  return status;
}

// Keeps the copies from one end of a dimension that wraps to the other; a
// rank's other elements are where they belong.
static void images_keep(sdg_transfer_t *io) {
  int kept = 0;
  for (int i = 0; i < io->locals; i++) {
    bool moves = false;
    for (int d = 0; d < io->local[i].box.dims; d++)
      moves |= io->local[i].shift[d] != 0;
    if (moves)
      io->local[kept++] = io->local[i];
  }
  io->locals = kept;
}

sdg_status_t sdg_ghosts_open(sdg_plan_t *plan, const sdg_call_t *call,
                             const sdg_tagging_t *tagging,
                             const int64_t *period, int index,
                             sdg_fetch_t *out) {
  int64_t wraps[SDG_DIMS_MAX] = {0};
  for (int d = 0; d < call->operand[index].dims; d++)
    if (axis_of(call, tagging, period, index, d).wraps)
      wraps[d] = period[d];
  sdg_box_t room = box_of(call, tagging, period, index, tagging->rank, room_of);
  SDG_TRY(sdg_plan_operand(plan, call, index, &room, &out->from));
  out->into = out->from;
  SDG_TRY(transfer_make(call, tagging, wraps, index, &out->transfer));
  images_keep(&out->transfer);
  SDG_TRY(SDG_ALLOCATE(out->landed, out->transfer.recvs + 1, "a transfer"));
  return sdg_plan_messages(plan, &out->transfer, out->from, &out->into, 1,
                           out->landed);
}
