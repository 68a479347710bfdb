// SPDX-License-Identifier: Apache-2.0
// Answers to a program's questions about a convolution's gradients on split
// tensors: workspace, algorithms.
#include <stdlib.h>

#include "rules/conv/adjoint.h"
#include "rules/conv/answers.h"
#include "rules/conv/filter.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "rules/window/stack.h"
#include "src/exchange/device.h"

enum { ALIGN_BYTES = 256 }; // of tensors in scratch

// ---- workspace -------------------------------------------------------------

// The largest workspace of the sub-calls so far. Pieces whose algorithm the
// engine rejects are computed with another one.
typedef struct largest {
  size_t bytes;
  cudnnStatus_t got; // 0 unless it accepts no algorithm
} largest_t;

static sdg_status_t piece_ask(const sdg_call_t *call, const sdg_conv_t *conv,
                              const sdg_window_piece_t *piece,
                              cudnnFilterDescriptor_t w,
                              const int64_t *x_stride, const int64_t *y_stride,
                              largest_t *largest) {
  int wanted = sdg_call_int(call, SDG_ALGO), algo = wanted;
  sdg_conv_descriptors_t d;
  SDG_TRY(sdg_conv_describe(conv, call, piece, x_stride, y_stride, NULL, &d));
  size_t bytes = 0;
  largest->got = sdg_conv_choose(call, &d, w, wanted, &algo, &bytes);
  sdg_conv_undescribe(&d);
  if (largest->got == CUDNN_STATUS_SUCCESS && bytes > largest->bytes)
    largest->bytes = bytes;
  return SDG_OK;
}

static sdg_status_t strip_ask(const sdg_call_t *call, const sdg_conv_data_t *g,
                              const sdg_box_t *want, largest_t *largest) {
  const sdg_operand_t *x = &call->operand[g->conv.x];
  const sdg_operand_t *y = &call->operand[g->conv.y];
  bool sums;
  sdg_box_t made = sdg_conv_data_made(g, want, &sums);
  int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
  // As in the plan: tensors that are not the program's own are packed.
  bool apart = sdg_conv_data_is_apart(g, &made, want);
  for (int i = 0; i < g->images && largest->got == CUDNN_STATUS_SUCCESS; i++) {
    sdg_window_piece_t piece;
    if (!sdg_conv_data_piece(g, want, i, &piece))
      continue;
    sdg_slab_pack(&piece.y, sdg_operand_nesting(y), y_stride);
    bool own = sums || !sdg_box_equal(&piece.x, &made);
    sdg_slab_pack(&piece.x, sdg_operand_nesting(x), x_stride);
    SDG_TRY(piece_ask(call, &g->conv, &piece, sdg_conv_w(call),
                      apart || own ? x_stride : x->stride, y_stride, largest));
  }
  return SDG_OK;
}

// A stack's sub-call, on packed tensors.
static sdg_status_t stack_ask(const sdg_call_t *call, const sdg_conv_data_t *g,
                              const sdg_window_piece_t *strip, int size,
                              largest_t *largest) {
  const sdg_window_piece_t piece = sdg_window_stack_piece(strip, size);
  int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
  sdg_slab_pack(&piece.x, sdg_operand_nesting(&call->operand[g->conv.x]),
                x_stride);
  sdg_slab_pack(&piece.y, sdg_operand_nesting(&call->operand[g->conv.y]),
                y_stride);
  return piece_ask(call, &g->conv, &piece, sdg_conv_w(call), x_stride, y_stride,
                   largest);
}

static sdg_status_t dgrad_ask(const sdg_call_t *call, const sdg_conv_data_t *g,
                              sdg_conv_way_t way, largest_t *largest) {
  bool extend = way >= SDG_CONV_EXTENDED;
  sdg_box_t want[2 * SDG_DIMS_MAX];
  sdg_window_piece_t piece[2 * SDG_DIMS_MAX];
  int lead[2 * SDG_DIMS_MAX];
  int strips = sdg_conv_data_strips(g, extend, want);
  bool stacks = sdg_conv_data_stacks(
      g, want, strips, sdg_operand_nesting(&call->operand[g->conv.x]),
      sdg_operand_nesting(&call->operand[g->conv.y]), piece, lead);
  *largest = (largest_t){.bytes = 0};
  if (!extend) {
    const sdg_operand_t *y = &call->operand[g->conv.y];
    sdg_window_piece_t view = sdg_conv_data_view(g);
    int64_t packed[SDG_DIMS_MAX];
    sdg_slab_pack(&view.y, sdg_operand_nesting(y), packed);
    SDG_TRY(piece_ask(call, &g->conv, &view, sdg_conv_w(call),
                      call->operand[g->conv.x].stride,
                      way == SDG_CONV_PACKED ? packed : y->stride, largest));
  }
  for (int s = 0; s < strips && largest->got == CUDNN_STATUS_SUCCESS; s++) {
    int size = stacks ? sdg_window_stack_size(lead, strips, s) : 1;
    if (size > 1)
      SDG_TRY(stack_ask(call, g, &piece[s], size, largest));
    else if (size == 1)
      SDG_TRY(strip_ask(call, g, &want[s], largest));
  }
  return SDG_OK;
}

