/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's pointwise calls. */
#include "tests/equivalence/driver/op_case.h"

static int prepare_op(op_call_t *call) {
  /* In the order of cudnnOpTensorOp_t. */
  static const char *const ops[] = {"add",  "mul", "min", "max",
                                    "sqrt", "not", NULL};
  const op_tensor_t *a = op_tensor(call, "a");
  OP_TRY(cudnnCreateOpTensorDescriptor(&call->op));
  OP_TRY(cudnnSetOpTensorDescriptor(
      call->op, (cudnnOpTensorOp_t)op_choice(call, "fn", ops), op_math(a->type),
      CUDNN_NOT_PROPAGATE_NAN));
  return 0;
}

static int run_op(op_call_t *call) {
  const op_tensor_t *a = op_tensor(call, "a"), *b = op_tensor(call, "b"),
                    *c = op_tensor(call, "c");
  OP_TRY(cudnnOpTensor(
      call->handle, call->op, op_scalar(call, "alpha", 1, a->type), a->desc,
      a->device, op_scalar(call, "alpha2", 1, a->type), b->desc, b->device,
      op_scalar(call, "beta", 0, a->type), c->desc, c->device));
  return 0;
}

static int run_add(op_call_t *call) {
  const op_tensor_t *a = op_tensor(call, "a"), *c = op_tensor(call, "c");
  OP_TRY(cudnnAddTensor(call->handle, op_scalar(call, "alpha", 1, c->type),
                        a->desc, a->device, op_scalar(call, "beta", 0, c->type),
                        c->desc, c->device));
  return 0;
}

static int run_scale(op_call_t *call) {
  const op_tensor_t *y = op_tensor(call, "y");
  OP_TRY(cudnnScaleTensor(call->handle, y->desc, y->device,
                          op_scalar(call, "alpha", 1, y->type)));
  return 0;
}

static int run_set(op_call_t *call) {
  const op_tensor_t *y = op_tensor(call, "y");
  OP_TRY(cudnnSetTensor(call->handle, y->desc, y->device,
                        op_scalar(call, "value", 0, y->type)));
  return 0;
}

static int run_transform(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y");
  OP_TRY(cudnnTransformTensor(
      call->handle, op_scalar(call, "alpha", 1, x->type), x->desc, x->device,
      op_scalar(call, "beta", 0, x->type), y->desc, y->device));
  return 0;
}

static int prepare_activation(op_call_t *call) {
  /* In the order of cudnnActivationMode_t. */
  static const char *const modes[] = {"sigmoid", "relu",     "tanh",  "clipped",
                                      "elu",     "identity", "swish", NULL};
  OP_TRY(cudnnCreateActivationDescriptor(&call->act));
  OP_TRY(cudnnSetActivationDescriptor(
      call->act, (cudnnActivationMode_t)op_choice(call, "mode", modes),
      CUDNN_NOT_PROPAGATE_NAN, op_real(call, "coef", 0)));
  OP_TRY(cudnnSetActivationDescriptorSwishBeta(call->act,
                                               op_real(call, "coef", 0)));
  return 0;
}

static int run_activation(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y");
  OP_TRY(cudnnActivationForward(
      call->handle, call->act, op_scalar(call, "alpha", 1, x->type), x->desc,
      x->device, op_scalar(call, "beta", 0, x->type), y->desc, y->device));
  return 0;
}

static int run_activation_gradient(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y"),
                    *dx = op_tensor(call, "dx"), *dy = op_tensor(call, "dy");
  OP_TRY(cudnnActivationBackward(
      call->handle, call->act, op_scalar(call, "alpha", 1, x->type), y->desc,
      y->device, dy->desc, dy->device, x->desc, x->device,
      op_scalar(call, "beta", 0, x->type), dx->desc, dx->device));
  return 0;
}

static int prepare_dropout(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x");
  size_t bytes;
  OP_TRY(cudnnCreateDropoutDescriptor(&call->dropout));
  OP_TRY(cudnnDropoutGetStatesSize(call->handle, &bytes));
  OP_TRY(op_space(call, 0, bytes));
  OP_TRY(cudnnDropoutGetReserveSpaceSize(x->desc, &bytes));
  return op_space(call, 1, bytes);
}

/* Runs forward twice, because the second mask differs from the first. */
static int run_dropout(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y"),
                    *dx = op_tensor(call, "dx"), *dy = op_tensor(call, "dy");
  OP_TRY(cudnnSetDropoutDescriptor(
      call->dropout, call->handle, (float)op_real(call, "drop", 0.5),
      call->space[0], call->space_bytes[0],
      (unsigned long long)op_number(call, "seed", 1)));
  for (int i = 0; i < 2; i++)
    OP_TRY(cudnnDropoutForward(call->handle, call->dropout, x->desc, x->device,
                               y->desc, y->device, call->space[1],
                               call->space_bytes[1]));
  OP_TRY(cudnnDropoutBackward(call->handle, call->dropout, dy->desc, dy->device,
                              dx->desc, dx->device, call->space[1],
                              call->space_bytes[1]));
  return 0;
}

static const op_row_t rows[] = {
    {"op", prepare_op, run_op},
    {"add", NULL, run_add},
    {"scale", NULL, run_scale},
    {"set", NULL, run_set},
    {"transform", NULL, run_transform},
    {"act_forward", prepare_activation, run_activation},
    {"dropout", prepare_dropout, run_dropout},
    {"act_backward", prepare_activation, run_activation_gradient},
    {0},
};
OP_ROWS(rows)
