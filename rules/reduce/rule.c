// SPDX-License-Identifier: Apache-2.0
// ReduceTensor as an op: what a call is, and answers to questions about it.
#include "rules/reduce/rule.h"

#include <stdint.h>
#include <stdio.h>

#include "rules/place/colocate.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"

bool sdg_reduce_read(const sdg_call_t *call, sdg_reduce_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  *out = (sdg_reduce_t){.a = sdg_call_operand(call, SDG_ROLE_X),
                        .c = sdg_call_operand(call, SDG_ROLE_Y)};
  return cudnn && call->op_descriptor && out->a >= 0 && out->c >= 0 &&
         cudnn->cudnnGetReduceTensorDescriptor(
             (cudnnReduceTensorDescriptor_t)(uintptr_t)call->op_descriptor,
             &out->op, &out->compute, &out->nan, &out->indices,
             &out->index_type) == CUDNN_STATUS_SUCCESS;
}

bool sdg_reduce_points(const sdg_reduce_t *reduce) {
  return reduce->indices == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES &&
         (reduce->op == CUDNN_REDUCE_TENSOR_MIN ||
          reduce->op == CUDNN_REDUCE_TENSOR_MAX ||
          reduce->op == CUDNN_REDUCE_TENSOR_AMAX);
}

// Creates a descriptor of a whole operand, row-major. The caller destroys it.
// NULL if the operand has more elements than a descriptor can express.
static cudnnTensorDescriptor_t
describe(const sdg_call_t *call, const sdg_tagging_t *tagging, int index) {
  const sdg_placement_t *placement = &tagging->placement[index];
  sdg_box_t all = {.dims = placement->dims};
  int64_t stride[SDG_DIMS_MAX], like[SDG_DIMS_MAX];
  cudnnTensorDescriptor_t made = NULL;
  for (int d = 0; d < all.dims; d++) {
    all.dim[d].hi = sdg_placement_extent(placement, d);
    like[d] = all.dims - d;
  }
  sdg_slab_pack(&all, like, stride);
  if (sdg_box_count(&all) <= INT32_MAX &&
      sdg_cudnn_get()->cudnnCreateTensorDescriptor(&made) ==
          CUDNN_STATUS_SUCCESS &&
      sdg_tensor_set(made, call->operand[index].type, &all, stride) == SDG_OK)
    return made;
  if (made)
    (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(made);
  return NULL;
}

int sdg_reduce_refusal(const sdg_call_t *call, const sdg_tagging_t *tagging,
                       const sdg_reduce_t *reduce) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnHandle_t handle = sdg_call_pointer(call, SDG_HANDLE);
  cudnnReduceTensorDescriptor_t op = sdg_call_pointer(call, SDG_OP);
  cudnnTensorDescriptor_t a = describe(call, tagging, reduce->a);
  cudnnTensorDescriptor_t c = describe(call, tagging, reduce->c);
  size_t bytes;
  int status = 0;
  if (a && c)
    status =
        (int)cudnn->cudnnGetReductionWorkspaceSize(handle, op, a, c, &bytes);
  if (a && c && status == 0)
    status = (int)cudnn->cudnnGetReductionIndicesSize(handle, op, a, c, &bytes);
  if (a)
    (void)cudnn->cudnnDestroyTensorDescriptor(a);
  if (c)
    (void)cudnn->cudnnDestroyTensorDescriptor(c);
  return status;
}

static sdg_status_t reduce_describe(const sdg_call_t *call, char *out,
                                    size_t out_bytes) {
  sdg_reduce_t r;
  if (sdg_reduce_read(call, &r))
    snprintf(out, out_bytes, "op %d compute %d nan %d indices %d of type %d",
             (int)r.op, (int)r.compute, (int)r.nan, (int)r.indices,
             (int)r.index_type);
  return SDG_OK;
}

static int reduce_key(const sdg_call_t *call, uint64_t *out) {
  if (call->is_query)
    return 0;
  out[0] = sdg_call_scalar(call, SDG_BETA) == 0;
  out[1] = 0;
  const void *const each[] = {
      sdg_call_scalar_at(call, SDG_ALPHA), sdg_call_scalar_at(call, SDG_BETA),
      sdg_call_data(call, SDG_ROLE_X), sdg_call_data(call, SDG_ROLE_Y),
      sdg_call_pointer(call, SDG_INDICES)};
  for (int i = 0; i < 5; i++) // the real function rejects calls without some
    out[1] = out[1] << 1 | (each[i] != NULL);
  out[2] = sdg_call_size(call, SDG_INDICES_BYTES);
  return 3;
}

// Returns the vendor's answer for the program's own piece, because sub-calls
// have workspaces of their own. The vendor's library may reject the query if
// this rank's piece has nothing to reduce, although another rank's has.
static sdg_status_t reduce_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) {
  sdg_reduce_t reduce;
  bool reduced[SDG_DIMS_MAX];
  if (!sdg_cudnn_get())
    return SDG_E_LIBRARY_MISSING;
  (void)sdg_reduce_read(call, &reduce);
  if (reduce.a >= 0 && reduce.c >= 0)
    SDG_TRY(sdg_reduce_dims(call, tagging, &reduce, reduced));
  *out_vendor = sdg_invoke(call->entry, call->args);
  return SDG_OK;
}

// If the call returns indices of the chosen elements, one call must see all
// elements, so each rank fetches all inputs of its c. c does not move, because
// the indices belong to the program's own c.
static sdg_status_t reduce_colocate(const sdg_call_t *call,
                                    sdg_colocation_t *colocation, int lead) {
  sdg_reduce_t reduce;
  colocation->reads_old = sdg_call_scalar(call, SDG_BETA) != 0;
  SDG_TRY(sdg_colocate_alike(colocation, lead));
  if (!colocation->fits || !sdg_reduce_read(call, &reduce) ||
      !sdg_reduce_points(&reduce))
    return SDG_OK;
  colocation->fits = !sdg_colocate_moves(colocation, reduce.c);
  return colocation->fits ? sdg_colocate_alike(colocation, reduce.c) : SDG_OK;
}

static bool reduce_sums(const sdg_call_t *call, int dim) {
  (void)call, (void)dim;
  return true;
}

static const sdg_op_shard_t shard = {
    .sums = reduce_sums,
};

const sdg_op_t sdg_op_reduce = {
    .family = SDG_FAMILY_REDUCE,
    .describe = reduce_describe,
    .colocate = reduce_colocate,
    .key = reduce_key,
    .plan = sdg_reduce_plan,
    .share = sdg_reduce_share,
    .answer = reduce_answer,
    .shard = &shard,
};
