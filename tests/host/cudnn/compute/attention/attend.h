/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in the operations that cudnn-frontend makes of it, and as one
 * operation. */
#ifndef SDG_TESTS_HOST_CUDNN_COMPUTE_ATTENTION_ATTEND_H
#define SDG_TESTS_HOST_CUDNN_COMPUTE_ATTENTION_ATTEND_H

#include "tests/host/cudnn/compute/made.h"

typedef struct {
  cudnnDataType_t io;
  int64_t b, heads, groups, rows, columns, d, d_v;
  bool causal, bottom; /* column <= row, counted from the last row */
  int64_t left;        /* column + left > row; 0: no such bound */
  bool lengths, bias, stats;
  made_layout_t layout;
} attend_t;

attend_t attend_draw(void);

/* The tensors of a graph; -1: none. */
typedef struct {
  int q, k, v, o, stats, scale, bias, rows, columns;
  int d_o, d_q, d_k, d_v, d_bias;
} attended_t;

/* Begins with made_create(). */
attended_t attend_forward(made_t *m, const attend_t *a);
attended_t attend_backward(made_t *m, const attend_t *a);

/* The operation, on memory that is filled as by attend_forward() with the same
 * seed. Neither causal nor with a window or a bias. */
attended_t attend_as_one(made_t *m, const attend_t *a);

#endif
