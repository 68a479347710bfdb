// SPDX-License-Identifier: Apache-2.0
// Tensors, ops and graphs of cuDNN's backend API.
#include "tests/clients/graphs/build.h"

build_t build_create(cudnnBackendDescriptorType_t kind) {
  build_t made;
  CHECK(cudnnBackendCreateDescriptor(kind, &made));
  return made;
}

void build_destroy(build_t descriptor) {
  CHECK(cudnnBackendDestroyDescriptor(descriptor));
}

static build_t finished(build_t descriptor) {
  CHECK(cudnnBackendFinalize(descriptor));
  return descriptor;
}

// ---- tensors ---------------------------------------------------------------

static build_t tensor_make(int64_t uid, cudnnDataType_t type, int64_t dims,
                           const int64_t *dim, const int64_t *stride,
                           int64_t alignment, build_place_t place) {
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const bool is_virtual = place == BUILD_VIRTUAL;
  const bool by_value = place == BUILD_BY_VALUE;
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, dims, dim);
  BUILD_SET(made, TENSOR_STRIDES, INT64, dims, stride);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual);
  if (by_value)
    BUILD_SET(made, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &by_value);
  return finished(made);
}

build_t build_tensor(int64_t uid, cudnnDataType_t type,
                     const int64_t dim[BUILD_DIMS], int64_t alignment) {
  const int64_t stride[] = {dim[1] * dim[2] * dim[3], 1, dim[1] * dim[3],
                            dim[1]};
  return tensor_make(uid, type, BUILD_DIMS, dim, stride, alignment,
                     uid < 0 ? BUILD_VIRTUAL : BUILD_REAL);
}

build_t build_strided(int64_t uid, cudnnDataType_t type, int64_t dims,
                      const int64_t *dim, const int64_t *stride,
                      build_place_t place) {
  return tensor_make(uid, type, dims, dim, stride, 16, place);
}

// ---- ops -------------------------------------------------------------------

static const cudnnDataType_t computed_in = CUDNN_DATA_FLOAT;

// Nothing where there is no such operand.
static void give(build_t op, cudnnBackendAttributeName_t name,
                 build_t operand) {
  if (operand)
    CHECK(cudnnBackendSetAttribute(op, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                   &operand));
}

// An op with a descriptor of how it computes, which it holds from now on.
static build_t op_begin(cudnnBackendDescriptorType_t kind,
                        cudnnBackendAttributeName_t name, build_t how) {
  build_t made = build_create(kind);
  give(made, name, how);
  build_destroy(how);
  return made;
}

build_window_t build_window(int64_t size, int64_t stride, int64_t padding) {
  return (build_window_t){.dims = 2,
                          .size = {size, size},
                          .pre = {padding, padding},
                          .post = {padding, padding},
                          .stride = {stride, stride},
                          .dilation = {1, 1}};
}

build_t build_conv_how(const build_window_t *window) {
  build_t made = build_create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t dims = window->dims;
  BUILD_SET(made, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &computed_in);
  BUILD_SET(made, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
  BUILD_SET(made, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &dims);
  BUILD_SET(made, CONVOLUTION_PRE_PADDINGS, INT64, dims, window->pre);
  BUILD_SET(made, CONVOLUTION_POST_PADDINGS, INT64, dims, window->post);
  BUILD_SET(made, CONVOLUTION_DILATIONS, INT64, dims, window->dilation);
  BUILD_SET(made, CONVOLUTION_FILTER_STRIDES, INT64, dims, window->stride);
  return finished(made);
}

build_t build_conv_add(build_conv_t what, const build_window_t *window,
                       build_t x, build_t w, build_t y, float beta) {
  static const struct {
    cudnnBackendDescriptorType_t kind;
    cudnnBackendAttributeName_t x, w, y, how, alpha, beta;
  } names[] = {
#define ROW(kind, attribute, x, w, y)                                          \
  {CUDNN_BACKEND_OPERATION_CONVOLUTION_##kind##_DESCRIPTOR,                    \
   CUDNN_ATTR_OPERATION_CONVOLUTION_##attribute##_##x,                         \
   CUDNN_ATTR_OPERATION_CONVOLUTION_##attribute##_##w,                         \
   CUDNN_ATTR_OPERATION_CONVOLUTION_##attribute##_##y,                         \
   CUDNN_ATTR_OPERATION_CONVOLUTION_##attribute##_CONV_DESC,                   \
   CUDNN_ATTR_OPERATION_CONVOLUTION_##attribute##_ALPHA,                       \
   CUDNN_ATTR_OPERATION_CONVOLUTION_##attribute##_BETA}
      [BUILD_FORWARD] = ROW(FORWARD, FORWARD, X, W, Y),
      [BUILD_DATA] = ROW(BACKWARD_DATA, BWD_DATA, DX, W, DY),
      [BUILD_FILTER] = ROW(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
#undef ROW
  };
  const float alpha = 1;
  build_t how = build_conv_how(window), made = build_create(names[what].kind);
  give(made, names[what].x, x);
  give(made, names[what].w, w);
  give(made, names[what].y, y);
  give(made, names[what].how, how);
  CHECK(cudnnBackendSetAttribute(made, names[what].alpha, CUDNN_TYPE_FLOAT, 1,
                                 &alpha));
  CHECK(cudnnBackendSetAttribute(made, names[what].beta, CUDNN_TYPE_FLOAT, 1,
                                 &beta));
  build_destroy(how);
  return finished(made);
}

build_t build_conv(build_conv_t what, int64_t stride, int64_t padding,
                   build_t x, build_t w, build_t y) {
  const build_window_t window = build_window(0, stride, padding);
  return build_conv_add(what, &window, x, w, y, 0);
}

static build_t pool_how(cudnnResampleMode_t mode,
                        const build_window_t *window) {
  build_t made = build_create(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  const cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  const cudnnPaddingMode_t border =
      mode == CUDNN_RESAMPLE_MAXPOOL ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
  const int64_t dims = window->dims;
  BUILD_SET(made, RESAMPLE_MODE, RESAMPLE_MODE, 1, &mode);
  BUILD_SET(made, RESAMPLE_COMP_TYPE, DATA_TYPE, 1, &computed_in);
  BUILD_SET(made, RESAMPLE_NAN_PROPAGATION, NAN_PROPOGATION, 1, &nan);
  BUILD_SET(made, RESAMPLE_PADDING_MODE, PADDING_MODE, 1, &border);
  BUILD_SET(made, RESAMPLE_SPATIAL_DIMS, INT64, 1, &dims);
  BUILD_SET(made, RESAMPLE_WINDOW_DIMS, INT64, dims, window->size);
  BUILD_SET(made, RESAMPLE_PRE_PADDINGS, INT64, dims, window->pre);
  BUILD_SET(made, RESAMPLE_POST_PADDINGS, INT64, dims, window->post);
  BUILD_SET(made, RESAMPLE_STRIDES, INT64, dims, window->stride);
  return finished(made);
}

build_t build_pool(cudnnResampleMode_t mode, const build_window_t *window,
                   build_t x, build_t y, build_t indices) {
  build_t made =
      op_begin(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
               CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, pool_how(mode, window));
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, x);
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, y);
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC, indices);
  return finished(made);
}

build_t build_pool_back(cudnnResampleMode_t mode, const build_window_t *window,
                        build_t dy, build_t indices, build_t x, build_t y,
                        build_t dx) {
  build_t made =
      op_begin(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR,
               CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, pool_how(mode, window));
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC, dx);
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC, dy);
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC, indices);
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC, x);
  give(made, CUDNN_ATTR_OPERATION_RESAMPLE_BWD_YDESC, y);
  return finished(made);
}

