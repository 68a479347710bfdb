// SPDX-License-Identifier: Apache-2.0
// Divisive normalisation over neighbours in space, one channel at a time.
//
// y = x * s^-beta with s = k + alpha / n^dimensions * (sum of (x - m)^2 over n
// x n (x n) points around). m is the program's mean at the point itself, as on
// a GPU (measured by the tests of pantheongpu/pantheonsim), or 0.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"

typedef struct {
  struct cudnnLRNStruct how;
  bool backward;
  host_view_t x, dy, out, means,
      d_means; // without data: not given by the program
  double alpha, beta;
} job_t;

// Sums of `values` over [-before, after] around each point of an extent whose
// neighbours are `step` apart.
static void sum_along(double *values, int64_t count, int64_t extent,
                      int64_t step, int64_t before, int64_t after,
                      double *room) {
  for (int64_t first = 0; first < count; first++) {
    if (first / step % extent)
      continue; // not the first element of its line
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

// Sums over all dimensions of space. With `adjoint`, over the points that have
// this one among their neighbours.
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

// Values of one channel's plane, `plane` doubles each.
typedef struct {
  int64_t plane;
  double weight; // alpha / n^dimensions
  double *x, *s, *m, *around,
      *count; // around, count: sum and number of the neighbours
  double *dy, *dm, *sums, *room;
} plane_t;

static void state(const job_t *job, const plane_t *p) {
  for (int64_t i = 0; i < p->plane; i++) {
    p->s[i] = p->x[i] * p->x[i];
    p->around[i] = p->x[i];
    p->count[i] = 1;
  }
  sum_around(job, false, p->plane, p->s, p->room);
  sum_around(job, false, p->plane, p->around, p->room);
  sum_around(job, false, p->plane, p->count, p->room);
  for (int64_t i = 0; i < p->plane; i++) {
    double m = p->m[i];
    double squares = p->s[i] - 2 * m * p->around[i] + p->count[i] * m * m;
    p->s[i] = job->how.k + p->weight * squares;
  }
}

// With g = 2 alpha beta / n^d * dy x s^(-beta - 1) of each point,
// dx = dy * s^-beta - x * (sum of g) + (sum of g m), and
// dm = g * (sum of x around - count * m).
static void differentiate(const job_t *job, const plane_t *p) {
  double factor = 2 * p->weight * job->how.beta;
  for (int64_t i = 0; i < p->plane; i++) {
    double g = factor * p->dy[i] * p->x[i] * pow(p->s[i], -job->how.beta - 1);
    p->dm[i] = g * (p->around[i] - p->count[i] * p->m[i]);
    p->sums[i] = g;
    p->around[i] = g * p->m[i];
  }
  sum_around(job, true, p->plane, p->sums, p->room);
  sum_around(job, true, p->plane, p->around, p->room);
  for (int64_t i = 0; i < p->plane; i++)
    p->dy[i] = p->dy[i] * pow(p->s[i], -job->how.beta) - p->x[i] * p->sums[i] +
               p->around[i];
}

static bool run(void *argument) {
  const job_t *job = argument;
  const host_view_t *view = &job->x;
  int64_t first[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX];
  plane_t p = {.plane = 1, .weight = job->how.alpha};
  memcpy(box, view->dim, sizeof box);
  box[0] = box[1] = 1;
  for (int i = 2; i < view->rank; i++) {
    p.plane *= box[i];
    p.weight /= job->how.n;
  }
  double **const of[] = {&p.x,  &p.s,  &p.m,    &p.around, &p.count,
                         &p.dy, &p.dm, &p.sums, &p.room};
  enum { PLANES = sizeof of / sizeof *of };
  double *all = host_scratch_get(HOST_SCRATCH_INPUT,
                                 PLANES * (size_t)p.plane * sizeof *all);
  if (!all)
    return false;
  for (int i = 0; i < PLANES; i++)
    *of[i] = all + i * p.plane;
  memset(p.m, 0, (size_t)p.plane * sizeof *p.m);
  for (first[0] = 0; first[0] < view->dim[0]; first[0]++)
    for (first[1] = 0; first[1] < view->dim[1]; first[1]++) {
      host_view_load(view, first, box, p.x);
      if (job->means.data)
        host_view_load(&job->means, first, box, p.m);
      state(job, &p);
      if (job->backward) {
        host_view_load(&job->dy, first, box, p.dy);
        differentiate(job, &p);
      } else {
        for (int64_t i = 0; i < p.plane; i++)
          p.dy[i] = p.x[i] * pow(p.s[i], -job->how.beta);
      }
      host_view_store(&job->out, first, box, job->alpha, p.dy, job->beta);
      if (job->d_means.data)
        host_view_store(&job->d_means, first, box, job->alpha, p.dm, job->beta);
    }
  return true;
}

// A tensor with x's descriptor that may be NULL.
static cudnnStatus_t optional(const struct cudnnTensorStruct *like,
                              const void *data, host_view_t *out) {
  return data ? host_view_init(like, data, out) : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
prepare(const struct cudnnLRNStruct *lrn, cudnnDivNormMode_t mode,
        const void *alpha, const void *beta, const struct cudnnTensorStruct *x,
        const void *x_data, const void *means,
        const struct cudnnTensorStruct *out, void *out_data, job_t *job) {
  REFUSE_IF(!lrn || !alpha || !beta || !x || !out, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(mode != CUDNN_DIVNORM_PRECOMPUTED_MEANS, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank < 4 || x->rank > 5, CUDNN_STATUS_BAD_PARAM);
  *job = (job_t){.how = *lrn,
                 .alpha = host_scalar(alpha, out->type),
                 .beta = host_scalar(beta, out->type)};
  cudnnStatus_t status =
      host_view_pair(x, x_data, out, out_data, &job->x, &job->out);
  if (status)
    return status;
  REFUSE_IF(memcmp(x->stride, out->stride, (size_t)x->rank * sizeof(int)) != 0,
            CUDNN_STATUS_NOT_SUPPORTED);
  return optional(x, means, &job->means);
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
  job_t job;
  cudnnStatus_t status =
      prepare(lrn, mode, alpha, beta, x, x_data, means, dx, dx_data, &job);
  if (!status)
    status = host_view_init(x, dy, &job.dy);
  if (!status)
    status = optional(dx, d_means, &job.d_means);
  if (status)
    return status;
  job.backward = true;
  return host_work_queue(handle, run, &job, sizeof job);
}
