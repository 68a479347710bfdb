// SPDX-License-Identifier: Apache-2.0
// The algorithms for the gradients of a convolution, their workspace and their
// speed. All are computed the same way, and use no workspace, even if the model
// of a GPU asks for one.
#include "src/host/cudnn/convolution/gradient_algorithm.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/convolution/problem.h"

// An algorithm, and the forward algorithm with the same limits.
typedef struct {
  int algo, like;
} algo_t;

// In the order of recommendation.
static const algo_t of_data[] = {
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD,
     CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
     CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_FFT},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING,
     CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING}};
static const algo_t of_filter[] = {
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1,
     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED,
     CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_FFT},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING,
     CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD, // exists in name only
     CUDNN_CONVOLUTION_FWD_ALGO_DIRECT}};
_Static_assert(sizeof of_data / sizeof *of_data ==
                   (size_t)CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
               "every algorithm is listed");
_Static_assert(sizeof of_filter / sizeof *of_filter ==
                   (size_t)CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
               "every algorithm is listed");
// One function fills both kinds of results.
_Static_assert(sizeof(cudnnConvolutionBwdDataAlgoPerf_t) ==
                       sizeof(cudnnConvolutionFwdAlgoPerf_t) &&
                   sizeof(cudnnConvolutionBwdFilterAlgoPerf_t) ==
                       sizeof(cudnnConvolutionFwdAlgoPerf_t),
               "results differ in the type of their first member only");

static int algos(host_conv_kind_t kind, const algo_t **out) {
  *out = kind == HOST_CONV_DATA ? of_data : of_filter;
  return kind == HOST_CONV_DATA ? CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT
                                : CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
}

// Whether the type is an integer type, which has no gradients.
static bool is_whole(const host_conv_t *problem) {
  return problem->x_type == CUDNN_DATA_INT8 ||
         problem->x_type == CUDNN_DATA_UINT8;
}

// NULL if cuDNN has no algorithm of that number.
static const algo_t *find(host_conv_kind_t kind, int algo) {
  const algo_t *list;
  int count = algos(kind, &list);
  for (int i = 0; i < count; i++)
    if (list[i].algo == algo)
      return &list[i];
  return NULL;
}

static bool allows(host_conv_kind_t kind, const host_conv_t *problem,
                   const algo_t *algo) {
  return host_problem_allows(kind, problem, algo->algo,
                             (cudnnConvolutionFwdAlgo_t)algo->like);
}

cudnnStatus_t host_gradient_check(host_conv_kind_t kind, const char *function,
                                  const host_conv_t *problem, int algo,
                                  size_t workspace) {
  REFUSE_IF(is_whole(problem), CUDNN_STATUS_NOT_SUPPORTED);
  const algo_t *found = find(kind, algo);
  REFUSE_IF(!found, CUDNN_STATUS_BAD_PARAM);
  return host_problem_refuses(kind, function, NULL, problem, algo,
                              (cudnnConvolutionFwdAlgo_t)found->like,
                              workspace);
}

