// SPDX-License-Identifier: Apache-2.0
// Convolutions as an op: the entries it handles, the key that distinguishes
// calls, and the functions that plan and answer them.
#include <math.h>
#include <stdio.h>

#include "rules/conv/filter.h"
#include "rules/conv/rule.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "rules/window/colocate.h"
#include "src/base/hash.h"

static sdg_status_t dimensions_check(const sdg_conv_t *conv,
                                     const sdg_call_t *call) {
  const sdg_operand_t *x = &call->operand[conv->x];
  const sdg_operand_t *w = &call->operand[conv->w];
  int spatial = conv->parameters.spatial;
  if (x->dims == spatial + 2 && w->dims == x->dims)
    return SDG_OK;
  return sdg_fail(SDG_E_ARGUMENT,
                  "%s: a convolution of %d spatial dimensions, x of %d "
                  "dimensions, w of %d",
                  call->entry_name, spatial, x->dims, w->dims);
}

// Does the vendor's checks for a single device, on the global extents.
static sdg_status_t arguments_check(const sdg_conv_t *conv,
                                    const sdg_call_t *call) {
  const sdg_conv_parameters_t *p = &conv->parameters;
  const sdg_operand_t *x = &call->operand[conv->x];
  const sdg_operand_t *w = &call->operand[conv->w];
  if (p->groups < 1 || x->extent[1] != w->extent[1] * p->groups ||
      w->extent[0] % p->groups != 0)
    return sdg_fail(SDG_E_ARGUMENT,
                    "%s: %lld channels of x, filter [%lld,%lld,...], %d groups",
                    call->entry_name, (long long)x->extent[1],
                    (long long)w->extent[0], (long long)w->extent[1],
                    p->groups);
  for (int i = 0; i < p->spatial; i++)
    if (p->stride[i] < 1 || p->dilation[i] < 1 || p->pad[i] < 0)
      return sdg_fail(SDG_E_ARGUMENT, "%s: stride %d, dilation %d, padding %d",
                      call->entry_name, p->stride[i], p->dilation[i],
                      p->pad[i]);
  return SDG_OK;
}

static sdg_window_spec_t spec_of(const sdg_conv_t *conv,
                                 const sdg_call_t *call) {
  const sdg_conv_parameters_t *p = &conv->parameters;
  const sdg_operand_t *w = &call->operand[conv->w];
  sdg_window_spec_t spec = {.x = conv->x,
                            .y = conv->y,
                            .y_channels = w->extent[0],
                            .own_border = true};
  spec.window[0] = spec.window[1] = (sdg_window_t){1, 1, 1, 0};
  for (int i = 0; i < p->spatial; i++)
    spec.window[i + 2] = (sdg_window_t){w->extent[i + 2], p->stride[i],
                                        p->dilation[i], p->pad[i]};
  return spec;
}

// Checks everything except whether the extents are consistent.
static sdg_status_t conv_find(const sdg_call_t *call, sdg_conv_t *out) {
  sdg_conv_kind_t kind = sdg_conv_kind(call);
  sdg_conv_roles_t roles = sdg_conv_roles(call);
  out->x = sdg_call_operand(call, roles.x);
  out->w = sdg_call_operand(call, roles.w);
  out->y = sdg_call_operand(call, roles.y);
  out->z = sdg_call_operand(call, SDG_ROLE_Z);
  // Only queries of forward convolutions may lack y.
  if (out->x < 0 || out->w < 0 || !call->op_descriptor ||
      (out->y < 0 && (!call->is_query || kind != SDG_CONV_FORWARD)))
    return sdg_fail(SDG_E_ARGUMENT, "%s: a descriptor is NULL",
                    call->entry_name);
  SDG_TRY(sdg_conv_parameters(call->op_descriptor, &out->parameters));
  SDG_TRY(dimensions_check(out, call));
  out->spec = spec_of(out, call);
  return SDG_OK;
}

sdg_status_t sdg_conv_read(const sdg_call_t *call, sdg_conv_t *out) {
  SDG_TRY(conv_find(call, out));
  return arguments_check(out, call);
}

