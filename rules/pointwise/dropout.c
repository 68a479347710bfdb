// SPDX-License-Identifier: Apache-2.0
// Dropout of split tensors, in the shard view.
//
// Which elements a device drops depends on their index in the whole tensor and
// on states that every call advances; each kind of device does this
// differently. So every rank makes the call on a tensor of the whole size that
// contains its own elements, and keeps the results of these. The reserve space
// has the whole mask.
#include "rules/pointwise/dropout.h"

#include <cudnn.h>
#include <stdio.h>
#include <string.h>

#include "rules/kit/subcall.h"
#include "rules/place/place.h"
#include "rules/place/tagging.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"

bool sdg_dropout_is(const sdg_call_t *call) {
  return call->entry == SDG_ENTRY_cudnnDropoutForward ||
         call->entry == SDG_ENTRY_cudnnDropoutBackward;
}

// The ranks must agree on the seed, because different states draw different
// masks.
sdg_status_t sdg_dropout_describe(const sdg_call_t *call, char *out,
                                  size_t out_bytes) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  float probability;
  void *states;
  unsigned long long seed;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  if (call->op_descriptor &&
      cudnn->cudnnGetDropoutDescriptor(
          (cudnnDropoutDescriptor_t)(uintptr_t)call->op_descriptor,
          (cudnnHandle_t)(uintptr_t)call->handle, &probability, &states,
          &seed) == CUDNN_STATUS_SUCCESS)
    snprintf(out, out_bytes, "probability %.9g seed %llu", (double)probability,
             seed);
  return SDG_OK;
}

uint64_t sdg_dropout_key(const sdg_call_t *call) {
  return sdg_call_size(call, SDG_RESERVE_BYTES);
}

static sdg_box_t whole_box(const sdg_placement_t *placement) {
  sdg_box_t all = {.dims = placement->dims};
  for (int d = 0; d < all.dims; d++)
    all.dim[d].hi = sdg_placement_extent(placement, d);
  return all;
}

static sdg_status_t reserve_size(const sdg_call_t *call,
                                 const sdg_placement_t *placement,
                                 size_t *out_bytes, int *out_vendor) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  sdg_box_t all = whole_box(placement);
  int64_t stride[SDG_DIMS_MAX];
  cudnnTensorDescriptor_t whole;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  sdg_slab_pack(&all, sdg_operand_nesting(&call->operand[0]), stride);
  if (cudnn->cudnnCreateTensorDescriptor(&whole) != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "a descriptor");
  sdg_status_t status =
      sdg_tensor_set(whole, call->operand[0].type, &all, stride);
  if (status == SDG_OK)
    *out_vendor = (int)cudnn->cudnnDropoutGetReserveSpaceSize(whole, out_bytes);
  (void)cudnn->cudnnDestroyTensorDescriptor(whole);
  return status;
}

// Fails if a dimension that the section splits has extent 1 on every rank.
// These may be pieces of one row each, or copies of one row, and a single
// device would draw another mask in each case.
static sdg_status_t cut_check(const sdg_call_t *call,
                              const sdg_tagging_t *tagging) {
  const sdg_placement_t *placement = &tagging->placement[0];
  sdg_split_t split[SDG_DIMS_MAX];
  if (!sdg_place_splits(tagging->section, call->family, placement->dims, split))
    return SDG_OK;
  for (int d = 0; d < placement->dims; d++)
    if (split[d].axes && !placement->split[d].axes &&
        sdg_split_pieces(&split[d], tagging->mesh) > 1)
      return sdg_fail(
          SDG_E_SPLIT_DIMENSION,
          "%s: %s is 1 on every rank, which may be pieces or copies",
          call->entry_name, sdg_tagging_name(call->family, placement->dims, d));
  return SDG_OK;
}

sdg_status_t sdg_dropout_answer(const sdg_call_t *call,
                                const sdg_tagging_t *tagging, int *out_vendor) {
  size_t *out_bytes = sdg_call_pointer(call, SDG_OUT_BYTES);
  if (!out_bytes)
    return sdg_fail(SDG_E_ARGUMENT, "%s: a NULL result", call->entry_name);
  SDG_TRY(cut_check(call, tagging));
  return reserve_size(call, &tagging->placement[0], out_bytes, out_vendor);
}

static sdg_status_t steps_make(sdg_plan_t *plan, const sdg_call_t *call,
                               const sdg_tagging_t *tagging) {
  const sdg_placement_t *placement = &tagging->placement[0];
  sdg_box_t own = sdg_tagging_own(tagging, placement);
  sdg_box_t all = whole_box(placement);
  sdg_subcall_t real = {.fn = sdg_subcall_program, .tensors = 2};
  int slab[2], whole[2];
  for (int i = 0; i < 2; i++) {
    SDG_TRY(sdg_plan_operand(plan, call, i, &own, &slab[i]));
    SDG_TRY(sdg_plan_scratch(plan, &all, slab[i], &whole[i]));
    real.tensor[i] = sdg_subcall_slab(plan, whole[i], call->operand[i].type);
  }
  SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, slab[0], whole[0], NULL, NULL,
                        SDG_COPY_ACTIVATION));
  SDG_TRY(sdg_subcall_add(plan, &real));
  return sdg_plan_copy(plan, SDG_LANE_MAIN, whole[1], slab[1], NULL, NULL,
                       SDG_COPY_ACTIVATION);
}

sdg_status_t sdg_dropout_plan(const sdg_call_t *call,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  size_t bytes = 0;
  int vendor = 0;
  SDG_TRY(cut_check(call, tagging));
  SDG_TRY(reserve_size(call, &tagging->placement[0], &bytes, &vendor));
  size_t own = sdg_call_size(call, SDG_RESERVE_BYTES);
  if (own < bytes)
    return sdg_fail(SDG_E_DROPOUT_RESERVE,
                    "%s: the reserve space has %zu bytes, but the mask of the "
                    "whole tensor needs %zu",
                    call->entry_name, own, bytes);
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("whole mask", &plan));
  plan->why = "the op has only this strategy: which elements are dropped "
              "depends on their place in the whole tensor";
  sdg_status_t status = sdg_subcalls_open(plan, call);
  if (status == SDG_OK)
    status = steps_make(plan, call, tagging);
  return sdg_plan_finish(plan, status, out_plan);
}
