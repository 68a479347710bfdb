/* SPDX-License-Identifier: Apache-2.0 */
/* A small convolution that tests of graphs build on. */
#ifndef SDG_TESTS_HOST_CUDNN_COMPUTE_LAYER_H
#define SDG_TESTS_HOST_CUDNN_COMPUTE_LAYER_H

#include "tests/host/cudnn/compute/made.h"

enum { LAYER_FORWARD, LAYER_FILTER, LAYER_DATA };

static const cudnnBackendDescriptorType_t layer_kinds[] = {
    [LAYER_FORWARD] = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
    [LAYER_FILTER] =
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    [LAYER_DATA] =
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR};

/* x, w and y of layer_plain(). */
static const int64_t layer_x[] = {2, 4, 9, 7}, layer_w[] = {5, 4, 3, 3},
                     layer_y[] = {2, 5, 9, 7};
static const int64_t *const layer_dims[] = {layer_x, layer_w, layer_y};

/* Which of x, w and y a kind writes. */
static inline int layer_output(int kind) {
  return kind == LAYER_FORWARD ? 2 : kind == LAYER_FILTER ? 1 : 0;
}

/* Paddings 1. */
static inline made_conv_t layer_plain(int kind, cudnnDataType_t compute) {
  return (made_conv_t){.kind = layer_kinds[kind],
                       .compute = compute,
                       .pre = {1, 1, 1},
                       .post = {1, 1, 1},
                       .stride = {1, 1, 1},
                       .dilation = {1, 1, 1},
                       .alpha = 1};
}

/* y's extents. */
static inline void layer_extents(const made_conv_t *conv, int rank,
                                 const int64_t *x, const int64_t *w,
                                 int64_t *out) {
  out[0] = x[0];
  out[1] = w[0];
  for (int d = 0; d < rank - 2; d++)
    out[2 + d] = (x[2 + d] + conv->pre[d] + conv->post[d] -
                  conv->dilation[d] * (w[2 + d] - 1) - 1) /
                     conv->stride[d] +
                 1;
}

#endif