sdg_status_t sdg_conv_init(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_conv_t *out) {
  SDG_TRY(conv_find(call, out));
  SDG_TRY(sdg_window_op_whole_channels(call, tagging, &out->spec));
  SDG_TRY(arguments_check(out, call));
  SDG_TRY(sdg_window_op_init(call, tagging, &out->spec, &out->op));
  if (out->z < 0 ||
      sdg_placement_equal(&tagging->placement[out->z], &out->op.y_placement))
    return SDG_OK;
  sdg_conv_fini(out);
  return sdg_fail(SDG_E_OPERANDS_DIFFER, "z and y of %s", call->entry_name);
}

sdg_status_t sdg_conv_init_whole(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, sdg_conv_t *out,
                                 bool *out_can) {
  SDG_TRY(sdg_conv_read(call, out));
  SDG_TRY(
      sdg_window_op_init_whole(call, tagging, &out->spec, &out->op, out_can));
  return SDG_OK;
}

bool sdg_conv_looks_around(const sdg_conv_t *conv) {
  bool around = false;
  for (int i = 0; i < conv->parameters.spatial; i++) {
    const sdg_window_t *window = &conv->spec.window[i + 2];
    around |= window->kernel > 1 || window->pad > 0;
  }
  return around;
}

void sdg_conv_fini(sdg_conv_t *conv) {
  sdg_window_op_fini(&conv->op);
}

sdg_conv_kind_t sdg_conv_kind(const sdg_call_t *call) {
  switch (call->entry) {
  case SDG_ENTRY_cudnnConvolutionForward:
  case SDG_ENTRY_cudnnConvolutionBiasActivationForward:
  case SDG_ENTRY_cudnnGetConvolution2dForwardOutputDim:
  case SDG_ENTRY_cudnnGetConvolutionNdForwardOutputDim:
  case SDG_ENTRY_cudnnGetConvolutionForwardWorkspaceSize:
  case SDG_ENTRY_cudnnGetConvolutionForwardAlgorithm_v7:
  case SDG_ENTRY_cudnnFindConvolutionForwardAlgorithm:
  case SDG_ENTRY_cudnnFindConvolutionForwardAlgorithmEx:
    return SDG_CONV_FORWARD;
  case SDG_ENTRY_cudnnConvolutionBackwardData:
  case SDG_ENTRY_cudnnGetConvolutionBackwardDataWorkspaceSize:
  case SDG_ENTRY_cudnnGetConvolutionBackwardDataAlgorithm_v7:
  case SDG_ENTRY_cudnnFindConvolutionBackwardDataAlgorithm:
  case SDG_ENTRY_cudnnFindConvolutionBackwardDataAlgorithmEx:
    return SDG_CONV_DGRAD;
  case SDG_ENTRY_cudnnConvolutionBackwardFilter:
  case SDG_ENTRY_cudnnGetConvolutionBackwardFilterWorkspaceSize:
  case SDG_ENTRY_cudnnGetConvolutionBackwardFilterAlgorithm_v7:
  case SDG_ENTRY_cudnnFindConvolutionBackwardFilterAlgorithm:
  case SDG_ENTRY_cudnnFindConvolutionBackwardFilterAlgorithmEx:
    return SDG_CONV_WGRAD;
  case SDG_ENTRY_cudnnConvolutionBackwardBias:
    return SDG_CONV_BGRAD;
  default:
    return SDG_CONV_UNKNOWN;
  }
}

sdg_conv_roles_t sdg_conv_roles(const sdg_call_t *call) {
  switch (sdg_conv_kind(call)) {
  case SDG_CONV_DGRAD:
    return (sdg_conv_roles_t){SDG_ROLE_DX, SDG_ROLE_W, SDG_ROLE_DY};
  case SDG_CONV_WGRAD:
    return (sdg_conv_roles_t){SDG_ROLE_X, SDG_ROLE_DW, SDG_ROLE_DY};
  case SDG_CONV_FORWARD:
    return (sdg_conv_roles_t){SDG_ROLE_X, SDG_ROLE_W, SDG_ROLE_Y};
  default:
    return (sdg_conv_roles_t){SDG_ROLE_X, SDG_ROLE_W, SDG_ROLE_DY};
  }
}

cudnnFilterDescriptor_t sdg_conv_w(const sdg_call_t *call) {
  return sdg_call_descriptor(call, sdg_conv_roles(call).w);
}

