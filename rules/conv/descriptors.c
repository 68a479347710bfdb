// SPDX-License-Identifier: Apache-2.0
// The vendor's descriptors and algorithms of a convolution: reads them, chooses
// them for sub-calls, and asks what a single device would reject.
#include <stdint.h>
#include <string.h>

#include "rules/conv/answers.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"
#include "src/plan/plan.h"

static sdg_status_t refused(const char *function, cudnnStatus_t status) {
  return sdg_fail(SDG_E_VENDOR_CALL, "%s: status %d", function, (int)status);
}

sdg_status_t sdg_conv_parameters(const void *descriptor,
                                 sdg_conv_parameters_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnConvolutionDescriptor_t conv =
      (cudnnConvolutionDescriptor_t)(uintptr_t)descriptor;
  // The vendor's library accepts at most seven.
  cudnnStatus_t got = cudnn->cudnnGetConvolutionNdDescriptor(
      conv, SDG_DIMS_MAX - 2, &out->spatial, out->pad, out->stride,
      out->dilation, &out->mode, &out->compute);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnGetConvolutionGroupCount(conv, &out->groups);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnGetConvolutionMathType(conv, &out->math);
  if (got != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_ARGUMENT,
                    "a convolution descriptor cannot be read: status %d",
                    (int)got);
  return SDG_OK;
}

static sdg_status_t conv_set(const sdg_cudnn_t *cudnn,
                             cudnnConvolutionDescriptor_t descriptor,
                             const sdg_conv_parameters_t *p, const int *pad) {
  cudnnStatus_t got = cudnn->cudnnSetConvolutionNdDescriptor(
      descriptor, p->spatial, pad, p->stride, p->dilation, p->mode, p->compute);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetConvolutionGroupCount(descriptor, p->groups);
  if (got == CUDNN_STATUS_SUCCESS)
    got = cudnn->cudnnSetConvolutionMathType(descriptor, p->math);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : refused("cudnnSetConvolutionNdDescriptor", got);
}

sdg_status_t sdg_conv_describe(const sdg_conv_t *conv, const sdg_call_t *call,
                               const sdg_window_piece_t *piece,
                               const int64_t *x_stride, const int64_t *y_stride,
                               const int64_t *z_stride,
                               sdg_conv_descriptors_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  memset(out, 0, sizeof *out);
  // The output's type: BiasActivationForward and mixed types differ from x.
  int x_type = call->operand[conv->x].type;
  int y_type = conv->y >= 0 ? call->operand[conv->y].type : x_type;
  sdg_status_t status = SDG_OK;
  if (cudnn->cudnnCreateTensorDescriptor(&out->x) != CUDNN_STATUS_SUCCESS ||
      cudnn->cudnnCreateTensorDescriptor(&out->y) != CUDNN_STATUS_SUCCESS ||
      cudnn->cudnnCreateConvolutionDescriptor(&out->conv) !=
          CUDNN_STATUS_SUCCESS ||
      (z_stride &&
       cudnn->cudnnCreateTensorDescriptor(&out->z) != CUDNN_STATUS_SUCCESS)) {
    status = sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
    goto fail;
  }
  SDG_TRY_GOTO(sdg_tensor_set(out->x, x_type, &piece->x, x_stride), fail);
  SDG_TRY_GOTO(sdg_tensor_set(out->y, y_type, &piece->y, y_stride), fail);
  if (z_stride)
    SDG_TRY_GOTO(sdg_tensor_set(out->z, call->operand[conv->z].type, &piece->y,
                                z_stride),
                 fail);
  SDG_TRY_GOTO(conv_set(cudnn, out->conv, &conv->parameters, piece->pad + 2),
               fail);
  return SDG_OK;
fail:
  sdg_conv_undescribe(out);
  return status;
}

void sdg_conv_undescribe(sdg_conv_descriptors_t *descriptors) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return;
  if (descriptors->x)
    (void)cudnn->cudnnDestroyTensorDescriptor(descriptors->x);
  if (descriptors->y)
    (void)cudnn->cudnnDestroyTensorDescriptor(descriptors->y);
  if (descriptors->z)
    (void)cudnn->cudnnDestroyTensorDescriptor(descriptors->z);
  if (descriptors->conv)
    (void)cudnn->cudnnDestroyConvolutionDescriptor(descriptors->conv);
  memset(descriptors, 0, sizeof *descriptors);
}

// Whether a piece begins a multiple of LOAD_BYTES behind its tensor's first
// element. Engines load that many bytes at once.
static bool aligned(const sdg_operand_t *operand, const sdg_box_t *piece,
                    const sdg_box_t *own) {
  enum { LOAD_BYTES = 16 };
  int64_t offset = 0;
  for (int d = 0; d < piece->dims; d++)
    offset += (piece->dim[d].lo - own->dim[d].lo) * operand->stride[d];
  return offset * operand->elem_bytes % LOAD_BYTES == 0;
}

static bool is_channels_last(const sdg_operand_t *operand) {
  return operand->extent[1] > 1 && operand->stride[1] == 1;
}

