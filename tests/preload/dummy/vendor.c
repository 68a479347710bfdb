// SPDX-License-Identifier: Apache-2.0
// A dummy cuDNN with the real one's soname: prints the arguments it gets, and
// calls its own exported functions through the linker, as the real one does.
#pragma GCC visibility push(default)
#include <cudnn.h>
#include <stdint.h>
#include <stdio.h>

static void *fresh(void) {
  static uintptr_t made;
  return (void *)(0x10000 + 64 * ++made);
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *tensorDesc) {
  *tensorDesc = fresh();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *activationDesc) {
  *activationDesc = fresh();
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t tensorDesc,
                           int nbDimsRequested, cudnnDataType_t *dataType,
                           int *nbDims, int dimA[], int strideA[]) {
  (void)tensorDesc;
  *dataType = CUDNN_DATA_FLOAT;
  *nbDims = 4;
  for (int i = 0; i < 4 && i < nbDimsRequested; i++)
    dimA[i] = strideA[i] = i + 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetLRNDescriptor(cudnnLRNDescriptor_t normDesc,
                                    unsigned lrnN, double lrnAlpha,
                                    double lrnBeta, double lrnK) {
  printf("lrn %p %u %g %g %g\n", (void *)normDesc, lrnN, lrnAlpha, lrnBeta,
         lrnK);
  return CUDNN_STATUS_SUCCESS;
}

// An op of cuDNN 9.22, of no descriptors; headers before it do not declare it.
cudnnStatus_t cudnnCausalConv1dForward(cudaStream_t stream, const void *x,
                                       const void *weight, const void *bias,
                                       void *y, int batch, int dim, int seqLen,
                                       int kernelSize, cudnnDataType_t dataType,
                                       int activation);
cudnnStatus_t cudnnCausalConv1dForward(cudaStream_t stream, const void *x,
                                       const void *weight, const void *bias,
                                       void *y, int batch, int dim, int seqLen,
                                       int kernelSize, cudnnDataType_t dataType,
                                       int activation) {
  printf("causal %p %p %p %p %p %d %d %d %d %d %d\n", (void *)stream, x, weight,
         bias, y, batch, dim, seqLen, kernelSize, (int)dataType, activation);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetAttnDescriptor(
    cudnnAttnDescriptor_t attnDesc, unsigned attnMode, int nHeads,
    double smScaler, cudnnDataType_t dataType, cudnnDataType_t computePrec,
    cudnnMathType_t mathType, cudnnDropoutDescriptor_t attnDropoutDesc,
    cudnnDropoutDescriptor_t postDropoutDesc, int qSize, int kSize, int vSize,
    int qProjSize, int kProjSize, int vProjSize, int oProjSize,
    int qoMaxSeqLength, int kvMaxSeqLength, int maxBatchSize, int maxBeamSize) {
  printf("attn %p %u %d %g %d %d %d %p %p", (void *)attnDesc, attnMode, nHeads,
         smScaler, (int)dataType, (int)computePrec, (int)mathType,
         (void *)attnDropoutDesc, (void *)postDropoutDesc);
  printf(" %d %d %d %d %d %d %d %d %d %d %d\n", qSize, kSize, vSize, qProjSize,
         kProjSize, vProjSize, oProjSize, qoMaxSeqLength, kvMaxSeqLength,
         maxBatchSize, maxBeamSize);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnNormalizationBackward(
    cudnnHandle_t handle, cudnnNormMode_t mode, cudnnNormOps_t normOps,
    cudnnNormAlgo_t algo, const void *alphaDataDiff, const void *betaDataDiff,
    const void *alphaParamDiff, const void *betaParamDiff,
    const cudnnTensorDescriptor_t xDesc, const void *xData,
    const cudnnTensorDescriptor_t yDesc, const void *yData,
    const cudnnTensorDescriptor_t dyDesc, const void *dyData,
    const cudnnTensorDescriptor_t dzDesc, void *dzData,
    const cudnnTensorDescriptor_t dxDesc, void *dxData,
    const cudnnTensorDescriptor_t dNormScaleBiasDesc, const void *normScaleData,
    const void *normBiasData, void *dNormScaleData, void *dNormBiasData,
    double epsilon, const cudnnTensorDescriptor_t normMeanVarDesc,
    const void *savedMean, const void *savedInvVariance,
    cudnnActivationDescriptor_t activationDesc, void *workSpace,
    size_t workSpaceSizeInBytes, void *reserveSpace,
    size_t reserveSpaceSizeInBytes, int groupCnt) {
  const void *pointer[] = {
      handle,
      alphaDataDiff,
      betaDataDiff,
      alphaParamDiff,
      betaParamDiff,
      xDesc,
      xData,
      yDesc,
      yData,
      dyDesc,
      dyData,
      dzDesc,
      dzData,
      dxDesc,
      dxData,
      dNormScaleBiasDesc,
      normScaleData,
      normBiasData,
      dNormScaleData,
      dNormBiasData,
      normMeanVarDesc,
      savedMean,
      savedInvVariance,
      activationDesc,
      workSpace,
      reserveSpace,
  };
  printf("norm %d %d %d %g %zu %zu %d", (int)mode, (int)normOps, (int)algo,
         epsilon, workSpaceSizeInBytes, reserveSpaceSizeInBytes, groupCnt);
  for (size_t i = 0; i < sizeof pointer / sizeof pointer[0]; i++)
    printf(" %p", pointer[i]);
  printf("\n");
  return CUDNN_STATUS_ARCH_MISMATCH;
}

cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t xdesc,
                                              size_t *sizeInBytes) {
  (void)xdesc;
  *sizeInBytes = 17;
  return CUDNN_STATUS_SUCCESS;
}

// Like the real library, calls an exported function of its own.
cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle,
                               const cudnnTensorDescriptor_t yDesc, void *y,
                               const void *alpha) {
  (void)handle, (void)y, (void)alpha;
  cudnnTensorDescriptor_t own;
  size_t bytes = 0, own_bytes = 0;
  cudnnCreateTensorDescriptor(&own);
  cudnnDropoutGetReserveSpaceSize(yDesc, &bytes);
  cudnnDropoutGetReserveSpaceSize(own, &own_bytes);
  printf("scale %zu %zu\n", bytes, own_bytes);
  return CUDNN_STATUS_SUCCESS;
}
