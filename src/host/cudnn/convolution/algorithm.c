// SPDX-License-Identifier: Apache-2.0
// The algorithms of a kind are computed the same way, and use no workspace,
// even if the model of a GPU asks for one; each is offered where cuDNN offers
// it.
#include "src/host/cudnn/convolution/algorithm.h"

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
static const algo_t of_forward[] = {
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM},
    {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_GEMM},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
     CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_FFT},
    {CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING,
     CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING},
    {CUDNN_CONVOLUTION_FWD_ALGO_DIRECT, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT}};
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
_Static_assert(sizeof of_forward / sizeof *of_forward ==
                   (size_t)CUDNN_CONVOLUTION_FWD_ALGO_COUNT,
               "every algorithm is listed");
_Static_assert(sizeof of_data / sizeof *of_data ==
                   (size_t)CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT,
               "every algorithm is listed");
_Static_assert(sizeof of_filter / sizeof *of_filter ==
                   (size_t)CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT,
               "every algorithm is listed");
// One function fills all kinds of results.
_Static_assert(sizeof(cudnnConvolutionBwdDataAlgoPerf_t) ==
                       sizeof(cudnnConvolutionFwdAlgoPerf_t) &&
                   sizeof(cudnnConvolutionBwdFilterAlgoPerf_t) ==
                       sizeof(cudnnConvolutionFwdAlgoPerf_t),
               "results differ in the type of their first member only");

static const struct {
  const algo_t *list;
  int count;
} algos[] = {
    [HOST_CONV_FORWARD] = {of_forward, CUDNN_CONVOLUTION_FWD_ALGO_COUNT},
    [HOST_CONV_DATA] = {of_data, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT},
    [HOST_CONV_WEIGHTS] = {of_filter, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT}};

// Integers have no gradients.
static bool exists(host_conv_kind_t kind, const host_conv_t *problem) {
  return kind == HOST_CONV_FORWARD || (problem->x_type != CUDNN_DATA_INT8 &&
                                       problem->x_type != CUDNN_DATA_UINT8);
}

// NULL if cuDNN has no algorithm of that number.
static const algo_t *find(host_conv_kind_t kind, int algo) {
  for (int i = 0; i < algos[kind].count; i++)
    if (algos[kind].list[i].algo == algo)
      return &algos[kind].list[i];
  return NULL;
}

static bool allows(host_conv_kind_t kind, const host_conv_t *problem,
                   const algo_t *algo) {
  return host_problem_allows(kind, problem, algo->algo,
                             (cudnnConvolutionFwdAlgo_t)algo->like);
}

cudnnStatus_t host_algorithm_check(host_conv_kind_t kind, const char *function,
                                   const void *asker,
                                   const host_conv_t *problem, int algo,
                                   size_t workspace) {
  REFUSE_IF(!exists(kind, problem), CUDNN_STATUS_NOT_SUPPORTED);
  const algo_t *found = find(kind, algo);
  REFUSE_IF(!found, CUDNN_STATUS_BAD_PARAM);
  return host_problem_refuses(kind, function, asker, problem, algo,
                              (cudnnConvolutionFwdAlgo_t)found->like,
                              workspace);
}

cudnnStatus_t host_algorithm_workspace(
    cudnnHandle_t handle, host_conv_kind_t kind, const char *function,
    const void *asker, const struct cudnnTensorStruct *x,
    const struct cudnnFilterStruct *w,
    const struct cudnnConvolutionStruct *conv,
    const struct cudnnTensorStruct *y, int algo, size_t *size) {
  REFUSE_IF(!handle || !size, CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (!status)
    status =
        host_algorithm_check(kind, function, asker, &problem, algo, SIZE_MAX);
  if (!status)
    *size = problem.offer[kind].workspace;
  return status;
}

cudnnStatus_t host_algorithm_count(cudnnHandle_t handle, host_conv_kind_t kind,
                                   int *count) {
  REFUSE_IF(!handle || !count, CUDNN_STATUS_BAD_PARAM);
  *count = algos[kind].count;
  return CUDNN_STATUS_SUCCESS;
}

// Algorithms that work come first. `ms` is the time of each, or -1.
static void fill(host_conv_kind_t kind, const host_conv_t *problem,
                 cudnnMathType_t math, float ms, int requested, int *out_count,
                 void *out) {
  const algo_t *list = algos[kind].list;
  int at = 0;
  for (int works = 1; works >= 0; works--)
    for (int i = 0; i < algos[kind].count && at < requested; i++) {
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

static cudnnStatus_t measure(cudnnHandle_t handle, host_conv_kind_t kind,
                             host_conv_t *problem, float *out_ms) {
  REFUSE_IF(cudaStreamSynchronize(handle->stream) != cudaSuccess,
            CUDNN_STATUS_EXECUTION_FAILED);
  problem->alpha = 1;
  double start = milliseconds();
  REFUSE_IF(!host_conv_any(kind, problem),
            CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  *out_ms = (float)(milliseconds() - start);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t measure_elsewhere(cudnnHandle_t handle,
                                       host_conv_kind_t kind,
                                       const struct cudnnTensorStruct *x,
                                       const struct cudnnFilterStruct *w,
                                       const struct cudnnTensorStruct *y,
                                       host_conv_t *problem, float *out_ms) {
  size_t x_bytes, w_bytes, y_bytes;
  cudnnGetTensorSizeInBytes((cudnnTensorDescriptor_t)x, &x_bytes);
  cudnnGetFilterSizeInBytes((cudnnFilterDescriptor_t)w, &w_bytes);
  cudnnGetTensorSizeInBytes((cudnnTensorDescriptor_t)y, &y_bytes);
  void *xs = calloc(1, x_bytes), *ws = calloc(1, w_bytes),
       *ys = calloc(1, y_bytes);
  problem->x = xs;
  problem->w = ws;
  problem->y = ys;
  cudnnStatus_t status =
      xs && ws && ys ? measure(handle, kind, problem, out_ms)
                     : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  free(xs);
  free(ws);
  free(ys);
  return status;
}

cudnnStatus_t host_algorithm_list(cudnnHandle_t handle, host_conv_kind_t kind,
                                  host_algorithm_time_t time,
                                  const struct cudnnTensorStruct *x,
                                  const struct cudnnFilterStruct *w,
                                  const struct cudnnConvolutionStruct *conv,
                                  const struct cudnnTensorStruct *y,
                                  host_algorithm_data_t data, int requested,
                                  int *returned, void *out) {
  REFUSE_IF(!handle || !returned || !out || requested < 1,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(time == HOST_TIME_THERE && (!data.x || !data.w || !data.y),
            CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status =
      host_problem_init(x, w, conv, y, NULL, CUDNN_STATUS_BAD_PARAM, &problem);
  if (status)
    return status;
  REFUSE_IF(!exists(kind, &problem), CUDNN_STATUS_NOT_SUPPORTED);
  float ms = -1;
  if (time == HOST_TIME_ELSEWHERE) {
    status = measure_elsewhere(handle, kind, x, w, y, &problem, &ms);
  } else if (time == HOST_TIME_THERE) {
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
