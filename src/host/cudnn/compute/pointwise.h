/* SPDX-License-Identifier: Apache-2.0 */
/* The modes of pointwise operations. */
#ifndef SDG_SRC_HOST_CUDNN_COMPUTE_POINTWISE_H
#define SDG_SRC_HOST_CUDNN_COMPUTE_POINTWISE_H

#include "src/graph/graph.h"
#include "src/host/cudnn/descriptor/types.h"

/* What a pointwise node may read. */
enum {
  HOST_PW_X,
  HOST_PW_B,
  HOST_PW_T,
  HOST_PW_DY,
  HOST_PW_Y,
  HOST_PW_OPERANDS
};

/* One row of results. Operands that the node lacks are 0. */
typedef struct {
  const double *in[HOST_PW_OPERANDS];
  int64_t step[HOST_PW_OPERANDS]; /* 0: the same element for all results */
  int64_t count;
  double *out;
  double alpha1, alpha2;      /* factors of x and b */
  double lower, upper, slope; /* ReLU's clips, slope below */
  double elu_alpha, softplus_beta, swish_beta;
  int64_t index, index_step; /* GEN_INDEX: of the first result; 0 or 1 */
} host_pointwise_row_t;

typedef struct {
  cudnnPointwiseMode_t mode;
  unsigned reads; /* 1 << HOST_PW_*; of a gradient, y may replace x */
  void (*row)(const host_pointwise_row_t *row);
  /* The gradient computed from y instead of x, or NULL. */
  void (*row_of_y)(const host_pointwise_row_t *row);
} host_pointwise_mode_t;

/* NULL for a mode that does not exist. */
const host_pointwise_mode_t *host_pointwise_mode(cudnnPointwiseMode_t mode);

#endif
