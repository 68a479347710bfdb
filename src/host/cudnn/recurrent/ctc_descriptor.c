// SPDX-License-Identifier: Apache-2.0
// Descriptors of the CTC loss, all four generations of them.
#include "src/host/cudnn/descriptor/life.h"

LIFE(CTCLoss, loss, .label_length = 0)

cudnnStatus_t cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t loss,
                                           cudnnDataType_t type,
                                           cudnnLossNormalizationMode_t norm,
                                           cudnnNanPropagation_t gradient,
                                           int label_length) {
  REFUSE_IF(!loss, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_DOUBLE,
            CUDNN_STATUS_NOT_SUPPORTED);
  *loss = (struct cudnnCTCLossStruct){type, norm, gradient, label_length};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t loss,
                                        cudnnDataType_t type) {
  return cudnnSetCTCLossDescriptor_v8(loss, type, CUDNN_LOSS_NORMALIZATION_NONE,
                                      CUDNN_NOT_PROPAGATE_NAN, 0);
}

cudnnStatus_t cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t loss,
                                          cudnnDataType_t type,
                                          cudnnLossNormalizationMode_t norm,
                                          cudnnNanPropagation_t gradient) {
  return cudnnSetCTCLossDescriptor_v8(loss, type, norm, gradient, 0);
}

// Stored so that the older entries read back only 0 and 1.
cudnnStatus_t cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t loss,
                                           cudnnDataType_t type,
                                           cudnnLossNormalizationMode_t norm,
                                           cudnnCTCGradMode_t gradient,
                                           int label_length) {
  return cudnnSetCTCLossDescriptor_v8(loss, type, norm,
                                      (int)gradient ? CUDNN_PROPAGATE_NAN
                                                    : CUDNN_NOT_PROPAGATE_NAN,
                                      label_length);
}

cudnnStatus_t cudnnGetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t loss,
                                           cudnnDataType_t *type,
                                           cudnnLossNormalizationMode_t *norm,
                                           cudnnNanPropagation_t *gradient,
                                           int *label_length) {
  REFUSE_IF(!loss, CUDNN_STATUS_BAD_PARAM);
  if (type)
    *type = loss->compute_type;
  if (norm)
    *norm = loss->norm;
  if (gradient)
    *gradient = loss->gradient;
  if (label_length)
    *label_length = loss->label_length;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCTCLossDescriptor(cudnnCTCLossDescriptor_t loss,
                                        cudnnDataType_t *type) {
  return cudnnGetCTCLossDescriptor_v8(loss, type, NULL, NULL, NULL);
}

cudnnStatus_t cudnnGetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t loss,
                                          cudnnDataType_t *type,
                                          cudnnLossNormalizationMode_t *norm,
                                          cudnnNanPropagation_t *gradient) {
  return cudnnGetCTCLossDescriptor_v8(loss, type, norm, gradient, NULL);
}

cudnnStatus_t cudnnGetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t loss,
                                           cudnnDataType_t *type,
                                           cudnnLossNormalizationMode_t *norm,
                                           cudnnCTCGradMode_t *gradient,
                                           int *label_length) {
  REFUSE_IF(!loss, CUDNN_STATUS_BAD_PARAM);
  if (gradient)
    *gradient = loss->gradient ? CUDNN_CTC_SKIP_OOB_GRADIENTS
                               : CUDNN_CTC_ZERO_OOB_GRADIENTS;
  return cudnnGetCTCLossDescriptor_v8(loss, type, norm, NULL, label_length);
}
