// SPDX-License-Identifier: Apache-2.0
// Answers to a program's questions about a forward convolution on split
// tensors: output sizes, workspace, algorithms.
#include "rules/conv/answers.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "rules/window/cost.h"
#include "rules/window/stack.h"
#include "src/exchange/device.h"
#include "src/plan/plan.h"

// The workspace of one sub-call. As in the plan, tensors that are not the
// program's own are packed.
static sdg_status_t piece_ask(const sdg_call_t *call, const sdg_conv_t *conv,
                              const sdg_window_piece_t *piece, bool own_x,
                              bool own_y, size_t *io_largest, int *out_vendor) {
  int algo = sdg_call_int(call, SDG_ALGO);
  const sdg_operand_t *x = &call->operand[conv->x];
  const sdg_operand_t *y = &call->operand[conv->y];
  int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
  sdg_conv_descriptors_t d;
  sdg_slab_pack(&piece->x, sdg_operand_nesting(x), x_stride);
  sdg_slab_pack(&piece->y, sdg_operand_nesting(y), y_stride);
  SDG_TRY(sdg_conv_describe(conv, call, piece, own_x ? x->stride : x_stride,
                            own_y ? y->stride : y_stride, NULL, &d));
  size_t bytes = 0;
  *out_vendor =
      (int)sdg_conv_choose(call, &d, sdg_conv_w(call), algo, &algo, &bytes);
  sdg_conv_undescribe(&d);
  if (*out_vendor == 0 && bytes > *io_largest)
    *io_largest = bytes;
  return SDG_OK;
}

// The largest workspace of this rank's sub-calls with this strategy. Pieces
// whose algorithm the engine rejects are computed with another one.
static sdg_status_t workspace_ask(const sdg_call_t *call,
                                  const sdg_conv_t *conv, bool extend,
                                  size_t *out_largest, int *out_vendor) {
  const int64_t *like[] = {sdg_operand_nesting(&call->operand[conv->x]),
                           sdg_operand_nesting(&call->operand[conv->y])};
  sdg_window_piece_t piece[SDG_PIECES_MAX];
  int lead[SDG_PIECES_MAX];
  bool view;
  int pieces = sdg_window_op_pieces(&conv->op, extend, &view, piece);
  int strips = pieces - view;
  const sdg_window_piece_t *strip = piece + view;
  *out_largest = 0;
  *out_vendor = 0;
  if (view)
    SDG_TRY(
        piece_ask(call, conv, &piece[0], true, true, out_largest, out_vendor));
  sdg_window_stacks_find(strip, strips, like, 2, lead);
  for (int i = 0; i < strips && *out_vendor == 0; i++) {
    if (lead[i] != i)
      continue;
    sdg_window_piece_t all = sdg_window_stack_piece(
        &strip[i], sdg_window_stack_size(lead, strips, i));
    SDG_TRY(piece_ask(call, conv, &all, false,
                      !sdg_window_op_is_apart(&conv->op, &strip[i]),
                      out_largest, out_vendor));
  }
  return SDG_OK;
}

static sdg_status_t workspace_answer(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     sdg_conv_t *conv, int *out_vendor) {
  size_t *out_bytes = sdg_call_pointer(call, SDG_OUT_BYTES);
  int algo = sdg_call_int(call, SDG_ALGO);
  if (!out_bytes)
    return sdg_fail(SDG_E_ARGUMENT, "%s: the result is NULL", call->entry_name);
  sdg_strategy_t strategy = tagging->section->strategy;
  sdg_window_piece_t view;
  SDG_TRY(sdg_window_op_weigh_forward(call, tagging, &conv->spec, &conv->op));
  (void)sdg_window_op_view(&conv->op, &view);
  sdg_conv_view_settle(call, conv, &view, sdg_conv_w(call), algo);
  (void)sdg_window_op_view(&conv->op, &view);
  sdg_conv_view_judge(call, conv, &view);
  bool extend = sdg_window_op_extends(&conv->op, strategy);
  size_t largest;
  // Checked in the same way as the call itself.
  *out_vendor = sdg_conv_refusal(call, conv, tagging, algo);
  if (*out_vendor)
    return SDG_OK;
  SDG_TRY(workspace_ask(call, conv, extend, &largest, out_vendor));
  if (*out_vendor && !extend)
    SDG_TRY(workspace_ask(call, conv, true, &largest, out_vendor));
  // The program's own call may read more of x than its pieces do.
  size_t own;
  if (!*out_vendor && sdg_window_op_is_literal(&conv->op) &&
      sdg_conv_own_workspace(call, &own) == CUDNN_STATUS_SUCCESS &&
      own > largest)
    largest = own;
  if (!*out_vendor)
    *out_bytes = largest;
  return SDG_OK;
}

// Algorithms are chosen and timed for everything that this rank computes, on an
// assembled input, without communication.
static sdg_status_t algorithms_answer(const sdg_call_t *call,
                                      const sdg_conv_t *conv, int *out_vendor) {
  const sdg_operand_t *x = &call->operand[conv->x];
  sdg_window_piece_t piece = sdg_window_op_everything(&conv->op);
  int64_t stride[SDG_DIMS_MAX];
  sdg_slab_pack(&piece.x, sdg_operand_nesting(x), stride);
  sdg_conv_descriptors_t own;
  SDG_TRY(sdg_conv_describe(conv, call, &piece, stride,
                            call->operand[conv->y].stride, NULL, &own));
  sdg_status_t status = SDG_OK;
  void *assembled = NULL;
  // The assembled input is larger than the program's.
  if (call->entry == SDG_ENTRY_cudnnFindConvolutionForwardAlgorithmEx)
    status = sdg_scratch_get(
        SDG_SCRATCH_CALL,
        (size_t)sdg_box_count(&piece.x) * (size_t)x->elem_bytes, &assembled);
  if (status == SDG_OK) {
    sdg_rebind_t asked;
    sdg_rebind_init(call, &asked);
    sdg_rebind_tensor(&asked, SDG_ROLE_X, own.x, assembled);
    sdg_rebind_tensor(&asked, SDG_ROLE_Y, own.y,
                      sdg_call_data(call, SDG_ROLE_Y));
    sdg_rebind_pointer(&asked, SDG_OP, own.conv);
    *out_vendor = sdg_rebind_invoke(&asked);
  }
  sdg_conv_undescribe(&own);
  return status;
}

sdg_status_t sdg_conv_answer(const sdg_call_t *call,
                             const sdg_tagging_t *tagging, int *out_vendor) {
  sdg_conv_t conv;
  SDG_TRY(sdg_conv_init(call, tagging, &conv));
  sdg_status_t status;
  if (call->entry == SDG_ENTRY_cudnnGetConvolution2dForwardOutputDim ||
      call->entry == SDG_ENTRY_cudnnGetConvolutionNdForwardOutputDim)
    status = sdg_window_op_answer(call, &conv.op, 1);
  else if (conv.y < 0)
    status = sdg_fail(SDG_E_ARGUMENT, "%s: y is NULL", call->entry_name);
  else if (call->entry == SDG_ENTRY_cudnnGetConvolutionForwardWorkspaceSize)
    status = workspace_answer(call, tagging, &conv, out_vendor);
  else
    status = algorithms_answer(call, &conv, out_vendor);
  sdg_conv_fini(&conv);
  return status;
}
