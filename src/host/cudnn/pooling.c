// SPDX-License-Identifier: Apache-2.0
// Pooling forward and backward, one plane of one image and channel at a time.
//
// The elements of a window are taken in the order depth, row, column; the
// first of equal maxima receives the gradient. What a window gives does not
// depend on the extents around it.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/scratch.h"
#include "src/host/cudnn/view.h"
#include "src/host/cudnn/work.h"

enum { HOST_POOL_RANK = 3 };

typedef struct {
  struct cudnnPoolingStruct how; /* spatial extents moved to the end of three */
  bool backward;
  host_view_t x, y, dy, dx; /* forward: x, y */
  int64_t in[HOST_POOL_RANK], out[HOST_POOL_RANK];
  double alpha, beta;
} job_t;

/* The part of a window that lies inside x. */
typedef struct {
  int64_t low[HOST_POOL_RANK], high[HOST_POOL_RANK];
  double count; /* what an average divides by */
} window_t;

static window_t window_at(const job_t *job, const int64_t at[HOST_POOL_RANK]) {
  const struct cudnnPoolingStruct *p = &job->how;
  window_t w = {.count = 1};
  for (int i = 0; i < HOST_POOL_RANK; i++) {
    int64_t low = at[i] * p->stride[i] - p->pad[i], high = low + p->window[i];
    w.low[i] = low < 0 ? 0 : low;
    w.high[i] = high > job->in[i] ? job->in[i] : high;
    bool all = p->mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
    w.count *= (double)(all ? p->window[i] : w.high[i] - w.low[i]);
  }
  return w;
}

static bool averages(const job_t *job) {
  return job->how.mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ||
         job->how.mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
}

static double average(const job_t *job, const window_t *w, const double *x) {
  double sum = 0;
  for (int64_t d = w->low[0]; d < w->high[0]; d++)
    for (int64_t h = w->low[1]; h < w->high[1]; h++)
      for (int64_t i = w->low[2]; i < w->high[2]; i++)
        sum += x[(d * job->in[1] + h) * job->in[2] + i];
  return sum / w->count;
}

/* The index of the maximum: the first NaN where NaN counts, else the first of
 * the largest, -1 where there is nothing but NaN. */
static int64_t maximum(const job_t *job, const window_t *w, const double *x) {
  int64_t best = -1;
  for (int64_t d = w->low[0]; d < w->high[0]; d++)
    for (int64_t h = w->low[1]; h < w->high[1]; h++)
      for (int64_t i = w->low[2]; i < w->high[2]; i++) {
        int64_t at = (d * job->in[1] + h) * job->in[2] + i;
        if (isnan(x[at])) {
          if (job->how.nan == CUDNN_PROPAGATE_NAN)
            return at;
        } else if (best < 0 || x[at] > x[best]) {
          best = at;
        }
      }
  return best;
}

static void forward(const job_t *job, const double *x, double *y) {
  int64_t at[HOST_POOL_RANK];
  for (at[0] = 0; at[0] < job->out[0]; at[0]++)
    for (at[1] = 0; at[1] < job->out[1]; at[1]++)
      for (at[2] = 0; at[2] < job->out[2]; at[2]++) {
        window_t w = window_at(job, at);
        if (averages(job)) {
          *y++ = average(job, &w, x);
        } else {
          int64_t best = maximum(job, &w, x);
          *y++ = best < 0 ? -INFINITY : x[best];
        }
      }
}

static void spread(const job_t *job, const window_t *w, double gradient,
                   double *dx) {
  for (int64_t d = w->low[0]; d < w->high[0]; d++)
    for (int64_t h = w->low[1]; h < w->high[1]; h++)
      for (int64_t i = w->low[2]; i < w->high[2]; i++)
        dx[(d * job->in[1] + h) * job->in[2] + i] += gradient / w->count;
}

static void backward(const job_t *job, const double *x, const double *dy,
                     double *dx) {
  memset(dx, 0,
         (size_t)(job->in[0] * job->in[1] * job->in[2]) * sizeof(double));
  int64_t at[HOST_POOL_RANK];
  for (at[0] = 0; at[0] < job->out[0]; at[0]++)
    for (at[1] = 0; at[1] < job->out[1]; at[1]++)
      for (at[2] = 0; at[2] < job->out[2]; at[2]++, dy++) {
        window_t w = window_at(job, at);
        if (averages(job)) {
          spread(job, &w, *dy, dx);
        } else {
          int64_t best = maximum(job, &w, x);
          if (best >= 0)
            dx[best] += *dy;
        }
      }
}

