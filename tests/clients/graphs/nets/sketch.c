// SPDX-License-Identifier: Apache-2.0
// Graphs from ops.
#include "tests/clients/graphs/nets/sketch.h"

#include <cuda_runtime_api.h>
#include <string.h>

// ---- tensors ---------------------------------------------------------------

static int64_t uids = 1;

int64_t tensor_elements(const tensor_t *t) {
  return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

static size_t bytes_of(const tensor_t *t) {
  static const size_t bytes[] = {
      [CUDNN_DATA_FLOAT] = 4, [CUDNN_DATA_HALF] = 2, [CUDNN_DATA_INT8] = 1};
  return (size_t)tensor_elements(t) * bytes[t->type];
}

tensor_t tensor_make(cudnnDataType_t type, int64_t n, int64_t c, int64_t h,
                     int64_t w) {
  tensor_t t = {uids++, {n, c, h, w}, type, false, NULL};
  CHECK(cudaMalloc(&t.at, bytes_of(&t)));
  CHECK(cudaMemset(t.at, 0, bytes_of(&t)));
  return t;
}

static tensor_t number(cudnnDataType_t type, size_t bytes, const void *value) {
  tensor_t t = {uids++, {1, 1, 1, 1}, type, true, malloc(bytes)};
  CHECK(!t.at);
  memcpy(t.at, value, bytes);
  return t;
}

tensor_t tensor_number(float value) {
  return number(CUDNN_DATA_FLOAT, sizeof value, &value);
}

tensor_t tensor_count(int64_t value) {
  return number(CUDNN_DATA_INT64, sizeof value, &value);
}

tensor_t tensor_again(const tensor_t *t) {
  tensor_t again = *t;
  again.uid = uids++;
  return again;
}

tensor_t tensor_like(const tensor_t *t) {
  return tensor_make(t->type, t->dim[0], t->dim[1], t->dim[2], t->dim[3]);
}

void tensor_free(tensor_t *t) {
  if (t->is_by_value)
    free(t->at);
  else
    CHECK(cudaFree(t->at));
}

static build_t keep(sketch_t *s, build_t made) {
  CHECK(s->mades == 2 * SKETCH_TENSORS);
  return s->made[s->mades++] = made;
}

// The descriptor that the sketch has of a tensor; NULL: none.
static build_t known(const sketch_t *s, const tensor_t *t) {
  for (int i = 0; i < s->tensors; i++)
    if (s->tensor[i] == t)
      return s->of[i];
  return NULL;
}

static build_t learn(sketch_t *s, const tensor_t *t, build_t made) {
  CHECK(s->tensors == SKETCH_TENSORS);
  s->tensor[s->tensors] = t;
  return s->of[s->tensors++] = keep(s, made);
}

build_t sketch_strided(sketch_t *s, const tensor_t *t, int64_t dims,
                       const int64_t *dim, const int64_t *stride) {
  build_t made = known(s, t);
  return made ? made
              : learn(s, t,
                      build_strided(t->uid, t->type, dims, dim, stride,
                                    t->is_by_value ? BUILD_BY_VALUE
                                                   : BUILD_REAL));
}

build_t sketch_tensor(sketch_t *s, const tensor_t *t) {
  static const int64_t ones[] = {1, 1, 1, 1}; // strides of a number
  if (t->is_by_value)
    return sketch_strided(s, t, BUILD_DIMS, t->dim, ones);
  build_t made = known(s, t);
  return made ? made : learn(s, t, build_tensor(t->uid, t->type, t->dim, 16));
}

build_t sketch_between(sketch_t *s, const int64_t dim[BUILD_DIMS]) {
  return keep(s, build_tensor(-1 - s->mades, CUDNN_DATA_FLOAT, dim, 16));
}

build_t sketch_virtual(sketch_t *s, int64_t dims, const int64_t *dim,
                       const int64_t *stride) {
  return keep(s, build_strided(-1 - s->mades, CUDNN_DATA_FLOAT, dims, dim,
                               stride, BUILD_VIRTUAL));
}

// ---- ops -------------------------------------------------------------------

void sketch_add(sketch_t *s, build_t op) {
  CHECK(s->ops == SKETCH_OPS);
  s->op[s->ops++] = op;
}

void sketch_conv(sketch_t *s, build_conv_t what, int64_t stride,
                 int64_t padding, build_t x, build_t w, build_t y) {
  sketch_add(s, build_conv(what, stride, padding, x, w, y));
  s->convolves = true;
}