static cudnnStatus_t workspace_size(cudnnHandle_t handle, host_conv_kind_t kind,
                                    const char *function, const void *asker,
                                    const struct cudnnTensorStruct *x,
                                    const struct cudnnFilterStruct *w,
                                    const struct cudnnConvolutionStruct *conv,
                                    const struct cudnnTensorStruct *y, int algo,
                                    size_t *size) {
  REFUSE_IF(!handle || !size, CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (status)
    return status;
  REFUSE_IF(is_whole(&problem), CUDNN_STATUS_NOT_SUPPORTED);
  const algo_t *found = find(kind, algo);
  REFUSE_IF(!found, CUDNN_STATUS_BAD_PARAM);
  status =
      host_problem_refuses(kind, function, asker, &problem, algo,
                           (cudnnConvolutionFwdAlgo_t)found->like, SIZE_MAX);
  if (!status)
    *size = problem.offer[kind].workspace;
  return status;
}

// Algorithms that work come first. `ms` is the time of each, or -1.
static void fill(host_conv_kind_t kind, const host_conv_t *problem,
                 cudnnMathType_t math, float ms, int requested, int *out_count,
                 void *out) {
  const algo_t *list;
  int total = algos(kind, &list), at = 0;
  for (int works = 1; works >= 0; works--)
    for (int i = 0; i < total && at < requested; i++) {
      if (allows(kind, problem, &list[i]) != (bool)works)
        continue;
      cudnnConvolutionFwdAlgoPerf_t result = {
          .algo = (cudnnConvolutionFwdAlgo_t)list[i].algo,
          .status = works ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED,
          .time = works ? ms : -1,
          .memory = works ? problem->offer[kind].workspace : 0,
          .determinism = host_model_determinism((int)kind, list[i].algo),
          .mathType = math};
      memcpy((char *)out + (size_t)at++ * sizeof result, &result,
             sizeof result);
    }
  *out_count = at;
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

// The program's memory. If all of `data` is NULL, memory is allocated.
typedef struct {
  const void *x, *w, *y;
} data_t;

static cudnnStatus_t measure(cudnnHandle_t handle, host_conv_kind_t kind,
                             host_conv_t *problem, float *out_ms) {
  REFUSE_IF(cudaStreamSynchronize(handle->stream) != cudaSuccess,
            CUDNN_STATUS_EXECUTION_FAILED);
  problem->alpha = 1;
  double start = milliseconds();
  bool ok = host_conv_any(
      kind == HOST_CONV_DATA ? HOST_CONV_DATA : HOST_CONV_WEIGHTS, problem);
  REFUSE_IF(!ok, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  *out_ms = (float)(milliseconds() - start);
  return CUDNN_STATUS_SUCCESS;
}

// mode 0: no time; 1: on allocated memory; 2: on `data`.
static cudnnStatus_t results(cudnnHandle_t handle, host_conv_kind_t kind,
                             int mode, const struct cudnnTensorStruct *x,
                             const struct cudnnFilterStruct *w,
                             const struct cudnnConvolutionStruct *conv,
                             const struct cudnnTensorStruct *y, data_t data,
                             int requested, int *returned, void *out) {
  REFUSE_IF(!handle || !returned || !out || requested < 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode == 2 && (!data.x || !data.w || !data.y),
            CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (status)
    return status;
  REFUSE_IF(is_whole(&problem), CUDNN_STATUS_NOT_SUPPORTED);
  float ms = -1;
  if (mode == 1) {
    size_t x_bytes, w_bytes, y_bytes;
    cudnnGetTensorSizeInBytes((cudnnTensorDescriptor_t)x, &x_bytes);
    cudnnGetFilterSizeInBytes((cudnnFilterDescriptor_t)w, &w_bytes);
    cudnnGetTensorSizeInBytes((cudnnTensorDescriptor_t)y, &y_bytes);
    void *xs = calloc(1, x_bytes), *ws = calloc(1, w_bytes),
         *ys = calloc(1, y_bytes);
    problem.x = xs;
    problem.w = ws;
    problem.y = ys;
    status = xs && ws && ys
                 ? measure(handle, kind, &problem, &ms)
                 : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    free(xs);
    free(ws);
    free(ys);
  } else if (mode == 2) {
    problem.x = host_tensor_resolve(x, data.x);
    problem.w = host_filter_resolve(w, data.w);
    problem.y = host_tensor_resolve(y, data.y);
    REFUSE_IF(!problem.x || !problem.w || !problem.y,
              CUDNN_STATUS_EXECUTION_FAILED);
    status = measure(handle, kind, &problem, &ms);
  }
  if (!status)
    fill(kind, &problem, conv->math, ms, requested, returned, out);
  return status;
}

cudnnStatus_t
cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle,
                                                 int *count) {
  REFUSE_IF(!handle || !count, CUDNN_STATUS_BAD_PARAM);
  *count = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle,
                                                   int *count) {
  REFUSE_IF(!handle || !count, CUDNN_STATUS_BAD_PARAM);
  *count = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo,
    size_t *size) {
  return workspace_size(
      handle, HOST_CONV_DATA, "cudnnGetConvolutionBackwardDataWorkspaceSize",
      __builtin_return_address(0), dx, w, conv, dy, (int)algo, size);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, cudnnConvolutionBwdFilterAlgo_t algo,
    size_t *size) {
  return workspace_size(handle, HOST_CONV_WEIGHTS,
                        "cudnnGetConvolutionBackwardFilterWorkspaceSize",
                        __builtin_return_address(0), x, dw, conv, dy, (int)algo,
                        size);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *out) {
  return results(handle, HOST_CONV_DATA, 0, dx, w, conv, dy, (data_t){0},
                 requested, returned, out);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *out) {
  return results(handle, HOST_CONV_WEIGHTS, 0, x, dw, conv, dy, (data_t){0},
                 requested, returned, out);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *out) {
  return results(handle, HOST_CONV_DATA, 1, dx, w, conv, dy, (data_t){0},
                 requested, returned, out);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
    const cudnnTensorDescriptor_t dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *out) {
  return results(handle, HOST_CONV_WEIGHTS, 1, x, dw, conv, dy, (data_t){0},
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
  return results(handle, HOST_CONV_DATA, 2, dx, w, conv, dy,
                 (data_t){dx_data, w_data, dy_data}, requested, returned, out);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const void *x_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw,
    void *dw_data, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *out, void *workspace, size_t bytes) {
  (void)workspace;
  (void)bytes;
  return results(handle, HOST_CONV_WEIGHTS, 2, x, dw, conv, dy,
                 (data_t){x_data, dw_data, dy_data}, requested, returned, out);
}
