// SPDX-License-Identifier: Apache-2.0
// Counts what repair and extend do on every rank, and compares the slowest.
#include "rules/window/cost.h"

#include "rules/place/tagging.h"
#include "rules/window/stack.h"

static int64_t extent_of(const sdg_box_t *box, int d) {
  return box->dim[d].hi - box->dim[d].lo;
}

// Whether the elements of `part` are one run of the packed tensor `all`: if it
// has more than one index of a dimension, it has all of those further inside.
static bool is_run(const sdg_box_t *part, const sdg_box_t *all,
                   const int64_t *like) {
  for (int outer = 0; outer < part->dims; outer++)
    for (int inner = 0; inner < part->dims; inner++)
      if (like[inner] < like[outer] && extent_of(part, outer) > 1 &&
          extent_of(part, inner) < extent_of(all, inner))
        return false;
  return true;
}

int sdg_window_copies(const sdg_box_t *box, const sdg_box_t *all,
                      const int64_t *like, int count) {
  sdg_box_t part = sdg_box_intersect(box, all);
  return sdg_box_empty(&part) ? 0 : is_run(&part, all, like) ? 1 : count;
}

double sdg_window_work_us(const sdg_window_work_t *work, const sdg_cost_t *cost,
                          double call_us) {
  return work->calls * call_us + work->copies * cost->launch_us +
         (double)work->bytes / cost->copy_bytes_s * 1e6;
}

// The op as another rank sees it.
static sdg_window_op_t op_of(const sdg_window_op_t *op,
                             const sdg_tagging_t *tagging,
                             const sdg_window_spec_t *spec, int rank) {
  sdg_window_op_t theirs = *op;
  sdg_window_op_own(op, tagging, spec, rank, theirs.dim);
  theirs.x_box =
      sdg_placement_box(&tagging->placement[spec->x], tagging->mesh, rank);
  theirs.y_box = sdg_placement_box(&op->y_placement, tagging->mesh, rank);
  theirs.padded = false; // a finding of this rank about its own piece
  return theirs;
}

// A rank that can compute nothing in place extends in either case, and one
// without strips makes its own call in either case.
static sdg_status_t rank_weigh(const sdg_window_op_t *op,
                               sdg_window_weigh_t weigh, const void *user,
                               const sdg_cost_t *cost, sdg_price_t *out) {
  sdg_window_work_t repair = {0}, extend = {0};
  double call_us = op->mixes ? cost->strip_us : cost->launch_us;
  bool can, always;
  SDG_TRY(weigh(user, op, false, &repair, &can));
  SDG_TRY(weigh(user, op, true, &extend, &always));
  if (!can)
    repair = extend;
  else if (repair.calls <= 1 && repair.copies == 0)
    extend = repair;
  // The program's own call is one of the sub-calls.
  out->repair_us = sdg_window_work_us(&repair, cost, call_us) - call_us;
  out->extend_us = sdg_window_work_us(&extend, cost, call_us) - call_us;
  return SDG_OK;
}

sdg_status_t sdg_window_op_weigh(const sdg_tagging_t *tagging,
                                 const sdg_window_spec_t *spec,
                                 sdg_window_weigh_t weigh, const void *user,
                                 sdg_window_op_t *op) {
  const sdg_cost_t cost = sdg_cost_agreed();
  if (op->whole || op->remote || cost.copy_bytes_s <= 0 ||
      tagging->section->strategy != SDG_STRATEGY_AUTO)
    return SDG_OK;
  sdg_price_t most = {0, 0};
  for (int r = 0; r < tagging->ranks; r++) {
    sdg_window_op_t theirs = op_of(op, tagging, spec, tagging->rank_list[r]);
    sdg_price_t price;
    SDG_TRY(rank_weigh(&theirs, weigh, user, &cost, &price));
    if (price.repair_us > most.repair_us)
      most.repair_us = price.repair_us;
    if (price.extend_us > most.extend_us)
      most.extend_us = price.extend_us;
  }
  op->price = most;
  return SDG_OK;
}

// ---- y from x ---------------------------------------------------------------

// The tensors whose memory counts.
typedef struct tensors {
  const sdg_operand_t *x, *y;
} tensors_t;

static sdg_status_t forward_weigh(const void *user, const sdg_window_op_t *op,
                                  bool extend, sdg_window_work_t *out,
                                  bool *out_can) {
  const tensors_t *of = user;
  const int64_t *like[] = {sdg_operand_nesting(of->x),
                           sdg_operand_nesting(of->y)};
  sdg_window_piece_t piece[SDG_PIECES_MAX];
  int lead[SDG_PIECES_MAX];
  bool view;
  *out = (sdg_window_work_t){0};
  *out_can = sdg_window_op_view(op, &piece[0]) || extend;
  if (!*out_can)
    return SDG_OK;
  int pieces = sdg_window_op_pieces(op, extend, &view, piece);
  const sdg_window_piece_t *strip = piece + view;
  sdg_window_stacks_find(strip, pieces - view, like, 2, lead);
  out->calls = view;
  for (int i = 0; i < pieces - view; i++) {
    bool apart = sdg_window_op_is_apart(op, &strip[i]);
    int size = sdg_window_stack_size(lead, pieces - view, i);
    if (size > 0) {
      out->calls++;
      out->copies += sdg_window_copies(&strip[i].x, &op->x_box, like[0], size);
      out->copies +=
          apart ? sdg_window_copies(&strip[i].keep, &op->y_box, like[1], size)
                : 0;
    }
    out->bytes += sdg_box_count(&strip[i].x) * of->x->elem_bytes;
    if (apart)
      out->bytes += sdg_box_count(&strip[i].keep) * of->y->elem_bytes;
  }
  return SDG_OK;
}

sdg_status_t sdg_window_op_weigh_forward(const sdg_call_t *call,
                                         const sdg_tagging_t *tagging,
                                         const sdg_window_spec_t *spec,
                                         sdg_window_op_t *op) {
  if (spec->y < 0) // asks for extents only
    return SDG_OK;
  const tensors_t of = {&call->operand[spec->x], &call->operand[spec->y]};
  return sdg_window_op_weigh(tagging, spec, forward_weigh, &of, op);
}
