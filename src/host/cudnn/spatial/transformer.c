// SPDX-License-Identifier: Apache-2.0
// Spatial transformers: grids of coordinates, and bilinear samples at them.
//
// A grid is N x H x W x 2, dense, with (x, y) from -1 to 1 between the centres
// of the first and the last element. Values outside count as zero.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/host.h"

LIFE(SpatialTransformer, transformer, .rank = 0)

// Extents are checked where they are used.
cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t transformer, cudnnSamplerType_t sampler,
    cudnnDataType_t type, const int rank, const int dim[]) {
  REFUSE_IF(!transformer || !dim, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(type == CUDNN_DATA_INT8, CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(sampler != CUDNN_SAMPLER_BILINEAR, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(type, CUDNN_DATA_FLOAT, CUDNN_DATA_HALF),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_BAD_PARAM);
  transformer->type = type;
  transformer->rank = rank;
  for (int i = 0; i < rank; i++)
    transformer->dim[i] = dim[i];
  return CUDNN_STATUS_SUCCESS;
}

// The coordinate of element i of n.
static double coordinate(int64_t i, int64_t n) {
  return n > 1 ? 2.0 * (double)i / (double)(n - 1) - 1 : 0;
}

typedef struct {
  bool backward;
  cudnnDataType_t type;
  int64_t images, height, width;
  char *theta, *grid; // N x 2 x 3; N x H x W x 2
} grid_t;

static bool run_grid(void *argument) {
  const grid_t *job = argument;
  int64_t unit = (int64_t)host_type_bytes(job->type);
  for (int64_t n = 0; n < job->images; n++) {
    double theta[6], sums[6] = {0};
    char *grid = job->grid + n * job->height * job->width * 2 * unit;
    if (!job->backward)
      host_elements_load(job->type, job->theta + n * 6 * unit, 1, 6, theta);
    for (int64_t h = 0; h < job->height; h++)
      for (int64_t w = 0; w < job->width; w++, grid += 2 * unit) {
        const double p[3] = {coordinate(w, job->width),
                             coordinate(h, job->height), 1};
        double at[2] = {0};
        if (job->backward)
          host_elements_load(job->type, grid, 1, 2, at);
        for (int i = 0; i < 6; i++)
          if (job->backward)
            sums[i] += at[i / 3] * p[i % 3];
          else
            at[i / 3] += theta[i] * p[i % 3];
        if (!job->backward)
          host_elements_store(job->type, grid, 1, 2, 1, at, 0);
      }
    if (job->backward)
      host_elements_store(job->type, job->theta + n * 6 * unit, 1, 6, 1, sums,
                          0);
  }
  return true;
}

static cudnnStatus_t
queue_grid(cudnnHandle_t handle,
           const struct cudnnSpatialTransformerStruct *transformer,
           bool backward, const void *theta, const void *grid) {
  REFUSE_IF(!handle || !transformer || !theta || !grid, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(transformer->rank != 4, CUDNN_STATUS_NOT_SUPPORTED);
  for (int i = 0; i < 4; i++)
    REFUSE_IF(transformer->dim[i] < 1, CUDNN_STATUS_BAD_PARAM);
  grid_t job = {.backward = backward,
                .type = transformer->type,
                .images = transformer->dim[0],
                .height = transformer->dim[2],
                .width = transformer->dim[3]};
  size_t unit = host_type_bytes(job.type), images = (size_t)job.images;
  job.theta = host_memory_resolve(theta, images * 6 * unit);
  job.grid = host_memory_resolve(grid, images * (size_t)job.height *
                                           (size_t)job.width * 2 * unit);
  REFUSE_IF(!job.theta || !job.grid, CUDNN_STATUS_EXECUTION_FAILED);
  return host_work_queue(handle, run_grid, &job, sizeof job);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorForward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t transformer,
    const void *theta, void *grid) {
  return queue_grid(handle, transformer, false, theta, grid);
}

cudnnStatus_t cudnnSpatialTfGridGeneratorBackward(
    cudnnHandle_t handle, const cudnnSpatialTransformerDescriptor_t transformer,
    const void *dgrid, void *dtheta) {
  return queue_grid(handle, transformer, true, dtheta, dgrid);
}

typedef struct {
  bool backward;
  host_view_t x, y, dx; // y: dy backward
  char *grid, *dgrid;
  double alpha, beta, alpha_grid, beta_grid;
} sample_t;

// One point of the grid, and the four elements around it, (top, left) first.
typedef struct {
  int64_t top, left;
  double down, right; // distance from (top, left), 0 .. 1
} point_t;

static point_t point_of(const sample_t *job, const double at[2]) {
  double x = (at[0] + 1) * (double)(job->x.dim[3] - 1) / 2;
  double y = (at[1] + 1) * (double)(job->x.dim[2] - 1) / 2;
  // limits distant points, to avoid overflow
  x = fmin(fmax(x, -2), (double)job->x.dim[3] + 1);
  y = fmin(fmax(y, -2), (double)job->x.dim[2] + 1);
  point_t p = {(int64_t)floor(y), (int64_t)floor(x), y - floor(y),
               x - floor(x)};
  return p;
}

// One channel of one image; dat adds up the gradient of the coordinates.
static void channel(const sample_t *job, const double *points, const double *x,
                    double *y, double *dx, double *dat) {
  int64_t height = job->x.dim[2], width = job->x.dim[3];
  int64_t count = job->y.dim[2] * job->y.dim[3];
  for (int64_t i = 0; i < count; i++) {
    point_t p = point_of(job, points + 2 * i);
    double sum = 0;
    for (int corner = 0; corner < 4; corner++) {
      int below = corner / 2, beside = corner % 2;
      int64_t h = p.top + below, w = p.left + beside;
      if (h < 0 || h >= height || w < 0 || w >= width)
        continue;
      double along_h = below ? p.down : 1 - p.down;
      double along_w = beside ? p.right : 1 - p.right;
      double value = x[h * width + w];
      sum += along_h * along_w * value;
      if (!job->backward)
        continue;
      dx[h * width + w] += along_h * along_w * y[i];
      dat[2 * i] +=
          y[i] * value * along_h * (beside ? 1 : -1) * (double)(width - 1) / 2;
      dat[2 * i + 1] +=
          y[i] * value * along_w * (below ? 1 : -1) * (double)(height - 1) / 2;
    }
    if (!job->backward)
      y[i] = sum;
  }
}

static bool run_sample(void *argument) {
  const sample_t *job = argument;
  int64_t inputs = job->x.dim[2] * job->x.dim[3];
  int64_t outputs = job->y.dim[2] * job->y.dim[3];
  int64_t unit = (int64_t)host_type_bytes(job->x.type);
  size_t size = sizeof(double);
  double *x = host_scratch_get(HOST_SCRATCH_INPUT, (size_t)inputs * size);
  double *y = host_scratch_get(HOST_SCRATCH_OUTPUT, (size_t)outputs * size);
  double *dx = host_scratch_get(HOST_SCRATCH_REORDERED, (size_t)inputs * size);
  double *points =
      host_scratch_get(HOST_SCRATCH_TILE, 4 * (size_t)outputs * size);
  if (!x || !y || !dx || !points)
    return false;
  double *dat = points + 2 * outputs;
  const int64_t x_box[] = {1, 1, job->x.dim[2], job->x.dim[3]};
  const int64_t y_box[] = {1, 1, job->y.dim[2], job->y.dim[3]};
  for (int64_t n = 0; n < job->x.dim[0]; n++) {
    int64_t offset = n * outputs * 2 * unit;
    host_elements_load(job->x.type, job->grid + offset, 1, 2 * outputs, points);
    memset(dat, 0, 2 * (size_t)outputs * size);
    for (int64_t c = 0; c < job->x.dim[1]; c++) {
      const int64_t first[] = {n, c, 0, 0};
      host_view_load(&job->x, first, x_box, x);
      if (job->backward) {
        host_view_load(&job->y, first, y_box, y);
        memset(dx, 0, (size_t)inputs * size);
      }
      channel(job, points, x, y, dx, dat);
      if (job->backward)
        host_view_store(&job->dx, first, x_box, job->alpha, dx, job->beta);
      else
        host_view_store(&job->y, first, y_box, job->alpha, y, job->beta);
    }
    if (job->backward)
      host_elements_store(job->x.type, job->dgrid + offset, 1, 2 * outputs,
                          job->alpha_grid, dat, job->beta_grid);
  }
  return true;
}

static cudnnStatus_t
prepare(const struct cudnnSpatialTransformerStruct *transformer,
        const struct cudnnTensorStruct *x, const void *x_data,
        const struct cudnnTensorStruct *y, const void *y_data, const void *grid,
        sample_t *job) {
  REFUSE_IF(!transformer || !x || !y || !grid, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->rank != 4 || y->rank != 4 || transformer->rank != 4,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF(x->type != y->type || x->type != transformer->type,
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < 4; i++)
    REFUSE_IF(y->dim[i] != transformer->dim[i] ||
                  (i < 2 && x->dim[i] != y->dim[i]),
              CUDNN_STATUS_BAD_PARAM);
  *job = (sample_t){.alpha = 0};
  job->grid = host_memory_resolve(grid, (size_t)y->dim[0] * (size_t)y->dim[2] *
                                            (size_t)y->dim[3] * 2 *
                                            host_type_bytes(y->type));
  REFUSE_IF(!job->grid, CUDNN_STATUS_EXECUTION_FAILED);
  cudnnStatus_t status = host_view_init(x, x_data, &job->x);
  return status ? status : host_view_init(y, y_data, &job->y);
}

cudnnStatus_t cudnnSpatialTfSamplerForward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t transformer,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *grid, const void *beta, cudnnTensorDescriptor_t y,
    void *y_data) {
  REFUSE_IF(!handle || !alpha || !beta, CUDNN_STATUS_BAD_PARAM);
  sample_t job;
  cudnnStatus_t status = prepare(transformer, x, x_data, y, y_data, grid, &job);
  if (status)
    return status;
  job.alpha = host_scalar(alpha, y->type);
  job.beta = host_scalar(beta, y->type);
  return host_work_queue(handle, run_sample, &job, sizeof job);
}

cudnnStatus_t cudnnSpatialTfSamplerBackward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t transformer,
    const void *alpha, const cudnnTensorDescriptor_t x, const void *x_data,
    const void *beta, const cudnnTensorDescriptor_t dx, void *dx_data,
    const void *alpha_grid, const cudnnTensorDescriptor_t dy,
    const void *dy_data, const void *grid, const void *beta_grid, void *dgrid) {
  REFUSE_IF(!handle || !alpha || !beta || !alpha_grid || !beta_grid || !dx ||
                !dgrid,
            CUDNN_STATUS_BAD_PARAM);
  sample_t job;
  cudnnStatus_t status =
      prepare(transformer, x, x_data, dy, dy_data, grid, &job);
  if (status)
    return status;
  REFUSE_IF(dx->type != x->type || dx->rank != x->rank, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < x->rank; i++)
    REFUSE_IF(dx->dim[i] != x->dim[i], CUDNN_STATUS_BAD_PARAM);
  status = host_view_init(dx, dx_data, &job.dx);
  if (status)
    return status;
  job.backward = true;
  job.dgrid = host_memory_resolve(
      dgrid, (size_t)dy->dim[0] * (size_t)dy->dim[2] * (size_t)dy->dim[3] * 2 *
                 host_type_bytes(dy->type));
  REFUSE_IF(!job.dgrid, CUDNN_STATUS_EXECUTION_FAILED);
  job.alpha = host_scalar(alpha, x->type);
  job.beta = host_scalar(beta, x->type);
  job.alpha_grid = host_scalar(alpha_grid, x->type);
  job.beta_grid = host_scalar(beta_grid, x->type);
  return host_work_queue(handle, run_sample, &job, sizeof job);
}
