// SPDX-License-Identifier: Apache-2.0
// The sub-calls of the plans of a convolution's gradients.
#include "rules/conv/gradient.h"

#include <stdlib.h>

#include "rules/conv/answers.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

// What a sub-call stores besides tensors.
typedef struct op {
  cudnnConvolutionDescriptor_t conv;
  cudnnFilterDescriptor_t w; // NULL: uses the program's
  sdg_conv_gradient_old_t old;
  bool unscaled; // by alpha
  int algo;
  size_t workspace_bytes;
} op_t;

const void *sdg_conv_gradient_beta(const sdg_call_t *call) {
  return sdg_call_scalar_at(call, SDG_BETA);
}

static bool of_filter(const sdg_call_t *call) {
  return sdg_conv_kind(call) == SDG_CONV_WGRAD;
}

// ---- running ---------------------------------------------------------------

// Replaces the program's beta.
static const void *old_scale(const sdg_call_t *call,
                             sdg_conv_gradient_old_t old) {
  static const double doubles[] = {
      [SDG_CONV_GRADIENT_ADD] = 1, [SDG_CONV_GRADIENT_CLEAR] = 0};
  static const float floats[] = {
      [SDG_CONV_GRADIENT_ADD] = 1, [SDG_CONV_GRADIENT_CLEAR] = 0};
  return call->operand[0].type == CUDNN_DATA_DOUBLE
             ? (const void *)&doubles[old]
             : (const void *)&floats[old];
}

enum { X, Y, W }; // index of a sub-call's tensors

static cudnnStatus_t grad_run(const sdg_subcall_run_t *run) {
  const op_t *op = run->op;
  sdg_conv_roles_t roles = sdg_conv_roles(run->call);
  sdg_rebind_t own;
  sdg_rebind_init(run->call, &own);
  sdg_rebind_tensor(&own, roles.x, run->descriptor[X], run->data[X]);
  sdg_rebind_tensor(&own, roles.y, run->descriptor[Y], run->data[Y]);
  if (op->w || of_filter(run->call))
    sdg_rebind_tensor(&own, roles.w, op->w ? op->w : sdg_conv_w(run->call),
                      run->data[W]);
  sdg_rebind_pointer(&own, SDG_OP, op->conv);
  sdg_rebind_int(&own, SDG_ALGO, op->algo);
  if (run->workspace_bytes > 0) { // or the program's is large enough
    sdg_rebind_pointer(&own, SDG_WORKSPACE, run->workspace);
    sdg_rebind_size(&own, SDG_WORKSPACE_BYTES, run->workspace_bytes);
  }
  if (op->old != SDG_CONV_GRADIENT_BETA)
    sdg_rebind_scalar(&own, SDG_BETA, old_scale(run->call, op->old));
  if (op->unscaled)
    sdg_rebind_scalar(&own, SDG_ALPHA,
                      old_scale(run->call, SDG_CONV_GRADIENT_ADD));
  return (cudnnStatus_t)sdg_rebind_invoke(&own);
}

static void op_destroy(void *user) {
  op_t *op = user;
  (void)sdg_cudnn_get()->cudnnDestroyConvolutionDescriptor(op->conv);
  if (op->w)
    (void)sdg_cudnn_get()->cudnnDestroyFilterDescriptor(op->w);
  free(op);
}

// ---- building --------------------------------------------------------------

// The op of a piece: its descriptor, and an algorithm that accepts it.
static sdg_status_t
op_make(const sdg_conv_t *conv, const sdg_call_t *call, const sdg_plan_t *plan,
        const sdg_window_piece_t *piece, const sdg_conv_gradient_slabs_t *slabs,
        sdg_conv_gradient_old_t old, const sdg_range_t *taps, op_t **out,
        int *out_refusal) {
  sdg_conv_descriptors_t d;
  op_t *op;
  SDG_TRY(SDG_ALLOCATE(op, 1, "a plan"));
  sdg_status_t status =
      sdg_conv_describe(conv, call, piece, plan->slab[slabs->x].stride,
                        plan->slab[slabs->y].stride, NULL, &d);
  if (status == SDG_OK && taps) {
    status = sdg_conv_gradient_filter(call, conv, taps, &op->w);
    if (status != SDG_OK)
      sdg_conv_undescribe(&d);
  }
  if (status != SDG_OK) {
    free(op);
    return status;
  }
  *out_refusal = (int)sdg_conv_choose(
      call, &d, op->w ? op->w : sdg_conv_w(call), sdg_call_int(call, SDG_ALGO),
      &op->algo, &op->workspace_bytes);
  op->old = old;
  op->unscaled = slabs->unscaled;
  op->conv = d.conv;
  d.conv = NULL; // kept
  sdg_conv_undescribe(&d);
  *out = op;
  return SDG_OK;
}

