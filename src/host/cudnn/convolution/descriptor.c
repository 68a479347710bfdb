// SPDX-License-Identifier: Apache-2.0
// Convolution descriptors, and the output extents.
#include "src/host/cudnn/descriptor/types.h"

#include <stdlib.h>

cudnnStatus_t
cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *conv) {
  REFUSE_IF(!conv, CUDNN_STATUS_BAD_PARAM);
  *conv = calloc(1, sizeof **conv);
  REFUSE_IF(!*conv, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  (*conv)->groups = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t conv) {
  free(conv);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t conv,
                                              int rank, const int pad[],
                                              const int stride[],
                                              const int dilation[],
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  REFUSE_IF(!conv || rank < 0, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank > 0 && (!pad || !stride || !dilation), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode != CUDNN_CONVOLUTION && mode != CUDNN_CROSS_CORRELATION,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(
      compute_type != CUDNN_DATA_FLOAT && compute_type != CUDNN_DATA_DOUBLE &&
          compute_type != CUDNN_DATA_HALF && compute_type != CUDNN_DATA_INT32,
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank > HOST_CONV_RANK, CUDNN_STATUS_NOT_SUPPORTED);
  // As in NVIDIA's library, values before the first invalid one are kept.
  conv->mode = mode;
  conv->compute_type = compute_type;
  conv->rank = rank;
  for (int i = 0; i < rank; i++) {
    conv->pad[i] = pad[i];
    REFUSE_IF(pad[i] < 0, CUDNN_STATUS_BAD_PARAM);
    conv->stride[i] = stride[i];
    REFUSE_IF(stride[i] < 1, CUDNN_STATUS_BAD_PARAM);
    conv->dilation[i] = dilation[i];
    REFUSE_IF(dilation[i] < 1, CUDNN_STATUS_BAD_PARAM);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv,
                                              int pad_h, int pad_w, int u,
                                              int v, int dilation_h,
                                              int dilation_w,
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute_type) {
  return cudnnSetConvolutionNdDescriptor(
      conv, 2, (const int[]){pad_h, pad_w}, (const int[]){u, v},
      (const int[]){dilation_h, dilation_w}, mode, compute_type);
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(
    const cudnnConvolutionDescriptor_t conv, int *pad_h, int *pad_w, int *u,
    int *v, int *dilation_h, int *dilation_w, cudnnConvolutionMode_t *mode,
    cudnnDataType_t *compute_type) {
  REFUSE_IF(!conv || ANY_NULL(pad_h, pad_w, u, v, dilation_h, dilation_w, mode,
                              compute_type),
            CUDNN_STATUS_BAD_PARAM);
  int *const out[] = {pad_h, pad_w, u, v, dilation_h, dilation_w};
  const int value[] = {conv->pad[0],    conv->pad[1],      conv->stride[0],
                       conv->stride[1], conv->dilation[0], conv->dilation[1]};
  for (int i = 0; i < 6; i++)
    *out[i] = value[i];
  *mode = conv->mode;
  *compute_type = conv->compute_type;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(
    const cudnnConvolutionDescriptor_t conv, int requested, int *rank,
    int pad[], int stride[], int dilation[], cudnnConvolutionMode_t *mode,
    cudnnDataType_t *compute_type) {
  REFUSE_IF(!conv || requested < 0 || ANY_NULL(rank, mode, compute_type) ||
                (requested > 0 && ANY_NULL(pad, stride, dilation)),
            CUDNN_STATUS_BAD_PARAM);
  *mode = conv->mode;
  *compute_type = conv->compute_type;
  REFUSE_IF(requested > HOST_CONV_RANK, CUDNN_STATUS_NOT_SUPPORTED);
  *rank = conv->rank;
  for (int i = 0; i < requested; i++) {
    pad[i] = conv->pad[i];
    stride[i] = conv->stride[i];
    dilation[i] = conv->dilation[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv,
                                          cudnnMathType_t math) {
  REFUSE_IF(!conv, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((int)math < CUDNN_DEFAULT_MATH || (int)math > CUDNN_FMA_MATH,
            CUDNN_STATUS_BAD_PARAM);
  conv->math = math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t conv,
                                          cudnnMathType_t *math) {
  REFUSE_IF(!conv || !math, CUDNN_STATUS_BAD_PARAM);
  *math = conv->math;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv,
                                            int groups) {
  REFUSE_IF(!conv || groups < 1, CUDNN_STATUS_BAD_PARAM);
  conv->groups = groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv,
                                            int *groups) {
  REFUSE_IF(!conv || !groups, CUDNN_STATUS_BAD_PARAM);
  *groups = conv->groups;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t conv,
                                             cudnnReorderType_t reorder) {
  REFUSE_IF(!conv, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(reorder != CUDNN_DEFAULT_REORDER && reorder != CUDNN_NO_REORDER,
            CUDNN_STATUS_BAD_PARAM);
  conv->reorder = reorder;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t conv,
                                             cudnnReorderType_t *reorder) {
  REFUSE_IF(!conv || !reorder, CUDNN_STATUS_BAD_PARAM);
  *reorder = conv->reorder;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, int nb_dims, int dim[]) {
  REFUSE_IF(!conv || !x || !w || !dim, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank != w->rank || x->rank != conv->rank + 2,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(nb_dims > x->rank, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->dim[1] != w->dim[1] * conv->groups, CUDNN_STATUS_BAD_PARAM);
  dim[0] = x->dim[0];
  dim[1] = w->dim[0];
  for (int i = 2; i < nb_dims; i++) {
    int64_t window = (int64_t)conv->dilation[i - 2] * (w->dim[i] - 1) + 1;
    int64_t room = x->dim[i] + 2 * (int64_t)conv->pad[i - 2] - window;
    REFUSE_IF(room < 0, CUDNN_STATUS_BAD_PARAM);
    dim[i] = (int)(room / conv->stride[i - 2]) + 1;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, int *n, int *c, int *h, int *width) {
  int dim[4] = {0};
  cudnnStatus_t status =
      cudnnGetConvolutionNdForwardOutputDim(conv, x, w, 4, dim);
  int *const out[] = {n, c, h, width};
  for (int i = 0; i < 4; i++)
    if (out[i])
      *out[i] = dim[i];
  return status;
}
