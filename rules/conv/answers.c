// SPDX-License-Identifier: Apache-2.0
// Asks the vendor's library about convolutions, and keeps what it answers for
// each description.
#include "rules/conv/answers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// If memory is short, uthash leaves the element out and does not exit.
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "rules/vendor/vendor.h"

// ---- asking ----------------------------------------------------------------

typedef struct question {
  const sdg_call_t *call;
  const sdg_conv_descriptors_t *d;
  cudnnFilterDescriptor_t w;
  int algo; // OWN_CHOICE: which algorithm?
} question_t;

enum { OWN_CHOICE = -1 };

typedef struct answer {
  cudnnStatus_t status;
  int algo;
  size_t bytes;
} answer_t;

static answer_t workspace_ask(const question_t *q) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnHandle_t handle = (cudnnHandle_t)(uintptr_t)q->call->handle;
  const sdg_conv_descriptors_t *d = q->d;
  answer_t a = {.algo = q->algo};
  switch (sdg_conv_kind(q->call)) {
  case SDG_CONV_DGRAD:
    a.status = cudnn->cudnnGetConvolutionBackwardDataWorkspaceSize(
        handle, q->w, d->y, d->conv, d->x,
        (cudnnConvolutionBwdDataAlgo_t)q->algo, &a.bytes);
    break;
  case SDG_CONV_WGRAD:
    a.status = cudnn->cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle, d->x, d->y, d->conv, q->w,
        (cudnnConvolutionBwdFilterAlgo_t)q->algo, &a.bytes);
    break;
  default:
    a.status = cudnn->cudnnGetConvolutionForwardWorkspaceSize(
        handle, d->x, q->w, d->conv, d->y, (cudnnConvolutionFwdAlgo_t)q->algo,
        &a.bytes);
  }
  return a;
}

// The library's first choice.
static answer_t choice_ask(const question_t *q) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  cudnnHandle_t handle = (cudnnHandle_t)(uintptr_t)q->call->handle;
  const sdg_conv_descriptors_t *d = q->d;
  cudnnConvolutionFwdAlgoPerf_t y;
  cudnnConvolutionBwdDataAlgoPerf_t dx;
  cudnnConvolutionBwdFilterAlgoPerf_t dw;
  int count = 0;
  answer_t a = {.bytes = 0};
  switch (sdg_conv_kind(q->call)) {
  case SDG_CONV_DGRAD:
    a.status = cudnn->cudnnGetConvolutionBackwardDataAlgorithm_v7(
        handle, q->w, d->y, d->conv, d->x, 1, &count, &dx);
    if (a.status == CUDNN_STATUS_SUCCESS && count == 1)
      a = (answer_t){dx.status, (int)dx.algo, dx.memory};
    break;
  case SDG_CONV_WGRAD:
    a.status = cudnn->cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, d->x, d->y, d->conv, q->w, 1, &count, &dw);
    if (a.status == CUDNN_STATUS_SUCCESS && count == 1)
      a = (answer_t){dw.status, (int)dw.algo, dw.memory};
    break;
  default:
    a.status = cudnn->cudnnGetConvolutionForwardAlgorithm_v7(
        handle, d->x, q->w, d->conv, d->y, 1, &count, &y);
    if (a.status == CUDNN_STATUS_SUCCESS && count == 1)
      a = (answer_t){y.status, (int)y.algo, y.memory};
  }
  if (a.status == CUDNN_STATUS_SUCCESS && count != 1)
    a.status = CUDNN_STATUS_NOT_SUPPORTED;
  return a;
}

// ---- keeping ---------------------------------------------------------------

// Strides: of tensors. Format: of filters.
typedef struct shape {
  int type, format, dims, extent[SDG_DIMS_MAX], stride[SDG_DIMS_MAX];
} shape_t;

// All that an answer depends on. The device does not change.
typedef struct description {
  sdg_conv_kind_t kind;
  int algo;
  shape_t x, y, w;
  sdg_conv_parameters_t conv;
} description_t;

typedef struct kept {
  description_t description;
  answer_t answer;
  UT_hash_handle hh;
} kept_t;

enum { KEPT_MAX = 4096 };

// In order of insertion; the oldest is dropped first.
static struct {
  pthread_mutex_t lock;
  kept_t *first;
} answers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool tensor_read(cudnnTensorDescriptor_t descriptor, shape_t *out) {
  cudnnDataType_t type;
  if (sdg_cudnn_get()->cudnnGetTensorNdDescriptor(
          descriptor, SDG_DIMS_MAX, &type, &out->dims, out->extent,
          out->stride) != CUDNN_STATUS_SUCCESS)
    return false;
  out->type = (int)type;
  return out->dims <= SDG_DIMS_MAX;
}

