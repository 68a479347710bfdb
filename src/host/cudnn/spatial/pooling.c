// SPDX-License-Identifier: Apache-2.0
// Pooling forward and backward, one plane of one image and channel at a time.
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/spatial/pooling_rows.h"
#include "src/host/cudnn/model/model.h"

typedef struct {
  struct cudnnPoolingStruct how; // the spatial extents are the last of three
  bool backward;
  host_view_t x, y, dy, dx; // forward: x, y
  int64_t in[HOST_POOL_RANK], out[HOST_POOL_RANK];
  double alpha, beta;
} job_t;

// One thread's memory for one plane after the other.
typedef struct {
  const job_t *job;
  host_pool_t pool;
  bool in_place;    // x is read in place
  double *x, *dx;   // planes, unless in place
  double *y, *most; // rows
  int32_t *where;
  int64_t first[CUDNN_DIM_MAX], plane[CUDNN_DIM_MAX], row[CUDNN_DIM_MAX];
} walk_t;

// Stride of a dimension of three.
static int64_t stride_of(const host_view_t *view, int dim) {
  int at = view->rank - HOST_POOL_RANK + dim;
  return at < 2 ? 0 : view->stride[at];
}

static bool in_place(const job_t *job) {
  const host_view_t *x = &job->x;
  return !x->vector &&
         (x->type == CUDNN_DATA_FLOAT || x->type == CUDNN_DATA_DOUBLE) &&
         (stride_of(x, 2) == 1 || job->in[2] == 1);
}

static bool walk_init(walk_t *walk, const job_t *job) {
  size_t inputs = (size_t)(job->in[0] * job->in[1] * job->in[2]);
  size_t width = (size_t)job->out[2];
  *walk = (walk_t){.job = job, .in_place = in_place(job)};
  walk->pool = (host_pool_t){.how = &job->how};
  memcpy(walk->pool.in, job->in, sizeof job->in);
  memcpy(walk->pool.out, job->out, sizeof job->out);
  if (!walk->in_place)
    walk->x = host_scratch_get(HOST_SCRATCH_INPUT, inputs * sizeof(double));
  if (job->backward)
    walk->dx = host_scratch_get(HOST_SCRATCH_TILE, inputs * sizeof(double));
  double *rows =
      host_scratch_get(HOST_SCRATCH_OUTPUT, 4 * width * sizeof(double));
  if (!rows || (!walk->in_place && !walk->x) || (job->backward && !walk->dx))
    return false;
  walk->y = rows;
  walk->most = rows + width;
  walk->where = (int32_t *)(rows + 2 * width);
  host_pool_columns(&walk->pool, rows + 3 * width);
  walk->pool.columns = rows + 3 * width;
  walk->pool.is_float = walk->in_place && job->x.type == CUDNN_DATA_FLOAT;
  walk->pool.deep =
      walk->in_place ? stride_of(&job->x, 0) : job->in[1] * job->in[2];
  walk->pool.down = walk->in_place ? stride_of(&job->x, 1) : job->in[2];
  for (int i = 0; i < CUDNN_DIM_MAX; i++) {
    walk->plane[i] = i < 2 || i >= job->x.rank ? 1 : job->x.dim[i];
    walk->row[i] = i == job->x.rank - 1 ? job->out[2] : 1;
  }
  return true;
}

// Reads x's plane of the image and channel in `first`.
static void x_get(walk_t *walk) {
  const host_view_t *x = &walk->job->x;
  if (!walk->in_place) {
    host_view_load(x, walk->first, walk->plane, walk->x);
    walk->pool.x = walk->x;
    return;
  }
  walk->pool.x = x->data + (walk->first[0] * x->stride[0] +
                            walk->first[1] * x->stride[1]) *
                               (int64_t)host_type_bytes(x->type);
}

// Computes row `at` of y, or of dy, of the same plane.
static void row_run(walk_t *walk, const int64_t at[2]) {
  const job_t *job = walk->job;
  int64_t first[CUDNN_DIM_MAX] = {walk->first[0], walk->first[1]};
  for (int dim = 0; dim < 2; dim++)
    if (job->x.rank - HOST_POOL_RANK + dim >= 2)
      first[job->x.rank - HOST_POOL_RANK + dim] = at[dim];
  if (job->backward) {
    host_view_load(&job->dy, first, walk->row, walk->y);
    host_pool_backward(&walk->pool, at, walk->y, walk->most, walk->where,
                       walk->dx);
  } else {
    host_pool_forward(&walk->pool, at, walk->most, walk->y);
    host_view_store(&job->y, first, walk->row, job->alpha, walk->y, job->beta);
  }
}

static void plane_run(walk_t *walk) {
  const job_t *job = walk->job;
  int64_t at[2];
  if (!job->backward || !host_pool_averages(&job->how))
    x_get(walk);
  if (job->backward)
    memset(walk->dx, 0,
           (size_t)(job->in[0] * job->in[1] * job->in[2]) * sizeof *walk->dx);
  for (at[0] = 0; at[0] < job->out[0]; at[0]++)
    for (at[1] = 0; at[1] < job->out[1]; at[1]++)
      row_run(walk, at);
  if (job->backward)
    host_view_store(&job->dx, walk->first, walk->plane, job->alpha, walk->dx,
                    job->beta);
}

static bool run(void *argument) {
  const job_t *job = argument;
  walk_t walk;
  if (!walk_init(&walk, job))
    return false;
  for (walk.first[0] = 0; walk.first[0] < job->x.dim[0]; walk.first[0]++)
    for (walk.first[1] = 0; walk.first[1] < job->x.dim[1]; walk.first[1]++)
      plane_run(&walk);
  return true;
}

// The checks of descriptor, x and y for both directions.
static cudnnStatus_t prepare(const struct cudnnPoolingStruct *pooling,
                             const struct cudnnTensorStruct *x,
                             const struct cudnnTensorStruct *y, job_t *job) {
  REFUSE_IF(!pooling || !x || !y, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank != pooling->rank + 2 || y->rank != x->rank,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->type != y->type, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(pooling->rank > HOST_POOL_RANK, CUDNN_STATUS_NOT_SUPPORTED);
  for (int i = 0; i < pooling->rank; i++)
    // Otherwise a window could contain only padding.
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
    status = HOST_MODEL_CHECK(cudnnPoolingForward, x, y);
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
  status = HOST_MODEL_CHECK(cudnnPoolingBackward, y, dy, x, dx);
  if (!status)
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