// Tensors of separate sub-calls are packed.
static sdg_status_t part_ask(const sdg_call_t *call, const sdg_conv_data_t *g,
                             const sdg_conv_adjoint_part_t *part,
                             largest_t *largest) {
  const sdg_window_piece_t *piece = &part->piece;
  cudnnFilterDescriptor_t w = sdg_conv_w(call), taps = NULL;
  int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
  sdg_slab_pack(&piece->x, sdg_operand_nesting(&call->operand[g->conv.x]),
                x_stride);
  sdg_slab_pack(&piece->y, sdg_operand_nesting(&call->operand[g->conv.y]),
                y_stride);
  if (!part->all)
    SDG_TRY(sdg_conv_gradient_filter(call, &g->conv, part->taps, &taps));
  sdg_status_t status = piece_ask(call, &g->conv, piece, taps ? taps : w,
                                  x_stride, y_stride, largest);
  if (taps)
    (void)sdg_cudnn_get()->cudnnDestroyFilterDescriptor(taps);
  return status;
}

// What the plan would compute, with its inner rows in place or separately.
static sdg_status_t adjoint_ask(const sdg_call_t *call,
                                const sdg_conv_data_t *g, bool in_place,
                                largest_t *largest) {
  sdg_conv_adjoint_part_t *part = calloc(SDG_CONV_ADJOINT_PARTS, sizeof *part);
  sdg_box_t inner = sdg_conv_adjoint_inner(g);
  sdg_window_piece_t piece;
  sdg_status_t status = SDG_OK;
  *largest = (largest_t){.bytes = 0};
  if (!part)
    return sdg_fail(SDG_E_NO_MEMORY, "parts of a gradient");
  int parts = sdg_conv_adjoint_parts(g, part), first = 0;
  if (in_place && !sdg_box_empty(&inner) &&
      sdg_conv_adjoint_in_place(g, &piece)) {
    status = piece_ask(call, &g->conv, &piece, sdg_conv_w(call),
                       call->operand[g->conv.x].stride,
                       call->operand[g->conv.y].stride, largest);
    first = 1;
  }
  for (int i = first;
       i < parts && status == SDG_OK && largest->got == CUDNN_STATUS_SUCCESS;
       i++)
    status = part_ask(call, g, &part[i], largest);
  free(part);
  return status;
}

static sdg_status_t pieces_ask(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               const sdg_conv_data_t *g, largest_t *largest) {
  sdg_strategy_t strategy = tagging->section->strategy;
  const char *why;
  if (sdg_conv_adjoint_chosen(call, tagging, g, &why)) {
    SDG_TRY(adjoint_ask(call, g, true, largest));
    return largest->got == CUDNN_STATUS_SUCCESS
               ? SDG_OK
               : adjoint_ask(call, g, false, largest);
  }
  sdg_conv_way_t way = sdg_conv_data_first(g, strategy);
  sdg_conv_data_t tried = *g;
  for (;;) {
    tried.apart = way == SDG_CONV_APART;
    SDG_TRY(dgrad_ask(call, &tried, way, largest));
    if (largest->got == CUDNN_STATUS_SUCCESS)
      return SDG_OK;
    SDG_TRY(sdg_conv_data_next(call, g, strategy, &way));
    if (way == SDG_CONV_WAYS)
      return SDG_OK;
  }
}

static sdg_status_t dgrad_workspace(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    const sdg_conv_data_t *g, int *out_vendor) {
  size_t *out_bytes = sdg_call_pointer(call, SDG_OUT_BYTES);
  if (!out_bytes)
    return sdg_fail(SDG_E_ARGUMENT, "%s: the result is NULL", call->entry_name);
  largest_t largest;
  // Checked in the same way as the call itself.
  *out_vendor =
      sdg_conv_refusal(call, &g->conv, tagging, sdg_call_int(call, SDG_ALGO));
  if (*out_vendor)
    return SDG_OK;
  SDG_TRY(pieces_ask(call, tagging, g, &largest));
  *out_vendor = (int)largest.got;
  if (largest.got == CUDNN_STATUS_SUCCESS)
    *out_bytes = largest.bytes;
  return SDG_OK;
}

