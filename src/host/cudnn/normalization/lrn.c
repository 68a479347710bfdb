// SPDX-License-Identifier: Apache-2.0
// Local response normalisation across channels, one image at a time.
//
// y = x * s^-beta with s = k + alpha / n * (sum of x^2 over n channels around).
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/model/model.h"

typedef struct {
  struct cudnnLRNStruct how;
  bool backward;
  host_view_t x, dy, out;
  double alpha, beta;
} job_t;

// The existing channels of the n around c; (n - 1) / 2 of the n come before c.
static void around(const job_t *job, int64_t c, int64_t *low, int64_t *high) {
  int64_t before = (job->how.n - 1) / 2;
  *low = c - before;
  *high = *low + job->how.n;
  if (*low < 0)
    *low = 0;
  if (*high > job->x.dim[1])
    *high = job->x.dim[1];
}

// Computes s for each value.
static void scales(const job_t *job, const double *x, int64_t plane,
                   double *s) {
  for (int64_t c = 0; c < job->x.dim[1]; c++) {
    int64_t low, high;
    around(job, c, &low, &high);
    for (int64_t i = 0; i < plane; i++) {
      double sum = 0;
      for (int64_t j = low; j < high; j++)
        sum += x[j * plane + i] * x[j * plane + i];
      s[c * plane + i] = job->how.k + job->how.alpha / job->how.n * sum;
    }
  }
}

// dx_c = dy_c * s_c^-beta
//        - 2 alpha beta / n * x_c * (sum of dy_j x_j s_j^(-beta - 1)) over the
// channels j whose neighbourhood contains c.
static void backward(const job_t *job, const double *x, const double *s,
                     const double *dy, int64_t plane, double *dx) {
  double factor = 2 * job->how.alpha * job->how.beta / job->how.n;
  for (int64_t i = 0; i < plane; i++)
    for (int64_t c = 0; c < job->x.dim[1]; c++)
      dx[c * plane + i] =
          dy[c * plane + i] * pow(s[c * plane + i], -job->how.beta);
  for (int64_t j = 0; j < job->x.dim[1]; j++) {
    int64_t low, high;
    around(job, j, &low, &high);
    for (int64_t i = 0; i < plane; i++) {
      int64_t at = j * plane + i;
      double term = factor * dy[at] * x[at] * pow(s[at], -job->how.beta - 1);
      for (int64_t c = low; c < high; c++)
        dx[c * plane + i] -= term * x[c * plane + i];
    }
  }
}

static bool run(void *argument) {
  const job_t *job = argument;
  const host_view_t *view = &job->x;
  int64_t first[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX], plane = 1;
  memcpy(box, view->dim, sizeof box);
  box[0] = 1;
  for (int i = 2; i < view->rank; i++)
    plane *= box[i];
  int64_t elements = plane * box[1];
  size_t bytes = (size_t)elements * sizeof(double);
  double *x = host_scratch_get(HOST_SCRATCH_INPUT, bytes);
  double *s = host_scratch_get(HOST_SCRATCH_TILE, bytes);
  double *dy = host_scratch_get(HOST_SCRATCH_REORDERED, bytes);
  double *out = host_scratch_get(HOST_SCRATCH_OUTPUT, bytes);
  if (!x || !s || !dy || !out)
    return false;
  for (first[0] = 0; first[0] < view->dim[0]; first[0]++) {
    host_view_load(view, first, box, x);
    scales(job, x, plane, s);
    if (job->backward) {
      host_view_load(&job->dy, first, box, dy);
      backward(job, x, s, dy, plane, out);
    } else {
      for (int64_t i = 0; i < elements; i++)
        out[i] = x[i] * pow(s[i], -job->how.beta);
    }
    host_view_store(&job->out, first, box, job->alpha, out, job->beta);
  }
  return true;
}

static cudnnStatus_t
prepare(const struct cudnnLRNStruct *lrn, cudnnLRNMode_t mode,
        const void *alpha, const void *beta, const struct cudnnTensorStruct *x,
        const void *x_data, const struct cudnnTensorStruct *out, void *out_data,
        job_t *job) {
  REFUSE_IF(!lrn || !alpha || !beta || !x || !out, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode != CUDNN_LRN_CROSS_CHANNEL_DIM1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank < 3, CUDNN_STATUS_BAD_PARAM);
  *job = (job_t){.how = *lrn,
                 .alpha = host_scalar(alpha, out->type),
                 .beta = host_scalar(beta, out->type)};
  return host_view_pair(x, x_data, out, out_data, &job->x, &job->out);
}

cudnnStatus_t cudnnLRNCrossChannelForward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t lrn, cudnnLRNMode_t mode,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *beta, const cudnnTensorDescriptor_t y, void *y_data) {
  REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM);
  job_t job;
  cudnnStatus_t status =
      prepare(lrn, mode, alpha, beta, x, x_data, y, y_data, &job);
  if (!status)
    status = HOST_MODEL_CHECK(cudnnLRNCrossChannel, x, y);
  return status ? status : host_work_queue(handle, run, &job, sizeof job);
}

cudnnStatus_t cudnnLRNCrossChannelBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t lrn, cudnnLRNMode_t mode,
    const void *alpha, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t x, const void *x_data, const void *beta,
    const cudnnTensorDescriptor_t dx, void *dx_data) {
  REFUSE_IF(!handle || !y || !y_data, CUDNN_STATUS_BAD_PARAM);
  job_t job;
  cudnnStatus_t status =
      prepare(lrn, mode, alpha, beta, x, x_data, dx, dx_data, &job);
  if (!status)
    status = host_view_init(dy, dy_data, &job.dy);
  if (status)
    return status;
  REFUSE_IF(!host_view_same(&job.x, &job.dy), CUDNN_STATUS_BAD_PARAM);
  status = HOST_MODEL_CHECK(cudnnLRNCrossChannel, y, dy, x, dx);
  if (status)
    return status;
  job.backward = true;
  return host_work_queue(handle, run, &job, sizeof job);
}
