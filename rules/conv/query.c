// SPDX-License-Identifier: Apache-2.0
// Answers to a program's questions about a forward convolution on split
// tensors: output sizes, workspace, algorithms.
#include "rules/conv/rule.h"
#include "rules/vendor/rebind.h"
#include "rules/vendor/vendor.h"
#include "src/exchange/scratch.h"
#include "src/plan/plan.h"

// The largest workspace of this rank's sub-calls with this strategy. Pieces
// whose algorithm the engine rejects are computed with another one.
static sdg_status_t workspace_ask(const sdg_call_t *call,
                                  const sdg_conv_t *conv, bool extend,
                                  size_t *out_largest, int *out_vendor) {
  cudnnConvolutionFwdAlgo_t wanted =
      (cudnnConvolutionFwdAlgo_t)sdg_call_int(call, SDG_ALGO);
  const sdg_operand_t *x = &call->operand[conv->x];
  const sdg_operand_t *y = &call->operand[conv->y];
  sdg_window_piece_t piece[SDG_PIECES_MAX];
  bool in_place;
  int pieces = sdg_window_op_pieces(&conv->op, extend, &in_place, piece);
  *out_largest = 0;
  for (int i = 0; i < pieces; i++) {
    // As in the plan: tensors that are not the program's own are packed.
    bool apart = !sdg_box_equal(&piece[i].y, &conv->op.y_box) ||
                 !sdg_box_equal(&piece[i].keep, &conv->op.y_box);
    int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
    sdg_slab_pack(&piece[i].x, x->stride, x_stride);
    sdg_slab_pack(&piece[i].y, y->stride, y_stride);
    bool own = in_place && i == 0;
    sdg_conv_descriptors_t d;
    SDG_TRY(sdg_conv_describe(conv, call, &piece[i], own ? x->stride : x_stride,
                              own || !apart ? y->stride : y_stride, NULL, &d));
    size_t bytes = 0;
    cudnnConvolutionFwdAlgo_t algo = wanted;
    cudnnStatus_t got =
        sdg_conv_choose(call, &d, sdg_conv_w(call), wanted, &algo, &bytes);
    sdg_conv_undescribe(&d);
    *out_vendor = (int)got;
    if (got != CUDNN_STATUS_SUCCESS)
      return SDG_OK;
    if (bytes > *out_largest)
      *out_largest = bytes;
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
  (void)sdg_window_op_view(&conv->op, &view);
  sdg_conv_view_settle(call, conv, &view, sdg_conv_w(call), algo);
  bool extend = sdg_window_op_extends(&conv->op, strategy);
  size_t largest;
  // Checked in the same way as the call itself.
  *out_vendor = sdg_conv_refusal(call, conv, tagging, algo);
  if (*out_vendor)
    return SDG_OK;
  SDG_TRY(workspace_ask(call, conv, extend, &largest, out_vendor));
  if (*out_vendor && !extend)
    SDG_TRY(workspace_ask(call, conv, true, &largest, out_vendor));
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
  sdg_slab_pack(&piece.x, x->stride, stride);
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
