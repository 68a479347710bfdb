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

static build_t described(int64_t uid, cudnnDataType_t type,
                         const int64_t dim[BUILD_DIMS], bool is_by_value) {
  if (!is_by_value)
    return build_tensor(uid, type, dim, 16);
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t one[] = {1, 1, 1, 1}, alignment = 16;
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, BUILD_DIMS, dim);
  BUILD_SET(made, TENSOR_STRIDES, INT64, BUILD_DIMS, one);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &is_by_value);
  CHECK(cudnnBackendFinalize(made));
  return made;
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
  return s->of[s->tensors++] =
             keep(s, described(t->uid, t->type, t->dim, t->is_by_value));
}

build_t sketch_between(sketch_t *s, const int64_t dim[BUILD_DIMS]) {
  return keep(s, build_tensor(-1 - s->mades, CUDNN_DATA_FLOAT, dim, 16));
}

// ---- ops -------------------------------------------------------------------

static void put(sketch_t *s, build_t op) {
  CHECK(s->ops == SKETCH_OPS);
  s->op[s->ops++] = op;
}

static build_t convolution(sketch_t *s, int64_t stride, int64_t padding) {
  s->convolves = true;
  return keep(s, build_conv(stride, padding));
}

void sketch_conv(sketch_t *s, int64_t stride, int64_t padding, build_t x,
                 build_t w, build_t y) {
  build_t how = convolution(s, stride, padding);
  build_t op =
      build_create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  BUILD_CONV(op, FORWARD, X, W, Y, x, w, y, how);
  put(s, op);
}

void sketch_dgrad(sketch_t *s, int64_t stride, int64_t padding, build_t dy,
                  build_t w, build_t dx) {
  build_t how = convolution(s, stride, padding);
  build_t op = build_create(
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
  BUILD_CONV(op, BWD_DATA, DX, W, DY, dx, w, dy, how);
  put(s, op);
}

void sketch_wgrad(sketch_t *s, int64_t stride, int64_t padding, build_t x,
                  build_t dy, build_t dw) {
  build_t how = convolution(s, stride, padding);
  build_t op = build_create(
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
  BUILD_CONV(op, BWD_FILTER, X, DW, DY, x, dw, dy, how);
  put(s, op);
}

void sketch_pointwise(sketch_t *s, cudnnPointwiseMode_t mode, build_t x,
                      build_t b, build_t y) {
  put(s, build_pointwise(mode, x, b, y));
}

void sketch_pointwise_back(sketch_t *s, cudnnPointwiseMode_t mode, build_t dy,
                           build_t x, build_t dx) {
  build_t how = keep(s, build_create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  build_t op = build_create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
  BUILD_SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(op, OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  BUILD_GIVE(op, OPERATION_POINTWISE_DYDESC, dy);
  BUILD_GIVE(op, OPERATION_POINTWISE_XDESC, x);
  BUILD_GIVE(op, OPERATION_POINTWISE_DXDESC, dx);
  CHECK(cudnnBackendFinalize(op));
  put(s, op);
}

void sketch_sum(sketch_t *s, build_t x, build_t y) {
  build_t how = keep(s, build_create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
  build_t op = build_create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  cudnnReduceTensorOp_t add = CUDNN_REDUCE_TENSOR_ADD;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(how, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, &add);
  BUILD_SET(how, REDUCTION_COMP_TYPE, DATA_TYPE, 1, &type);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(op, OPERATION_REDUCTION_DESC, how);
  BUILD_GIVE(op, OPERATION_REDUCTION_XDESC, x);
  BUILD_GIVE(op, OPERATION_REDUCTION_YDESC, y);
  CHECK(cudnnBackendFinalize(op));
  put(s, op);
}

void sketch_statistics(sketch_t *s, build_t x, build_t sum, build_t squares) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(op, OPERATION_GENSTATS_MODE, GENSTATS_MODE, 1, &mode);
  BUILD_SET(op, OPERATION_GENSTATS_MATH_PREC, DATA_TYPE, 1, &type);
  BUILD_GIVE(op, OPERATION_GENSTATS_XDESC, x);
  BUILD_GIVE(op, OPERATION_GENSTATS_SUMDESC, sum);
  BUILD_GIVE(op, OPERATION_GENSTATS_SQSUMDESC, squares);
  CHECK(cudnnBackendFinalize(op));
  put(s, op);
}

static build_t pooling(sketch_t *s) {
  build_t how = keep(s, build_create(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR));
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnResampleMode_t mode = CUDNN_RESAMPLE_MAXPOOL;
  cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  cudnnPaddingMode_t border = CUDNN_NEG_INF_PAD;
  const int64_t spatial = BUILD_SPATIAL, two[] = {2, 2}, none[] = {0, 0};
  BUILD_SET(how, RESAMPLE_MODE, RESAMPLE_MODE, 1, &mode);
  BUILD_SET(how, RESAMPLE_COMP_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(how, RESAMPLE_NAN_PROPAGATION, NAN_PROPOGATION, 1, &nan);
  BUILD_SET(how, RESAMPLE_PADDING_MODE, PADDING_MODE, 1, &border);
  BUILD_SET(how, RESAMPLE_SPATIAL_DIMS, INT64, 1, &spatial);
  BUILD_SET(how, RESAMPLE_WINDOW_DIMS, INT64, spatial, two);
  BUILD_SET(how, RESAMPLE_PRE_PADDINGS, INT64, spatial, none);
  BUILD_SET(how, RESAMPLE_POST_PADDINGS, INT64, spatial, none);
  BUILD_SET(how, RESAMPLE_STRIDES, INT64, spatial, two);
  CHECK(cudnnBackendFinalize(how));
  return how;
}

void sketch_pool(sketch_t *s, build_t x, build_t y, build_t indices) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
  BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_DESC, pooling(s));
  BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_XDESC, x);
  BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_YDESC, y);
  if (indices)
    BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_IDXDESC, indices);
  CHECK(cudnnBackendFinalize(op));
  put(s, op);
}

void sketch_pool_back(sketch_t *s, build_t dy, build_t indices, build_t x,
                      build_t y, build_t dx) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DESC, pooling(s));
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DXDESC, dx);
  BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DYDESC, dy);
  if (indices) {
    BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_IDXDESC, indices);
  } else {
    BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_XDESC, x);
    BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_YDESC, y);
  }
  CHECK(cudnnBackendFinalize(op));
  put(s, op);
}
