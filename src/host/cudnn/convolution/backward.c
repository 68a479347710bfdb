// SPDX-License-Identifier: Apache-2.0
// Convolution backward: data, filter, bias.
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/convolution/algorithm.h"
#include "src/host/cudnn/convolution/problem.h"
#include "src/host/cudnn/model/model.h"

static bool run_data(void *job) {
  return host_conv_any(HOST_CONV_DATA, job);
}

static bool run_weights(void *job) {
  return host_conv_any(HOST_CONV_WEIGHTS, job);
}

// x, w and y are the tensors or their gradients.
static cudnnStatus_t
queue(cudnnHandle_t handle, host_conv_kind_t kind, const char *function,
      int algo, size_t workspace, const struct cudnnConvolutionStruct *conv,
      const struct cudnnTensorStruct *x, const void *x_data,
      const struct cudnnFilterStruct *w, const void *w_data,
      const struct cudnnTensorStruct *y, const void *y_data, const void *alpha,
      const void *beta) {
  REFUSE_IF(!handle || !alpha || !beta, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!x_data || !w_data || !y_data, CUDNN_STATUS_BAD_PARAM);
  host_conv_t problem;
  cudnnStatus_t status = host_problem_init(
      x, w, conv, y, NULL, CUDNN_STATUS_NOT_SUPPORTED, &problem);
  if (!status)
    status =
        host_algorithm_check(kind, function, NULL, &problem, algo, workspace);
  if (status)
    return status;
  problem.x = host_tensor_resolve(x, x_data);
  problem.w = host_filter_resolve(w, w_data);
  problem.y = host_tensor_resolve(y, y_data);
  REFUSE_IF(!problem.x || !problem.w || !problem.y,
            CUDNN_STATUS_EXECUTION_FAILED);
  problem.alpha = host_scalar(alpha, x->type);
  problem.gamma = host_scalar(beta, x->type);
  return host_work_queue(handle,
                         kind == HOST_CONV_DATA ? run_data : run_weights,
                         &problem, sizeof problem);
}

cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t w,
    const void *w_data, const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
    void *workspace, size_t workspace_bytes, const void *beta,
    const cudnnTensorDescriptor_t dx, void *dx_data) {
  return queue(handle, HOST_CONV_DATA, "cudnnConvolutionBackwardData",
               (int)algo, workspace ? workspace_bytes : 0, conv, dx, dx_data, w,
               w_data, dy, dy_data, alpha, beta);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t x,
    const void *x_data, const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnConvolutionDescriptor_t conv,
    cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
    size_t workspace_bytes, const void *beta, const cudnnFilterDescriptor_t dw,
    void *dw_data) {
  return queue(handle, HOST_CONV_WEIGHTS, "cudnnConvolutionBackwardFilter",
               (int)algo, workspace ? workspace_bytes : 0, conv, x, x_data, dw,
               dw_data, dy, dy_data, alpha, beta);
}

typedef struct {
  host_view_t dy, db;
  double alpha, beta;
} bias_t;

static bool run_bias(void *argument) {
  const bias_t *job = argument;
  const host_view_t *dy = &job->dy;
  int64_t first[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX];
  memcpy(box, dy->dim, sizeof box);
  box[1] = 1;
  const int64_t one[CUDNN_DIM_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (int64_t c = 0; c < dy->dim[1]; c++) {
    first[1] = c;
    double sum = host_view_sum(dy, first, box);
    host_view_store(&job->db, first, one, job->alpha, &sum, job->beta);
  }
  return true;
}

cudnnStatus_t
cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                             const cudnnTensorDescriptor_t dy,
                             const void *dy_data, const void *beta,
                             const cudnnTensorDescriptor_t db, void *db_data) {
  REFUSE_IF(!handle || !alpha || !beta || !dy || !db, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(dy->rank < 3 || db->rank != dy->rank || db->type != dy->type,
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < db->rank; i++)
    REFUSE_IF(db->dim[i] != (i == 1 ? dy->dim[1] : 1), CUDNN_STATUS_BAD_PARAM);
  bias_t job = {.alpha = host_scalar(alpha, dy->type),
                .beta = host_scalar(beta, dy->type)};
  cudnnStatus_t status = HOST_MODEL_CHECK(cudnnConvolutionBackwardBias, dy, db);
  if (!status)
    status = host_view_init(dy, dy_data, &job.dy);
  if (!status)
    status = host_view_init(db, db_data, &job.db);
  return status ? status : host_work_queue(handle, run_bias, &job, sizeof job);
}
