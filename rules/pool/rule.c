// SPDX-License-Identifier: Apache-2.0
// Pooling as an op: what a call is, and answers to questions about it.
#include "rules/pool/backward.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "rules/place/colocate.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"

sdg_status_t sdg_pool_parameters(const void *descriptor,
                                 sdg_pool_parameters_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnStatus_t got = cudnn->cudnnGetPoolingNdDescriptor(
      (cudnnPoolingDescriptor_t)(uintptr_t)descriptor, SDG_DIMS_MAX - 2,
      &out->mode, &out->nan, &out->spatial, out->window, out->pad, out->stride);
  if (got != CUDNN_STATUS_SUCCESS || out->spatial < 1 ||
      out->spatial > SDG_DIMS_MAX - 2)
    return sdg_fail(SDG_E_ARGUMENT,
                    "a pooling descriptor cannot be read: status %d", (int)got);
  return SDG_OK;
}

sdg_status_t sdg_pool_descriptor(const sdg_pool_parameters_t *p, const int *pad,
                                 cudnnPoolingDescriptor_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnPoolingDescriptor_t made;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  if (cudnn->cudnnCreatePoolingDescriptor(&made) != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "descriptors of a sub-call");
  cudnnStatus_t got = cudnn->cudnnSetPoolingNdDescriptor(
      made, p->mode, p->nan, p->spatial, p->window, pad, p->stride);
  if (got != CUDNN_STATUS_SUCCESS) {
    (void)cudnn->cudnnDestroyPoolingDescriptor(made);
    return sdg_fail(SDG_E_VENDOR_CALL, "cudnnSetPoolingNdDescriptor: status %d",
                    (int)got);
  }
  *out = made;
  return SDG_OK;
}

void sdg_pool_descriptor_destroy(void *descriptor) {
  (void)sdg_cudnn_get()->cudnnDestroyPoolingDescriptor(descriptor);
}

static bool operands_find(const sdg_call_t *call, sdg_pool_t *out) {
  bool backward = call->entry == SDG_ENTRY_cudnnPoolingBackward;
  out->x = sdg_call_operand(call, SDG_ROLE_X);
  out->y = sdg_call_operand(call, SDG_ROLE_Y);
  out->dy = sdg_call_operand(call, SDG_ROLE_DY);
  out->dx = sdg_call_operand(call, SDG_ROLE_DX);
  return out->x >= 0 && call->op_descriptor &&
         (out->y >= 0 || call->is_query) &&
         (!backward || (out->dy >= 0 && out->dx >= 0));
}

// Whether the vendor's library accepts the window on a single device. A window
// that sees only padding would have no maximum.
static bool window_good(const sdg_pool_parameters_t *p, int i) {
  return p->window[i] >= 1 && p->stride[i] >= 1 && p->pad[i] >= 0 &&
         p->pad[i] < p->window[i];
}

static sdg_window_spec_t spec_of(const sdg_pool_t *pool) {
  const sdg_pool_parameters_t *p = &pool->parameters;
  sdg_window_spec_t spec = {.x = pool->x, .y = pool->y, .own_border = true};
  spec.window[0] = spec.window[1] = (sdg_window_t){1, 1, 1, 0};
  for (int i = 0; i < p->spatial; i++)
    spec.window[i + 2] =
        (sdg_window_t){p->window[i], p->stride[i], 1, p->pad[i]};
  return spec;
}

sdg_status_t sdg_pool_read(const sdg_call_t *call, sdg_pool_t *out) {
  memset(out, 0, sizeof *out);
  sdg_pool_parameters_t *p = &out->parameters;
  if (!operands_find(call, out))
    return sdg_fail(SDG_E_ARGUMENT, "%s: a descriptor is NULL",
                    call->entry_name);
  SDG_TRY(sdg_pool_parameters(call->op_descriptor, p));
  const sdg_operand_t *x = &call->operand[out->x];
  if (x->dims != p->spatial + 2)
    return sdg_fail(SDG_E_ARGUMENT,
                    "%s: pooling of %d spatial dimensions, x of %d dimensions",
                    call->entry_name, p->spatial, x->dims);
  for (int i = 0; i < p->spatial; i++)
    if (!window_good(p, i))
      return sdg_fail(SDG_E_ARGUMENT, "%s: window %d, stride %d, padding %d",
                      call->entry_name, p->window[i], p->stride[i], p->pad[i]);
  out->spec = spec_of(out);
  return SDG_OK;
}

sdg_status_t sdg_pool_init(const sdg_call_t *call, const sdg_tagging_t *tagging,
                           sdg_pool_t *out) {
  bool global;
  SDG_TRY(sdg_pool_read(call, out));
  SDG_TRY(sdg_pool_reach(call, tagging, out, &global));
  if (global)
    sdg_pool_globalize(tagging, out);
  return sdg_window_op_init(call, tagging, &out->spec, &out->op);
}