sdg_scalar_argument_t sdg_conv_old(const sdg_call_t *call) {
  return sdg_call_has(call, SDG_ARGUMENT_BETA) ? SDG_BETA : SDG_ALPHA2;
}

static bool conv_knows(const sdg_call_t *call) {
  return sdg_conv_kind(call) != SDG_CONV_UNKNOWN;
}

static int conv_key(const sdg_call_t *call, uint64_t *out) {
  if (call->is_query)
    return 0;
  out[0] = (uint64_t)sdg_call_int(call, SDG_ALGO);
  out[1] = sdg_call_size(call, SDG_WORKSPACE_BYTES);
  // A sum over ranks takes an infinite factor otherwise than a finite one.
  out[2] = (uint64_t)(sdg_call_scalar(call, sdg_conv_old(call)) == 0) |
           (uint64_t)(isinf(sdg_call_scalar(call, SDG_ALPHA)) != 0) << 1;
  return 3;
}

// A data gradient needs rows of dy around those that the preceding filter
// gradient reads.
static int conv_prefetch(const sdg_call_t *call, bool *out_first) {
  sdg_conv_kind_t kind = sdg_conv_kind(call);
  *out_first = kind == SDG_CONV_WGRAD;
  return !call->is_query && (kind == SDG_CONV_WGRAD || kind == SDG_CONV_DGRAD)
             ? sdg_call_operand(call, SDG_ROLE_DY)
             : -1;
}

// The filter gradient sees the rows of x that forward saw.
static int conv_leaves(const sdg_call_t *call, bool *out_first,
                       uint64_t *io_hash) {
  sdg_conv_kind_t kind = sdg_conv_kind(call);
  sdg_conv_t conv;
  *out_first = kind == SDG_CONV_FORWARD;
  if (call->is_query || (kind != SDG_CONV_WGRAD && kind != SDG_CONV_FORWARD) ||
      conv_find(call, &conv) != SDG_OK)
    return -1;
  for (int d = 2; io_hash && d < call->operand[conv.x].dims; d++) {
    const sdg_window_t *w = &conv.spec.window[d];
    const int64_t number[] = {w->kernel, w->stride, w->dilation, w->pad};
    for (int i = 0; i < 4; i++)
      *io_hash = sdg_hash_word(*io_hash, (uint64_t)number[i]);
  }
  return conv.x;
}

static int conv_fetches(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  (void)tagging;
  return sdg_conv_kind(call) == SDG_CONV_FORWARD
             ? sdg_call_operand(call, SDG_ROLE_X)
             : -1;
}

// z is placed like y.
static sdg_status_t conv_colocate(const sdg_call_t *call,
                                  sdg_colocation_t *colocation, int lead) {
  sdg_conv_t conv;
  if (sdg_conv_kind(call) == SDG_CONV_BGRAD)
    return SDG_OK; // its one activation
  SDG_TRY(conv_find(call, &conv));
  if (conv.y < 0)
    return SDG_OK;
  colocation->reads_old = sdg_call_scalar(call, sdg_conv_old(call)) != 0;
  if (lead == conv.z)
    SDG_TRY(sdg_colocate_follow(colocation, conv.y,
                                sdg_colocate_at(colocation, conv.z), false));
  if (colocation->fits)
    SDG_TRY(sdg_window_colocate(colocation, &conv.spec,
                                lead == conv.z ? conv.y : lead));
  if (colocation->fits && conv.z >= 0 && lead != conv.z)
    SDG_TRY(sdg_colocate_follow(colocation, conv.z,
                                sdg_colocate_at(colocation, conv.y), false));
  // The filter does not apply to a piece of x's channels.
  colocation->fits =
      colocation->fits &&
      sdg_placement_extent(sdg_colocate_at(colocation, conv.x), 1) ==
          call->operand[conv.w].extent[1] * conv.parameters.groups;
  return SDG_OK;
}

