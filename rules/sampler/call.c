// SPDX-License-Identifier: Apache-2.0
// Reads the sampler's calls, and makes them on tensors of a plan.
#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules/kit/subcall.h"
#include "rules/sampler/plan.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

bool sdg_sampler_is_backward(const sdg_call_t *call) {
  return call->entry == SDG_ENTRY_cudnnSpatialTfSamplerBackward;
}

static int tensors_count(const sdg_call_t *call) {
  return sdg_sampler_is_backward(call) ? SDG_SAMPLER_TENSORS : SDG_SAMPLER_DX;
}

int sdg_sampler_operand(const sdg_call_t *call, sdg_sampler_tensor_t tensor) {
  static const sdg_role_t roles[] = {SDG_ROLE_X, SDG_ROLE_Y, SDG_ROLE_GRID,
                                     SDG_ROLE_DX, SDG_ROLE_DGRID};
  bool of_y = tensor == SDG_SAMPLER_Y && sdg_sampler_is_backward(call);
  return sdg_call_operand(call, of_y ? SDG_ROLE_DY : roles[tensor]);
}

const sdg_placement_t *sdg_sampler_at(const sdg_call_t *call,
                                      const sdg_tagging_t *tagging,
                                      sdg_sampler_tensor_t tensor) {
  return &tagging->placement[sdg_sampler_operand(call, tensor)];
}

sdg_box_t sdg_sampler_need(const sdg_placement_t *x, const sdg_box_t *box) {
  sdg_box_t need = {.dims = box->dims};
  if (sdg_box_empty(box))
    return need;
  for (int d = 0; d < box->dims; d++)
    need.dim[d] =
        d < 2 ? box->dim[d] : (sdg_range_t){0, sdg_placement_extent(x, d)};
  return need;
}

// Whether both have 4 dimensions, and the same global extents in the first
// `dims`.
static bool alike(const sdg_placement_t *a, const sdg_placement_t *b,
                  int dims) {
  bool equal = a->dims == 4 && b->dims == 4;
  for (int d = 0; equal && d < dims; d++)
    equal = sdg_placement_extent(a, d) == sdg_placement_extent(b, d);
  return equal;
}

int sdg_sampler_unfit(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  const sdg_placement_t *x = sdg_sampler_at(call, tagging, SDG_SAMPLER_X);
  if (!alike(x, sdg_sampler_at(call, tagging, SDG_SAMPLER_Y), 2))
    return sdg_sampler_operand(call, SDG_SAMPLER_Y);
  if (sdg_sampler_is_backward(call) &&
      !alike(x, sdg_sampler_at(call, tagging, SDG_SAMPLER_DX), 4))
    return sdg_sampler_operand(call, SDG_SAMPLER_DX);
  return -1;
}

static void extents_format(const sdg_placement_t *placement, char *out,
                           size_t out_bytes) {
  size_t used = 0;
  out[0] = '\0';
  for (int d = 0; d < placement->dims && used < out_bytes; d++)
    used +=
        (size_t)snprintf(out + used, out_bytes - used, "%s%lld", d ? "," : "",
                         (long long)sdg_placement_extent(placement, d));
}

sdg_status_t sdg_sampler_unfit_fail(const sdg_call_t *call,
                                    const sdg_tagging_t *tagging, int index) {
  char of_x[96], of_it[96];
  sdg_role_t role = call->operand[index].role;
  extents_format(sdg_sampler_at(call, tagging, SDG_SAMPLER_X), of_x,
                 sizeof of_x);
  extents_format(&tagging->placement[index], of_it, sizeof of_it);
  return sdg_fail(SDG_E_OPERANDS_DIFFER,
                  "%s: x is [%s] over all ranks, %s is [%s]; %s equal",
                  call->entry_name, of_x, sdg_role_name(role), of_it,
                  role == SDG_ROLE_DX ? "all extents must be"
                                      : "N and C must be");
}

// ---- sub-calls -------------------------------------------------------------

// What a sub-call stores.
typedef struct sampler {
  cudnnSpatialTransformerDescriptor_t transformer; // NULL for finish_run
  unsigned scaled;
  sdg_sampler_tensor_t gradient; // for finish_run only
} sampler_t;

static void sampler_destroy(void *user) {
  sampler_t *sampler = user;
  if (sampler->transformer)
    (void)sdg_cudnn_get()->cudnnDestroySpatialTransformerDescriptor(
        sampler->transformer);
  free(sampler);
}

enum { ZERO, ONE }; // scalars

// A scalar of the program's call.
static const void *scalar(const sdg_subcall_run_t *run,
                          sdg_scalar_argument_t which) {
  return sdg_call_scalar_at(run->call, which);
}

// Whether alpha is applied to the sum of the ranks' addends. An infinite alpha
// would make addends infinite, and a sum of infinities of both signs NaN.
static bool is_late(const sdg_subcall_run_t *run, sdg_scalar_argument_t alpha) {
  return isinf(sdg_call_scalar(run->call, alpha));
}

// The alpha of the sub-call for a gradient: 1 if finish_run applies it later.
static const void *factor(const sdg_subcall_run_t *run,
                          sdg_scalar_argument_t alpha,
                          sdg_sampler_tensor_t gradient) {
  const sampler_t *sampler = run->op;
  return !(sampler->scaled >> gradient & 1) && is_late(run, alpha)
             ? &run->scalar[ONE]
             : scalar(run, alpha);
}

