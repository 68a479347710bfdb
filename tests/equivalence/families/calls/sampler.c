/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's spatial-transformer sampler, forward and backward. */
#include <stdint.h>
#include <string.h>

#include "tests/equivalence/driver/op_case.h"

static void transformer_destroy(void *transformer) {
  (void)cudnnDestroySpatialTransformerDescriptor(transformer);
}

/* Returns whether the word `told` names this fault: the call must have it. */
static int is(const op_call_t *call, const char *wrong) {
  return strcmp(op_text(call, "told", ""), wrong) == 0;
}

/* Sets the transformer to the extents of this tensor (not to C of a grid). */
static int transformer_set(op_call_t *call, const char *result) {
  const op_tensor_t *y = op_tensor(call, result);
  int extent[OP_DIMS];
  cudnnSpatialTransformerDescriptor_t transformer;
  OP_TRY(cudnnCreateSpatialTransformerDescriptor(&transformer));
  call->more = transformer;
  call->more_destroy = transformer_destroy;
  if (is(call, "unset"))
    return 0;
  for (int d = 0; d < OP_DIMS; d++)
    extent[d] = d < y->dims ? y->extent[d] : 1;
  extent[2] += is(call, "extents");
  cudnnDataType_t other =
      y->type == CUDNN_DATA_FLOAT ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  OP_TRY(cudnnSetSpatialTransformerNdDescriptor(
      transformer, CUDNN_SAMPLER_BILINEAR, is(call, "type") ? other : y->type,
      y->dims + is(call, "dims"), extent));
  return 0;
}

static cudnnSpatialTransformerDescriptor_t told(const op_call_t *call) {
  return is(call, "null") ? NULL : call->more;
}

static const void *beta_of(const op_call_t *call, const char *key,
                           const op_tensor_t *x) {
  return is(call, "scalar") ? NULL : op_scalar(call, key, 0, x->type);
}

static int prepare_forward(op_call_t *call) {
  return transformer_set(call, "y");
}

static int prepare_backward(op_call_t *call) {
  const op_tensor_t *dx = op_tensor(call, "dx");
  if (is(call, "wider"))
    OP_TRY(cudnnSetTensor4dDescriptor(dx->desc, CUDNN_TENSOR_NCHW, dx->type,
                                      dx->extent[0], dx->extent[1],
                                      dx->extent[2], dx->extent[3] + 1));
  return transformer_set(call, "dy");
}

static int run_forward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *y = op_tensor(call, "y"),
                    *grid = op_tensor(call, "grid");
  OP_TRY(cudnnSpatialTfSamplerForward(
      call->handle, told(call), op_scalar(call, "alpha", 1, x->type), x->desc,
      x->device, grid->device, beta_of(call, "beta", x), y->desc, y->device));
  return 0;
}

static int run_backward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *dx = op_tensor(call, "dx"),
                    *dy = op_tensor(call, "dy"), *g = op_tensor(call, "grid"),
                    *dg = op_tensor(call, "dgrid");
  OP_TRY(cudnnSpatialTfSamplerBackward(
      call->handle, told(call), op_scalar(call, "alpha", 1, x->type), x->desc,
      x->device, beta_of(call, "beta", x), dx->desc, dx->device,
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