static bool run(void *argument) {
  const job_t *job = argument;
  const host_view_t *x = job->backward ? &job->dx : &job->x;
  const host_view_t *y = job->backward ? &job->dy : &job->y;
  size_t inputs = (size_t)(job->in[0] * job->in[1] * job->in[2]);
  size_t outputs = (size_t)(job->out[0] * job->out[1] * job->out[2]);
  double *xs = host_scratch_get(HOST_SCRATCH_INPUT, inputs * sizeof *xs);
  double *ys = host_scratch_get(HOST_SCRATCH_OUTPUT, outputs * sizeof *ys);
  double *sums = job->backward
                     ? host_scratch_get(HOST_SCRATCH_TILE, inputs * sizeof *xs)
                     : xs;
  if (!xs || !ys || !sums)
    return false;
  int64_t first[CUDNN_DIM_MAX] = {0}, x_box[CUDNN_DIM_MAX] = {1, 1},
          y_box[CUDNN_DIM_MAX] = {1, 1};
  for (int i = 2; i < x->rank; i++) {
    x_box[i] = x->dim[i];
    y_box[i] = y->dim[i];
  }
  for (first[0] = 0; first[0] < x->dim[0]; first[0]++)
    for (first[1] = 0; first[1] < x->dim[1]; first[1]++) {
      if (!job->backward || !averages(job))
        host_view_load(&job->x, first, x_box, xs);
      if (job->backward) {
        host_view_load(&job->dy, first, y_box, ys);
        backward(job, xs, ys, sums);
        host_view_store(&job->dx, first, x_box, job->alpha, sums, job->beta);
      } else {
        forward(job, xs, ys);
        host_view_store(&job->y, first, y_box, job->alpha, ys, job->beta);
      }
    }
  return true;
}

/* What both directions demand of descriptor, x and y. */
static cudnnStatus_t prepare(const struct cudnnPoolingStruct *pooling,
                             const struct cudnnTensorStruct *x,
                             const struct cudnnTensorStruct *y, job_t *job) {
  REFUSE_IF(!pooling || !x || !y, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank != pooling->rank + 2 || y->rank != x->rank,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->type != y->type, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(pooling->rank > HOST_POOL_RANK, CUDNN_STATUS_NOT_SUPPORTED);
  for (int i = 0; i < pooling->rank; i++)
    /* Elsewhere a window might hold nothing but padding. */
    REFUSE_IF(pooling->pad[i] < 0 || pooling->pad[i] >= pooling->window[i],
              CUDNN_STATUS_NOT_SUPPORTED);
  int dim[CUDNN_DIM_MAX];
  REFUSE_IF(cudnnGetPoolingNdForwardOutputDim((cudnnPoolingDescriptor_t)pooling,
                                              (cudnnTensorDescriptor_t)x,
                                              x->rank, dim),
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < x->rank; i++)
    REFUSE_IF(dim[i] != y->dim[i], CUDNN_STATUS_BAD_PARAM);
  *job = (job_t){.how = *pooling};
  int skip = HOST_POOL_RANK - pooling->rank;
  for (int i = 0; i < HOST_POOL_RANK; i++) {
    bool there = i >= skip;
    job->how.window[i] = there ? pooling->window[i - skip] : 1;
    job->how.stride[i] = there ? pooling->stride[i - skip] : 1;
    job->how.pad[i] = there ? pooling->pad[i - skip] : 0;
    job->in[i] = there ? x->dim[2 + i - skip] : 1;
    job->out[i] = there ? y->dim[2 + i - skip] : 1;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnPoolingForward(
    cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *beta, const cudnnTensorDescriptor_t y, void *y_data) {
  REFUSE_IF(!handle || !alpha || !beta || !x_data || !y_data,
            CUDNN_STATUS_BAD_PARAM);
  job_t job;
  cudnnStatus_t status = prepare(pooling, x, y, &job);
  if (!status)
    status = host_view_init_any(x, x_data, &job.x);
  if (!status)
    status = host_view_init_any(y, y_data, &job.y);
  if (status)
    return status;
  job.alpha = host_scalar(alpha, y->type);
  job.beta = host_scalar(beta, y->type);
  return host_work_queue(handle, run, &job, sizeof job);
}

cudnnStatus_t cudnnPoolingBackward(
    cudnnHandle_t handle, const cudnnPoolingDescriptor_t pooling,
    const void *alpha, const cudnnTensorDescriptor_t y, const void *y_data,
    const cudnnTensorDescriptor_t dy, const void *dy_data,
    const cudnnTensorDescriptor_t x, const void *x_data, const void *beta,
    const cudnnTensorDescriptor_t dx, void *dx_data) {
  REFUSE_IF(!handle || !alpha || !beta, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!y_data || !dy_data || !x_data || !dx_data, CUDNN_STATUS_BAD_PARAM);
  job_t job, twin;
  cudnnStatus_t status = prepare(pooling, x, y, &twin);
  if (!status)
    status = prepare(pooling, dx, dy, &job);
  if (status)
    return status;
  REFUSE_IF(x->type != dx->type || x->type == CUDNN_DATA_INT8,
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < x->rank; i++)
    REFUSE_IF(x->dim[i] != dx->dim[i], CUDNN_STATUS_BAD_PARAM);
  status = host_view_init(x, x_data, &job.x);
  if (!status)
    status = host_view_init(y, y_data, &job.y);
  if (!status)
    status = host_view_init(dy, dy_data, &job.dy);
  if (!status)
    status = host_view_init(dx, dx_data, &job.dx);
  if (status)
    return status;
  job.backward = true;
  job.alpha = host_scalar(alpha, dx->type);
  job.beta = host_scalar(beta, dx->type);
  return host_work_queue(handle, run, &job, sizeof job);
}
