// SPDX-License-Identifier: Apache-2.0
// The geometry of a windowed op in the whole view, where every rank has memory
// for the full tensors.
#include <string.h>

#include "rules/window/op.h"

// Whether the ranks can share the call: channels are not split if every output
// sees all of them, all operands have data, and the extents of y are those that
// the windows yield for x.
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
    int64_t outputs =
        d == 1 && spec->y_channels > 0
            ? spec->y_channels
            : sdg_window_outputs(&spec->window[d],
                                 x->extent[d] + spec->pad_more[d]);
    if (outputs < 1 || outputs != y->extent[d])
      return false;
  }
  return true;
}

// If the ranks do not share the call, each makes the program's own call, which
// sees no rows across the ends of periodic dimensions. The vendor's library is
// still called if it rejects the call, so that it reports the error.
sdg_status_t sdg_window_op_alone(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging,
                                 const sdg_window_spec_t *spec) {
  const sdg_operand_t *x = &call->operand[spec->x];
  const sdg_operand_t *y = &call->operand[spec->y];
  bool periodic = false;
  for (int d = 0; d < x->dims; d++)
    periodic |= sdg_window_op_periodic(call, tagging, spec, d);
  if (!periodic)
    return SDG_OK;
  if (spec->y_channels > 0 && (tagging->placement[spec->x].split[1].axes ||
                               tagging->placement[spec->y].split[1].axes))
    return sdg_fail(SDG_E_SPLIT_DIMENSION, "C of %s with a periodic dimension",
                    call->entry_name);
  if (x->elem_bytes == 0 || y->elem_bytes == 0)
    return sdg_fail(SDG_E_TENSOR_TYPE, "%s with a periodic dimension",
                    call->entry_name);
  return SDG_OK;
}

sdg_status_t sdg_window_op_local(const sdg_window_op_t *op,
                                 const sdg_box_t *all, const sdg_box_t *need,
                                 sdg_transfer_t *out) {
  int64_t period[SDG_DIMS_MAX] = {0};
  for (int d = 0; d < op->dims; d++)
    if (op->dim[d].wrap)
      period[d] = op->dim[d].x_extent;
  return sdg_transfer_plan(all, need, 1, 0, period, out);
}

sdg_status_t sdg_window_op_init_whole(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      const sdg_window_spec_t *spec,
                                      sdg_window_op_t *out, bool *out_can) {
  memset(out, 0, sizeof *out);
  *out_can = shareable(call, tagging, spec);
  if (!*out_can)
    return sdg_window_op_alone(call, tagging, spec);
  SDG_TRY(sdg_window_op_dims(out, call, tagging, spec));
  out->whole = true;
  sdg_status_t status;
  // Gradients read y and run where it is placed, unless every rank has it.
  const sdg_placement_t *given = &tagging->placement[spec->y];
  bool everyones = false;
  for (int d = 0; d < out->dims; d++)
    everyones |= spec->everyones[d];
  SDG_TRY_GOTO(given->dims && !everyones
                   ? sdg_placement_copy(given, &out->y_placement)
                   : sdg_window_op_place(out, tagging, spec, &out->y_placement),
               fail);
  sdg_window_op_own(out, tagging, spec, tagging->rank, out->dim);
  out->x_box = sdg_operand_box(&call->operand[spec->x]);
  out->y_box = sdg_operand_box(&call->operand[spec->y]);
  sdg_box_t need = sdg_window_op_need(out, tagging, spec, tagging->rank);
  SDG_TRY_GOTO(sdg_window_op_local(out, &out->x_box, &need, &out->transfer),
               fail);
  return SDG_OK;
fail:
  sdg_window_op_fini(out);
  return status;
}

bool sdg_window_op_cut(const sdg_window_op_t *op, sdg_window_piece_t *out) {
  *out = (sdg_window_piece_t){
      .x.dims = op->dims, .y.dims = op->dims, .keep.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    sdg_window_dim_t dim = op->dim[d];
    dim.y = sdg_window_inner(&dim);
    if (dim.y.hi <= dim.y.lo)
      return false;
    sdg_window_cut_t cut = sdg_window_cut(&dim);
    out->x.dim[d] = cut.x;
    out->y.dim[d] = cut.y;
    out->keep.dim[d] = dim.y;
    out->pad[d] = (int)cut.pad;
  }
  if (op->mixes) { // the real channels
    out->x.dim[1] = op->x_box.dim[1];
    out->y.dim[1] = out->keep.dim[1] = op->y_box.dim[1];
  }
  return true;
}
