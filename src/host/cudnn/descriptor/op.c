// SPDX-License-Identifier: Apache-2.0
// Descriptors of activation, op-tensor, pooling, reduction and LRN.
#include "src/host/cudnn/descriptor/life.h"

LIFE(Activation, activation, .swish_beta = 1)
LIFE(OpTensor, op, .nan = 0)
LIFE(Pooling, pooling, .rank = 0)
LIFE(ReduceTensor, reduce, .nan = 0)
LIFE(LRN, lrn, .n = 5, .alpha = 1e-4, .beta = 0.75, .k = 2)

cudnnStatus_t
cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activation,
                             cudnnActivationMode_t mode,
                             cudnnNanPropagation_t nan, double coefficient) {
  REFUSE_IF(!activation, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(
      !host_in_range(mode, CUDNN_ACTIVATION_SIGMOID, CUDNN_ACTIVATION_SWISH),
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(nan, 0, 1), CUDNN_STATUS_BAD_PARAM);
  activation->mode = mode;
  activation->nan = nan;
  activation->coefficient = coefficient;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetActivationDescriptor(const cudnnActivationDescriptor_t activation,
                             cudnnActivationMode_t *mode,
                             cudnnNanPropagation_t *nan, double *coefficient) {
  REFUSE_IF(!activation || ANY_NULL(mode, nan, coefficient),
            CUDNN_STATUS_BAD_PARAM);
  *mode = activation->mode;
  *nan = activation->nan;
  *coefficient = activation->coefficient;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnSetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                      double beta) {
  REFUSE_IF(!activation, CUDNN_STATUS_BAD_PARAM);
  activation->swish_beta = beta;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetActivationDescriptorSwishBeta(cudnnActivationDescriptor_t activation,
                                      double *beta) {
  REFUSE_IF(!activation || !beta, CUDNN_STATUS_BAD_PARAM);
  *beta = activation->swish_beta;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t op,
                                         cudnnOpTensorOp_t kind,
                                         cudnnDataType_t compute_type,
                                         cudnnNanPropagation_t nan) {
  REFUSE_IF(!op, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(kind, CUDNN_OP_TENSOR_ADD, CUDNN_OP_TENSOR_NOT),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(nan, 0, 1), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(compute_type, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF) &&
                compute_type != CUDNN_DATA_BFLOAT16,
            CUDNN_STATUS_BAD_PARAM);
  op->op = kind;
  op->compute_type = compute_type;
  op->nan = nan;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetOpTensorDescriptor(const cudnnOpTensorDescriptor_t op,
                                         cudnnOpTensorOp_t *kind,
                                         cudnnDataType_t *compute_type,
                                         cudnnNanPropagation_t *nan) {
  REFUSE_IF(!op || ANY_NULL(kind, compute_type, nan), CUDNN_STATUS_BAD_PARAM);
  *kind = op->op;
  *compute_type = op->compute_type;
  *nan = op->nan;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t pooling,
                                          const cudnnPoolingMode_t mode,
                                          const cudnnNanPropagation_t nan,
                                          int rank, const int window[],
                                          const int pad[], const int stride[]) {
  REFUSE_IF(!pooling || rank < 1 || !window || !pad || !stride,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank > CUDNN_DIM_MAX - 2, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(
      !host_in_range(mode, CUDNN_POOLING_MAX, CUDNN_POOLING_MAX_DETERMINISTIC),
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(nan, 0, 1), CUDNN_STATUS_BAD_PARAM);
  // As in NVIDIA's library, values before the first invalid one are kept.
  pooling->mode = mode;
  pooling->nan = nan;
  pooling->rank = rank;
  for (int i = 0; i < rank; i++) {
    REFUSE_IF(window[i] < 1, CUDNN_STATUS_BAD_PARAM);
    pooling->window[i] = window[i];
    pooling->pad[i] = pad[i];
    REFUSE_IF(stride[i] < 1, CUDNN_STATUS_BAD_PARAM);
    pooling->stride[i] = stride[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t pooling,
                                          cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int h,
                                          int w, int pad_h, int pad_w,
                                          int stride_h, int stride_w) {
  REFUSE_IF(!pooling, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(
      !host_in_range(mode, CUDNN_POOLING_MAX, CUDNN_POOLING_MAX_DETERMINISTIC),
      CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(nan, 0, 1), CUDNN_STATUS_BAD_PARAM);
  pooling->mode = mode;
  pooling->nan = nan;
  pooling->rank = 2;
  REFUSE_IF(h < 1, CUDNN_STATUS_BAD_PARAM);
  pooling->window[0] = h;
  REFUSE_IF(w < 1, CUDNN_STATUS_BAD_PARAM);
  pooling->window[1] = w;
  // Negative padding is accepted.
  pooling->pad[0] = pad_h;
  pooling->pad[1] = pad_w;
  REFUSE_IF(stride_h < 1, CUDNN_STATUS_BAD_PARAM);
  pooling->stride[0] = stride_h;
  REFUSE_IF(stride_w < 1, CUDNN_STATUS_BAD_PARAM);
  pooling->stride[1] = stride_w;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetPooling2dDescriptor(
    const cudnnPoolingDescriptor_t pooling, cudnnPoolingMode_t *mode,
    cudnnNanPropagation_t *nan, int *h, int *w, int *pad_h, int *pad_w,
    int *stride_h, int *stride_w) {
  REFUSE_IF(!pooling ||
                ANY_NULL(mode, nan, h, w, pad_h, pad_w, stride_h, stride_w),
            CUDNN_STATUS_BAD_PARAM);
  int *const out[] = {h, w, pad_h, pad_w, stride_h, stride_w};
  const int value[] = {pooling->window[0], pooling->window[1],
                       pooling->pad[0],    pooling->pad[1],
                       pooling->stride[0], pooling->stride[1]};
  for (int i = 0; i < 6; i++)
    *out[i] = value[i];
  *mode = pooling->mode;
  *nan = pooling->nan;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetPoolingNdDescriptor(const cudnnPoolingDescriptor_t pooling,
                            int requested, cudnnPoolingMode_t *mode,
                            cudnnNanPropagation_t *nan, int *rank, int window[],
                            int pad[], int stride[]) {
  REFUSE_IF(!pooling || ANY_NULL(mode, nan, rank) ||
                (requested > 0 && ANY_NULL(window, pad, stride)),
            CUDNN_STATUS_BAD_PARAM);
  *mode = pooling->mode;
  *nan = pooling->nan;
  REFUSE_IF(requested < 0, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(requested > CUDNN_DIM_MAX - 2, CUDNN_STATUS_NOT_SUPPORTED);
  *rank = pooling->rank;
  for (int i = 0; i < requested; i++) {
    window[i] = pooling->window[i];
    pad[i] = pooling->pad[i];
    stride[i] = pooling->stride[i];
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetPoolingNdForwardOutputDim(const cudnnPoolingDescriptor_t pooling,
                                  const cudnnTensorDescriptor_t x, int nb_dims,
                                  int dim[]) {
  REFUSE_IF(!pooling || !x || !dim, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank != pooling->rank + 2 || nb_dims != x->rank,
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < nb_dims; i++) {
    if (i < 2) {
      dim[i] = x->dim[i];
      continue;
    }
    int64_t room =
        x->dim[i] + 2 * (int64_t)pooling->pad[i - 2] - pooling->window[i - 2];
    REFUSE_IF(room < 0, CUDNN_STATUS_BAD_PARAM);
    dim[i] = (int)(room / pooling->stride[i - 2]) + 1;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetPooling2dForwardOutputDim(const cudnnPoolingDescriptor_t pooling,
                                  const cudnnTensorDescriptor_t x, int *n,
                                  int *c, int *h, int *w) {
  REFUSE_IF(!n || !c || !h || !w, CUDNN_STATUS_BAD_PARAM);
  int dim[4] = {0};
  cudnnStatus_t status = cudnnGetPoolingNdForwardOutputDim(pooling, x, 4, dim);
  *n = dim[0];
  *c = dim[1];
  *h = dim[2];
  *w = dim[3];
  return status;
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t reduce, cudnnReduceTensorOp_t op,
    cudnnDataType_t compute_type, cudnnNanPropagation_t nan,
    cudnnReduceTensorIndices_t indices, cudnnIndicesType_t index_type) {
  REFUSE_IF(!reduce, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(op, CUDNN_REDUCE_TENSOR_ADD,
                           CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(compute_type, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(nan, 0, 1), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(indices, 0, 1), CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(index_type, 0, 3), CUDNN_STATUS_BAD_PARAM);
  reduce->op = op;
  reduce->compute_type = compute_type;
  reduce->nan = nan;
  reduce->indices = indices;
  reduce->index_type = index_type;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetReduceTensorDescriptor(
    const cudnnReduceTensorDescriptor_t reduce, cudnnReduceTensorOp_t *op,
    cudnnDataType_t *compute_type, cudnnNanPropagation_t *nan,
    cudnnReduceTensorIndices_t *indices, cudnnIndicesType_t *index_type) {
  REFUSE_IF(!reduce || ANY_NULL(op, compute_type, nan, indices, index_type),
            CUDNN_STATUS_BAD_PARAM);
  *op = reduce->op;
  *compute_type = reduce->compute_type;
  *nan = reduce->nan;
  *indices = reduce->indices;
  *index_type = reduce->index_type;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned n,
                                    double alpha, double beta, double k) {
  REFUSE_IF(!lrn, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(n < CUDNN_LRN_MIN_N || n > CUDNN_LRN_MAX_N, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(k < CUDNN_LRN_MIN_K || beta < CUDNN_LRN_MIN_BETA,
            CUDNN_STATUS_BAD_PARAM);
  lrn->n = n;
  lrn->alpha = alpha;
  lrn->beta = beta;
  lrn->k = k;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetLRNDescriptor(cudnnLRNDescriptor_t lrn, unsigned *n,
                                    double *alpha, double *beta, double *k) {
  REFUSE_IF(!lrn, CUDNN_STATUS_BAD_PARAM);
  if (n)
    *n = lrn->n;
  if (alpha)
    *alpha = lrn->alpha;
  if (beta)
    *beta = lrn->beta;
  if (k)
    *k = lrn->k;
  return CUDNN_STATUS_SUCCESS;
}
