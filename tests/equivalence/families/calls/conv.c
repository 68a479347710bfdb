/* SPDX-License-Identifier: Apache-2.0 */
/* op_case's convolutions: forward, fused, and the three gradients. */
#include "tests/equivalence/driver/op_case.h"

#include <string.h>

/* Returns the type of the sums: that of the arithmetic, unless the script says
 * half. */
static cudnnDataType_t sum_type(const op_call_t *call, cudnnDataType_t type) {
  if (type == CUDNN_DATA_INT8)
    return CUDNN_DATA_INT32;
  return strcmp(op_text(call, "sums", ""), "half") ? op_math(type)
                                                   : CUDNN_DATA_HALF;
}

/* Asks for an algorithm as the script's `finds` says: by heuristics (0), by
 * tries (1), or by tries in the program's memory (2). SHAPES are the arguments
 * of the first two, DATA those of the third. */
#define FIND(KIND, SHAPES, DATA)                                               \
  switch (op_number(call, "finds", 0)) {                                       \
  case 0:                                                                      \
    OP_TRY(cudnnGetConvolution##KIND##Algorithm_v7 SHAPES);                    \
    break;                                                                     \
  case 1:                                                                      \
    OP_TRY(cudnnFindConvolution##KIND##Algorithm SHAPES);                      \
    OP_TRY(found.status);                                                      \
    break;                                                                     \
  default:                                                                     \
    OP_TRY(cudnnFindConvolution##KIND##AlgorithmEx DATA);                      \
    OP_TRY(found.status);                                                      \
  }

static int set_conv(op_call_t *call, cudnnDataType_t type) {
  int pad[OP_DIMS], stride[OP_DIMS], dilation[OP_DIMS];
  int count = op_list(call, "pad", pad);
  op_list(call, "stride", stride);
  op_list(call, "dilation", dilation);
  OP_TRY(cudnnCreateConvolutionDescriptor(&call->conv));
  OP_TRY(cudnnSetConvolutionNdDescriptor(
      call->conv, count, pad, stride, dilation,
      op_number(call, "flipped", 0) ? CUDNN_CONVOLUTION
                                    : CUDNN_CROSS_CORRELATION,
      sum_type(call, type)));
  OP_TRY(
      cudnnSetConvolutionGroupCount(call->conv, op_number(call, "groups", 1)));
  return 0;
}

/* Checks that the output is as large as cuDNN says, unless the program computes
 * its size itself. */
static int check_extents(op_call_t *call, const op_tensor_t *x,
                         const op_tensor_t *w, const op_tensor_t *y) {
  int extent[OP_DIMS];
  if (op_number(call, "own_sizes", 0))
    return 0;
  OP_TRY(cudnnGetConvolutionNdForwardOutputDim(call->conv, x->desc, w->filter,
                                               y->dims, extent));
  return op_same_extents(y, extent);
}

static int prepare_forward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *w = op_tensor(call, "w"),
                    *y = op_tensor(call, "y");
  cudnnConvolutionFwdAlgoPerf_t found;
  int count;
  size_t bytes;
  OP_TRY(set_conv(call, x->type));
  OP_TRY(check_extents(call, x, w, y));
  FIND(Forward,
       (call->handle, x->desc, w->filter, call->conv, y->desc, 1, &count,
        &found),
       (call->handle, x->desc, x->device, w->filter, w->device, call->conv,
        y->desc, y->device, 1, &count, &found, NULL, 0))
  /* Only this algorithm supports the identity as activation. */
  const char *act = op_text(call, "act", "relu");
  if (!strcmp(act, "none"))
    found.algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  OP_TRY(cudnnGetConvolutionForwardWorkspaceSize(call->handle, x->desc,
                                                 w->filter, call->conv, y->desc,
                                                 found.algo, &bytes));
  call->algo = (int)found.algo;
  OP_TRY(cudnnCreateActivationDescriptor(&call->act));
  OP_TRY(cudnnSetActivationDescriptor(
      call->act,
      strcmp(act, "none") ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
      CUDNN_NOT_PROPAGATE_NAN, 0));
  return op_space(call, 0, bytes);
}

static int run_forward(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *w = op_tensor(call, "w"),
                    *y = op_tensor(call, "y");
  OP_TRY(cudnnConvolutionForward(
      call->handle, op_scalar(call, "alpha", 1, x->type), x->desc, x->device,
      w->filter, w->device, call->conv, (cudnnConvolutionFwdAlgo_t)call->algo,
      call->space[0], call->space_bytes[0], op_scalar(call, "beta", 0, x->type),
      y->desc, y->device));
  return 0;
}

static int run_fused(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *w = op_tensor(call, "w"),
                    *y = op_tensor(call, "y"), *z = op_tensor(call, "z"),
                    *b = op_tensor(call, "b");
  OP_TRY(cudnnConvolutionBiasActivationForward(
      call->handle, op_scalar(call, "alpha", 1, x->type), x->desc, x->device,
      w->filter, w->device, call->conv, (cudnnConvolutionFwdAlgo_t)call->algo,
      call->space[0], call->space_bytes[0], op_scalar(call, "beta", 0, x->type),
      z->desc, z->device, b->desc, b->device, call->act, y->desc, y->device));
  return 0;
}

static int prepare_data(op_call_t *call) {
  const op_tensor_t *w = op_tensor(call, "w"), *dy = op_tensor(call, "dy"),
                    *dx = op_tensor(call, "dx");
  cudnnConvolutionBwdDataAlgoPerf_t found;
  int count;
  size_t bytes;
  OP_TRY(set_conv(call, dx->type));
  FIND(BackwardData,
       (call->handle, w->filter, dy->desc, call->conv, dx->desc, 1, &count,
        &found),
       (call->handle, w->filter, w->device, dy->desc, dy->device, call->conv,
        dx->desc, dx->device, 1, &count, &found, NULL, 0))
  OP_TRY(cudnnGetConvolutionBackwardDataWorkspaceSize(
      call->handle, w->filter, dy->desc, call->conv, dx->desc, found.algo,
      &bytes));
  call->algo = (int)found.algo;
  return op_space(call, 0, bytes);
}

static int run_data(op_call_t *call) {
  const op_tensor_t *w = op_tensor(call, "w"), *dy = op_tensor(call, "dy"),
                    *dx = op_tensor(call, "dx");
  OP_TRY(cudnnConvolutionBackwardData(
      call->handle, op_scalar(call, "alpha", 1, dx->type), w->filter, w->device,
      dy->desc, dy->device, call->conv,
      (cudnnConvolutionBwdDataAlgo_t)call->algo, call->space[0],
      call->space_bytes[0], op_scalar(call, "beta", 0, dx->type), dx->desc,
      dx->device));
  return 0;
}

static int prepare_filter(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *dy = op_tensor(call, "dy"),
                    *dw = op_tensor(call, "dw");
  cudnnConvolutionBwdFilterAlgoPerf_t found;
  int count;
  size_t bytes;
  OP_TRY(set_conv(call, x->type));
  FIND(BackwardFilter,
       (call->handle, x->desc, dy->desc, call->conv, dw->filter, 1, &count,
        &found),
       (call->handle, x->desc, x->device, dy->desc, dy->device, call->conv,
        dw->filter, dw->device, 1, &count, &found, NULL, 0))
  OP_TRY(cudnnGetConvolutionBackwardFilterWorkspaceSize(
      call->handle, x->desc, dy->desc, call->conv, dw->filter, found.algo,
      &bytes));
  call->algo = (int)found.algo;
  return op_space(call, 0, bytes);
}

static int run_filter(op_call_t *call) {
  const op_tensor_t *x = op_tensor(call, "x"), *dy = op_tensor(call, "dy"),
                    *dw = op_tensor(call, "dw");
  OP_TRY(cudnnConvolutionBackwardFilter(
      call->handle, op_scalar(call, "alpha", 1, x->type), x->desc, x->device,
      dy->desc, dy->device, call->conv,
      (cudnnConvolutionBwdFilterAlgo_t)call->algo, call->space[0],
      call->space_bytes[0], op_scalar(call, "beta", 0, x->type), dw->filter,
      dw->device));
  return 0;
}

static int run_bias(op_call_t *call) {
  const op_tensor_t *dy = op_tensor(call, "dy"), *db = op_tensor(call, "db");
  OP_TRY(cudnnConvolutionBackwardBias(
      call->handle, op_scalar(call, "alpha", 1, dy->type), dy->desc, dy->device,
      op_scalar(call, "beta", 0, dy->type), db->desc, db->device));
  return 0;
}

static const op_row_t rows[] = {
    {"conv_forward", prepare_forward, run_forward},
    {"conv_fused", prepare_forward, run_fused},
    {"conv_data", prepare_data, run_data},
    {"conv_filter", prepare_filter, run_filter},
    {"conv_bias", NULL, run_bias},
    {0},
};
OP_ROWS(rows)
