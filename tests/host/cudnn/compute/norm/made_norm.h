/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations in the graphs that tests make. */
#ifndef SDG_TESTS_HOST_CUDNN_COMPUTE_NORM_MADE_NORM_H
#define SDG_TESTS_HOST_CUDNN_COMPUTE_NORM_MADE_NORM_H

#include "tests/host/cudnn/compute/made.h"

typedef enum {
  NORM_X,
  NORM_SCALE,
  NORM_BIAS,
  NORM_EPSILON,
  NORM_MEAN,
  NORM_INVERSE,
  NORM_FACTOR,
  NORM_OLD_MEAN,
  NORM_OLD_VARIANCE,
  NORM_NEW_MEAN,
  NORM_NEW_VARIANCE,
  NORM_Y,
  NORM_DY,
  NORM_DX,
  NORM_DSCALE,
  NORM_DBIAS,
  NORM_TENSORS
} made_norm_tensor_t;

typedef struct {
  cudnnBackendNormMode_t mode;
  bool backward, inference;
  int tensor[NORM_TENSORS]; /* -1: none */
} made_norm_t;

/* Without tensors. */
made_norm_t made_norm_empty(cudnnBackendNormMode_t mode, bool backward);
sdg_graph_node_t *made_norm(made_t *m, const made_norm_t *norm);
made_norm_t made_norm_of(const sdg_graph_node_t *node);

/* x, dy, mean, inverse, scale, dscale, dbias, and dx's three numbers. */
enum { MADE_WEIGHTS = 10 };
sdg_graph_node_t *made_weights(made_t *m, const int tensor[MADE_WEIGHTS]);

/* Extents of the scale, and of the statistics, for x of these extents. */
void made_norm_extents(cudnnBackendNormMode_t mode, int rank, const int64_t *x,
                       int64_t *out_scale, int64_t *out_statistics);

/* A normalisation of any mode and direction, with nodes around it. */
void draw_norm(made_t *m);

#endif