// Without its operands.
static build_t pointwise_begin(cudnnPointwiseMode_t mode, cudnnDataType_t type,
                               int64_t axis) {
  build_t how = build_create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  BUILD_SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
  BUILD_SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
  if (axis >= 0)
    BUILD_SET(how, POINTWISE_AXIS, INT64, 1, &axis);
  return op_begin(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, finished(how));
}

build_t build_pointwise_as(cudnnPointwiseMode_t mode, cudnnDataType_t type,
                           int64_t axis, build_t x, build_t b, build_t t,
                           build_t y) {
  build_t made = pointwise_begin(mode, type, axis);
  give(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  give(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  give(made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
  give(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  return finished(made);
}

build_t build_pointwise(cudnnPointwiseMode_t mode, build_t x, build_t b,
                        build_t y) {
  return build_pointwise_as(mode, computed_in, -1, x, b, NULL, y);
}

build_t build_pointwise_back(cudnnPointwiseMode_t mode, build_t dy, build_t x,
                             build_t dx) {
  build_t made = pointwise_begin(mode, computed_in, -1);
  give(made, CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, dy);
  give(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  give(made, CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx);
  return finished(made);
}

build_t build_reduction(cudnnReduceTensorOp_t op, build_t x, build_t y) {
  build_t how = build_create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  BUILD_SET(how, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, &op);
  BUILD_SET(how, REDUCTION_COMP_TYPE, DATA_TYPE, 1, &computed_in);
  build_t made = op_begin(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_REDUCTION_DESC, finished(how));
  give(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  give(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  return finished(made);
}

build_t build_statistics(build_t x, build_t sum, build_t squares) {
  build_t made = build_create(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
  BUILD_SET(made, OPERATION_GENSTATS_MODE, GENSTATS_MODE, 1, &mode);
  BUILD_SET(made, OPERATION_GENSTATS_MATH_PREC, DATA_TYPE, 1, &computed_in);
  give(made, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, x);
  give(made, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
  give(made, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
  return finished(made);
}

build_t build_product_within(build_t a, build_t b, build_t c,
                             const build_t limit[3]) {
  build_t how = build_create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  BUILD_SET(how, MATMUL_COMP_TYPE, DATA_TYPE, 1, &computed_in);
  build_t made = op_begin(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_MATMUL_DESC, finished(how));
  give(made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  give(made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  give(made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  give(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, limit[0]);
  give(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, limit[1]);
  give(made, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, limit[2]);
  return finished(made);
}

build_t build_product(build_t a, build_t b, build_t c) {
  return build_product_within(a, b, c, (const build_t[3]){NULL});
}

build_t build_graph(cudnnHandle_t handle, build_t *ops, int64_t count) {
  build_t made = build_create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  BUILD_SET(made, OPERATIONGRAPH_HANDLE, HANDLE, 1, &handle);
  BUILD_SET(made, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, count, ops);
  CHECK(cudnnBackendFinalize(made));
  for (int64_t i = 0; i < count; i++)
    build_destroy(ops[i]);
  return made;
}
