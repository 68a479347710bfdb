// SPDX-License-Identifier: Apache-2.0
// Tensor descriptors: which types, extents and strides cuDNN accepts, with the
// same statuses as NVIDIA's library.
#include "src/host/cudnn/descriptor/types.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

size_t host_type_bytes(cudnnDataType_t type) {
  switch ((int)type) {
  case CUDNN_DATA_DOUBLE:
    return 8;
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32:
  case CUDNN_DATA_INT8x4:
  case CUDNN_DATA_UINT8x4:
    return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_UINT8:
    return 1;
  case CUDNN_DATA_INT8x32:
    return 32;
  }
  return 0;
}

int host_type_vector(cudnnDataType_t type) {
  switch ((int)type) {
  case CUDNN_DATA_INT8x4:
  case CUDNN_DATA_UINT8x4:
    return 4;
  case CUDNN_DATA_INT8x32:
    return 32;
  }
  return 1;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensor) {
  REFUSE_IF(!tensor, CUDNN_STATUS_BAD_PARAM);
  *tensor = calloc(1, sizeof **tensor);
  REFUSE_IF(!*tensor, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensor) {
  free(tensor);
  return CUDNN_STATUS_SUCCESS;
}

// Elements from the lowest to the highest address, both included.
static uint64_t measure(const struct cudnnTensorStruct *t) {
  uint64_t elements = 1;
  for (int i = 0; i < t->rank; i++) {
    int extent = i == 1 ? t->dim[i] / (t->vector_length ? t->vector_length : 1)
                        : t->dim[i];
    // INT_MIN stays negative, as in NVIDIA's library.
    int64_t step = t->stride[i];
    if (step < 0 && step != INT_MIN)
      step = -step;
    elements += (uint64_t)(extent - 1) * (uint64_t)step;
  }
  return elements;
}

// Tensors that 32-bit offsets cannot reach are refused but *kept*, as NVIDIA's
// library does; programs can read them back.
static cudnnStatus_t finish(cudnnTensorDescriptor_t tensor) {
  tensor->reach = measure(tensor);
  REFUSE_IF(tensor->reach > INT_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_by_format(cudnnTensorDescriptor_t tensor,
                                   cudnnTensorFormat_t format,
                                   cudnnDataType_t type, int rank,
                                   const int *dim) {
  REFUSE_IF(!tensor, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_type_bytes(type), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((int)format < CUDNN_TENSOR_NCHW ||
                (int)format > CUDNN_TENSOR_NCHW_VECT_C,
            CUDNN_STATUS_BAD_PARAM);
  int vector = 1;
  if (format == CUDNN_TENSOR_NCHW_VECT_C) {
    // Scalar types in this format count as vectors of 4, as in NVIDIA's
    // library.
    vector = type == CUDNN_DATA_INT8x32 ? 32 : 4;
    REFUSE_IF(dim[1] % vector, CUDNN_STATUS_BAD_PARAM);
  }
  REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  // As in NVIDIA's library, values before the first invalid one are kept.
  tensor->type = type;
  tensor->rank = rank;
  tensor->vector_length = vector;
  for (int i = 0; i < rank; i++) {
    REFUSE_IF(dim[i] < 1, CUDNN_STATUS_BAD_PARAM);
    tensor->dim[i] = dim[i];
  }
  uint32_t at = 1; // wraps, as in NVIDIA's library
  if (format == CUDNN_TENSOR_NHWC) {
    tensor->stride[1] = 1;
    at = (uint32_t)dim[1];
  }
  for (int i = rank - 1; i >= 0; i--) {
    if (format == CUDNN_TENSOR_NHWC && i == 1)
      continue;
    tensor->stride[i] = (int)at;
    REFUSE_IF(at == 0 && dim[i] != 1, CUDNN_STATUS_BAD_PARAM);
    at *= (uint32_t)(i == 1 ? dim[i] / vector : dim[i]);
  }
  return finish(tensor);
}

static cudnnStatus_t set_by_strides(cudnnTensorDescriptor_t tensor,
                                    cudnnDataType_t type, int rank,
                                    const int *dim, const int *stride) {
  REFUSE_IF(!tensor, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_type_bytes(type), CUDNN_STATUS_BAD_PARAM);
  // As in NVIDIA's library, values before the first invalid one are kept.
  tensor->type = type;
  tensor->rank = rank;
  tensor->vector_length = 1;
  for (int i = 0; i < rank; i++) {
    REFUSE_IF(dim[i] < 1, CUDNN_STATUS_BAD_PARAM);
    REFUSE_IF(stride[i] == 0 && dim[i] != 1, CUDNN_STATUS_BAD_PARAM);
    tensor->dim[i] = dim[i];
    tensor->stride[i] = stride[i];
  }
  return finish(tensor);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor,
                                         cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c,
                                         int h, int w) {
  REFUSE_IF(format == CUDNN_TENSOR_NCHW_VECT_C && host_type_vector(type) == 1,
            CUDNN_STATUS_BAD_PARAM);
  // Unlike the Nd entries, this one checks all values before it keeps any.
  REFUSE_IF(n < 1 || c < 1 || h < 1 || w < 1, CUDNN_STATUS_BAD_PARAM);
  return set_by_format(tensor, format, type, 4, (const int[]){n, c, h, w});
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensor,
                                           cudnnDataType_t type, int n, int c,
                                           int h, int w, int n_stride,
                                           int c_stride, int h_stride,
                                           int w_stride) {
  return set_by_strides(tensor, type, 4, (const int[]){n, c, h, w},
                        (const int[]){n_stride, c_stride, h_stride, w_stride});
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor,
                                         cudnnDataType_t type, int rank,
                                         const int dim[], const int stride[]) {
  REFUSE_IF(rank < 2 || !dim || !stride || !host_type_bytes(type),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  return set_by_strides(tensor, type, rank, dim, stride);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensor,
                                           cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int rank,
                                           const int dim[]) {
  REFUSE_IF(rank < 2 || !dim || !host_type_bytes(type), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((int)format < CUDNN_TENSOR_NCHW ||
                (int)format > CUDNN_TENSOR_NCHW_VECT_C,
            CUDNN_STATUS_BAD_PARAM);
  return set_by_format(tensor, format, type, rank, dim);
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t tensor,
                                         cudnnDataType_t *type, int *n, int *c,
                                         int *h, int *w, int *n_stride,
                                         int *c_stride, int *h_stride,
                                         int *w_stride) {
  REFUSE_IF(!tensor || ANY_NULL(type, n, c, h, w, n_stride, c_stride, h_stride,
                                w_stride),
            CUDNN_STATUS_BAD_PARAM);
  *type = tensor->type;
  *n = tensor->dim[0];
  REFUSE_IF(tensor->vector_length > 1 && host_type_vector(tensor->type) == 1,
            CUDNN_STATUS_BAD_PARAM);
  int *const dim[] = {n, c, h, w};
  int *const stride[] = {n_stride, c_stride, h_stride, w_stride};
  for (int i = 0; i < 4; i++) {
    *dim[i] = tensor->dim[i];
    *stride[i] = tensor->stride[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensor,
                                         int requested, cudnnDataType_t *type,
                                         int *rank, int dim[], int stride[]) {
  REFUSE_IF(!tensor || ANY_NULL(type, rank) ||
                (requested > 0 && tensor->rank > 0 && ANY_NULL(dim, stride)),
            CUDNN_STATUS_BAD_PARAM);
  *type = tensor->type;
  *rank = tensor->rank;
  for (int i = 0; i < tensor->rank && i < requested; i++) {
    dim[i] = tensor->dim[i];
    stride[i] = tensor->stride[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t tensor,
                                        size_t *size) {
  REFUSE_IF(!tensor || !size, CUDNN_STATUS_BAD_PARAM);
  *size = (size_t)tensor->reach * host_type_bytes(tensor->type);
  return CUDNN_STATUS_SUCCESS;
}
