// SPDX-License-Identifier: Apache-2.0
// The operation graph, in calls of cuDNN's backend API.
#include "tests/clients/graphs/random/graph.h"

static build_t tensor_of(const graph_t *g, int t) {
  const tensor_t *tensor = &g->tensor[t];
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  int64_t uid = t + 100, alignment = 16;
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &tensor->type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, g->dims, tensor->dim);
  BUILD_SET(made, TENSOR_STRIDES, INT64, g->dims, tensor->stride);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &tensor->is_virtual);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

static build_t conv_of(const graph_t *g, const build_t *tensor) {
  build_t how = build_create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), op;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t spatial = g->dims - 2;
  BUILD_SET(how, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(how, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
  BUILD_SET(how, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &spatial);
  BUILD_SET(how, CONVOLUTION_PRE_PADDINGS, INT64, spatial, g->pad + 2);
  BUILD_SET(how, CONVOLUTION_POST_PADDINGS, INT64, spatial, g->post + 2);
  BUILD_SET(how, CONVOLUTION_DILATIONS, INT64, spatial, g->dilation + 2);
  BUILD_SET(how, CONVOLUTION_FILTER_STRIDES, INT64, spatial, g->step + 2);
  CHECK(cudnnBackendFinalize(how));
  build_t x = tensor[g->conv[X]], w = tensor[g->conv[W]],
          y = tensor[g->conv[Y]];
  if (g->kind == Y) {
    op = build_create(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    BUILD_CONV_ADD(op, FORWARD, X, W, Y, x, w, y, how, g->beta);
  } else if (g->kind == X) {
    op = build_create(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
    BUILD_CONV_ADD(op, BWD_DATA, DX, W, DY, x, w, y, how, g->beta);
  } else {
    op = build_create(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
    BUILD_CONV(op, BWD_FILTER, X, DW, DY, x, w, y, how);
  }
  build_destroy(how);
  return op;
}

static build_t pool_of(const graph_t *g, const build_t *tensor) {
  build_t how = build_create(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR), op;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN;
  bool is_max = g->mode == CUDNN_RESAMPLE_MAXPOOL;
  cudnnPaddingMode_t border = is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD;
  const int64_t spatial = g->dims - 2;
  BUILD_SET(how, RESAMPLE_MODE, RESAMPLE_MODE, 1, &g->mode);
  BUILD_SET(how, RESAMPLE_COMP_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(how, RESAMPLE_NAN_PROPAGATION, NAN_PROPOGATION, 1, &nan);
  BUILD_SET(how, RESAMPLE_PADDING_MODE, PADDING_MODE, 1, &border);
  BUILD_SET(how, RESAMPLE_SPATIAL_DIMS, INT64, 1, &spatial);
  BUILD_SET(how, RESAMPLE_WINDOW_DIMS, INT64, spatial, g->window + 2);
  BUILD_SET(how, RESAMPLE_PRE_PADDINGS, INT64, spatial, g->pad + 2);
  BUILD_SET(how, RESAMPLE_POST_PADDINGS, INT64, spatial, g->post + 2);
  BUILD_SET(how, RESAMPLE_STRIDES, INT64, spatial, g->step + 2);
  CHECK(cudnnBackendFinalize(how));
  build_t x = tensor[g->conv[X]], y = tensor[g->conv[Y]];
  if (g->kind == Y) {
    op = build_create(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR);
    BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_DESC, how);
    BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_XDESC, x);
    BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_YDESC, y);
    if (g->indices >= 0)
      BUILD_GIVE(op, OPERATION_RESAMPLE_FWD_IDXDESC, tensor[g->indices]);
  } else {
    op = build_create(CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR);
    BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DESC, how);
    BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DXDESC, x);
    BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_DYDESC, y);
    if (g->indices >= 0) {
      BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_IDXDESC, tensor[g->indices]);
    } else if (is_max) {
      BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_XDESC, tensor[g->of_x]);
      BUILD_GIVE(op, OPERATION_RESAMPLE_BWD_YDESC, tensor[g->of_y]);
    }
  }
  CHECK(cudnnBackendFinalize(op));
  build_destroy(how);
  return op;
}

static build_t statistics_of(const sum_t *sum, const build_t *tensor) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
  BUILD_SET(op, OPERATION_GENSTATS_MODE, GENSTATS_MODE, 1, &mode);
  BUILD_SET(op, OPERATION_GENSTATS_MATH_PREC, DATA_TYPE, 1, &type);
  BUILD_GIVE(op, OPERATION_GENSTATS_XDESC, tensor[sum->x]);
  BUILD_GIVE(op, OPERATION_GENSTATS_SUMDESC, tensor[sum->y]);
  BUILD_GIVE(op, OPERATION_GENSTATS_SQSUMDESC, tensor[sum->squares]);
  CHECK(cudnnBackendFinalize(op));
  return op;
}

static build_t sum_of(const sum_t *sum, const build_t *tensor) {
  build_t how = build_create(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  build_t op = build_create(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(how, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, &sum->op);
  BUILD_SET(how, REDUCTION_COMP_TYPE, DATA_TYPE, 1, &type);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(op, OPERATION_REDUCTION_DESC, how);
  BUILD_GIVE(op, OPERATION_REDUCTION_XDESC, tensor[sum->x]);
  BUILD_GIVE(op, OPERATION_REDUCTION_YDESC, tensor[sum->y]);
  CHECK(cudnnBackendFinalize(op));
  build_destroy(how);
  return op;
}

build_t graph_of(cudnnHandle_t handle, const graph_t *g) {
  build_t tensor[TENSORS], op[OPS + 3];
  int count = 0;
  for (int t = 0; t < g->tensors; t++)
    tensor[t] = tensor_of(g, t);
  for (int i = 0; i <= g->ops; i++) {
    if (i == g->before && g->main != MAIN_NONE)
      op[count++] = (g->main == MAIN_CONV   ? conv_of
                     : g->main == MAIN_POOL ? pool_of
                                            : product_of)(g, tensor);
    if (i < g->ops)
      op[count++] = build_pointwise(g->op[i].mode, tensor[g->op[i].x],
                                    g->op[i].b < 0 ? NULL : tensor[g->op[i].b],
                                    tensor[g->op[i].y]);
  }
  for (int i = 0; i < g->sums; i++)
    op[count++] = g->sum[i].squares < 0 ? sum_of(&g->sum[i], tensor)
                                        : statistics_of(&g->sum[i], tensor);
  for (int t = 0; t < g->tensors; t++)
    build_destroy(tensor[t]);
  return build_graph(handle, op, count);
}
