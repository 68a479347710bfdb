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

build_t sketch_tensor(sketch_t *s, const tensor_t *t) {
  for (int i = 0; i < s->tensors; i++)
    if (s->tensor[i] == t)
      return s->of[i];
  CHECK(s->tensors == SKETCH_TENSORS);
  s->tensor[s->tensors] = t;
  static const int64_t stride[] = {1, 1, 1, 1}; // of a number
  return s->of[s->tensors++] = keep(
             s, t->is_by_value ? build_strided(t->uid, t->type, BUILD_DIMS,
                                               t->dim, stride, BUILD_BY_VALUE)
                               : build_tensor(t->uid, t->type, t->dim, 16));
}

build_t sketch_between(sketch_t *s, const int64_t dim[BUILD_DIMS]) {
  return keep(s, build_tensor(-1 - s->mades, CUDNN_DATA_FLOAT, dim, 16));
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
