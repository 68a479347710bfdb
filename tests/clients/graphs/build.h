/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of cuDNN's backend API in few lines, for the programs of this folder.
 * The order of calls is that of the 0.x builders of cudnn-frontend, which
 * PyTorch and XLA use for convolutions. A failed call ends the program. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_BUILD_H
#define SDG_TESTS_CLIENTS_GRAPHS_BUILD_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/calls.h"

typedef cudnnBackendDescriptor_t build_t;

enum { BUILD_DIMS = 4, BUILD_SPATIAL = 2 };

static inline build_t build_create(cudnnBackendDescriptorType_t kind) {
  build_t made;
  CHECK(cudnnBackendCreateDescriptor(kind, &made));
  return made;
}

#define BUILD_SET(to, name, type, count, from)                                 \
  CHECK(cudnnBackendSetAttribute(to, CUDNN_ATTR_##name, CUDNN_TYPE_##type,     \
                                 count, from))
#define BUILD_GIVE(to, name, child)                                            \
  do {                                                                         \
    build_t child_ = (child);                                                  \
    BUILD_SET(to, name, BACKEND_DESCRIPTOR, 1, &child_);                       \
  } while (0)
#define BUILD_GET(from, name, type, room, out_count, to)                       \
  CHECK(cudnnBackendGetAttribute(from, CUDNN_ATTR_##name, CUDNN_TYPE_##type,   \
                                 room, out_count, to))

static inline void build_destroy(build_t descriptor) {
  CHECK(cudnnBackendDestroyDescriptor(descriptor));
}

