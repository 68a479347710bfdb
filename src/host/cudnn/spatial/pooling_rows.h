/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling of one plane (or volume), a row of outputs at a time, in doubles. */
#ifndef SDG_SRC_HOST_CUDNN_SPATIAL_POOLING_ROWS_H
#define SDG_SRC_HOST_CUDNN_SPATIAL_POOLING_ROWS_H

#include "src/host/cudnn/descriptor/types.h"

enum { HOST_POOL_RANK = 3 };

/* Depth, rows, columns; missing extents are 1. x's columns are contiguous
 * floats or doubles. */
typedef struct {
  const struct cudnnPoolingStruct *how; /* of three dimensions */
  int64_t in[HOST_POOL_RANK], out[HOST_POOL_RANK];
  bool is_float;
  const void *x;
  int64_t deep, down;    /* elements from depth to depth, from row to row */
  const double *columns; /* per output column: the divisor of a mean */
} host_pool_t;

bool host_pool_averages(const struct cudnnPoolingStruct *how);

/* Computes `columns` from everything except x. */
void host_pool_columns(const host_pool_t *pool, double *out_columns);

/* y's row `at[1]` at depth `at[0]`. `most` has room for a row of doubles. */
void host_pool_forward(const host_pool_t *pool, const int64_t at[2], void *most,
                       double *out_y);

/* Adds to dx, a packed plane, the contribution of dy's row `at[1]` at depth
 * `at[0]`. `most` and `where` have room for a row. */
void host_pool_backward(const host_pool_t *pool, const int64_t at[2],
                        const double *dy, void *most, int32_t *where,
                        double *io_dx);

#endif
