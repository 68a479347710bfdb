// SPDX-License-Identifier: Apache-2.0
// ReduceTensor as an op: what a call is, and answers to questions about it.
#include "rules/reduce/rule.h"

#include <stdint.h>
#include <stdio.h>

#include "rules/place/colocate.h"
#include "rules/vendor/args.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"

bool sdg_reduce_read(const sdg_call_t *call, sdg_reduce_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  return cudnn && call->op_descriptor && call->operands == 2 &&
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

// A descriptor of all of an operand, row-major.
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
  // The strides of a tensor of this size do not fit its descriptor.
  if (sdg_box_count(&all) <= INT32_MAX &&
      sdg_cudnn_get()->cudnnCreateTensorDescriptor(&made) ==
          CUDNN_STATUS_SUCCESS &&
      sdg_tensor_set(made, call->operand[index].type, &all, stride) == SDG_OK)
    return made;
  if (made)
    (void)sdg_cudnn_get()->cudnnDestroyTensorDescriptor(made);
  return NULL;
}

int sdg_reduce_refusal(const sdg_call_t *call, const sdg_tagging_t *tagging) {
  const struct sdg_args_cudnnReduceTensor *args = call->args;
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnTensorDescriptor_t a = describe(call, tagging, SDG_REDUCE_A);
  cudnnTensorDescriptor_t c = describe(call, tagging, SDG_REDUCE_C);
  size_t bytes;
  int status = 0;
  if (a && c)
    status = (int)cudnn->cudnnGetReductionWorkspaceSize(
        args->handle, args->reduceTensorDesc, a, c, &bytes);
  if (a && c && status == 0)
    status = (int)cudnn->cudnnGetReductionIndicesSize(
        args->handle, args->reduceTensorDesc, a, c, &bytes);
  if (a)
    (void)cudnn->cudnnDestroyTensorDescriptor(a);
  if (c)
    (void)cudnn->cudnnDestroyTensorDescriptor(c);
  return status;
}

static bool reduce_knows(const sdg_call_t *call) {
  switch (call->entry) {
  case SDG_ENTRY_cudnnReduceTensor:
  case SDG_ENTRY_cudnnGetReductionIndicesSize:
  case SDG_ENTRY_cudnnGetReductionWorkspaceSize:
    return true;
  default:
    return false;
  }
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

static int reduce_scalars(const sdg_call_t *call, double *out) {
  if (call->entry != SDG_ENTRY_cudnnReduceTensor)
    return 0;
  const struct sdg_args_cudnnReduceTensor *a = call->args;
  out[0] = sdg_call_scalar(call, a->alpha);
  out[1] = sdg_call_scalar(call, a->beta);
  return 2;
}

static int reduce_key(const sdg_call_t *call, uint64_t *out) {
  if (call->entry != SDG_ENTRY_cudnnReduceTensor)
    return 0;
  const struct sdg_args_cudnnReduceTensor *a = call->args;
  out[0] = sdg_call_scalar(call, a->beta) == 0;
  out[1] = 0;
  const void *const each[] = {a->alpha, a->beta, a->A, a->C, a->indices};
  for (int i = 0; i < 5; i++) // the real function rejects missing operands
    out[1] = out[1] << 1 | (each[i] != NULL);
  out[2] = a->indicesSizeInBytes;
  return 3;
}

// The program's workspace is for its own pieces; sundog has its own workspaces.
// The vendor's library may reject the query if this rank's piece has nothing to
// reduce, although another rank's has.
static sdg_status_t reduce_answer(const sdg_call_t *call,
                                  const sdg_tagging_t *tagging,
                                  int *out_vendor) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  bool reduced[SDG_DIMS_MAX];
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  if (call->operands == 2)
    SDG_TRY(sdg_reduce_dims(call, tagging, reduced));
  if (call->entry == SDG_ENTRY_cudnnGetReductionIndicesSize) {
    const struct sdg_args_cudnnGetReductionIndicesSize *a = call->args;
    *out_vendor = (int)cudnn->cudnnGetReductionIndicesSize(
        a->handle, a->reduceTensorDesc, a->aDesc, a->cDesc, a->sizeInBytes);
  } else {
    const struct sdg_args_cudnnGetReductionWorkspaceSize *a = call->args;
    *out_vendor = (int)cudnn->cudnnGetReductionWorkspaceSize(
        a->handle, a->reduceTensorDesc, a->aDesc, a->cDesc, a->sizeInBytes);
  }
  return SDG_OK;
}

// Indices of the chosen elements require one call on all elements: a rank
// fetches all inputs of its c. c does not move, because indices refer to the
// program's own c.
static sdg_status_t reduce_meet(const sdg_call_t *call,
                                sdg_colocation_t *colocation, int lead) {
  double scalar[SDG_OP_SCALARS];
  sdg_reduce_t reduce;
  colocation->reads_old = reduce_scalars(call, scalar) > 0 && scalar[1] != 0;
  SDG_TRY(sdg_colocate_alike(colocation, lead));
  if (!colocation->fits || !sdg_reduce_read(call, &reduce) ||
      !sdg_reduce_points(&reduce))
    return SDG_OK;
  colocation->fits = !sdg_colocate_moves(colocation, SDG_REDUCE_C);
  return colocation->fits ? sdg_colocate_alike(colocation, SDG_REDUCE_C)
                          : SDG_OK;
}

static bool reduce_sums(const sdg_call_t *call, int dim) {
  (void)call, (void)dim;
  return true;
}

const sdg_op_t sdg_op_reduce = {
    .sums = reduce_sums,
    .family = SDG_FAMILY_REDUCE,
    .knows = reduce_knows,
    .describe = reduce_describe,
    .colocate = reduce_meet,
    .key = reduce_key,
    .scalars = reduce_scalars,
    .plan = sdg_reduce_plan,
    .share = sdg_reduce_share,
    .answer = reduce_answer,
};
