// SPDX-License-Identifier: Apache-2.0
// Reads a convolution from its descriptors and checks it.
#include "src/host/cudnn/convolution/problem.h"

#include <string.h>

#include "src/host/cudnn/base/view.h"

static void tensor_strides(const struct cudnnTensorStruct *tensor,
                           int64_t stride[5]) {
  int skip = 5 - tensor->rank;
  int64_t unit = host_type_vector(tensor->type);
  memset(stride, 0, 5 * sizeof *stride);
  stride[0] = tensor->stride[0] * unit;
  stride[1] = tensor->stride[1] * unit;
  for (int i = 2; i < tensor->rank; i++)
    stride[skip + i] = tensor->stride[i] * unit;
}

static void filter_strides(const struct cudnnFilterStruct *w,
                           int64_t stride[5]) {
  int skip = 5 - w->rank;
  int vector = host_type_vector(w->type);
  int64_t at = w->format == CUDNN_TENSOR_NHWC ? w->dim[1] : vector;
  memset(stride, 0, 5 * sizeof *stride);
  for (int i = w->rank - 1; i >= 2; i--) {
    stride[skip + i] = at;
    at *= w->dim[i];
  }
  stride[1] = w->format == CUDNN_TENSOR_NHWC ? 1 : at;
  stride[0] = w->format == CUDNN_TENSOR_NHWC ? at : at * w->dim[1] / vector;
}

// A trailing dimension of extent 1 (a 1-D signal as N C L 1) moves to the
// front, because both engines are fast along rows. The order of additions stays
// the same, so this may depend on extents.
static void move_trailing(host_conv_t *p) {
  while (p->in[HOST_W] == 1 && p->window[HOST_W] == 1 && p->out[HOST_W] == 1 &&
         p->pad[HOST_W] == 0 && (p->out[HOST_H] > 1 || p->out[HOST_D] > 1)) {
    int64_t *const strides[] = {p->x_stride, p->w_stride, p->y_stride,
                                p->old_stride};
    for (int i = HOST_W; i > HOST_D; i--) {
      p->in[i] = p->in[i - 1];
      p->out[i] = p->out[i - 1];
      p->window[i] = p->window[i - 1];
      p->stride[i] = p->stride[i - 1];
      p->dilation[i] = p->dilation[i - 1];
      p->pad[i] = p->pad[i - 1];
      for (int s = 0; s < 4; s++)
        strides[s][2 + i] = strides[s][1 + i];
    }
    p->in[HOST_D] = p->out[HOST_D] = 1;
    p->window[HOST_D] = p->stride[HOST_D] = p->dilation[HOST_D] = 1;
    p->pad[HOST_D] = 0;
    for (int s = 0; s < 4; s++)
      strides[s][2] = 0;
  }
}

// The combinations of types that cuDNN has.
static bool types_fit(cudnnDataType_t x, cudnnDataType_t y,
                      cudnnDataType_t compute) {
  switch ((int)x) {
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_DOUBLE:
    return y == x && compute == x;
  case CUDNN_DATA_HALF:
    return y == x &&
           (compute == CUDNN_DATA_FLOAT || compute == CUDNN_DATA_HALF);
  case CUDNN_DATA_BFLOAT16:
    return y == x && compute == CUDNN_DATA_FLOAT;
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_INT8x4:
    return (y == x || y == CUDNN_DATA_FLOAT) && compute == CUDNN_DATA_INT32;
  case CUDNN_DATA_UINT8: // unsigned bytes allow other outputs
    return (y == CUDNN_DATA_INT8 || y == CUDNN_DATA_FLOAT) &&
           compute == CUDNN_DATA_INT32;
  case CUDNN_DATA_UINT8x4:
    return (y == CUDNN_DATA_INT8x4 || y == x || y == CUDNN_DATA_FLOAT) &&
           compute == CUDNN_DATA_INT32;
  case CUDNN_DATA_INT8x32:
    return y == x && compute == CUDNN_DATA_INT32;
  }
  return false;
}

