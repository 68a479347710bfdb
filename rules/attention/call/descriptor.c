// SPDX-License-Identifier: Apache-2.0
// Reads and makes attention descriptors.
#include "rules/attention/call/descriptor.h"

#include <stdint.h>
#include <stdio.h>

#include "rules/vendor/sequence.h"
#include "rules/vendor/tensor.h"
#include "rules/vendor/vendor.h"

bool sdg_attention_descriptor_get(const void *descriptor,
                                  sdg_attention_descriptor_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  return cudnn && descriptor &&
         cudnn->cudnnGetAttnDescriptor(
             (cudnnAttnDescriptor_t)(uintptr_t)descriptor, &out->mode,
             &out->heads, &out->scale, &out->type, &out->compute, &out->math,
             &out->dropout, &out->post_dropout, &out->q_size, &out->k_size,
             &out->v_size, &out->q_projected, &out->k_projected,
             &out->v_projected, &out->o_projected, &out->q_time, &out->k_time,
             &out->batch, &out->beam) == CUDNN_STATUS_SUCCESS;
}

sdg_status_t
sdg_attention_descriptor_create(const sdg_attention_descriptor_t *values,
                                cudnnAttnDescriptor_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  const sdg_attention_descriptor_t *v = values;
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnStatus_t got = cudnn->cudnnCreateAttnDescriptor(out);
  if (got == CUDNN_STATUS_SUCCESS) {
    got = cudnn->cudnnSetAttnDescriptor(
        *out, v->mode, v->heads, v->scale, v->type, v->compute, v->math,
        v->dropout, v->post_dropout, v->q_size, v->k_size, v->v_size,
        v->q_projected, v->k_projected, v->v_projected, v->o_projected,
        v->q_time, v->k_time, v->batch, v->beam);
    if (got != CUDNN_STATUS_SUCCESS)
      (void)cudnn->cudnnDestroyAttnDescriptor(*out);
  }
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL, "cudnnSetAttnDescriptor: status %d",
                        (int)got);
}

static bool drops(cudnnHandle_t handle, cudnnDropoutDescriptor_t dropout) {
  float probability;
  void *states;
  unsigned long long seed;
  return dropout && (sdg_cudnn_get()->cudnnGetDropoutDescriptor(
                         dropout, handle, &probability, &states, &seed) !=
                         CUDNN_STATUS_SUCCESS ||
                     probability > 0);
}

bool sdg_attention_descriptor_drops(cudnnHandle_t handle,
                                    const sdg_attention_descriptor_t *values) {
  return drops(handle, values->dropout) || drops(handle, values->post_dropout);
}

void sdg_attention_descriptor_format(const sdg_attention_descriptor_t *values,
                                     char *out, size_t out_bytes) {
  const sdg_attention_descriptor_t *v = values;
  snprintf(out, out_bytes,
           "mode %u heads %d scale %.17g types %d %d %d sizes %d %d %d "
           "projected %d %d %d %d beams %d",
           v->mode, v->heads, v->scale, (int)v->type, (int)v->compute,
           (int)v->math, v->q_size, v->k_size, v->v_size, v->q_projected,
           v->k_projected, v->v_projected, v->o_projected, v->beam);
}

sdg_status_t
sdg_attention_descriptor_room(cudnnHandle_t handle,
                              const sdg_attention_descriptor_t *values,
                              sdg_attention_room_t *out) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnAttnDescriptor_t attention;
  SDG_TRY(sdg_attention_descriptor_create(values, &attention));
  cudnnStatus_t got = cudnn->cudnnGetMultiHeadAttnBuffers(
      handle, attention, &out->weight_bytes, &out->work_bytes,
      &out->reserve_bytes);
  (void)cudnn->cudnnDestroyAttnDescriptor(attention);
  return got == CUDNN_STATUS_SUCCESS
             ? SDG_OK
             : sdg_fail(SDG_E_VENDOR_CALL,
                        "cudnnGetMultiHeadAttnBuffers: status %d", (int)got);
}

static void extents_set(sdg_operand_t *operand, cudnnDataType_t type,
                        const int64_t *extent) {
  operand->type = (sdg_type_t)type;
  operand->elem_bytes = sdg_type_bytes(type);
  operand->dims = SDG_SEQUENCE_DIMS;
  int64_t stride = 1;
  for (int d = operand->dims - 1; d >= 0; d--) {
    operand->extent[d] = extent[d];
    operand->stride[d] = stride;
    stride *= extent[d];
  }
}

bool sdg_attention_descriptor_limits(sdg_operand_t *operand) {
  sdg_attention_descriptor_t v;
  if (!sdg_attention_descriptor_get(operand->descriptor, &v))
    return false;
  extents_set(operand, v.type,
              (int64_t[]){v.k_time, v.batch, v.beam, v.k_size});
  return true;
}

bool sdg_attention_descriptor_parameters(sdg_operand_t *operand,
                                         cudnnHandle_t handle) {
  sdg_attention_descriptor_t v;
  sdg_attention_room_t room = {.weight_bytes = 0};
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!sdg_attention_descriptor_get(operand->descriptor, &v) ||
      cudnn->cudnnGetMultiHeadAttnBuffers(
          handle, (cudnnAttnDescriptor_t)(uintptr_t)operand->descriptor,
          &room.weight_bytes, &room.work_bytes,
          &room.reserve_bytes) != CUDNN_STATUS_SUCCESS)
    return false;
  int bytes = sdg_type_bytes(v.type);
  if (bytes == 0)
    return false;
  extents_set(operand, v.type,
              (int64_t[]){1, 1, 1, (int64_t)room.weight_bytes / bytes});
  return true;
}
