/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's reductions and softmax. */
#include "tests/equivalence/driver/op_case.h"

#include <string.h>

static int prepare_reduce(op_call_t *call) {
  /* In the order of cudnnReduceTensorOp_t. */
  static const char *const ops[] = {"add",       "mul", "min",   "max",
                                    "amax",      "avg", "norm1", "norm2",
                                    "mulnozero", NULL};
  const op_tensor_t *a = op_tensor(call, "a"), *c = op_tensor(call, "c"),
                    *indices = op_tensor(call, "indices");
  size_t bytes;
  OP_TRY(cudnnCreateReduceTensorDescriptor(&call->reduce));
  OP_TRY(cudnnSetReduceTensorDescriptor(
      call->reduce, (cudnnReduceTensorOp_t)op_choice(call, "fn", ops),
      op_math(a->type),
      op_number(call, "nan", 0) ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN,
      indices ? CUDNN_REDUCE_TENSOR_FLATTENED_INDICES
              : CUDNN_REDUCE_TENSOR_NO_INDICES,
      CUDNN_32BIT_INDICES));
  OP_TRY(cudnnGetReductionIndicesSize(call->handle, call->reduce, a->desc,
                                      c->desc, &bytes));
  if (bytes != (indices ? indices->bytes : 0))
    return op_failed("the size of indices", OP_OTHER_EXTENTS);
  OP_TRY(cudnnGetReductionWorkspaceSize(call->handle, call->reduce, a->desc,
                                        c->desc, &bytes));
  return op_space(call, 0, bytes);
}

static int run_reduce(op_call_t *call) {
  const op_tensor_t *a = op_tensor(call, "a"), *c = op_tensor(call, "c"),
                    *indices = op_tensor(call, "indices");
  OP_TRY(cudnnReduceTensor(
      call->handle, call->reduce, indices ? indices->device : NULL,
      indices ? indices->bytes : 0, call->space[0], call->space_bytes[0],
      op_scalar(call, "alpha", 1, a->type), a->desc, a->device,
      op_scalar(call, "beta", 0, a->type), c->desc, c->device));
  return 0;
}

static cudnnSoftmaxAlgorithm_t algo_of(const op_call_t *call) {
  static const char *const algos[] = {"fast", "accurate", "log", NULL};
  return (cudnnSoftmaxAlgorithm_t)op_choice(call, "algo", algos);
}

static cudnnSoftmaxMode_t mode_of(const op_call_t *call) {
  static const char *const modes[] = {"instance", "channel", NULL};
  return (cudnnSoftmaxMode_t)op_choice(call, "mode", modes);
}

static int run_softmax(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y");
  OP_TRY(cudnnSoftmaxForward(call->handle, algo_of(call), mode_of(call),
                             op_scalar(call, "alpha", 1, x->type), x->desc,
                             x->device, op_scalar(call, "beta", 0, x->type),
                             y->desc, y->device));
  return 0;
}

static int run_softmax_gradient(op_call_t *call) {
  const op_tensor_t *y = op_tensor(call, "y"), *dy = op_tensor(call, "dy"),
                    *dx = op_tensor(call, "dx");
  OP_TRY(cudnnSoftmaxBackward(
      call->handle, algo_of(call), mode_of(call),
      op_scalar(call, "alpha", 1, y->type), y->desc, y->device, dy->desc,
      dy->device, op_scalar(call, "beta", 0, y->type), dx->desc, dx->device));
  return 0;
}

static const op_row_t rows[] = {
    {"reduce", prepare_reduce, run_reduce},
    {"softmax_forward", NULL, run_softmax},
    {"softmax_backward", NULL, run_softmax_gradient},
    {0},
};
OP_ROWS(rows)
