/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's pooling, forward and backward. */
#include "tests/equivalence/driver/op_case.h"

static int set_pool(op_call_t *call) {
  static const char *const modes[] = {"max", "avgin", "avgex", "maxdet", NULL};
  int kernel[OP_DIMS], pad[OP_DIMS], stride[OP_DIMS];
  int count = op_list(call, "kernel", kernel);
  op_list(call, "pad", pad);
  op_list(call, "stride", stride);
  OP_TRY(cudnnCreatePoolingDescriptor(&call->pool));
  OP_TRY(cudnnSetPoolingNdDescriptor(
      call->pool, (cudnnPoolingMode_t)op_choice(call, "mode", modes),
      op_number(call, "nan", 0) ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN,
      count, kernel, pad, stride));
  return 0;
}

static int prepare_forward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y");
  int extent[OP_DIMS];
  OP_TRY(set_pool(call));
  if (op_number(call, "own_sizes", 0))
    return 0;
  OP_TRY(
      cudnnGetPoolingNdForwardOutputDim(call->pool, x->desc, x->dims, extent));
  int status = op_same_extents(y, extent);
  if (status || x->dims != 4)
    return status;
  OP_TRY(cudnnGetPooling2dForwardOutputDim(call->pool, x->desc, extent,
                                           extent + 1, extent + 2, extent + 3));
  return op_same_extents(y, extent);
}

static int run_forward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y");
  OP_TRY(cudnnPoolingForward(
      call->handle, call->pool, op_scalar(call, "alpha", 1, x->type), x->desc,
      x->device, op_scalar(call, "beta", 0, x->type), y->desc, y->device));
  return 0;
}

static int run_backward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y"),
                    *dx = op_tensor(call, "dx"), *dy = op_tensor(call, "dy");
  OP_TRY(cudnnPoolingBackward(
      call->handle, call->pool, op_scalar(call, "alpha", 1, x->type), y->desc,
      y->device, dy->desc, dy->device, x->desc, x->device,
      op_scalar(call, "beta", 0, x->type), dx->desc, dx->device));
  return 0;
}

static const op_row_t rows[] = {
    {"pool_forward", prepare_forward, run_forward},
    {"pool_backward", set_pool, run_backward},
    {0},
};
OP_ROWS(rows)
