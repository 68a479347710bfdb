// SPDX-License-Identifier: Apache-2.0
// Reads and makes attention descriptors.
#include "rules/attention/call/descriptor.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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

// What the size of the weights follows from.
typedef struct weights_key {
  int64_t mode, heads, type, compute, math;
  int64_t size[3], projected[4];
} weights_key_t;

// Answers of the vendor's library, which takes long to give them. The oldest
// one makes room.
enum { ANSWERS = 16 };
static struct {
  pthread_mutex_t lock;
  int next, count;
  struct {
    weights_key_t key;
    size_t bytes;
  } answer[ANSWERS];
} answers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static weights_key_t weights_key(const sdg_attention_descriptor_t *v) {
  return (weights_key_t){
      .mode = v->mode,
      .heads = v->heads,
      .type = v->type,
      .compute = v->compute,
      .math = v->math,
      .size = {v->q_size, v->k_size, v->v_size},
      .projected = {v->q_projected, v->k_projected, v->v_projected,
                    v->o_projected},
  };
}

static bool weights_ask(cudnnHandle_t handle, const void *descriptor,
                        size_t *out_bytes) {
  size_t work_bytes, reserve_bytes;
  return sdg_cudnn_get()->cudnnGetMultiHeadAttnBuffers(
             handle, (cudnnAttnDescriptor_t)(uintptr_t)descriptor, out_bytes,
             &work_bytes, &reserve_bytes) == CUDNN_STATUS_SUCCESS;
}

static bool weights_bytes(cudnnHandle_t handle, const void *descriptor,
                          const sdg_attention_descriptor_t *values,
                          size_t *out_bytes) {
  weights_key_t key = weights_key(values);
  bool known = false;
  pthread_mutex_lock(&answers.lock);
  for (int i = 0; i < answers.count && !known; i++) {
    known = memcmp(&answers.answer[i].key, &key, sizeof key) == 0;
    if (known)
      *out_bytes = answers.answer[i].bytes;
  }
  pthread_mutex_unlock(&answers.lock);
  if (known)
    return true;
  if (!weights_ask(handle, descriptor, out_bytes))
    return false;
  pthread_mutex_lock(&answers.lock);
  answers.answer[answers.next].key = key;
  answers.answer[answers.next].bytes = *out_bytes;
  answers.next = (answers.next + 1) % ANSWERS;
  if (answers.count < ANSWERS)
    answers.count++;
  pthread_mutex_unlock(&answers.lock);
  return true;
}

bool sdg_attention_descriptor_parameters(sdg_operand_t *operand,
                                         cudnnHandle_t handle) {
  sdg_attention_descriptor_t v;
  size_t weights;
  if (!sdg_attention_descriptor_get(operand->descriptor, &v) ||
      !weights_bytes(handle, operand->descriptor, &v, &weights))
    return false;
  int bytes = sdg_type_bytes(v.type);
  if (bytes == 0)
    return false;
  extents_set(operand, v.type, (int64_t[]){1, 1, 1, (int64_t)weights / bytes});
  return true;
}
