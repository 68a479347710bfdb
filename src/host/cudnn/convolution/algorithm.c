// SPDX-License-Identifier: Apache-2.0
// The forward algorithms, their workspace and their speed. All are computed the
// same way here, and use no workspace, even if the model of a GPU asks for one;
// each is offered where cuDNN offers it.
#include "src/host/cudnn/convolution/problem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/host/cudnn/base/work.h"

// In the order of recommendation.
static const cudnnConvolutionFwdAlgo_t order[] = {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT,
};
enum { ALGOS = sizeof order / sizeof *order };
_Static_assert((int)ALGOS == (int)CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
               "every algorithm is listed");

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle,
                                                          int *count) {
  REFUSE_IF(!handle || !count, CUDNN_STATUS_BAD_PARAM);
  *count = ALGOS;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
    size_t *size) {
  REFUSE_IF(!handle || !size, CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (status)
    return status;
  REFUSE_IF((int)algo < 0 || algo >= CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
            CUDNN_STATUS_BAD_PARAM);
  status = host_problem_refuses(
      HOST_CONV_FORWARD, "cudnnGetConvolutionForwardWorkspaceSize",
      __builtin_return_address(0), &problem, (int)algo, algo, SIZE_MAX);
  if (!status)
    *size = problem.offer[HOST_CONV_FORWARD].workspace;
  return status;
}

// `ms` is the measured time, the same for every algorithm, or -1.
static void list(const host_conv_t *problem, cudnnMathType_t math, float ms,
                 int requested, int *out_count,
                 cudnnConvolutionFwdAlgoPerf_t *out) {
  int count = requested < ALGOS ? requested : ALGOS, at = 0;
  // Algorithms that work come first.
  for (int works = 1; works >= 0; works--)
    for (int i = 0; i < ALGOS && at < count; i++)
      if (host_problem_allows(HOST_CONV_FORWARD, problem, (int)order[i],
                              order[i]) == works)
        out[at++] = (cudnnConvolutionFwdAlgoPerf_t){
            .algo = order[i],
            .status = works ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED,
            .time = works ? ms : -1,
            .memory = works ? problem->offer[HOST_CONV_FORWARD].workspace : 0,
            .determinism =
                host_model_determinism(HOST_CONV_FORWARD, (int)order[i]),
            .mathType = math};
  *out_count = at;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *results) {
  REFUSE_IF(!handle || !returned || !results || requested < 1,
            CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (status)
    return status;
  list(&problem, conv->math, -1, requested, returned, results);
  return CUDNN_STATUS_SUCCESS;
}

static float milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (float)((double)(now.tv_sec % 100000) * 1e3 +
                 (double)now.tv_nsec * 1e-6);
}

// Runs the problem once, writing y, and lists the algorithms.
static cudnnStatus_t measure(cudnnHandle_t handle, cudnnMathType_t math,
                             const host_conv_t *problem, int requested,
                             int *returned,
                             cudnnConvolutionFwdAlgoPerf_t *results) {
  REFUSE_IF(cudaStreamSynchronize(handle->stream) != cudaSuccess,
            CUDNN_STATUS_EXECUTION_FAILED);
  float start = milliseconds();
  REFUSE_IF(!host_conv_any(HOST_CONV_FORWARD, problem),
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  list(problem, math, milliseconds() - start, requested, returned, results);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnFilterDescriptor_t w, const void *w_data,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y,
    void *y_data, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *results, void *workspace,
    size_t workspace_bytes) {
  (void)workspace;
  (void)workspace_bytes;
  REFUSE_IF(!handle || !returned || !results || requested < 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!x_data || !w_data || !y_data, CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (status)
    return status;
  problem.x = host_tensor_resolve(x, x_data);
  problem.w = host_filter_resolve(w, w_data);
  problem.y = host_tensor_resolve(y, y_data);
  REFUSE_IF(!problem.x || !problem.w || !problem.y,
            CUDNN_STATUS_EXECUTION_FAILED);
  problem.alpha = 1;
  return measure(handle, conv->math, &problem, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *results) {
  REFUSE_IF(!handle || !returned || !results || requested < 1,
            CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (status)
    return status;
  size_t x_bytes, w_bytes, y_bytes;
  cudnnGetTensorSizeInBytes(x, &x_bytes);
  cudnnGetFilterSizeInBytes(w, &w_bytes);
  cudnnGetTensorSizeInBytes(y, &y_bytes);
  void *x_data = calloc(1, x_bytes), *w_data = calloc(1, w_bytes),
       *y_data = calloc(1, y_bytes);
  problem.x = x_data;
  problem.w = w_data;
  problem.y = y_data;
  problem.alpha = 1;
  status =
      x_data && w_data && y_data
          ? measure(handle, conv->math, &problem, requested, returned, results)
          : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  free(x_data);
  free(w_data);
  free(y_data);
  return status;
}