// Whether the vendor's library would copy all of x and y into its workspace and
// back, as it does for a part of the rows of several images with channels last.
// In the shard view a copy of x alone is enough. In the whole view it is not,
// because y is a part of the program's y there, too.
static bool copied(const sdg_window_op_t *op, const sdg_operand_t *x,
                   const sdg_operand_t *y, const sdg_window_piece_t *piece) {
  return !op->whole && (is_channels_last(x) || is_channels_last(y)) &&
         piece->x.dim[0].hi - piece->x.dim[0].lo > 1 &&
         !(sdg_box_equal(&piece->x, &op->x_box) &&
           sdg_box_equal(&piece->y, &op->y_box));
}

void sdg_conv_view_settle(const sdg_call_t *call, sdg_conv_t *conv,
                          const sdg_window_piece_t *view,
                          cudnnFilterDescriptor_t w, int algo) {
  const sdg_operand_t *x = &call->operand[conv->x];
  sdg_window_op_t *op = &conv->op;
  sdg_window_piece_t piece = *view;
  sdg_conv_descriptors_t d;
  size_t bytes;
  // A query for the output size has no y of its own.
  if (!view->bare || conv->y < 0 || sdg_box_empty(&view->x) ||
      sdg_box_empty(&view->y))
    return;
  const sdg_operand_t *y = &call->operand[conv->y];
  piece.x.dim[1] = op->x_box.dim[1];
  piece.y.dim[1] = op->y_box.dim[1];
  op->padded = true;
  if (!aligned(x, &piece.x, &op->x_box) || !aligned(y, &piece.y, &op->y_box) ||
      copied(op, x, y, &piece) ||
      sdg_conv_describe(conv, call, &piece, x->stride, y->stride, NULL, &d) !=
          SDG_OK)
    return;
  op->padded =
      sdg_conv_workspace(call, &d, w, algo, &bytes) != CUDNN_STATUS_SUCCESS;
  sdg_conv_undescribe(&d);
}

// Tensor cores multiply types of at most two bytes, and, unless the program
// rules it out, float as TF32: an engine without them takes several times as
// long, so that a copy pays. No engine uses them for double.
static bool has_tensor_cores(const sdg_conv_t *conv, int elem_bytes) {
  return elem_bytes <= 2 ||
         (elem_bytes == 4 && conv->parameters.math != CUDNN_FMA_MATH);
}

// Engines that use tensor cores load LOAD_BYTES at once. With another address
// the vendor's library takes an engine without them, and says nothing.
void sdg_conv_view_judge(const sdg_call_t *call, sdg_conv_t *conv,
                         const sdg_window_piece_t *view) {
  const sdg_operand_t *x = &call->operand[conv->x];
  sdg_window_op_t *op = &conv->op;
  sdg_window_piece_t piece = *view;
  op->slow_in_place = false;
  if (conv->y < 0 || sdg_box_empty(&view->x) || sdg_box_empty(&view->y))
    return;
  const sdg_operand_t *y = &call->operand[conv->y];
  const sdg_operand_t *z = conv->z < 0 ? y : &call->operand[conv->z];
  piece.x.dim[1] = op->x_box.dim[1];
  piece.y.dim[1] = op->y_box.dim[1];
  bool all_aligned = aligned(x, &piece.x, &op->x_box) &&
                     aligned(y, &piece.y, &op->y_box) &&
                     aligned(z, &piece.y, &op->y_box);
  op->slow_in_place = copied(op, x, y, &piece) ||
                      (has_tensor_cores(conv, x->elem_bytes) && !all_aligned);
}

// ---- what a single device rejects ------------------------------------------

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
  // Channels were counted as one element so far.
  piece.x.dim[1] = conv->op.x_box.dim[1];
  piece.y.dim[1] = conv->op.y_box.dim[1];
  // The extents exceed the vendor's descriptors, so no single device can have
  // the tensor.
  if (sdg_box_count(&piece.x) > INT32_MAX ||
      sdg_box_count(&piece.y) > INT32_MAX)
    return 0;
  sdg_slab_pack(&piece.x, sdg_operand_nesting(x), x_stride);
  sdg_slab_pack(&piece.y, sdg_operand_nesting(y), y_stride);
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

cudnnStatus_t sdg_conv_own_workspace(const sdg_call_t *call,
                                     size_t *out_bytes) {
  sdg_conv_roles_t roles = sdg_conv_roles(call);
  const sdg_conv_descriptors_t own = {
      .x = sdg_call_descriptor(call, roles.x),
      .y = sdg_call_descriptor(call, roles.y),
      .conv = sdg_call_pointer(call, SDG_OP),
  };
  cudnnFilterDescriptor_t w = sdg_conv_w(call);
  if (!sdg_cudnn_get() || !own.x || !w || !own.conv || !own.y)
    return CUDNN_STATUS_BAD_PARAM;
  return sdg_conv_workspace(call, &own, w, sdg_call_int(call, SDG_ALGO),
                            out_bytes);
}

bool sdg_conv_refused_own(const sdg_call_t *call) {
  size_t bytes = 0;
  return sdg_conv_own_workspace(call, &bytes) != CUDNN_STATUS_SUCCESS ||
         bytes > sdg_call_size(call, SDG_WORKSPACE_BYTES);
}
