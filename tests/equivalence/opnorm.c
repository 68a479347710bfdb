/* SPDX-License-Identifier: Apache-2.0 */
/* opcase's batch normalisation: training, inference, gradients, by the plain
 * entries and the Ex ones, which take an activation and a second input. */
#include "opcase.h"

#include <string.h>

static cudnnBatchNormMode_t mode_of(const op_call_t *call) {
  const char *mode = op_text(call, "mode", "spatial");
  return !strcmp(mode, "each")      ? CUDNN_BATCHNORM_PER_ACTIVATION
         : !strcmp(mode, "spatial") ? CUDNN_BATCHNORM_SPATIAL
                                    : CUDNN_BATCHNORM_SPATIAL_PERSISTENT;
}

/* What the program derives is what the parameters' descriptor says. */
static int prepare(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"),
                    *scale = op_tensor(call, "scale");
  cudnnTensorDescriptor_t derived;
  cudnnDataType_t type;
  int dims, extent[OP_DIMS], stride[OP_DIMS];
  OP_TRY(cudnnCreateTensorDescriptor(&derived));
  OP_TRY(cudnnDeriveBNTensorDescriptor(derived, x->desc, mode_of(call)));
  OP_TRY(cudnnGetTensorNdDescriptor(derived, OP_DIMS, &type, &dims, extent,
                                    stride));
  OP_TRY(cudnnDestroyTensorDescriptor(derived));
  return op_same_extents(scale, extent);
}

static void *device(const op_call_t *call, const char *key) {
  const op_tensor_t *t = op_tensor(call, key);
  return t ? t->device : NULL;
}

static int run_training(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y"),
                    *scale = op_tensor(call, "scale");
  OP_TRY(cudnnBatchNormalizationForwardTraining(
      call->handle, mode_of(call), op_scalar(call, "alpha", 1, x->type),
      op_scalar(call, "beta", 0, x->type), x->desc, x->device, y->desc,
      y->device, scale->desc, scale->device, device(call, "bias"),
      op_real(call, "factor", 1), device(call, "running_mean"),
      device(call, "running_var"), op_real(call, "epsilon", 1e-5),
      device(call, "saved_mean"), device(call, "saved_inv")));
  return 0;
}

static int run_inference(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y"),
                    *scale = op_tensor(call, "scale");
  OP_TRY(cudnnBatchNormalizationForwardInference(
      call->handle, mode_of(call), op_scalar(call, "alpha", 1, x->type),
      op_scalar(call, "beta", 0, x->type), x->desc, x->device, y->desc,
      y->device, scale->desc, scale->device, device(call, "bias"),
      device(call, "mean"), device(call, "var"),
      op_real(call, "epsilon", 1e-5)));
  return 0;
}

static int run_backward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *dy = op_tensor(call, "dy"),
                    *dx = op_tensor(call, "dx"),
                    *scale = op_tensor(call, "scale");
  OP_TRY(cudnnBatchNormalizationBackward(
      call->handle, mode_of(call), op_scalar(call, "alpha", 1, x->type),
      op_scalar(call, "beta", 0, x->type),
      op_scalar(call, "alpha2", 1, x->type),
      op_scalar(call, "beta2", 0, x->type), x->desc, x->device, dy->desc,
      dy->device, dx->desc, dx->device, scale->desc, scale->device,
      device(call, "dscale"), device(call, "dbias"),
      op_real(call, "epsilon", 1e-5), device(call, "saved_mean"),
      device(call, "saved_inv")));
  return 0;
}

const op_row_t op_norm_rows[] = {
    {"bn_training", prepare, run_training},
    {"bn_inference", prepare, run_inference},
    {"bn_backward", prepare, run_backward},
    {0},
};
