// SPDX-License-Identifier: Apache-2.0
// A cuDNN whose functions take no time, so that only the way to them is
// measured.
#pragma GCC visibility push(default)
#include <cudnn.h>
#include <stdint.h>

#define NOTHING __attribute__((noinline, noclone))

static cudnnStatus_t made(void **out) {
  static uintptr_t count;
  *out = (void *)(0x10000 + 64 * ++count);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensorDesc) {
  return made((void **)tensorDesc);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *filterDesc) {
  return made((void **)filterDesc);
}

cudnnStatus_t
cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *convDesc) {
  return made((void **)convDesc);
}

cudnnStatus_t
cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                           int nbDimsRequested, cudnnDataType_t *dataType,
                           int *nbDims, int dimA[], int strideA[]) {
  (void)tensorDesc;
  *dataType = CUDNN_DATA_FLOAT;
  *nbDims = 4;
  for (int i = 0; i < 4 && i < nbDimsRequested; i++)
    dimA[i] = strideA[i] = 8;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t filterDesc,
                           int nbDimsRequested, cudnnDataType_t *dataType,
                           cudnnTensorFormat_t *format, int *nbDims,
                           int filterDimA[]) {
  (void)filterDesc;
  *dataType = CUDNN_DATA_FLOAT;
  *format = CUDNN_TENSOR_NCHW;
  *nbDims = 4;
  for (int i = 0; i < 4 && i < nbDimsRequested; i++)
    filterDimA[i] = 8;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(
    const cudnnConvolutionDescriptor_t convDesc, int arrayLengthRequested,
    int *arrayLength, int padA[], int strideA[], int dilationA[],
    cudnnConvolutionMode_t *mode, cudnnDataType_t *computeType) {
  (void)convDesc;
  *arrayLength = 2;
  for (int i = 0; i < 2 && i < arrayLengthRequested; i++)
    padA[i] = 0, strideA[i] = dilationA[i] = 1;
  *mode = CUDNN_CROSS_CORRELATION;
  *computeType = CUDNN_DATA_FLOAT;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc,
                              int *groupCount) {
  (void)convDesc;
  *groupCount = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                          cudnnMathType_t *mathType) {
  (void)convDesc;
  *mathType = CUDNN_DEFAULT_MATH;
  return CUDNN_STATUS_SUCCESS;
}

NOTHING cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha,
    const cudnnTensorDescriptor_t xDesc, const void *x,
    const cudnnFilterDescriptor_t wDesc, const void *w,
    const cudnnConvolutionDescriptor_t convDesc, cudnnConvolutionFwdAlgo_t algo,
    void *workSpace, size_t workSpaceSizeInBytes, const void *beta,
    const cudnnTensorDescriptor_t yDesc, void *y) {
  (void)handle, (void)alpha, (void)xDesc, (void)x, (void)wDesc, (void)w;
  (void)convDesc, (void)algo, (void)workSpace, (void)workSpaceSizeInBytes;
  (void)beta, (void)yDesc, (void)y;
  return CUDNN_STATUS_SUCCESS;
}

// ---- graphs ----------------------------------------------------------------

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                             cudnnBackendDescriptor_t *descriptor) {
  (void)descriptorType;
  return made(descriptor);
}

cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  (void)descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  (void)descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                         cudnnBackendAttributeName_t attributeName,
                         cudnnBackendAttributeType_t attributeType,
                         int64_t elementCount, const void *arrayOfElements) {
  (void)descriptor, (void)attributeName, (void)attributeType;
  (void)elementCount, (void)arrayOfElements;
  return CUDNN_STATUS_SUCCESS;
}

NOTHING cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                          cudnnBackendDescriptor_t plan,
                                          cudnnBackendDescriptor_t pack) {
  (void)handle, (void)plan, (void)pack;
  return CUDNN_STATUS_SUCCESS;
}