// The filter, or the gradient of it, of a call of one rank alone.
static sdg_status_t conv_own(const sdg_call_t *call) {
  sdg_conv_t conv;
  if (sdg_conv_kind(call) == SDG_CONV_BGRAD)
    return SDG_OK;
  SDG_TRY(conv_find(call, &conv));
  const sdg_operand_t *x = &call->operand[conv.x], *w = &call->operand[conv.w];
  const sdg_operand_t *y = conv.y < 0 ? NULL : &call->operand[conv.y];
  int64_t channels = w->extent[1] * conv.parameters.groups;
  if (x->extent[1] == channels && (!y || y->extent[1] == w->extent[0]))
    return SDG_OK;
  bool of_x = x->extent[1] != channels;
  const sdg_operand_t *tensor = of_x ? x : y;
  return sdg_fail(
      SDG_E_ARGUMENT,
      "%s, which each rank makes by itself: %s has %lld channels, but %s needs "
      "%lld: a call of this rank alone uses all of %s, not a piece of it",
      call->entry_name, sdg_role_name(tensor->role),
      (long long)tensor->extent[1], sdg_role_name(w->role),
      (long long)(of_x ? channels : w->extent[0]), sdg_role_name(w->role));
}

static sdg_status_t conv_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  switch (sdg_conv_kind(call)) {
  case SDG_CONV_DGRAD:
    return sdg_conv_data_plan(call, tagging, out_plan);
  case SDG_CONV_WGRAD:
    return sdg_conv_filter_plan(call, tagging, out_plan);
  case SDG_CONV_BGRAD:
    return sdg_conv_bias_plan(call, tagging, out_plan);
  default:
    return sdg_conv_plan(call, tagging, out_plan);
  }
}

static sdg_status_t conv_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  *out_plan = NULL;
  if (call->is_query)
    return SDG_OK;
  switch (sdg_conv_kind(call)) {
  case SDG_CONV_DGRAD:
    return sdg_conv_data_share(call, tagging, out_plan);
  case SDG_CONV_WGRAD:
    return sdg_conv_filter_share(call, tagging, out_plan);
  case SDG_CONV_BGRAD:
    return sdg_conv_bias_share(call, tagging, out_plan);
  default:
    return sdg_conv_share(call, tagging, out_plan);
  }
}

static sdg_status_t conv_answer(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int *out_vendor) {
  switch (sdg_conv_kind(call)) {
  case SDG_CONV_DGRAD:
    return sdg_conv_data_answer(call, tagging, out_vendor);
  case SDG_CONV_WGRAD:
    return sdg_conv_filter_answer(call, tagging, out_vendor);
  default:
    return sdg_conv_answer(call, tagging, out_vendor);
  }
}

// The activation of cudnnConvolutionBiasActivationForward.
static void activation_describe(const sdg_call_t *call, char *out,
                                size_t out_bytes) {
  cudnnActivationDescriptor_t activation = sdg_call_pointer(call, SDG_OP2);
  cudnnActivationMode_t mode;
  cudnnNanPropagation_t nan;
  double coefficient;
  if (activation &&
      sdg_cudnn_get()->cudnnGetActivationDescriptor(
          activation, &mode, &nan, &coefficient) == CUDNN_STATUS_SUCCESS)
    snprintf(out, out_bytes, " activation %d nan %d coefficient %.17g",
             (int)mode, (int)nan, coefficient);
}

static sdg_status_t conv_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  sdg_conv_parameters_t p;
  if (!call->op_descriptor)
    return SDG_OK; // plan() rejects the call
  SDG_TRY(sdg_conv_parameters(call->op_descriptor, &p));
  size_t used =
      (size_t)snprintf(out, out_bytes, "mode %d compute %d groups %d math %d",
                       (int)p.mode, (int)p.compute, p.groups, (int)p.math);
  for (int i = 0; i < p.spatial && used < out_bytes; i++)
    used += (size_t)snprintf(out + used, out_bytes - used,
                             " pad %d stride %d dilation %d", p.pad[i],
                             p.stride[i], p.dilation[i]);
  if (used < out_bytes)
    activation_describe(call, out + used, out_bytes - used);
  return SDG_OK;
}

static const sdg_op_shard_t shard = {
    .own = conv_own,
    .fetches = conv_fetches,
};

static const sdg_op_reuse_t reuse = {
    .prefetch = conv_prefetch,
    .leaves = conv_leaves,
};

const sdg_op_t sdg_op_conv = {
    .family = SDG_FAMILY_CONV,
    .knows = conv_knows,
    .describe = conv_describe,
    .colocate = conv_colocate,
    .key = conv_key,
    .plan = conv_plan,
    .share = conv_share,
    .answer = conv_answer,
    .shard = &shard,
    .reuse = &reuse,
};
