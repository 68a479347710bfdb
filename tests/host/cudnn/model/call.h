/* SPDX-License-Identifier: Apache-2.0 */
/* Makes one call of cuDNN with tensors of given types, ranks and layouts. */
#ifndef SDG_TESTS_HOST_CUDNN_MODEL_CALL_H
#define SDG_TESTS_HOST_CUDNN_MODEL_CALL_H

#include <cudnn.h>
#include <stdbool.h>

enum { CALL_TENSORS = 4 };

/* How a tensor lies in memory. Ranges are of a tensor with twice the rows,
 * columns or (3-D) slices. */
typedef enum {
  NCHW,
  NHWC,
  NCHW_ROWS,
  NHWC_ROWS,
  NCHW_COLUMNS,
  NHWC_COLUMNS,
  NCHW_SLICES,
  NHWC_SLICES,
  CNHW
} layout_t;

/* Extents: `images` x 2 x 4 x 4 ..., or x 2 x 2 with more than 5 dimensions. */
typedef struct {
  cudnnDataType_t type;
  int rank;
  int images;
  layout_t layout;
} shape_t;

typedef enum {
  TRANSFORM,
  ADD,
  OP,
  OP_IN_A, /* C in the memory of A */
  OP_IN_B,
  OP_A_IS_B,
  SET,
  SCALE,
  REDUCE,
  REDUCE_NOTHING,
  REDUCE_IN_HALF,
  SOFTMAX,
  SOFTMAX_BACKWARD,
  ACTIVATION,
  ACTIVATION_IN_PLACE,
  ACTIVATION_BACKWARD,
  POOL,
  POOL_BACKWARD,
  BN_INFERENCE,
  BN,
  BN_OWN_SCALES, /* of x's type */
  BN_BACKWARD,   /* x, dy, dx, y */
  BN_ACTIVATION,
  BN_ACTIVATION_BACKWARD,
  NORM_INFERENCE,
  NORM,
  NORM_BACKWARD,
  NORM_ACTIVATION,
  NORM_ACTIVATION_BACKWARD,
  LRN,
  LRN_BACKWARD,
  BIAS,
  FORWARD,      /* x, y; a window of 1 */
  FORWARD_BIAS, /* with bias and activation */
  DATA,         /* dx, dy */
  FILTER,       /* x, dy */
  FUNCTIONS,
} function_t;

/* shape: of each tensor, in the order of the arguments; rank 0 ends them. */
typedef struct {
  function_t function;
  shape_t shape[CALL_TENSORS];
  int algorithm;
  bool short_of; /* one byte of workspace */
} call_t;

/* Creates the handle and the memory, before the first call. */
void call_start(void);
void call_stop(void);

/* The handle of the calls. */
cudnnHandle_t call_handle(void);

/* The caller destroys the descriptor. */
cudnnTensorDescriptor_t call_tensor(const shape_t *shape);

/* The status of the call. A convolution asks for its workspace first; the query
 * must have the same status. */
cudnnStatus_t call_make(const call_t *call);

#define F32  CUDNN_DATA_FLOAT
#define F64  CUDNN_DATA_DOUBLE
#define F16  CUDNN_DATA_HALF
#define BF16 CUDNN_DATA_BFLOAT16
#define I8   CUDNN_DATA_INT8
#define I32  CUDNN_DATA_INT32

#endif
