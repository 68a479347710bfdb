// SPDX-License-Identifier: Apache-2.0
// Reads and writes single parameters of attention.
#include "rules/attention/call/params.h"

#include <string.h>

#include "rules/kit/merge.h"
#include "rules/vendor/vendor.h"

static bool is_bias(cudnnMultiHeadAttnWeightKind_t kind) {
  return kind >= CUDNN_MH_ATTN_Q_BIASES;
}

static bool is_output(cudnnMultiHeadAttnWeightKind_t kind) {
  return kind == CUDNN_MH_ATTN_O_WEIGHTS || kind == CUDNN_MH_ATTN_O_BIASES;
}

static sdg_status_t place_get(const sdg_call_t *call, const sdg_attention_t *a,
                              cudnnMultiHeadAttnWeightKind_t kind,
                              cudnnTensorDescriptor_t descriptor,
                              sdg_attention_param_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  void *at = NULL;
  cudnnDataType_t type;
  int dims = 0, extent[8], stride[8];
  cudnnStatus_t got = cudnn->cudnnGetMultiHeadAttnWeights(
      (cudnnHandle_t)(uintptr_t)call->handle,
      (cudnnAttnDescriptor_t)(uintptr_t)call->op_descriptor, kind,
      a->weight_bytes, a->weights, descriptor, &at);
  if (got != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_VENDOR_CALL,
                    "cudnnGetMultiHeadAttnWeights: status %d", (int)got);
  out->is_there = at != NULL;
  if (!at)
    return SDG_OK;
  got = cudnn->cudnnGetTensorNdDescriptor(descriptor, 8, &type, &dims, extent,
                                          stride);
  if (got != CUDNN_STATUS_SUCCESS || dims != 3)
    return sdg_fail(SDG_E_VENDOR_CALL, "weights of %d dimensions, status %d",
                    dims, (int)got);
  out->offset_bytes = (size_t)((const char *)at - (const char *)a->weights);
  out->box = (sdg_box_t){.dims = 4, .dim[3] = {0, 1}};
  for (int d = 0; d < 3; d++) {
    out->box.dim[d].hi = extent[d];
    out->stride[d] = stride[d];
  }
  out->stride[3] = 1;
  return SDG_OK;
}

sdg_status_t sdg_attention_param_get(const sdg_call_t *call,
                                     const sdg_attention_t *a,
                                     cudnnMultiHeadAttnWeightKind_t kind,
                                     sdg_attention_param_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnTensorDescriptor_t descriptor;
  memset(out, 0, sizeof *out);
  if (cudnn->cudnnCreateTensorDescriptor(&descriptor) != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_NO_MEMORY, "a descriptor");
  sdg_status_t status = place_get(call, a, kind, descriptor, out);
  (void)cudnn->cudnnDestroyTensorDescriptor(descriptor);
  int64_t heads = out->box.dim[0].hi, to = out->box.dim[1].hi;
  int64_t from = out->box.dim[2].hi;
  out->is_bias = is_bias(kind);
  bool stacked = is_output(kind) && !is_bias(kind);
  out->rows = is_bias(kind) ? 1 : stacked ? heads * from : from;
  out->columns = stacked ? to : heads * to;
  out->packed[0] = stacked ? from * to : to;
  out->packed[1] = 1;
  out->packed[2] = out->columns;
  out->packed[3] = 1;
  return status;
}

static const int64_t row_major[SDG_DIMS_MAX] = {4, 3, 2, 1};

// Adds a slab that views a part of slab `of`: one parameter among all, or
// packed numbers with other extents.
static sdg_status_t view_add(sdg_plan_t *plan, const sdg_call_t *call, int of,
                             size_t offset_bytes, const sdg_box_t *box,
                             const int64_t *stride, int *out) {
  const sdg_slab_t model = plan->slab[of];
  if (model.operand == SDG_SLAB_SCRATCH) {
    SDG_TRY(sdg_plan_within(plan, of, offset_bytes, box, of, out));
  } else {
    SDG_TRY(sdg_plan_operand(plan, call, model.operand, box, out));
    plan->slab[*out].offset_bytes = model.offset_bytes + offset_bytes;
  }
  memcpy(plan->slab[*out].stride, stride, 4 * sizeof *stride);
  memcpy(plan->slab[*out].nesting, row_major, sizeof row_major);
  return SDG_OK;
}

static sdg_box_t packed_box(const sdg_attention_param_t *param) {
  sdg_box_t box = {.dims = 4, .dim = {{0, 1}, {0, 1}, {0, 1}, {0, 1}}};
  if (!param->is_bias) {
    box.dim[2].hi = param->rows;
    box.dim[3].hi = param->columns;
  } else {
    box.dim[1].hi = param->columns;
  }
  return box;
}

sdg_status_t sdg_attention_param_room(sdg_plan_t *plan,
                                      const sdg_attention_param_t *param,
                                      sdg_type_t type,
                                      sdg_subcall_tensor_t *out) {
  sdg_box_t box = packed_box(param);
  int slab;
  SDG_TRY(sdg_plan_packed(plan, &box, row_major, sdg_merge_bytes(type), &slab));
  *out = sdg_subcall_slab(plan, slab, type);
  return SDG_OK;
}

sdg_status_t sdg_attention_param_read(sdg_plan_t *plan, const sdg_call_t *call,
                                      const sdg_attention_t *a,
                                      const sdg_attention_param_t *param,
                                      sdg_type_t type,
                                      sdg_subcall_tensor_t *out) {
  int all, from, to;
  sdg_box_t box = {.dims = 4};
  SDG_TRY(sdg_plan_operand(plan, call, a->w, &box, &all));
  SDG_TRY(view_add(plan, call, all, param->offset_bytes, &param->box,
                   param->stride, &from));
  SDG_TRY(sdg_attention_param_room(plan, param, type, out));
  SDG_TRY(view_add(plan, call, out->slab, 0, &param->box, param->packed, &to));
  sdg_subcall_tensor_t source =
      sdg_subcall_slab(plan, from, (sdg_type_t)a->desc.type);
  sdg_subcall_tensor_t target = sdg_subcall_slab(plan, to, type);
  return sdg_subcall_transform(plan, 1, &source, 0, &target);
}

sdg_status_t sdg_attention_param_write(sdg_plan_t *plan, const sdg_call_t *call,
                                       const sdg_attention_t *a,
                                       const sdg_attention_param_t *param,
                                       const sdg_subcall_tensor_t *from,
                                       int weights, bool adds) {
  int packed, to;
  SDG_TRY(
      view_add(plan, call, from->slab, 0, &param->box, param->packed, &packed));
  SDG_TRY(view_add(plan, call, weights, param->offset_bytes, &param->box,
                   param->stride, &to));
  sdg_subcall_tensor_t source = sdg_subcall_slab(plan, packed, from->type);
  sdg_subcall_tensor_t target =
      sdg_subcall_slab(plan, to, (sdg_type_t)a->desc.type);
  return sdg_subcall_transform(plan, 1, &source, adds, &target);
}