sdg_status_t sdg_pool_init_whole(const sdg_call_t *call,
                                 const sdg_tagging_t *tagging, sdg_pool_t *out,
                                 bool *out_can) {
  const sdg_pool_parameters_t *p = &out->parameters;
  *out_can = false;
  memset(out, 0, sizeof *out);
  // If the vendor's library rejects the program's call, it must be called to
  // report that.
  if (!operands_find(call, out))
    return SDG_OK;
  SDG_TRY(sdg_pool_parameters(call->op_descriptor, &out->parameters));
  if (call->operand[out->x].dims != p->spatial + 2)
    return SDG_OK;
  for (int i = 0; i < p->spatial; i++)
    if (!window_good(p, i))
      return SDG_OK;
  out->spec = spec_of(out);
  if (sdg_pool_fills(call, tagging, out))
    sdg_pool_globalize(tagging, out);
  return sdg_window_op_init_whole(call, tagging, &out->spec, &out->op, out_can);
}

void sdg_pool_fini(sdg_pool_t *pool) {
  sdg_window_op_fini(&pool->op);
}

static sdg_status_t pool_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  sdg_pool_parameters_t p;
  if (!call->op_descriptor)
    return SDG_OK; // plan() rejects the call
  SDG_TRY(sdg_pool_parameters(call->op_descriptor, &p));
  // Windows and strides may differ between ranks; the ranks agree on them as
  // sizes.
  size_t used = (size_t)snprintf(out, out_bytes, "mode %d nan %d", (int)p.mode,
                                 (int)p.nan);
  for (int i = 0; i < p.spatial && used < out_bytes; i++)
    used += (size_t)snprintf(out + used, out_bytes - used, " pad %d", p.pad[i]);
  return SDG_OK;
}

static int pool_key(const sdg_call_t *call, uint64_t *out) {
  if (call->is_query)
    return 0;
  out[0] = (uint64_t)(sdg_call_scalar(call, SDG_BETA) == 0) |
           (uint64_t)(isinf(sdg_call_scalar(call, SDG_ALPHA)) != 0) << 1;
  return 1;
}

static sdg_status_t pool_answer(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int *out_vendor) {
  (void)out_vendor;
  sdg_pool_t pool;
  SDG_TRY(sdg_pool_init(call, tagging, &pool));
  sdg_status_t status = sdg_window_op_answer(call, &pool.op, pool.op.dims);
  sdg_pool_fini(&pool);
  return status;
}

// dx is placed like x, and dy like y. Whether windows are global is judged by
// the pieces as the program has cut them.
static sdg_status_t pool_colocate(const sdg_call_t *call,
                                  sdg_colocation_t *colocation, int lead) {
  sdg_pool_t pool;
  SDG_TRY(sdg_pool_read(call, &pool));
  if (pool.y < 0)
    return SDG_OK;
  const int like[] = {pool.x, pool.dx, pool.y, pool.dy};
  int at = 0;
  while (like[at] != lead)
    at++;
  colocation->reads_old = sdg_call_scalar(call, SDG_BETA) != 0;
  if (at % 2 == 1) // dx, dy
    SDG_TRY(sdg_colocate_follow(colocation, like[at - 1],
                                sdg_colocate_at(colocation, lead), false));
  if (colocation->fits)
    SDG_TRY(sdg_pool_colocate(colocation, &pool, like[at - at % 2]));
  for (int i = 1; i < 4 && colocation->fits; i += 2)
    if (like[i] >= 0 && like[i] != lead)
      SDG_TRY(sdg_colocate_follow(colocation, like[i],
                                  sdg_colocate_at(colocation, like[i - 1]),
                                  false));
  return SDG_OK;
}

// The operand whose rows a plan fetches from other ranks; -1: none. For global
// windows the ranks gather the results of pieces instead.
static int pool_fetches(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  sdg_pool_t pool;
  if (call->entry != SDG_ENTRY_cudnnPoolingForward ||
      sdg_pool_init(call, tagging, &pool) != SDG_OK)
    return -1;
  int x = sdg_pool_global_can(&pool, tagging) ? -1 : pool.x;
  sdg_pool_fini(&pool);
  return x;
}

static sdg_status_t pool_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  return call->entry == SDG_ENTRY_cudnnPoolingBackward
             ? sdg_pool_backward_plan(call, tagging, out_plan)
             : sdg_pool_plan(call, tagging, out_plan);
}

static sdg_status_t pool_share(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  return call->entry == SDG_ENTRY_cudnnPoolingBackward
             ? sdg_pool_backward_share(call, tagging, out_plan)
             : sdg_pool_share(call, tagging, out_plan);
}

static const sdg_op_numbers_t numbers = {
    .sizes = sdg_pool_sizes,
};

// The backward call wants equal strides in y and dy (group 0), and in x and dx
// (group 1).
static int pool_strides(const sdg_call_t *call, int index) {
  if (call->entry != SDG_ENTRY_cudnnPoolingBackward)
    return -1;
  sdg_role_t role = call->operand[index].role;
  return role == SDG_ROLE_X || role == SDG_ROLE_DX;
}

static const sdg_op_shard_t shard = {
    .place = sdg_pool_place,
    .fetches = pool_fetches,
    .stride_group = pool_strides,
};

const sdg_op_t sdg_op_pool = {
    .family = SDG_FAMILY_POOL,
    .describe = pool_describe,
    .colocate = pool_colocate,
    .key = pool_key,
    .plan = pool_plan,
    .share = pool_share,
    .answer = pool_answer,
    .numbers = &numbers,
    .shard = &shard,
};