// Adds the sub-call; its filter is slab slabs->w, all of it.
static sdg_status_t grad_add(const sdg_conv_t *conv, const sdg_call_t *call,
                             sdg_plan_t *plan, const sdg_window_piece_t *piece,
                             const sdg_conv_gradient_slabs_t *slabs,
                             sdg_conv_gradient_old_t old,
                             const sdg_range_t *taps, int *out_refusal) {
  op_t *op = NULL;
  SDG_TRY(op_make(conv, call, plan, piece, slabs, old, taps, &op, out_refusal));
  if (*out_refusal) {
    op_destroy(op);
    return SDG_E_VENDOR_CALL;
  }
  const sdg_operand_t *operand = call->operand;
  sdg_subcall_t sub = {
      .fn = grad_run,
      .tensors = 2,
      .tensor = {[X] = {slabs->x, piece->x, operand[conv->x].type, NULL},
                 [Y] = {slabs->y, piece->y, operand[conv->y].type, NULL}},
      .op = op,
      .op_destroy = op_destroy,
  };
  if (of_filter(call) || taps) {
    sub.tensor[sub.tensors++] =
        sdg_subcall_slab(plan, slabs->w, operand[conv->w].type);
  }
  if (op->workspace_bytes > sdg_call_size(call, SDG_WORKSPACE_BYTES))
    sub.workspace_bytes = op->workspace_bytes;
  return sdg_subcall_add(plan, &sub);
}

sdg_status_t sdg_conv_gradient_add(const sdg_conv_t *conv,
                                   const sdg_call_t *call, sdg_plan_t *plan,
                                   const sdg_window_piece_t *piece,
                                   const sdg_conv_gradient_slabs_t *slabs,
                                   sdg_conv_gradient_old_t old,
                                   int *out_refusal) {
  return grad_add(conv, call, plan, piece, slabs, old, NULL, out_refusal);
}

// ---- parts of a filter -----------------------------------------------------

// The position of taps in the filter: cuDNN's CONVOLUTION mirrors it.
static sdg_range_t place_of(const sdg_conv_t *conv, sdg_range_t taps, int d) {
  int64_t kernel = conv->spec.window[d].kernel;
  return conv->parameters.mode == CUDNN_CONVOLUTION
             ? (sdg_range_t){kernel - taps.hi, kernel - taps.lo}
             : taps;
}

sdg_status_t sdg_conv_gradient_filter(const sdg_call_t *call,
                                      const sdg_conv_t *conv,
                                      const sdg_range_t *taps,
                                      cudnnFilterDescriptor_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnFilterDescriptor_t of = sdg_conv_w(call), made;
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  int dims, extent[SDG_DIMS_MAX];
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  if (cudnn->cudnnGetFilterNdDescriptor(of, SDG_DIMS_MAX, &type, &format, &dims,
                                        extent) != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_VENDOR_CALL, "cudnnGetFilterNdDescriptor");
  for (int d = 2; d < conv->op.dims; d++)
    extent[d] = (int)(taps[d].hi - taps[d].lo);
  if (cudnn->cudnnCreateFilterDescriptor(&made) != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
  cudnnStatus_t got = cudnn->cudnnSetFilterNdDescriptor(made, type, format,
                                                        conv->op.dims, extent);
  if (got == CUDNN_STATUS_SUCCESS) {
    *out = made;
    return SDG_OK;
  }
  (void)cudnn->cudnnDestroyFilterDescriptor(made);
  return sdg_fail(SDG_E_VENDOR_CALL, "cudnnSetFilterNdDescriptor: status %d",
                  (int)got);
}

sdg_status_t sdg_conv_gradient_add_taps(
    const sdg_conv_t *conv, const sdg_call_t *call, sdg_plan_t *plan,
    const sdg_window_piece_t *piece, const sdg_range_t *taps,
    const sdg_conv_gradient_slabs_t *slabs, int *out_refusal) {
  sdg_conv_gradient_slabs_t apart = *slabs;
  sdg_box_t box = plan->slab[slabs->w].box;
  sdg_type_t type = call->operand[conv->w].type;
  for (int d = 2; d < box.dims; d++)
    box.dim[d] = place_of(conv, taps[d], d);
  SDG_TRY(sdg_plan_scratch(plan, &box, slabs->w, &apart.w));
  SDG_TRY(grad_add(conv, call, plan, piece, &apart, SDG_CONV_GRADIENT_CLEAR,
                   taps, out_refusal));
  sdg_subcall_tensor_t from = sdg_subcall_slab(plan, apart.w, type);
  sdg_subcall_tensor_t to = {.slab = slabs->w, .box = box, .type = type};
  return sdg_subcall_transform(plan, 1, &from, 1, &to);
}

sdg_status_t sdg_conv_gradient_add_through(
    const sdg_conv_t *conv, const sdg_call_t *call, sdg_plan_t *plan,
    const sdg_window_piece_t *piece, const sdg_range_t *taps,
    const sdg_conv_gradient_slabs_t *slabs, int *out_refusal) {
  sdg_conv_gradient_slabs_t apart = *slabs;
  sdg_box_t box = plan->slab[slabs->w].box;
  for (int d = 2; d < box.dims; d++)
    box.dim[d] = place_of(conv, taps[d], d);
  SDG_TRY(sdg_plan_scratch(plan, &box, slabs->w, &apart.w));
  SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, slabs->w, apart.w, NULL, NULL,
                        SDG_COPY_STRIP));
  return grad_add(conv, call, plan, piece, &apart, SDG_CONV_GRADIENT_CLEAR,
                  taps, out_refusal);
}
