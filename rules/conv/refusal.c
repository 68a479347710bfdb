// SPDX-License-Identifier: Apache-2.0
// Finds out what a single device would reject, although the tensors are split.
#include <stdint.h>

#include "rules/conv/rule.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "src/plan/plan.h"

// The whole op, on the global tensors.
static sdg_window_piece_t whole_piece(const sdg_conv_t *conv) {
  const sdg_window_op_t *op = &conv->op;
  sdg_window_piece_t piece = {.x.dims = op->dims, .y.dims = op->dims};
  for (int d = 0; d < op->dims; d++) {
    piece.x.dim[d] = (sdg_range_t){0, op->dim[d].x_extent};
    piece.y.dim[d] = (sdg_range_t){0, op->dim[d].y_extent};
    piece.pad[d] = (int)op->dim[d].window.pad;
  }
  return piece;
}

// What the first rank computes, from an input with everything that it needs.
static sdg_window_piece_t first_piece(const sdg_conv_t *conv,
                                      const sdg_tagging_t *tagging) {
  const sdg_window_op_t *op = &conv->op;
  sdg_window_dim_t dim[SDG_DIMS_MAX];
  sdg_window_piece_t piece = whole_piece(conv);
  sdg_window_op_own(op, tagging, &conv->spec, tagging->rank_list[0], dim);
  for (int d = 0; d < op->dims; d++) {
    const sdg_window_t *window = &op->dim[d].window;
    sdg_range_t y = dim[d].y;
    if (d == 1 || (y.lo == 0 && y.hi == op->dim[d].y_extent))
      continue;
    piece.y.dim[d] = y;
    piece.x.dim[d].lo = y.lo * window->stride - window->pad;
    piece.x.dim[d].hi =
        (y.hi - 1) * window->stride - window->pad + sdg_window_span(window);
    piece.pad[d] = 0;
  }
  return piece;
}

static int piece_ask(const sdg_call_t *call, const sdg_conv_t *conv,
                     sdg_window_piece_t piece, int algo) {
  const sdg_operand_t *x = &call->operand[conv->x];
  const sdg_operand_t *y = &call->operand[conv->y];
  int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
  sdg_conv_descriptors_t d;
  size_t bytes;
  // Replaces the placeholder by the real channels.
  piece.x.dim[1] = conv->op.x_box.dim[1];
  piece.y.dim[1] = conv->op.y_box.dim[1];
  // The extents exceed the vendor's descriptors, so no single device can have
  // the tensor.
  if (sdg_box_count(&piece.x) > INT32_MAX ||
      sdg_box_count(&piece.y) > INT32_MAX)
    return 0;
  sdg_slab_pack(&piece.x, x->stride, x_stride);
  sdg_slab_pack(&piece.y, y->stride, y_stride);
  if (sdg_conv_describe(conv, call, &piece, x_stride, y_stride, NULL, &d) !=
      SDG_OK)
    return 0; // the plan reports the error
  cudnnStatus_t got = sdg_conv_workspace(
      call, &d,
      (cudnnFilterDescriptor_t)(uintptr_t)call->operand[conv->w].descriptor,
      algo, &bytes);
  sdg_conv_undescribe(&d);
  return (int)got;
}

int sdg_conv_refusal(const sdg_call_t *call, const sdg_conv_t *conv,
                     const sdg_tagging_t *tagging, int algo) {
  int whole = piece_ask(call, conv, whole_piece(conv), algo);
  // What is too large for a single device may fit as a piece.
  return whole && piece_ask(call, conv, first_piece(conv, tagging), algo)
             ? whole
             : 0;
}

bool sdg_conv_refused_own(const sdg_call_t *call) {
  sdg_conv_roles_t roles = sdg_conv_roles(call);
  const sdg_conv_descriptors_t own = {
      .x = sdg_call_descriptor(call, roles.x),
      .y = sdg_call_descriptor(call, roles.y),
      .conv = sdg_call_pointer(call, SDG_OP),
  };
  cudnnFilterDescriptor_t w = sdg_conv_w(call);
  size_t bytes = 0;
  return !sdg_cudnn_get() || !own.x || !w || !own.conv || !own.y ||
         sdg_conv_workspace(call, &own, w, sdg_call_int(call, SDG_ALGO),
                            &bytes) != CUDNN_STATUS_SUCCESS ||
         bytes > sdg_call_size(call, SDG_WORKSPACE_BYTES);
}
