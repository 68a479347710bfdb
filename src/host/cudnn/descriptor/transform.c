// SPDX-License-Identifier: Apache-2.0
// Descriptors of tensor transforms: padding and folding.
#include <string.h>

#include "src/host/cudnn/descriptor/life.h"

LIFE(TensorTransform, transform, .unfold = false)

cudnnStatus_t cudnnSetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transform, const uint32_t rank,
    const cudnnTensorFormat_t format, const int32_t before[],
    const int32_t after[], const uint32_t fold[],
    const cudnnFoldingDirection_t direction) {
  REFUSE_IF(!transform || rank < 2, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF((int)format > CUDNN_TENSOR_NCHW_VECT_C, CUDNN_STATUS_NOT_SUPPORTED);
  *transform = (struct cudnnTensorTransformStruct){
      .format = format, .unfold = direction != CUDNN_TRANSFORM_FOLD};
  for (uint32_t i = 0; i < rank; i++) {
    transform->before[i] = before ? before[i] : 0;
    transform->after[i] = after ? after[i] : 0;
    if (i + 2 < rank)
      transform->fold[i] = fold ? fold[i] : 0;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transform, uint32_t requested,
    cudnnTensorFormat_t *format, int32_t before[], int32_t after[],
    uint32_t fold[], cudnnFoldingDirection_t *direction) {
  REFUSE_IF(!transform || requested <= 2 || requested > CUDNN_DIM_MAX ||
                !direction,
            CUDNN_STATUS_BAD_PARAM);
  if (format)
    *format = transform->format;
  *direction =
      transform->unfold ? CUDNN_TRANSFORM_UNFOLD : CUDNN_TRANSFORM_FOLD;
  for (uint32_t i = 0; i < requested; i++) {
    if (before)
      before[i] = transform->before[i];
    if (after)
      after[i] = transform->after[i];
    if (fold && i + 2 < requested)
      fold[i] = transform->fold[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

static int64_t fold_of(const struct cudnnTensorTransformStruct *transform,
                       int i) {
  unsigned fold = transform->fold[i - 2];
  return fold ? fold : 1;
}

// Folding pads first, unfolding last. A fold of 0 means none, and a remainder
// rounds up: H 7 folded by 3 is H 3, with 3 times the channels.
cudnnStatus_t
cudnnInitTransformDest(const cudnnTensorTransformDescriptor_t transform,
                       const cudnnTensorDescriptor_t source,
                       cudnnTensorDescriptor_t dest, size_t *bytes) {
  REFUSE_IF(!transform || !source || !dest, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(source->rank < 2, CUDNN_STATUS_BAD_PARAM);
  int dim[CUDNN_DIM_MAX];
  int64_t factor = 1;
  for (int i = 2; i < source->rank; i++) {
    factor *= fold_of(transform, i);
    REFUSE_IF(factor > INT32_MAX, CUDNN_STATUS_NOT_SUPPORTED);
  }
  for (int i = 0; i < source->rank; i++) {
    int64_t before = transform->before[i], after = transform->after[i];
    int64_t fold = i < 2 ? 1 : fold_of(transform, i);
    int64_t extent = source->dim[i];
    if (transform->unfold)
      extent = i == 1 ? (extent + factor - 1) / factor : extent * fold;
    REFUSE_IF(extent + before < 1 || extent + after < 1,
              CUDNN_STATUS_BAD_PARAM);
    extent += before + after;
    if (!transform->unfold)
      extent = i == 1 ? extent * factor : (extent + fold - 1) / fold;
    REFUSE_IF(extent > INT32_MAX, CUDNN_STATUS_NOT_SUPPORTED);
    dim[i] = (int)extent;
  }
  REFUSE_IF(transform->format != CUDNN_TENSOR_NCHW &&
                transform->format != CUDNN_TENSOR_NHWC,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(source->vector_length > 1, CUDNN_STATUS_NOT_SUPPORTED);
  // Below four dimensions only one order exists.
  cudnnStatus_t status = cudnnSetTensorNdDescriptorEx(
      dest, source->rank < 4 ? CUDNN_TENSOR_NCHW : transform->format,
      source->type, source->rank, dim);
  if (!status && bytes)
    status = cudnnGetTensorSizeInBytes(dest, bytes);
  return status;
}