/* Channels last. A negative uid: virtual. */
static inline build_t build_tensor(int64_t uid, cudnnDataType_t type,
                                   const int64_t dim[BUILD_DIMS],
                                   int64_t alignment) {
  build_t made = build_create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t stride[] = {dim[1] * dim[2] * dim[3], 1, dim[1] * dim[3],
                            dim[1]};
  bool is_virtual = uid < 0;
  BUILD_SET(made, TENSOR_DATA_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, TENSOR_DIMENSIONS, INT64, BUILD_DIMS, dim);
  BUILD_SET(made, TENSOR_STRIDES, INT64, BUILD_DIMS, stride);
  BUILD_SET(made, TENSOR_UNIQUE_ID, INT64, 1, &uid);
  BUILD_SET(made, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  BUILD_SET(made, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

static inline build_t build_conv(int64_t stride, int64_t padding) {
  build_t made = build_create(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t spatial = BUILD_SPATIAL, one[] = {1, 1};
  const int64_t steps[] = {stride, stride}, pads[] = {padding, padding};
  BUILD_SET(made, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &type);
  BUILD_SET(made, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
  BUILD_SET(made, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &spatial);
  BUILD_SET(made, CONVOLUTION_PRE_PADDINGS, INT64, BUILD_SPATIAL, pads);
  BUILD_SET(made, CONVOLUTION_POST_PADDINGS, INT64, BUILD_SPATIAL, pads);
  BUILD_SET(made, CONVOLUTION_DILATIONS, INT64, BUILD_SPATIAL, one);
  BUILD_SET(made, CONVOLUTION_FILTER_STRIDES, INT64, BUILD_SPATIAL, steps);
  CHECK(cudnnBackendFinalize(made));
  return made;
}

/* The result is that of cudnnConvolutionForward, BackwardData or
 * BackwardFilter: alpha 1, beta 0. */
#define BUILD_CONV(made, kind, x, w, y, x_, w_, y_, conv)                      \
  BUILD_CONV_ADD(made, kind, x, w, y, x_, w_, y_, conv, 0)
#define BUILD_CONV_ADD(made, kind, x, w, y, x_, w_, y_, conv, beta)            \
  do {                                                                         \
    const float one_ = 1, zero_ = (beta);                                      \
    BUILD_GIVE(made, OPERATION_CONVOLUTION_##kind##_##x, x_);                  \
    BUILD_GIVE(made, OPERATION_CONVOLUTION_##kind##_##w, w_);                  \
    BUILD_GIVE(made, OPERATION_CONVOLUTION_##kind##_##y, y_);                  \
    BUILD_GIVE(made, OPERATION_CONVOLUTION_##kind##_CONV_DESC, conv);          \
    BUILD_SET(made, OPERATION_CONVOLUTION_##kind##_ALPHA, FLOAT, 1, &one_);    \
    BUILD_SET(made, OPERATION_CONVOLUTION_##kind##_BETA, FLOAT, 1, &zero_);    \
    CHECK(cudnnBackendFinalize(made));                                         \
  } while (0)

/* y = mode(x, b); b NULL for functions of x alone. */
static inline build_t build_pointwise(cudnnPointwiseMode_t mode, build_t x,
                                      build_t b, build_t y) {
  build_t how = build_create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  build_t made = build_create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  BUILD_SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
  BUILD_SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
  CHECK(cudnnBackendFinalize(how));
  BUILD_GIVE(made, OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  BUILD_GIVE(made, OPERATION_POINTWISE_XDESC, x);
  if (b)
    BUILD_GIVE(made, OPERATION_POINTWISE_BDESC, b);
  BUILD_GIVE(made, OPERATION_POINTWISE_YDESC, y);
  CHECK(cudnnBackendFinalize(made));
  build_destroy(how);
  return made;
}

/* Destroys the operations: the graph holds them. */
static inline build_t build_graph(cudnnHandle_t handle, build_t *ops,
                                  int64_t count) {
  build_t made = build_create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  BUILD_SET(made, OPERATIONGRAPH_HANDLE, HANDLE, 1, &handle);
  BUILD_SET(made, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, count, ops);
  CHECK(cudnnBackendFinalize(made));
  for (int64_t i = 0; i < count; i++)
    build_destroy(ops[i]);
  return made;
}

enum { BUILD_CONFIGS = 64 };

/* What a heuristic proposes; the caller destroys the configurations. */
static inline int64_t build_configs(build_t graph, cudnnBackendHeurMode_t mode,
                                    build_t out[BUILD_CONFIGS]) {
  build_t heuristic = build_create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  int64_t count, fetched;
  BUILD_GIVE(heuristic, ENGINEHEUR_OPERATION_GRAPH, graph);
  BUILD_SET(heuristic, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
  CHECK(cudnnBackendFinalize(heuristic));
  BUILD_GET(heuristic, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, &count, NULL);
  if (count > BUILD_CONFIGS)
    count = BUILD_CONFIGS;
  for (int64_t i = 0; i < count; i++)
    out[i] = build_create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  BUILD_GET(heuristic, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, count, &fetched,
            out);
  for (int64_t i = fetched; i < count; i++)
    build_destroy(out[i]);
  build_destroy(heuristic);
  return fetched;
}

/* NULL if no plan can be made of the configuration. */
static inline build_t build_plan(cudnnHandle_t handle, build_t config,
                                 int64_t *out_workspace) {
  build_t plan = build_create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  BUILD_SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &handle);
  BUILD_GIVE(plan, EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (cudnnBackendFinalize(plan) != CUDNN_STATUS_SUCCESS) {
    build_destroy(plan);
    return NULL;
  }
  BUILD_GET(plan, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, NULL, out_workspace);
  return plan;
}

/* A variant pack is made anew for each execution. */
static inline cudnnStatus_t build_execute(cudnnHandle_t handle, build_t plan,
                                          const int64_t *uids, void **pointers,
                                          int64_t count, void *workspace) {
  build_t pack = build_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  BUILD_SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, pointers);
  BUILD_SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, count, uids);
  BUILD_SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &workspace);
  CHECK(cudnnBackendFinalize(pack));
  cudnnStatus_t status = cudnnBackendExecute(handle, plan, pack);
  build_destroy(pack);
  return status;
}

#endif
