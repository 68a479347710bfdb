// SPDX-License-Identifier: Apache-2.0
// The operation graph, in calls of cuDNN's backend API.
#include "tests/clients/graphs/random/graph.h"

static build_t tensor_of(const graph_t *g, int t) {
  const tensor_t *tensor = &g->tensor[t];
  return build_strided(t + 100, tensor->type, g->dims, tensor->dim,
                       tensor->stride,
                       tensor->is_virtual ? BUILD_VIRTUAL : BUILD_REAL);
}

static build_window_t window_of(const graph_t *g) {
  build_window_t window = {.dims = g->dims - 2};
  for (int d = 2; d < g->dims; d++) {
    window.size[d - 2] = g->window[d];
    window.pre[d - 2] = g->pad[d];
    window.post[d - 2] = g->post[d];
    window.stride[d - 2] = g->step[d];
    window.dilation[d - 2] = g->dilation[d];
  }
  return window;
}

static build_t conv_of(const graph_t *g, const build_t *tensor) {
  static const build_conv_t what[] = {
      [Y] = BUILD_FORWARD, [X] = BUILD_DATA, [W] = BUILD_FILTER};
  const build_window_t window = window_of(g);
  return build_conv_add(what[g->kind], &window, tensor[g->conv[X]],
                        tensor[g->conv[W]], tensor[g->conv[Y]], g->beta);
}

static build_t pool_of(const graph_t *g, const build_t *tensor) {
  const build_window_t window = window_of(g);
  build_t x = tensor[g->conv[X]], y = tensor[g->conv[Y]];
  build_t indices = g->indices < 0 ? NULL : tensor[g->indices];
  if (g->kind == Y)
    return build_pool(g->mode, &window, x, y, indices);
  bool reads = !indices && g->mode == CUDNN_RESAMPLE_MAXPOOL;
  return build_pool_back(g->mode, &window, y, indices,
                         reads ? tensor[g->of_x] : NULL,
                         reads ? tensor[g->of_y] : NULL, x);
}

static build_t product_of(const graph_t *g, const build_t *tensor) {
  return build_product(tensor[g->conv[X]], tensor[g->conv[W]],
                       tensor[g->conv[Y]]);
}

// ---- norms ---------------------------------------------------------

static void number_give(const graph_t *g, build_t op,
                        cudnnBackendAttributeName_t name, int which) {
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t ones[] = {1, 1, 1, 1, 1};
  int64_t uid = number_uid(which), alignment = 4;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  bool by_value = true;
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, g->dims, ones);
  BUILD_SET(made, TENSOR_STRIDES, INT64, g->dims, ones);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &by_value);
  CHECK(cudnnBackendFinalize(made));
  CHECK(cudnnBackendSetAttribute(op, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &made));
  build_destroy(made);
}

static void give(build_t op, cudnnBackendAttributeName_t name,
                 const build_t *tensor, int t) {
  if (t >= 0)
    CHECK(cudnnBackendSetAttribute(op, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                   &tensor[t]));
}

#define GIVE(name, t) give(op, CUDNN_ATTR_OPERATION_NORM_##name, tensor, t)

static build_t forward_of(const graph_t *g, const build_t *tensor) {
  build_t op = build_create(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  const norm_t *n = &g->norm;
  cudnnBackendNormFwdPhase_t phase =
      n->inference ? CUDNN_NORM_FWD_INFERENCE : CUDNN_NORM_FWD_TRAINING;
  BUILD_SET(op, OPERATION_NORM_FWD_MODE, NORM_MODE, 1, &n->mode);
  BUILD_SET(op, OPERATION_NORM_FWD_PHASE, NORM_FWD_PHASE, 1, &phase);
  GIVE(FWD_XDESC, g->conv[X]);
  GIVE(FWD_YDESC, g->conv[Y]);
  GIVE(FWD_MEAN_DESC, n->mean);
  GIVE(FWD_INV_VARIANCE_DESC, n->inverse);
  GIVE(FWD_SCALE_DESC, n->scale);
  GIVE(FWD_BIAS_DESC, n->bias);
  number_give(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, EPSILON);
  if (n->old[0] >= 0) {
    number_give(g, op, CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC,
                FACTOR);
    GIVE(FWD_INPUT_RUNNING_MEAN_DESC, n->old[0]);
    GIVE(FWD_INPUT_RUNNING_VAR_DESC, n->old[1]);
    GIVE(FWD_OUTPUT_RUNNING_MEAN_DESC, n->new[0]);
    GIVE(FWD_OUTPUT_RUNNING_VAR_DESC, n->new[1]);
  }
  CHECK(cudnnBackendFinalize(op));
  return op;
}

static build_t norm_of(const graph_t *g, const build_t *tensor) {
  const norm_t *n = &g->norm;
  if (!n->backward)
    return forward_of(g, tensor);
  build_t op = build_create(CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR);
  BUILD_SET(op, OPERATION_NORM_BWD_MODE, NORM_MODE, 1, &n->mode);
  GIVE(BWD_XDESC, g->conv[X]);
  GIVE(BWD_DYDESC, n->dy);
  GIVE(BWD_DXDESC, g->conv[Y]);
  GIVE(BWD_MEAN_DESC, n->mean);
  GIVE(BWD_INV_VARIANCE_DESC, n->inverse);
  GIVE(BWD_SCALE_DESC, n->scale);
  GIVE(BWD_DSCALE_DESC, n->dscale);
  GIVE(BWD_DBIAS_DESC, n->dbias);
  CHECK(cudnnBackendFinalize(op));
  return op;
}

// ---- graphs ----------------------------------------------------------------

static build_t sum_of(const sum_t *sum, const build_t *tensor) {
  build_t x = tensor[sum->x], y = tensor[sum->y];
  return sum->squares < 0 ? build_reduction(sum->op, x, y)
                          : build_statistics(x, y, tensor[sum->squares]);
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
                     : g->main == MAIN_NORM ? norm_of
                                            : product_of)(g, tensor);
    if (i < g->ops)
      op[count++] = build_pointwise(g->op[i].mode, tensor[g->op[i].x],
                                    g->op[i].b < 0 ? NULL : tensor[g->op[i].b],
                                    tensor[g->op[i].y]);
  }
  for (int i = 0; i < g->sums; i++)
    op[count++] = sum_of(&g->sum[i], tensor);
  for (int t = 0; t < g->tensors; t++)
    build_destroy(tensor[t]);
  return build_graph(handle, op, count);
}
