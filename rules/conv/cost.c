// SPDX-License-Identifier: Apache-2.0
// Counts what repair and extend do for the gradients of a convolution.
#include <stdlib.h>

#include "rules/conv/filter.h"
#include "rules/window/cost.h"
#include "rules/window/stack.h"

static int64_t bytes_of(const sdg_box_t *box, const sdg_operand_t *operand) {
  return sdg_box_count(box) * operand->elem_bytes;
}

// ---- the gradient of the data ----------------------------------------------

typedef struct gradient {
  const sdg_operand_t *x, *y;
  const sdg_conv_data_t *data; // as this rank sees it
} gradient_t;

// Every image of a strip is a sub-call, with copies of its own.
static void parts_weigh(const gradient_t *of, const sdg_conv_data_t *g,
                        const sdg_box_t *want, int strips,
                        sdg_window_work_t *out) {
  sdg_window_piece_t piece;
  for (int s = 0; s < strips; s++) {
    bool sums;
    sdg_box_t made = sdg_conv_data_made(g, &want[s], &sums);
    bool apart = sdg_conv_data_is_apart(g, &made, &want[s]);
    for (int i = 0; i < g->images; i++)
      if (sdg_conv_data_piece(g, &want[s], i, &piece)) {
        out->calls++;
        out->copies++;
        out->bytes += bytes_of(&piece.y, of->y);
      }
    out->copies += apart;
    out->bytes += apart ? bytes_of(&want[s], of->x) : 0;
  }
}

static sdg_status_t data_weigh(const void *user, const sdg_window_op_t *op,
                               bool extend, sdg_window_work_t *out,
                               bool *out_can) {
  const gradient_t *of = user;
  sdg_box_t want[2 * SDG_DIMS_MAX];
  sdg_window_piece_t piece[2 * SDG_DIMS_MAX];
  int lead[2 * SDG_DIMS_MAX];
  sdg_conv_data_t g = *of->data;
  g.conv.op = *op;
  *out = (sdg_window_work_t){.calls = !extend};
  sdg_window_piece_t view = sdg_conv_data_view(&g);
  *out_can = extend || !sdg_box_empty(&view.keep);
  if (!*out_can)
    return SDG_OK;
  int strips = sdg_conv_data_strips(&g, extend, want);
  int before = out->copies;
  parts_weigh(of, &g, want, strips, out);
  if (!sdg_conv_data_stacks(&g, want, strips, sdg_operand_nesting(of->x),
                            sdg_operand_nesting(of->y), piece, lead))
    return SDG_OK;
  out->calls = !extend;
  out->copies = before;
  for (int s = 0; s < strips; s++) {
    int size = sdg_window_stack_size(lead, strips, s);
    if (size == 0)
      continue;
    out->calls++;
    out->copies += sdg_window_copies(&piece[s].y, &op->y_box,
                                     sdg_operand_nesting(of->y), size);
    out->copies += sdg_window_copies(&want[s], &op->x_box,
                                     sdg_operand_nesting(of->x), size);
  }
  return SDG_OK;
}

sdg_status_t sdg_conv_data_weigh(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 sdg_conv_data_t *dgrad) {
  sdg_conv_t *conv = &dgrad->conv;
  const gradient_t of = {&call->operand[conv->x], &call->operand[conv->y],
                         dgrad};
  return sdg_window_op_weigh(tagging, &conv->spec, data_weigh, &of, &conv->op);
}

// Compares a view from a packed copy of `copied` bytes with extend, on this
// rank's device.
static sdg_status_t packed_or_extended(const sdg_window_op_t *op,
                                       sdg_window_weigh_t weigh,
                                       const gradient_t *of, int64_t copied,
                                       sdg_strategy_t strategy,
                                       sdg_conv_way_t *out_way) {
  const sdg_cost_t cost = sdg_cost_mine();
  double call_us = op->mixes ? cost.strip_us : cost.launch_us;
  sdg_window_work_t packed, extend;
  bool can;
  *out_way = SDG_CONV_PACKED;
  if (strategy != SDG_STRATEGY_AUTO || cost.copy_bytes_s <= 0)
    return SDG_OK;
  SDG_TRY(weigh(of, op, false, &packed, &can));
  SDG_TRY(weigh(of, op, true, &extend, &can));
  packed.copies++;
  packed.bytes += copied;
  if (sdg_window_work_us(&packed, &cost, call_us) >
      sdg_window_work_us(&extend, &cost, call_us))
    *out_way = SDG_CONV_EXTENDED;
  return SDG_OK;
}

sdg_status_t sdg_conv_data_next(const sdg_call_t *call,
                                const sdg_conv_data_t *dgrad,
                                sdg_strategy_t strategy,
                                sdg_conv_way_t *io_way) {
  const sdg_conv_t *conv = &dgrad->conv;
  const gradient_t of = {&call->operand[conv->x], &call->operand[conv->y],
                         dgrad};
  sdg_window_piece_t view = sdg_conv_data_view(dgrad);
  if (*io_way == SDG_CONV_IN_PLACE)
    return packed_or_extended(&conv->op, data_weigh, &of,
                              bytes_of(&view.y, of.y), strategy, io_way);
  *io_way += 1;
  return SDG_OK;
}

// ---- the gradient of the filter --------------------------------------------

static sdg_status_t filter_weigh(const void *user, const sdg_window_op_t *op,
                                 bool extend, sdg_window_work_t *out,
                                 bool *out_can) {
  const gradient_t *of = user;
  const int64_t *like[] = {sdg_operand_nesting(of->x),
                           sdg_operand_nesting(of->y)};
  sdg_conv_filter_strip_t *strip = NULL;
  sdg_window_piece_t view;
  int strips;
  *out = (sdg_window_work_t){.calls = !extend};
  *out_can = sdg_conv_filter_view(op, &op->x_box, &view) || extend;
  if (!*out_can)
    return SDG_OK;
  SDG_TRY(
      sdg_conv_filter_strips(op, extend ? NULL : &view, like, &strip, &strips));
  for (int i = 0; i < strips; i++) {
    const sdg_box_t *x = &strip[i].piece.x, *y = &strip[i].piece.y;
    int size = strip[i].size;
    bool apart = !sdg_box_equal(y, &op->y_box);
    out->calls += size > 0;
    if (size > 0)
      out->copies += sdg_window_copies(x, &op->x_box, like[0], size);
    if (size > 0 && apart)
      out->copies += sdg_window_copies(y, &op->y_box, like[1], size);
    out->bytes += bytes_of(x, of->x);
    out->bytes += apart ? bytes_of(y, of->y) : 0;
  }
  free(strip);
  return SDG_OK;
}

sdg_status_t sdg_conv_filter_next(const sdg_call_t *call,
                                  const sdg_conv_t *conv,
                                  sdg_strategy_t strategy,
                                  sdg_conv_way_t *io_way) {
  const gradient_t of = {&call->operand[conv->x], &call->operand[conv->y],
                         NULL};
  sdg_window_piece_t view;
  (void)sdg_conv_filter_view(&conv->op, &conv->op.x_box, &view);
  if (*io_way == SDG_CONV_IN_PLACE)
    return packed_or_extended(&conv->op, filter_weigh, &of,
                              bytes_of(&view.x, of.x), strategy, io_way);
  *io_way += 1;
  return SDG_OK;
}

sdg_status_t sdg_conv_filter_weigh(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   sdg_conv_t *conv) {
  const gradient_t of = {&call->operand[conv->x], &call->operand[conv->y],
                         NULL};
  return sdg_window_op_weigh(tagging, &conv->spec, filter_weigh, &of,
                             &conv->op);
}
