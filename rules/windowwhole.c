// SPDX-License-Identifier: Apache-2.0
// The geometry of a windowed op on tensors that every rank has room for.
#include <stdlib.h>
#include <string.h>

#include "rules/windowop.h"

// Whether the ranks can share the call: channels are not split where every
// output sees all of them, there is data, and y is what the windows make of x.
static bool shareable(const sdg_call_t *call, const sdg_tagging_t *tagging,
                      const sdg_window_spec_t *spec) {
  const sdg_operand_t *x = &call->operand[spec->x];
  const sdg_operand_t *y = &call->operand[spec->y];
  for (int i = 0; i < call->operands; i++)
    if (!call->operand[i].data)
      return false;
  if (x->dims != y->dims || x->elem_bytes == 0 || y->elem_bytes == 0 ||
      (spec->y_channels > 0 && tagging->placement[spec->x].split[1].axes))
    return false;
  for (int d = 0; d < x->dims; d++) {
    int64_t outputs = d == 1 && spec->y_channels > 0
                          ? spec->y_channels
                          : sdg_window_outputs(&spec->window[d], x->extent[d]);
    if (outputs < 1 || outputs != y->extent[d])
      return false;
  }
  return true;
}

static sdg_box_t extents_box(const sdg_operand_t *operand) {
  sdg_box_t box = {.dims = operand->dims};
  for (int d = 0; d < operand->dims; d++)
    box.dim[d].hi = operand->extent[d];
  return box;
}

// All that is needed is there when the call is carried out.
static sdg_status_t local_fill(sdg_window_op_t *op,
                               const sdg_tagging_t *tagging,
                               const sdg_window_spec_t *spec) {
  op->transfer.local = calloc(1, sizeof *op->transfer.local);
  if (!op->transfer.local)
    return sdg_fail(SDG_E_NO_MEMORY, "a transfer");
  op->transfer.local[0].box =
      sdg_window_op_need(op, tagging, spec, tagging->rank);
  op->transfer.locals = !sdg_box_empty(&op->transfer.local[0].box);
  return SDG_OK;
}

sdg_status_t sdg_window_op_init_whole(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      const sdg_window_spec_t *spec,
                                      sdg_window_op_t *out, bool *out_can) {
  memset(out, 0, sizeof *out);
  *out_can = shareable(call, tagging, spec);
  if (!*out_can)
    return SDG_OK;
  SDG_TRY(sdg_window_op_dims(out, call, tagging, spec));
  for (int d = 0; d < out->dims; d++)
    if (out->dim[d].wrap)
      return sdg_fail(SDG_E_VIEW_WHOLE, "%s with a periodic dimension",
                      call->entry_name);
  sdg_status_t status;
  // Gradients read y, and work where it is, unless every rank has it.
  const sdg_placement_t *given = &tagging->placement[spec->y];
  bool everyones = false;
  for (int d = 0; d < out->dims; d++)
    everyones |= spec->everyones[d];
  SDG_TRY_GOTO(given->dims && !everyones
                   ? sdg_placement_copy(given, &out->y_placement)
                   : sdg_window_op_place(out, tagging, spec, &out->y_placement),
               fail);
  sdg_window_op_own(out, tagging, spec, tagging->rank, out->dim);
  out->x_box = extents_box(&call->operand[spec->x]);
  out->y_box = extents_box(&call->operand[spec->y]);
  SDG_TRY_GOTO(local_fill(out, tagging, spec), fail);
  return SDG_OK;
fail:
  sdg_window_op_fini(out);
  return status;
}

bool sdg_window_op_cut(const sdg_window_op_t *op, sdg_window_piece_t *out) {
  *out = (sdg_window_piece_t){
      .x.dims = op->dims, .y.dims = op->dims, .keep.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    if (op->dim[d].y.hi <= op->dim[d].y.lo)
      return false;
    sdg_window_cut_t cut = sdg_window_cut(&op->dim[d]);
    out->x.dim[d] = cut.x;
    out->y.dim[d] = cut.y;
    out->keep.dim[d] = op->dim[d].y;
    out->pad[d] = (int)cut.pad;
  }
  if (op->mixes) { // what the placeholder stands for
    out->x.dim[1] = op->x_box.dim[1];
    out->y.dim[1] = out->keep.dim[1] = op->y_box.dim[1];
  }
  return true;
}