// ---- algorithms ------------------------------------------------------------

static size_t box_bytes(const sdg_box_t *box, const sdg_operand_t *operand) {
  size_t bytes = (size_t)sdg_box_count(box) * (size_t)operand->elem_bytes;
  return (bytes + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
}

// Asks for algorithms for this piece. If they are timed, its tensors are in
// scratch: assembled tensors are larger than the program's.
static sdg_status_t algorithms_ask(const sdg_call_t *call,
                                   const sdg_conv_t *conv,
                                   const sdg_window_piece_t *piece,
                                   int *out_vendor) {
  const sdg_operand_t *x = &call->operand[conv->x];
  const sdg_operand_t *y = &call->operand[conv->y];
  int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
  bool data =
      sdg_conv_kind(call) == SDG_CONV_DGRAD; // or y is the program's own
  char *x_room = NULL, *y_room = sdg_call_data(call, SDG_ROLE_DY);
  sdg_conv_roles_t roles = sdg_conv_roles(call);
  sdg_conv_descriptors_t d;
  sdg_rebind_t own;
  sdg_slab_pack(&piece->x, sdg_operand_nesting(x), x_stride);
  sdg_slab_pack(&piece->y, sdg_operand_nesting(y), y_stride);
  SDG_TRY(sdg_conv_describe(conv, call, piece, x_stride,
                            data ? y_stride : y->stride, NULL, &d));
  sdg_status_t status = SDG_OK;
  if (sdg_call_has(call, SDG_ARGUMENT_WORKSPACE)) {
    size_t x_bytes = box_bytes(&piece->x, x), y_bytes = box_bytes(&piece->y, y);
    void *room;
    status = sdg_scratch_get(SDG_SCRATCH_CALL, x_bytes + (data ? y_bytes : 0),
                             &room);
    x_room = room;
    y_room = data ? x_room + x_bytes : y_room;
  }
  if (status == SDG_OK) {
    sdg_rebind_init(call, &own);
    sdg_rebind_tensor(&own, roles.x, d.x, x_room);
    sdg_rebind_tensor(&own, roles.y, d.y, y_room);
    sdg_rebind_pointer(&own, SDG_OP, d.conv);
    *out_vendor = sdg_rebind_invoke(&own);
  }
  sdg_conv_undescribe(&d);
  return status;
}

// Own rows, from an assembled dy; or from own rows of dy if the others' rows of
// dx are scattered.
static sdg_window_piece_t piece_of(const sdg_call_t *call,
                                   const sdg_tagging_t *tagging,
                                   const sdg_conv_data_t *g) {
  sdg_window_piece_t piece;
  const char *why;
  if (sdg_conv_adjoint_chosen(call, tagging, g, &why) &&
      sdg_conv_adjoint_in_place(g, &piece))
    return piece;
  return sdg_conv_data_sample(g);
}

// Algorithms are chosen and timed for everything that this rank computes,
// without communication.
static sdg_status_t dgrad_algorithms(const sdg_call_t *call,
                                     const sdg_tagging_t *tagging,
                                     const sdg_conv_data_t *g,
                                     int *out_vendor) {
  sdg_window_piece_t piece = piece_of(call, tagging, g);
  return algorithms_ask(call, &g->conv, &piece, out_vendor);
}

sdg_status_t sdg_conv_data_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) {
  sdg_conv_data_t dgrad;
  SDG_TRY(sdg_conv_data_init(call, tagging, &dgrad));
  sdg_conv_data_settle(call, &dgrad);
  sdg_status_t status =
      call->entry == SDG_ENTRY_cudnnGetConvolutionBackwardDataWorkspaceSize
          ? dgrad_workspace(call, tagging, &dgrad, out_vendor)
          : dgrad_algorithms(call, tagging, &dgrad, out_vendor);
  sdg_conv_data_fini(&dgrad);
  return status;
}

// ---- the filter's ----------------------------------------------------------

