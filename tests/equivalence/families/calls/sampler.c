/* SPDX-License-Identifier: Apache-2.0 */
/* opcase's spatial-transformer sampler, forward and backward. */
#include <stdint.h>

#include "tests/equivalence/driver/opcase.h"

static void transformer_destroy(void *transformer) {
  (void)cudnnDestroySpatialTransformerDescriptor(transformer);
}

/* Of the extents of this tensor; of a grid, C does not matter. */
static int transformer_set(op_call_t *call, const char *result) {
  const op_tensor_t *y = op_tensor(call, result);
  cudnnSpatialTransformerDescriptor_t transformer;
  OP_TRY(cudnnCreateSpatialTransformerDescriptor(&transformer));
  call->more = transformer;
  call->more_destroy = transformer_destroy;
  OP_TRY(cudnnSetSpatialTransformerNdDescriptor(
      transformer, CUDNN_SAMPLER_BILINEAR, y->type, y->dims, y->extent));
  return 0;
}

static int prepare_forward(op_call_t *call) {
  return transformer_set(call, "y");
}

static int prepare_backward(op_call_t *call) {
  return transformer_set(call, "dy");
}

static int run_forward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y"),
                    *grid = op_tensor(call, "grid");
  OP_TRY(cudnnSpatialTfSamplerForward(
      call->handle, call->more, op_scalar(call, "alpha", 1, x->type), x->desc,
      x->device, grid->device, op_scalar(call, "beta", 0, x->type), y->desc,
      y->device));
  return 0;
}

static int run_backward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *dx = op_tensor(call, "dx"),
                    *dy = op_tensor(call, "dy"), *g = op_tensor(call, "grid"),
                    *dg = op_tensor(call, "dgrid");
  OP_TRY(cudnnSpatialTfSamplerBackward(
      call->handle, call->more, op_scalar(call, "alpha", 1, x->type), x->desc,
      x->device, op_scalar(call, "beta", 0, x->type), dx->desc, dx->device,
      op_scalar(call, "alpha2", 1, x->type), dy->desc, dy->device, g->device,
      op_scalar(call, "beta2", 0, x->type), dg->device));
  return 0;
}

static int prepare_grid(op_call_t *call) {
  return transformer_set(call, "grid");
}

static int run_grid_forward(op_call_t *call) {
  OP_TRY(cudnnSpatialTfGridGeneratorForward(call->handle, call->more,
                                            op_tensor(call, "theta")->device,
                                            op_tensor(call, "grid")->device));
  return 0;
}

static int run_grid_backward(op_call_t *call) {
  OP_TRY(cudnnSpatialTfGridGeneratorBackward(call->handle, call->more,
                                             op_tensor(call, "grid")->device,
                                             op_tensor(call, "theta")->device));
  return 0;
}

static const op_row_t rows[] = {
    {"sampler_forward", prepare_forward, run_forward},
    {"sampler_backward", prepare_backward, run_backward},
    {"grid_forward", prepare_grid, run_grid_forward},
    {"grid_backward", prepare_grid, run_grid_backward},
    {0},
};
OP_ROWS(rows)
