// SPDX-License-Identifier: Apache-2.0
// Divisive normalisation over neighbours in space, one channel at a time.
//
// y = x * s^-beta with s = k + alpha / n^dimensions * (sum of x^2 over n x n
// (x n) points around). Means of the program's own are refused: nothing says
// whether those of the point or those of its neighbours are taken off.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/scratch.h"
#include "src/host/cudnn/view.h"
#include "src/host/cudnn/work.h"

typedef struct {
  struct cudnnLRNStruct how;
  bool backward;
  host_view_t x, dy, out;
  double alpha, beta;
} job_t;

/* Sums of `values` over [-before, after] around each point of an extent whose
 * neighbours are `step` apart. */
static void sum_along(double *values, int64_t count, int64_t extent,
                      int64_t step, int64_t before, int64_t after,
                      double *room) {
  for (int64_t first = 0; first < count; first++) {
    if (first / step % extent)
      continue; /* not the first of its line */
    for (int64_t i = 0; i < extent; i++) {
      int64_t low = i < before ? 0 : i - before;
      int64_t high = i + after < extent ? i + after : extent - 1;
      room[i] = 0;
      for (int64_t j = low; j <= high; j++)
        room[i] += values[first + j * step];
    }
    for (int64_t i = 0; i < extent; i++)
      values[first + i * step] = room[i];
  }
}

/* Over all dimensions of space; `adjoint`: over the points that have this one
 * among their neighbours. */
static void sum_around(const job_t *job, bool adjoint, int64_t plane,
                       double *values, double *room) {
  int64_t before = (job->how.n - 1) / 2, after = job->how.n - 1 - before;
  int64_t step = 1;
  for (int i = job->x.rank - 1; i >= 2; i--) {
    sum_along(values, plane, job->x.dim[i], step, adjoint ? after : before,
              adjoint ? before : after, room);
    step *= job->x.dim[i];
  }
}

/* dx = dy * s^-beta - 2 alpha beta / n^d * x * (sum of dy x s^(-beta - 1)). */
static void differentiate(const job_t *job, double weight, int64_t plane,
                          const double *x, const double *s, double *dy,
                          double *sums, double *room) {
  for (int64_t i = 0; i < plane; i++)
    sums[i] = dy[i] * x[i] * pow(s[i], -job->how.beta - 1);
  sum_around(job, true, plane, sums, room);
  for (int64_t i = 0; i < plane; i++)
    dy[i] = dy[i] * pow(s[i], -job->how.beta) -
            2 * weight * job->how.beta * x[i] * sums[i];
}

static bool run(void *argument) {
  const job_t *job = argument;
  const host_view_t *view = &job->x;
  int64_t first[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX], plane = 1;
  double weight = job->how.alpha;
  memcpy(box, view->dim, sizeof box);
  box[0] = box[1] = 1;
  for (int i = 2; i < view->rank; i++) {
    plane *= box[i];
    weight /= job->how.n;
  }
  size_t bytes = (size_t)plane * sizeof(double);
  double *x = host_scratch_get(HOST_SCRATCH_INPUT, bytes);
  double *s = host_scratch_get(HOST_SCRATCH_TILE, bytes);
  double *dy = host_scratch_get(HOST_SCRATCH_REORDERED, bytes);
  double *sums = host_scratch_get(HOST_SCRATCH_OUTPUT, 2 * bytes);
  if (!x || !s || !dy || !sums)
    return false;
  double *room = sums + plane;
  for (first[0] = 0; first[0] < view->dim[0]; first[0]++)
    for (first[1] = 0; first[1] < view->dim[1]; first[1]++) {
      host_view_load(view, first, box, x);
      for (int64_t i = 0; i < plane; i++)
        s[i] = x[i] * x[i];
      sum_around(job, false, plane, s, room);
      for (int64_t i = 0; i < plane; i++)
        s[i] = job->how.k + weight * s[i];
      if (job->backward) {
        host_view_load(&job->dy, first, box, dy);
        differentiate(job, weight, plane, x, s, dy, sums, room);
      } else {
        for (int64_t i = 0; i < plane; i++)
          dy[i] = x[i] * pow(s[i], -job->how.beta);
      }
      host_view_store(&job->out, first, box, job->alpha, dy, job->beta);
    }
  return true;
}

static cudnnStatus_t
prepare(const struct cudnnLRNStruct *lrn, cudnnDivNormMode_t mode,
        const void *alpha, const void *beta, const struct cudnnTensorStruct *x,
        const void *x_data, const void *means,
        const struct cudnnTensorStruct *out, void *out_data, job_t *job) {
  REFUSE_IF(!lrn || !alpha || !beta || !x || !out, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode != CUDNN_DIVNORM_PRECOMPUTED_MEANS, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank < 4 || x->rank > 5, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(means, CUDNN_STATUS_NOT_SUPPORTED);
  *job = (job_t){.how = *lrn,
                 .alpha = host_scalar(alpha, out->type),
                 .beta = host_scalar(beta, out->type)};
  return host_view_pair(x, x_data, out, out_data, &job->x, &job->out);
}

cudnnStatus_t cudnnDivisiveNormalizationForward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t lrn, cudnnDivNormMode_t mode,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *means, void *temp, void *temp2, const void *beta,
    const cudnnTensorDescriptor_t y, void *y_data) {
  REFUSE_IF(!handle || !temp || !temp2, CUDNN_STATUS_BAD_PARAM);
  job_t job;
  cudnnStatus_t status =
      prepare(lrn, mode, alpha, beta, x, x_data, means, y, y_data, &job);
  return status ? status : host_work_queue(handle, run, &job, sizeof job);
}

cudnnStatus_t cudnnDivisiveNormalizationBackward(
    cudnnHandle_t handle, cudnnLRNDescriptor_t lrn, cudnnDivNormMode_t mode,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *means, const void *dy, void *temp, void *temp2,
    const void *beta, const cudnnTensorDescriptor_t dx, void *dx_data,
    void *d_means) {
  REFUSE_IF(!handle || !temp || !temp2, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(d_means, CUDNN_STATUS_NOT_SUPPORTED);
  job_t job;
  cudnnStatus_t status =
      prepare(lrn, mode, alpha, beta, x, x_data, means, dx, dx_data, &job);
  if (!status)
    status = host_view_init(x, dy, &job.dy);
  if (status)
    return status;
  job.backward = true;
  return host_work_queue(handle, run, &job, sizeof job);
}
