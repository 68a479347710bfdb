// SPDX-License-Identifier: Apache-2.0
// The entries that tell or time the algorithms of convolutions.
#include "src/host/cudnn/convolution/algorithm.h"

// ---- forward ---------------------------------------------------------------

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle,
                                                          int *count) {
  return host_algorithm_count(handle, HOST_CONV_FORWARD, count);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
    size_t *size) {
  return host_algorithm_workspace(
      handle, HOST_CONV_FORWARD, "cudnnGetConvolutionForwardWorkspaceSize",
      __builtin_return_address(0), x, w, conv, y, (int)algo, size);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *out) {
  return host_algorithm_list(handle, HOST_CONV_FORWARD, HOST_TIME_NOT, x, w,
                             conv, y, (host_algorithm_data_t){0}, requested,
                             returned, out);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *out) {
  return host_algorithm_list(handle, HOST_CONV_FORWARD, HOST_TIME_ELSEWHERE, x,
                             w, conv, y, (host_algorithm_data_t){0}, requested,
                             returned, out);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y,
    void *y_data, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *out, void *workspace, size_t bytes) {
  (void)workspace;
  (void)bytes;
  return host_algorithm_list(handle, HOST_CONV_FORWARD, HOST_TIME_THERE, x, w,
                             conv, y,
                             (host_algorithm_data_t){x_data, w_data, y_data},
                             requested, returned, out);
}

// ---- gradients -------------------------------------------------------------

cudnnStatus_t
cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle,
                                                 int *count) {
  return host_algorithm_count(handle, HOST_CONV_DATA, count);
}

cudnnStatus_t
cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle,
                                                   int *count) {
  return host_algorithm_count(handle, HOST_CONV_WEIGHTS, count);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo,
    size_t *size) {
  return host_algorithm_workspace(
      handle, HOST_CONV_DATA, "cudnnGetConvolutionBackwardDataWorkspaceSize",
      __builtin_return_address(0), dx, w, conv, dy, (int)algo, size);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, cudnnConvolutionBwdFilterAlgo_t algo,
    size_t *size) {
  return host_algorithm_workspace(
      handle, HOST_CONV_WEIGHTS,
      "cudnnGetConvolutionBackwardFilterWorkspaceSize",
      __builtin_return_address(0), x, dw, conv, dy, (int)algo, size);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *out) {
  return host_algorithm_list(handle, HOST_CONV_DATA, HOST_TIME_NOT, dx, w, conv,
                             dy, (host_algorithm_data_t){0}, requested,
                             returned, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *out) {
  return host_algorithm_list(handle, HOST_CONV_WEIGHTS, HOST_TIME_NOT, x, dw,
                             conv, dy, (host_algorithm_data_t){0}, requested,
                             returned, out);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *out) {
  return host_algorithm_list(handle, HOST_CONV_DATA, HOST_TIME_ELSEWHERE, dx, w,
                             conv, dy, (host_algorithm_data_t){0}, requested,
                             returned, out);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *out) {
  return host_algorithm_list(handle, HOST_CONV_WEIGHTS, HOST_TIME_ELSEWHERE, x,
                             dw, conv, dy, (host_algorithm_data_t){0},
                             requested, returned, out);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t dx,
    void *dx_data, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *out, void *workspace, size_t bytes) {
  (void)workspace;
  (void)bytes;
  return host_algorithm_list(handle, HOST_CONV_DATA, HOST_TIME_THERE, dx, w,
                             conv, dy,
                             (host_algorithm_data_t){dx_data, w_data, dy_data},
                             requested, returned, out);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw,
    void *dw_data, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *out, void *workspace, size_t bytes) {
  (void)workspace;
  (void)bytes;
  return host_algorithm_list(handle, HOST_CONV_WEIGHTS, HOST_TIME_THERE, x, dw,
                             conv, dy,
                             (host_algorithm_data_t){x_data, dw_data, dy_data},
                             requested, returned, out);
}
