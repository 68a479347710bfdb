/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element work on tensors of any strides and type. */
#ifndef SDG_SRC_HOST_CUDNN_ELEMENTWISE_LOOPS_H
#define SDG_SRC_HOST_CUDNN_ELEMENTWISE_LOOPS_H

#include "src/host/cudnn/descriptor/types.h"

typedef enum {
  HOST_LOOP_BLEND,    /* y = alpha * a + beta * y */
  HOST_LOOP_SET,      /* y = value */
  HOST_LOOP_OP,       /* y = op(alpha * a, alpha2 * b) + beta * y */
  HOST_LOOP_FORWARD,  /* y = alpha * activation(a) + beta * y */
  HOST_LOOP_BACKWARD, /* y = alpha * gradient(y' = a, dy = b, x = c)
                             + beta * y */
} host_loop_kind_t;

enum { HOST_LOOP_Y, HOST_LOOP_A, HOST_LOOP_B, HOST_LOOP_C, HOST_LOOP_OPERANDS };

/* If all are float or all double, the computation uses that type; otherwise it
 * uses double and rounds once. Strides are elements, not negative; 0 repeats an
 * operand along a dimension. An operand may be y itself, element by element. y
 * is not read if beta is 0. */
typedef struct {
  host_loop_kind_t kind;
  cudnnDataType_t type[HOST_LOOP_OPERANDS];
  int operands; /* number of operands: y, a, b, c */
  int rank;
  int64_t extent[CUDNN_DIM_MAX];
  int64_t stride[HOST_LOOP_OPERANDS][CUDNN_DIM_MAX];
  void *data[HOST_LOOP_OPERANDS];
  double alpha, alpha2, beta;
  cudnnOpTensorOp_t op;
  struct cudnnActivationStruct activation;
  bool propagate_nan;
  unsigned char value[8]; /* SET: one element of `value_bytes` bytes */
  size_t value_bytes;
} host_loop_t;

/* Runs the whole loop. Reorders and merges the loop's dimensions. */
bool host_loop_run(host_loop_t *loop);

#endif