static bool filter_read(cudnnFilterDescriptor_t descriptor, shape_t *out) {
  cudnnDataType_t type;
  cudnnTensorFormat_t format;
  if (sdg_cudnn_get()->cudnnGetFilterNdDescriptor(
          descriptor, SDG_DIMS_MAX, &type, &format, &out->dims, out->extent) !=
      CUDNN_STATUS_SUCCESS)
    return false;
  out->type = (int)type;
  out->format = (int)format;
  return out->dims <= SDG_DIMS_MAX;
}

// False if it cannot be read: then the library shall say what is wrong.
static bool description_read(const question_t *q, description_t *out) {
  memset(out, 0, sizeof *out); // also between members: it is a key
  out->kind = sdg_conv_kind(q->call);
  out->algo = q->algo;
  return q->d->x && q->d->y && q->d->conv && q->w &&
         tensor_read(q->d->x, &out->x) && tensor_read(q->d->y, &out->y) &&
         filter_read(q->w, &out->w) &&
         sdg_conv_parameters(q->d->conv, &out->conv) == SDG_OK;
}

static bool kept_find(const description_t *description, answer_t *out) {
  kept_t *kept = NULL;
  pthread_mutex_lock(&answers.lock);
  HASH_FIND(hh, answers.first, description, sizeof *description, kept);
  if (kept)
    *out = kept->answer;
  pthread_mutex_unlock(&answers.lock);
  return kept != NULL;
}

static void kept_drop(kept_t *kept) {
  HASH_DEL(answers.first, kept);
  free(kept);
}

static void kept_add(const description_t *description, const answer_t *answer) {
  kept_t *kept = calloc(1, sizeof *kept), *other = NULL;
  if (!kept)
    return;
  kept->description = *description;
  kept->answer = *answer;
  pthread_mutex_lock(&answers.lock);
  HASH_FIND(hh, answers.first, description, sizeof *description, other);
  if (other)
    kept_drop(other); // another thread asked the same
  if (HASH_COUNT(answers.first) >= KEPT_MAX)
    kept_drop(answers.first);
  HASH_ADD(hh, answers.first, description, sizeof kept->description, kept);
  if (!kept->hh.tbl)
    free(kept);
  pthread_mutex_unlock(&answers.lock);
}

void sdg_conv_answers_forget(void) {
  pthread_mutex_lock(&answers.lock);
  while (answers.first)
    kept_drop(answers.first);
  pthread_mutex_unlock(&answers.lock);
}

// Whether the library would answer the same again. It says so of descriptions;
// other failures are those of the moment, of memory or of a device.
static bool is_lasting(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS || status / 1000 == 2 ||
         status / 1000 == 3; // BAD_PARAM, NOT_SUPPORTED, and their kinds
}
_Static_assert(CUDNN_STATUS_BAD_PARAM / 1000 == 2 &&
                   CUDNN_STATUS_NOT_SUPPORTED / 1000 == 3,
               "kinds of failures");

static answer_t answer_get(const question_t *q) {
  description_t description;
  answer_t answer;
  bool readable = description_read(q, &description);
  if (readable && kept_find(&description, &answer))
    return answer;
  answer = q->algo == OWN_CHOICE ? choice_ask(q) : workspace_ask(q);
  if (readable && is_lasting(answer.status))
    kept_add(&description, &answer);
  return answer;
}

cudnnStatus_t sdg_conv_workspace(const sdg_call_t *call,
                                 const sdg_conv_descriptors_t *d,
                                 cudnnFilterDescriptor_t w, int algo,
                                 size_t *out_bytes) {
  const question_t question = {call, d, w, algo};
  // A program may ask for an algorithm of any number.
  answer_t answer = algo < 0 ? workspace_ask(&question) : answer_get(&question);
  if (answer.status == CUDNN_STATUS_SUCCESS)
    *out_bytes = answer.bytes;
  return answer.status;
}

cudnnStatus_t sdg_conv_choose(const sdg_call_t *call,
                              const sdg_conv_descriptors_t *d,
                              cudnnFilterDescriptor_t w, int wanted,
                              int *out_algo, size_t *out_workspace_bytes) {
  const question_t question = {call, d, w, OWN_CHOICE};
  *out_algo = wanted;
  cudnnStatus_t got =
      sdg_conv_workspace(call, d, w, wanted, out_workspace_bytes);
  if (got == CUDNN_STATUS_SUCCESS)
    return got;
  answer_t answer = answer_get(&question);
  if (answer.status != CUDNN_STATUS_SUCCESS)
    return got;
  *out_algo = answer.algo;
  *out_workspace_bytes = answer.bytes;
  return CUDNN_STATUS_SUCCESS;
}
