// SPDX-License-Identifier: Apache-2.0
// Softmax forward and backward, one image at a time.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/model/model.h"

typedef struct {
  bool log, channel, backward;
  host_view_t in, in2, out; // forward: x, -, y; backward: y, dy, dx
  double alpha, beta;
} job_t;

// `count` values, `step` apart. FAST differs from ACCURATE only in what
// overflows, and nothing does here.
static void forward(const job_t *job, double *x, int64_t count, int64_t step) {
  double most = -INFINITY, sum = 0;
  for (int64_t i = 0; i < count; i++)
    most = x[i * step] > most ? x[i * step] : most;
  for (int64_t i = 0; i < count; i++)
    sum += exp(x[i * step] - most);
  double log_sum = job->log ? log(sum) : 0;
  for (int64_t i = 0; i < count; i++)
    x[i * step] =
        job->log ? x[i * step] - most - log_sum : exp(x[i * step] - most) / sum;
}

static void backward(const job_t *job, double *y, const double *dy,
                     int64_t count, int64_t step) {
  double sum = 0;
  for (int64_t i = 0; i < count * step; i += step)
    sum += job->log ? dy[i] : dy[i] * y[i];
  for (int64_t i = 0; i < count * step; i += step)
    y[i] = job->log ? dy[i] - exp(y[i]) * sum : y[i] * (dy[i] - sum);
}

static bool run(void *argument) {
  const job_t *job = argument;
  const host_view_t *in = &job->in;
  int64_t first[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX], plane = 1;
  memcpy(box, in->dim, sizeof box);
  box[0] = 1;
  for (int i = 2; i < in->rank; i++)
    plane *= box[i];
  size_t bytes = (size_t)(plane * box[1]) * sizeof(double);
  double *values = host_scratch_get(HOST_SCRATCH_INPUT, bytes);
  double *dy = host_scratch_get(HOST_SCRATCH_OUTPUT, bytes);
  if (!values || !dy)
    return false;
  int64_t count = job->channel ? box[1] : box[1] * plane;
  int64_t columns = job->channel ? plane : 1;
  for (first[0] = 0; first[0] < in->dim[0]; first[0]++) {
    host_view_load(in, first, box, values);
    if (job->backward)
      host_view_load(&job->in2, first, box, dy);
    for (int64_t i = 0; i < columns; i++)
      if (job->backward)
        backward(job, values + i, dy + i, count, columns);
      else
        forward(job, values + i, count, columns);
    host_view_store(&job->out, first, box, job->alpha, values, job->beta);
  }
  return true;
}

static cudnnStatus_t
prepare(cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
        const void *alpha, const void *beta, const struct cudnnTensorStruct *in,
        const void *in_data, const struct cudnnTensorStruct *out,
        void *out_data, job_t *job) {
  REFUSE_IF(!alpha || !beta || !in || !out, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(algo, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_LOG),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(mode, CUDNN_SOFTMAX_MODE_INSTANCE,
                           CUDNN_SOFTMAX_MODE_CHANNEL),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(in->rank < 3, CUDNN_STATUS_BAD_PARAM);
  *job = (job_t){.log = algo == CUDNN_SOFTMAX_LOG,
                 .channel = mode == CUDNN_SOFTMAX_MODE_CHANNEL,
                 .alpha = host_scalar(alpha, out->type),
                 .beta = host_scalar(beta, out->type)};
  return host_view_pair(in, in_data, out, out_data, &job->in, &job->out);
}

cudnnStatus_t cudnnSoftmaxForward(
    cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *beta, const cudnnTensorDescriptor_t y, void *y_data) {
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  job_t job;
  cudnnStatus_t status =
      prepare(algo, mode, alpha, beta, x, x_data, y, y_data, &job);
  if (!status)
    status = HOST_MODEL_CHECK(cudnnSoftmaxForward, x, y);
  return status ? status : host_work_queue(handle, run, &job, sizeof job);
}

cudnnStatus_t cudnnSoftmaxBackward(
    cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo, cudnnSoftmaxMode_t mode,
    const void *alpha, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data, const void *beta,
    const cudnnTensorDescriptor_t dx, void *dx_data) {
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  job_t job;
  cudnnStatus_t status =
      prepare(algo, mode, alpha, beta, y, y_data, dx, dx_data, &job);
  if (!status)
    status = host_view_init(dy, dy_data, &job.in2);
  if (status)
    return status;
  REFUSE_IF(dy->type != y->type || !host_view_same(&job.in, &job.in2),
            CUDNN_STATUS_BAD_PARAM);
  status = HOST_MODEL_CHECK(cudnnSoftmaxBackward, y, dy, dx);
  if (status)
    return status;
  job.backward = true;
  return host_work_queue(handle, run, &job, sizeof job);
}
