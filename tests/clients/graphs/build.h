/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of cuDNN's backend API in few lines, for the programs of this folder.
 * The order of calls is that of the 0.x builders of cudnn-frontend, which
 * PyTorch and XLA use for convolutions. A failed call ends the program. What is
 * returned is the caller's, who destroys it. */
#ifndef SDG_TESTS_CLIENTS_GRAPHS_BUILD_H
#define SDG_TESTS_CLIENTS_GRAPHS_BUILD_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/calls.h"

typedef cudnnBackendDescriptor_t build_t;

build_t build_create(cudnnBackendDescriptorType_t kind);
void build_destroy(build_t descriptor);

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

/* ---- tensors ------------------------------------------------------------- */

enum { BUILD_DIMS = 4 };

/* Four dimensions, channels last. A negative uid: virtual. */
build_t build_tensor(int64_t uid, cudnnDataType_t type,
                     const int64_t dim[BUILD_DIMS], int64_t alignment);

typedef enum { BUILD_REAL, BUILD_VIRTUAL, BUILD_BY_VALUE } build_place_t;

/* Any dimensions and strides, aligned to 16 bytes. */
build_t build_strided(int64_t uid, cudnnDataType_t type, int64_t dims,
                      const int64_t *dim, const int64_t *stride,
                      build_place_t place);

/* ---- ops, which compute in float unless they say a type ------------------ */

/* Of a convolution or a pooling; `size` is of poolings only. */
typedef struct {
  int64_t dims; /* 1 to 3 */
  int64_t size[3], pre[3], post[3], stride[3], dilation[3];
} build_window_t;

/* In two dimensions, alike in both. */
build_window_t build_window(int64_t size, int64_t stride, int64_t padding);

/* What cudnnConvolutionForward, BackwardData or BackwardFilter computes: y, x
 * or w. */
typedef enum { BUILD_FORWARD, BUILD_DATA, BUILD_FILTER } build_conv_t;

/* In two dimensions; alpha 1, beta 0. */
build_t build_conv(build_conv_t what, int64_t stride, int64_t padding,
                   build_t x, build_t w, build_t y);
/* With any window, and `beta` times what was there. */
build_t build_conv_add(build_conv_t what, const build_window_t *window,
                       build_t x, build_t w, build_t y, float beta);
/* The descriptor of a convolution, for programs that make the op themselves. */
build_t build_conv_how(const build_window_t *window);

/* Padding is -infinity for maxima, 0 elsewhere. `indices` may be NULL. */
build_t build_pool(cudnnResampleMode_t mode, const build_window_t *window,
                   build_t x, build_t y, build_t indices);
/* The gradient of a maximum is by indices, or else by x and y; others need
 * neither (NULL). */
build_t build_pool_back(cudnnResampleMode_t mode, const build_window_t *window,
                        build_t dy, build_t indices, build_t x, build_t y,
                        build_t dx);

/* y = mode(x, b); b NULL for functions of x alone. */
build_t build_pointwise(cudnnPointwiseMode_t mode, build_t x, build_t b,
                        build_t y);
/* dx of dy and of the function's x. */
build_t build_pointwise_back(cudnnPointwiseMode_t mode, build_t dy, build_t x,
                             build_t dx);
/* Computes in this type, with t; axis: of GEN_INDEX, else -1. */
build_t build_pointwise_as(cudnnPointwiseMode_t mode, cudnnDataType_t type,
                           int64_t axis, build_t x, build_t b, build_t t,
                           build_t y);

build_t build_reduction(cudnnReduceTensorOp_t op, build_t x, build_t y);
build_t build_statistics(build_t x, build_t sum, build_t squares);
build_t build_product(build_t a, build_t b, build_t c);
/* limit: tensors with numbers of rows, columns and terms, which may be NULL. */
build_t build_product_within(build_t a, build_t b, build_t c,
                             const build_t limit[3]);

/* ---- graphs and plans ---------------------------------------------------- */

/* Destroys the operations: the graph holds them. */
build_t build_graph(cudnnHandle_t handle, build_t *ops, int64_t count);

enum { BUILD_CONFIGS = 64 };

/* What a heuristic proposes. */
int64_t build_configs(build_t graph, cudnnBackendHeurMode_t mode,
                      build_t out[BUILD_CONFIGS]);
/* NULL if no plan can be made of the configuration. */
build_t build_plan(cudnnHandle_t handle, build_t config,
                   int64_t *out_workspace);
/* The plan of the first configuration that has one, or NULL. */
build_t build_first_plan(cudnnHandle_t handle, build_t graph,
                         cudnnBackendHeurMode_t mode, int64_t *out_workspace);

/* A variant pack, which may be executed several times. */
build_t build_pack(const int64_t *uids, void **pointers, int64_t count,
                   void *workspace);
/* With a variant pack of its own, as frameworks do. */
cudnnStatus_t build_execute(cudnnHandle_t handle, build_t plan,
                            const int64_t *uids, void **pointers, int64_t count,
                            void *workspace);
/* With a workspace of so many bytes for this execution alone. */
cudnnStatus_t build_execute_once(cudnnHandle_t handle, build_t plan,
                                 const int64_t *uids, void **pointers,
                                 int64_t count, int64_t workspace_bytes);

#endif