static cudnnStatus_t forward_run(const sdg_subcall_run_t *run) {
  const sampler_t *sampler = run->op;
  return sdg_cudnn_get()->cudnnSpatialTfSamplerForward(
      run->handle, sampler->transformer, scalar(run, SDG_ALPHA),
      run->descriptor[SDG_SAMPLER_X], run->data[SDG_SAMPLER_X],
      run->data[SDG_SAMPLER_GRID], scalar(run, SDG_BETA),
      run->descriptor[SDG_SAMPLER_Y], run->data[SDG_SAMPLER_Y]);
}

static cudnnStatus_t backward_run(const sdg_subcall_run_t *run) {
  const sampler_t *sampler = run->op;
  const void *zero = &run->scalar[ZERO];
  return sdg_cudnn_get()->cudnnSpatialTfSamplerBackward(
      run->handle, sampler->transformer, factor(run, SDG_ALPHA, SDG_SAMPLER_DX),
      run->descriptor[SDG_SAMPLER_X], run->data[SDG_SAMPLER_X],
      sampler->scaled >> SDG_SAMPLER_DX & 1 ? scalar(run, SDG_BETA) : zero,
      run->descriptor[SDG_SAMPLER_DX], run->data[SDG_SAMPLER_DX],
      factor(run, SDG_ALPHA2, SDG_SAMPLER_DGRID),
      run->descriptor[SDG_SAMPLER_Y], run->data[SDG_SAMPLER_Y],
      run->data[SDG_SAMPLER_GRID],
      sampler->scaled >> SDG_SAMPLER_DGRID & 1 ? scalar(run, SDG_BETA2) : zero,
      run->data[SDG_SAMPLER_DGRID]);
}

// Creates a descriptor with the extents of the sub-call's y or dy. That of the
// program has the extents of its whole y.
static cudnnStatus_t transformer_set(const sdg_subcall_tensor_t *y,
                                     sampler_t *sampler) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  int extent[SDG_DIMS_MAX];
  for (int d = 0; d < y->box.dims; d++)
    extent[d] = (int)(y->box.dim[d].hi - y->box.dim[d].lo);
  cudnnStatus_t status =
      cudnn->cudnnCreateSpatialTransformerDescriptor(&sampler->transformer);
  return status != CUDNN_STATUS_SUCCESS
             ? status
             : cudnn->cudnnSetSpatialTransformerNdDescriptor(
                   sampler->transformer, CUDNN_SAMPLER_BILINEAR,
                   (cudnnDataType_t)y->type, y->box.dims, extent);
}

sdg_status_t sdg_sampler_call_add(sdg_plan_t *plan, const sdg_call_t *call,
                                  const sdg_subcall_tensor_t *tensor,
                                  unsigned scaled) {
  const sdg_subcall_tensor_t *y = &tensor[SDG_SAMPLER_Y];
  sdg_subcall_t sub = {
      .fn = sdg_sampler_is_backward(call) ? backward_run : forward_run,
      .tensors = tensors_count(call),
      .scalar =
          {[ZERO] = sdg_scalar(y->type, 0), [ONE] = sdg_scalar(y->type, 1)},
      .op_destroy = sampler_destroy};
  if (!sdg_cudnn_get())
    return SDG_E_LIBRARY_MISSING;
  for (int i = 0; i < sub.tensors; i++)
    sub.tensor[i] = tensor[i];
  sampler_t *sampler;
  SDG_TRY(SDG_ALLOCATE(sampler, 1, "a plan"));
  sampler->scaled = scaled;
  cudnnStatus_t got = transformer_set(y, sampler);
  if (got != CUDNN_STATUS_SUCCESS) {
    sampler_destroy(sampler);
    return sdg_fail(SDG_E_VENDOR_CALL, "a spatial transformer: status %d",
                    (int)got);
  }
  sub.op = sampler;
  return sdg_subcall_add(plan, &sub);
}

static cudnnStatus_t finish_run(const sdg_subcall_run_t *run) {
  const sampler_t *finish = run->op;
  bool of_grid = finish->gradient == SDG_SAMPLER_DGRID;
  sdg_scalar_argument_t alpha = of_grid ? SDG_ALPHA2 : SDG_ALPHA;
  return sdg_cudnn_get()->cudnnTransformTensor(
      run->handle, is_late(run, alpha) ? scalar(run, alpha) : &run->scalar[ONE],
      run->descriptor[0], run->data[0],
      scalar(run, of_grid ? SDG_BETA2 : SDG_BETA), run->descriptor[1],
      run->data[1]);
}

sdg_status_t sdg_sampler_finish_add(sdg_plan_t *plan,
                                    sdg_sampler_tensor_t gradient,
                                    const sdg_subcall_tensor_t *from,
                                    const sdg_subcall_tensor_t *to) {
  sampler_t *finish;
  SDG_TRY(SDG_ALLOCATE(finish, 1, "a plan"));
  finish->gradient = gradient;
  sdg_subcall_t sub = {.fn = finish_run,
                       .tensors = 2,
                       .tensor = {*from, *to},
                       .scalar = {[ONE] = sdg_scalar(to->type, 1)},
                       .op = finish,
                       .op_destroy = sampler_destroy};
  return sdg_subcall_add(plan, &sub);
}