static sdg_status_t wgrad_strip_ask(const sdg_call_t *call,
                                    const sdg_conv_t *conv,
                                    const sdg_conv_filter_strip_t *strip,
                                    sdg_conv_way_t way, largest_t *largest) {
  const sdg_operand_t *y = &call->operand[conv->y];
  const sdg_window_piece_t piece =
      sdg_window_stack_piece(&strip->piece, strip->size);
  cudnnFilterDescriptor_t w = sdg_conv_w(call), part = NULL;
  // As in the plan: tensors that are not the program's own are packed.
  bool own = way != SDG_CONV_APART && sdg_box_equal(&piece.y, &conv->op.y_box);
  int64_t x_stride[SDG_DIMS_MAX], y_stride[SDG_DIMS_MAX];
  sdg_slab_pack(&piece.x, sdg_operand_nesting(&call->operand[conv->x]),
                x_stride);
  sdg_slab_pack(&piece.y, sdg_operand_nesting(y), y_stride);
  if (!strip->all)
    SDG_TRY(sdg_conv_gradient_filter(call, conv, strip->taps, &part));
  sdg_status_t status = piece_ask(call, conv, &piece, part ? part : w, x_stride,
                                  own ? y->stride : y_stride, largest);
  if (part)
    (void)sdg_cudnn_get()->cudnnDestroyFilterDescriptor(part);
  return status;
}

static sdg_status_t wgrad_ask(const sdg_call_t *call, const sdg_conv_t *conv,
                              const sdg_window_piece_t *view,
                              sdg_conv_way_t way, largest_t *largest) {
  if (way >= SDG_CONV_EXTENDED)
    view = NULL;
  const sdg_operand_t *x = &call->operand[conv->x];
  const int64_t *like[] = {sdg_operand_nesting(x),
                           sdg_operand_nesting(&call->operand[conv->y])};
  sdg_conv_filter_strip_t *strip = NULL;
  int64_t packed[SDG_DIMS_MAX];
  int strips;
  sdg_status_t status = SDG_OK;
  *largest = (largest_t){.bytes = 0};
  SDG_TRY(sdg_conv_filter_strips(&conv->op, view, like, &strip, &strips));
  if (view) {
    sdg_slab_pack(&view->x, like[0], packed);
    SDG_TRY_GOTO(piece_ask(call, conv, view, sdg_conv_w(call),
                           way == SDG_CONV_PACKED ? packed : x->stride,
                           call->operand[conv->y].stride, largest),
                 done);
  }
  for (int i = 0; i < strips && largest->got == CUDNN_STATUS_SUCCESS; i++)
    if (strip[i].size > 0)
      SDG_TRY_GOTO(wgrad_strip_ask(call, conv, &strip[i], way, largest), done);
done:
  free(strip);
  return status;
}

static sdg_status_t wgrad_workspace(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    const sdg_conv_t *conv, int *out_vendor) {
  size_t *out_bytes = sdg_call_pointer(call, SDG_OUT_BYTES);
  if (!out_bytes)
    return sdg_fail(SDG_E_ARGUMENT, "%s: the result is NULL", call->entry_name);
  sdg_strategy_t strategy = tagging->section->strategy;
  sdg_window_piece_t view;
  sdg_conv_way_t way;
  largest_t largest;
  // Checked in the same way as the call itself.
  *out_vendor =
      sdg_conv_refusal(call, conv, tagging, sdg_call_int(call, SDG_ALGO));
  if (*out_vendor)
    return SDG_OK;
  SDG_TRY(sdg_conv_filter_first(call, conv, strategy, &view, &way));
  do {
    SDG_TRY(wgrad_ask(call, conv, &view, way, &largest));
    if (largest.got == CUDNN_STATUS_SUCCESS)
      break;
    SDG_TRY(sdg_conv_filter_next(call, conv, strategy, &way));
  } while (way != SDG_CONV_WAYS);
  *out_vendor = (int)largest.got;
  if (largest.got == CUDNN_STATUS_SUCCESS)
    *out_bytes = largest.bytes;
  return SDG_OK;
}

// Runs on an assembled x.
static sdg_status_t wgrad_algorithms(const sdg_call_t *call,
                                     const sdg_conv_t *conv, int *out_vendor) {
  sdg_window_piece_t piece = sdg_window_op_everything(&conv->op);
  return algorithms_ask(call, conv, &piece, out_vendor);
}

sdg_status_t sdg_conv_filter_answer(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging,
                                    int *out_vendor) {
  sdg_conv_t conv;
  SDG_TRY(sdg_conv_init(call, tagging, &conv));
  sdg_conv_filter_settle(call, &conv);
  sdg_status_t status = sdg_conv_filter_weigh(call, tagging, &conv);
  if (status == SDG_OK)
    status =
        call->entry == SDG_ENTRY_cudnnGetConvolutionBackwardFilterWorkspaceSize
            ? wgrad_workspace(call, tagging, &conv, out_vendor)
            : wgrad_algorithms(call, &conv, out_vendor);
  sdg_conv_fini(&conv);
  return status;
}