// Vectors of channels need their own layout, and groups of whole vectors.
// Integers do not mix layouts of x and w.
static bool layouts_fit(const struct cudnnTensorStruct *x,
                        const struct cudnnFilterStruct *w,
                        const struct cudnnConvolutionStruct *conv,
                        const struct cudnnTensorStruct *y) {
  int in = host_type_vector(x->type), out = host_type_vector(y->type);
  if (in == 1)
    return x->vector_length <= 1 && y->vector_length <= 1 &&
           w->format != CUDNN_TENSOR_NCHW_VECT_C &&
           (w->type != CUDNN_DATA_INT8 || w->format != CUDNN_TENSOR_NHWC ||
            (x->stride[1] == 1 && y->stride[1] == 1));
  return x->vector_length == in && w->format == CUDNN_TENSOR_NCHW_VECT_C &&
         (out == 1 ? y->vector_length <= 1 : y->vector_length == out) &&
         conv->groups == 1;
}

static bool filter_fits(cudnnDataType_t x, cudnnDataType_t w) {
  return w == (x == CUDNN_DATA_UINT8x4 ? CUDNN_DATA_INT8x4
               : x == CUDNN_DATA_UINT8 ? CUDNN_DATA_INT8
                                       : x);
}

static cudnnStatus_t check_support(const struct cudnnTensorStruct *x,
                                   const struct cudnnFilterStruct *w,
                                   const struct cudnnConvolutionStruct *conv,
                                   const struct cudnnTensorStruct *y) {
  REFUSE_IF(x->rank < 4 || x->rank > 5, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!filter_fits(x->type, w->type), CUDNN_STATUS_NOT_SUPPORTED);
  bool vectors = host_type_vector(x->type) > 1;
  REFUSE_IF(vectors && x->vector_length <= 1, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < conv->rank && vectors; i++)
    REFUSE_IF(conv->dilation[i] > 1, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!types_fit(x->type, y->type, conv->compute_type),
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(!layouts_fit(x, w, conv, y), CUDNN_STATUS_NOT_SUPPORTED);
  // The order of reordered filters is defined for whole blocks of outputs.
  REFUSE_IF(conv->reorder == CUDNN_NO_REORDER &&
                x->type == CUDNN_DATA_INT8x32 && w->dim[0] % 32,
            CUDNN_STATUS_NOT_SUPPORTED);
  for (int i = 0; i < x->rank; i++)
    REFUSE_IF(x->stride[i] < 0 || y->stride[i] < 0, CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_problem_init(const struct cudnnTensorStruct *x,
                                const struct cudnnFilterStruct *w,
                                const struct cudnnConvolutionStruct *conv,
                                const struct cudnnTensorStruct *y,
                                const struct cudnnTensorStruct *old,
                                cudnnStatus_t mismatch, host_conv_t *out) {
  REFUSE_IF(!x || !w || !conv || !y, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank != w->rank || x->rank != y->rank, CUDNN_STATUS_BAD_PARAM);
  int dim[CUDNN_DIM_MAX];
  REFUSE_IF(x->rank < 3 || cudnnGetConvolutionNdForwardOutputDim(
                               (cudnnConvolutionDescriptor_t)conv,
                               (cudnnTensorDescriptor_t)x,
                               (cudnnFilterDescriptor_t)w, x->rank, dim),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(w->dim[0] % conv->groups, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < x->rank; i++)
    REFUSE_IF(dim[i] != y->dim[i], mismatch);
  cudnnStatus_t status = check_support(x, w, conv, y);
  if (status)
    return status;
  cudnnDataType_t x_type = host_type_scalar(x->type);
  cudnnDataType_t y_type = host_type_scalar(y->type);
  bool whole = x_type == CUDNN_DATA_INT8 || x_type == CUDNN_DATA_UINT8;
  int in = host_type_vector(x->type), vector = host_type_vector(y->type);
  host_conv_t p = {.is_double = x_type == CUDNN_DATA_DOUBLE || whole,
                   .x_type = x_type,
                   .w_type = host_type_scalar(w->type),
                   .y_type = y_type,
                   .bias_type = whole ? CUDNN_DATA_FLOAT : y_type,
                   .x_vector = in > 1 ? in : 0,
                   .y_vector = vector > 1 ? vector : 0,
                   .reordered = in == 32 && conv->reorder == CUDNN_NO_REORDER,
                   .images = x->dim[0],
                   .groups = conv->groups,
                   .c = w->dim[1],
                   .k = w->dim[0] / conv->groups,
                   .flip = conv->mode == CUDNN_CONVOLUTION};
  for (int i = 0; i < HOST_SPATIAL; i++)
    p.in[i] = p.out[i] = p.window[i] = p.stride[i] = p.dilation[i] = 1;
  int skip = 5 - x->rank;
  for (int i = 0; i < conv->rank; i++) {
    p.in[skip + i] = x->dim[2 + i];
    p.out[skip + i] = y->dim[2 + i];
    p.window[skip + i] = w->dim[2 + i];
    p.stride[skip + i] = conv->stride[i];
    p.dilation[skip + i] = conv->dilation[i];
    p.pad[skip + i] = conv->pad[i];
  }
  tensor_strides(x, p.x_stride);
  tensor_strides(y, p.y_stride);
  filter_strides(w, p.w_stride);
  tensor_strides(old ? old : y, p.old_stride);
  move_trailing(&p);
  host_model_convolution(x, y, p.offer);
  *out = p;
  return CUDNN_STATUS_SUCCESS;
}

// Whether cuDNN has the forward algorithm on some GPU.
static bool exists(const host_conv_t *p, cudnnConvolutionFwdAlgo_t algo) {
  if (p->x_vector) {
    bool channels_last = !p->y_vector && p->k > 1 && p->y_stride[1] == 1;
    return algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
           (algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM && !channels_last);
  }
  bool flat = p->in[HOST_D] == 1 && p->window[HOST_D] == 1;
  bool dense = true, square = true;
  for (int i = HOST_D; i < HOST_SPATIAL; i++)
    dense &= p->stride[i] == 1 && p->dilation[i] == 1;
  square = p->window[HOST_H] == p->window[HOST_W];
  switch (algo) {
  case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM:
  case CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM:
    return true;
  case CUDNN_CONVOLUTION_FWD_ALGO_GEMM:
    return flat;
  case CUDNN_CONVOLUTION_FWD_ALGO_FFT:
  case CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING:
    return dense && !p->is_double && p->pad[HOST_H] < p->window[HOST_H] &&
           p->pad[HOST_W] < p->window[HOST_W];
  case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD:
    return flat && dense && square && p->window[HOST_W] == 3 && !p->is_double;
  case CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED:
    return flat && dense && square && !p->is_double &&
           (p->window[HOST_W] == 3 || p->window[HOST_W] == 5);
  default: // DIRECT exists in name only
    return false;
  }
}

bool host_problem_allows(host_conv_kind_t kind, const host_conv_t *problem,
                         int algo, cudnnConvolutionFwdAlgo_t like) {
  return exists(problem, like) &&
         (problem->offer[kind].algorithms >> algo & 1) != 0;
}

cudnnStatus_t host_problem_refuses(host_conv_kind_t kind, const char *function,
                                   const void *asker,
                                   const host_conv_t *problem, int algo,
                                   cudnnConvolutionFwdAlgo_t like,
                                   size_t workspace) {
  REFUSE_IF(!exists(problem, like), CUDNN_STATUS_NOT_SUPPORTED);
  return host_model_check_convolution(function, asker, &problem->offer[kind],
                                      algo, workspace);
}
