// SPDX-License-Identifier: Apache-2.0
// Convolution forward: plain, and fused with bias and activation.
#include "src/host/cudnn/convolution/problem.h"

#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/convolution/algorithm.h"

static bool run(void *job) {
  return host_conv_any(HOST_CONV_FORWARD, job);
}

static cudnnStatus_t queue(cudnnHandle_t handle, const host_conv_t *problem) {
  return host_work_queue(handle, run, problem, sizeof *problem);
}

cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t workspace_bytes, const void *beta,
    const cudnnTensorDescriptor_t y, void *y_data) {
  REFUSE_IF(!handle || !alpha || !beta, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!x_data || !w_data || !y_data, CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status = host_problem_init(
      x, w, conv, y, NULL, CUDNN_STATUS_NOT_SUPPORTED, &problem);
  if (!status)
    status = host_algorithm_check(HOST_CONV_FORWARD, "cudnnConvolutionForward",
                                  NULL, &problem, (int)algo,
                                  workspace ? workspace_bytes : 0);
  if (status)
    return status;
  problem.x = host_tensor_resolve(x, x_data);
  problem.w = host_filter_resolve(w, w_data);
  problem.y = host_tensor_resolve(y, y_data);
  REFUSE_IF(!problem.x || !problem.w || !problem.y,
            CUDNN_STATUS_EXECUTION_FAILED);
  problem.old = problem.y;
  problem.alpha = host_scalar(alpha, y->type);
  problem.gamma = host_scalar(beta, y->type);
  return queue(handle, &problem);
}

// One bias per output channel: 1 x K x 1 x 1, dense.
static cudnnStatus_t check_bias(const struct cudnnTensorStruct *bias,
                                const struct cudnnTensorStruct *y) {
  REFUSE_IF(!bias, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(bias->rank != y->rank, CUDNN_STATUS_BAD_PARAM);
  bool whole = host_type_scalar(y->type) == CUDNN_DATA_INT8 ||
               host_type_scalar(y->type) == CUDNN_DATA_UINT8;
  REFUSE_IF(bias->type != (whole ? CUDNN_DATA_FLOAT : y->type),
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(bias->dim[1] != y->dim[1] || bias->dim[0] != 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(bias->dim[1] > 1 && bias->stride[1] != 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  for (int i = 2; i < bias->rank; i++)
    REFUSE_IF(bias->dim[i] != 1, CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_z(const struct cudnnTensorStruct *z,
                             const struct cudnnTensorStruct *y) {
  REFUSE_IF(z->type != y->type || z->vector_length != y->vector_length,
            CUDNN_STATUS_NOT_SUPPORTED);
  for (int i = 0; i < z->rank; i++) {
    REFUSE_IF(z->dim[i] != y->dim[i], CUDNN_STATUS_NOT_SUPPORTED);
    REFUSE_IF(z->stride[i] < 0, CUDNN_STATUS_NOT_SUPPORTED);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t workspace_bytes, const void *alpha2,
    const cudnnTensorDescriptor_t z, const void *z_data,
    const cudnnTensorDescriptor_t bias, const void *bias_data,
    const cudnnActivationDescriptor_t activation,
    const cudnnTensorDescriptor_t y, void *y_data) {
  REFUSE_IF(!handle || !alpha1 || !alpha2 || !activation,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!x_data || !w_data || !y_data || !z_data || !bias_data,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!y || !z || z->rank != y->rank, CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, z, CUDNN_STATUS_NOT_SUPPORTED, &problem);
  if (!status)
    status = host_algorithm_check(
        HOST_CONV_FORWARD, "cudnnConvolutionBiasActivationForward", NULL,
        &problem, (int)algo, workspace ? workspace_bytes : 0);
  if (!status)
    status = check_z(z, y);
  if (!status)
    status = check_bias(bias, y);
  if (status)
    return status;
  bool identity = activation->mode == CUDNN_ACTIVATION_IDENTITY;
  problem.relu = activation->mode == CUDNN_ACTIVATION_RELU;
  REFUSE_IF(!identity && !problem.relu, CUDNN_STATUS_NOT_SUPPORTED);
  // The only algorithm for which cuDNN documents it.
  REFUSE_IF(identity &&
                algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
            CUDNN_STATUS_NOT_SUPPORTED);
  problem.propagate_nan = activation->nan == CUDNN_PROPAGATE_NAN;
  problem.x = host_tensor_resolve(x, x_data);
  problem.w = host_filter_resolve(w, w_data);
  problem.y = host_tensor_resolve(y, y_data);
  problem.old = host_tensor_resolve(z, z_data);
  problem.bias = host_tensor_resolve(bias, bias_data);
  REFUSE_IF(!problem.x || !problem.w || !problem.y || !problem.old ||
                !problem.bias,
            CUDNN_STATUS_EXECUTION_FAILED);
  problem.alpha = host_scalar(alpha1, y->type);
  problem.gamma = host_scalar(alpha2, y->type);
  return queue(handle, &problem);
}
