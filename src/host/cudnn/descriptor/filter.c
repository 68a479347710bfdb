// SPDX-License-Identifier: Apache-2.0
// Filter descriptors, status by status as NVIDIA's library answers.
#include "src/host/cudnn/descriptor/types.h"

#include <limits.h>
#include <stdlib.h>

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filter) {
  REFUSE_IF(!filter, CUDNN_STATUS_BAD_PARAM);
  *filter = calloc(1, sizeof **filter);
  REFUSE_IF(!*filter, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filter) {
  free(filter);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank,
                                         const int dim[]) {
  REFUSE_IF(!filter || !dim || rank < 3, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_type_bytes(type) || type == CUDNN_DATA_INT32,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((int)format < CUDNN_TENSOR_NCHW ||
                (int)format > CUDNN_TENSOR_NCHW_VECT_C,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(format == CUDNN_TENSOR_NCHW_VECT_C && type != CUDNN_DATA_INT8x4 &&
                type != CUDNN_DATA_UINT8x4 && type != CUDNN_DATA_INT8x32,
            CUDNN_STATUS_BAD_PARAM);
  // As in NVIDIA's library, values before the first invalid one are kept.
  filter->type = type;
  filter->format = format;
  filter->rank = rank;
  for (int i = 0; i < rank; i++) {
    REFUSE_IF(dim[i] < 1, CUDNN_STATUS_BAD_PARAM);
    filter->dim[i] = dim[i];
  }
  // Whole vectors only: a remainder is dropped, not refused.
  if (format == CUDNN_TENSOR_NCHW_VECT_C)
    filter->dim[1] -= dim[1] % host_type_vector(type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter,
                                         cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k,
                                         int c, int h, int w) {
  return cudnnSetFilterNdDescriptor(filter, type, format, 4,
                                    (const int[]){k, c, h, w});
}

cudnnStatus_t cudnnGetFilter4dDescriptor(const cudnnFilterDescriptor_t filter,
                                         cudnnDataType_t *type,
                                         cudnnTensorFormat_t *format, int *k,
                                         int *c, int *h, int *w) {
  REFUSE_IF(!filter || ANY_NULL(type, format, k, c, h, w),
            CUDNN_STATUS_BAD_PARAM);
  int *const dim[] = {k, c, h, w};
  for (int i = 0; i < 4; i++)
    *dim[i] = filter->dim[i];
  // NVIDIA's library counts 4 elements for every vector here.
  if (filter->format == CUDNN_TENSOR_NCHW_VECT_C)
    *c = filter->dim[1] / host_type_vector(filter->type) * 4;
  *type = filter->type;
  *format = filter->format;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filter,
                                         int requested, cudnnDataType_t *type,
                                         cudnnTensorFormat_t *format, int *rank,
                                         int dim[]) {
  REFUSE_IF(!filter || ANY_NULL(type, format, rank, dim),
            CUDNN_STATUS_BAD_PARAM);
  *type = filter->type;
  *format = filter->format;
  REFUSE_IF(requested < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(requested > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  *rank = filter->rank;
  for (int i = 0; i < requested; i++)
    dim[i] = filter->dim[i];
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t filter,
                                        size_t *size) {
  REFUSE_IF(!filter || !size, CUDNN_STATUS_BAD_PARAM);
  size_t elements = filter->rank > 0;
  for (int i = 0; i < filter->rank; i++)
    elements *= (size_t)filter->dim[i];
  if (filter->format == CUDNN_TENSOR_NCHW_VECT_C)
    elements /= (size_t)host_type_vector(filter->type);
  *size = elements * host_type_bytes(filter->type);
  return CUDNN_STATUS_SUCCESS;
}
