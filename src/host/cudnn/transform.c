// SPDX-License-Identifier: Apache-2.0
// TransformTensorEx and TransformFilter: padding, folding, layouts and types;
// Im2Col.
//
// Folding takes blocks of rows and columns into channels: channel c of a block
// becomes the channels c * block + place in the block. Unfolding is the way
// back.
#include <string.h>

#include "src/host/cudnn/scratch.h"
#include "src/host/cudnn/view.h"
#include "src/host/cudnn/work.h"

typedef struct {
  struct cudnnTensorTransformStruct how;
  host_view_t in, out;
  double alpha, beta;
} job_t;

static int fold_of(const job_t *job, int i) {
  unsigned fold = job->how.fold[i - 2];
  return fold ? (int)fold : 1;
}

/* Where the value at `to` comes from; false for padding. */
static bool source(const job_t *job, const int64_t *to, int64_t *from) {
  int rank = job->in.rank;
  const int *before = job->how.before;
  int64_t block = 1;
  for (int i = 2; i < rank; i++)
    block *= fold_of(job, i);
  from[0] = to[0] - before[0];
  if (job->how.unfold) {
    int64_t place = 0;
    for (int i = 2; i < rank; i++) {
      int64_t at = to[i] - before[i], fold = fold_of(job, i);
      from[i] = at >= 0 ? at / fold : -1;
      place = place * fold + (at >= 0 ? at % fold : 0);
    }
    from[1] = to[1] - before[1];
    if (from[1] < 0)
      return false;
    from[1] = from[1] * block + place;
  } else {
    int64_t place = to[1] % block;
    from[1] = to[1] / block - before[1];
    for (int i = rank - 1; i >= 2; i--) {
      int64_t fold = fold_of(job, i);
      from[i] = to[i] * fold + place % fold - before[i];
      place /= fold;
    }
  }
  for (int i = 0; i < rank; i++)
    if (from[i] < 0 || from[i] >= job->in.dim[i])
      return false;
  return true;
}

static bool run(void *argument) {
  const job_t *job = argument;
  int64_t to[CUDNN_DIM_MAX] = {0}, from[CUDNN_DIM_MAX];
  const int64_t one[CUDNN_DIM_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
  int64_t count = host_view_elements(&job->out);
  for (int64_t i = 0; i < count; i++) {
    double value = 0;
    if (source(job, to, from))
      host_view_load(&job->in, from, one, &value);
    host_view_store(&job->out, to, one, job->alpha, &value, job->beta);
    for (int d = job->out.rank - 1; d >= 0 && ++to[d] == job->out.dim[d]; d--)
      to[d] = 0;
  }
  return true;
}

/* The extents that cudnnInitTransformDest gives. */
static cudnnStatus_t check_extents(const struct cudnnTensorTransformStruct *how,
                                   const struct cudnnTensorStruct *in,
                                   const struct cudnnTensorStruct *out) {
  struct cudnnTensorStruct dest = {.rank = 0};
  struct cudnnTensorTransformStruct plain = *how;
  plain.format = CUDNN_TENSOR_NCHW;
  size_t bytes;
  REFUSE_IF(cudnnInitTransformDest(&plain, (cudnnTensorDescriptor_t)in, &dest,
                                   &bytes),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(dest.rank != out->rank, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < dest.rank; i++)
    REFUSE_IF(dest.dim[i] != out->dim[i], CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
queue(cudnnHandle_t handle, const struct cudnnTensorTransformStruct *how,
      const void *alpha, const struct cudnnTensorStruct *in,
      const void *in_data, const void *beta,
      const struct cudnnTensorStruct *out, void *out_data) {
  REFUSE_IF(!handle || !how || !alpha || !beta || !in || !out,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(in->vector_length > 1 || out->vector_length > 1,
            CUDNN_STATUS_NOT_SUPPORTED);
  REFUSE_IF((in->type == CUDNN_DATA_DOUBLE) != (out->type == CUDNN_DATA_DOUBLE),
            CUDNN_STATUS_NOT_SUPPORTED);
  cudnnStatus_t status = check_extents(how, in, out);
  if (status)
    return status;
  job_t job = {.how = *how,
               .alpha = host_scalar(alpha, out->type),
               .beta = host_scalar(beta, out->type)};
  status = host_view_init(in, in_data, &job.in);
  if (!status)
    status = host_view_init(out, out_data, &job.out);
  return status ? status : host_work_queue(handle, run, &job, sizeof job);
}

cudnnStatus_t cudnnTransformTensorEx(
    cudnnHandle_t handle, const cudnnTensorTransformDescriptor_t transform,
    const void *alpha, const cudnnTensorDescriptor_t source_desc,
    const void *source_data, const void *beta,
    const cudnnTensorDescriptor_t dest_desc, void *dest_data) {
  return queue(handle, transform, alpha, source_desc, source_data, beta,
               dest_desc, dest_data);
}

/* A filter as the tensor it is. */
static cudnnStatus_t as_tensor(const struct cudnnFilterStruct *filter,
                               struct cudnnTensorStruct *out) {
  REFUSE_IF(!filter, CUDNN_STATUS_BAD_PARAM);
  *out = (struct cudnnTensorStruct){.rank = 0};
  return cudnnSetTensorNdDescriptorEx(out, filter->format, filter->type,
                                      filter->rank, filter->dim);
}

cudnnStatus_t cudnnTransformFilter(
    cudnnHandle_t handle, const cudnnTensorTransformDescriptor_t transform,
    const void *alpha, const cudnnFilterDescriptor_t in, const void *in_data,
    const void *beta, const cudnnFilterDescriptor_t out, void *out_data) {
  struct cudnnTensorStruct from, to;
  cudnnStatus_t status = as_tensor(in, &from);
  if (!status)
    status = as_tensor(out, &to);
  return status ? status
                : queue(handle, transform, alpha, &from, in_data, beta, &to,
                        out_data);
}

typedef struct {
  struct cudnnConvolutionStruct conv;
  int window[CUDNN_DIM_MAX];
  host_view_t x, columns; /* columns: N, C * taps, outputs */
  int64_t out[CUDNN_DIM_MAX];
} columns_t;

/* Row (c, tap) of image n. */
static void column(const columns_t *job, const double *plane, int64_t tap,
                   double *to) {
  int spatial = job->x.rank - 2;
  int64_t at[CUDNN_DIM_MAX] = {0}, offset[CUDNN_DIM_MAX], count = 1;
  for (int i = spatial - 1; i >= 0; i--) {
    int64_t t = tap % job->window[i];
    if (job->conv.mode == CUDNN_CONVOLUTION)
      t = job->window[i] - 1 - t;
    offset[i] = t * job->conv.dilation[i] - job->conv.pad[i];
    tap /= job->window[i];
    count *= job->out[i];
  }
  for (int64_t o = 0; o < count; o++) {
    int64_t index = 0;
    bool inside = true;
    for (int i = 0; i < spatial; i++) {
      int64_t x = at[i] * job->conv.stride[i] + offset[i];
      inside &= x >= 0 && x < job->x.dim[2 + i];
      index = index * job->x.dim[2 + i] + x;
    }
    to[o] = inside ? plane[index] : 0;
    for (int i = spatial - 1; i >= 0 && ++at[i] == job->out[i]; i--)
      at[i] = 0;
  }
}

static bool run_columns(void *argument) {
  const columns_t *job = argument;
  const host_view_t *x = &job->x;
  int64_t box[CUDNN_DIM_MAX] = {1, 1}, first[CUDNN_DIM_MAX] = {0};
  int64_t plane = 1, taps = 1;
  for (int i = 2; i < x->rank; i++) {
    box[i] = x->dim[i];
    plane *= box[i];
    taps *= job->window[i - 2];
  }
  int64_t outputs = job->columns.dim[2];
  double *values =
      host_scratch_get(HOST_SCRATCH_INPUT, (size_t)plane * sizeof *values);
  double *row =
      host_scratch_get(HOST_SCRATCH_OUTPUT, (size_t)outputs * sizeof *row);
  if (!values || !row)
    return false;
  for (first[0] = 0; first[0] < x->dim[0]; first[0]++)
    for (first[1] = 0; first[1] < x->dim[1]; first[1]++) {
      host_view_load(x, first, box, values);
      for (int64_t t = 0; t < taps; t++) {
        column(job, values, t, row);
        host_view_store(&job->columns,
                        (const int64_t[]){first[0], first[1] * taps + t, 0},
                        (const int64_t[]){1, 1, outputs}, 1, row, 0);
      }
    }
  return true;
}

/* The matrix whose product with the filter is the convolution: for each image,
 * one row of all outputs per channel and tap. */
cudnnStatus_t cudnnIm2Col(cudnnHandle_t handle, const cudnnTensorDescriptor_t x,
                          const void *x_data, const cudnnFilterDescriptor_t w,
                          const cudnnConvolutionDescriptor_t conv,
                          void *columns) {
  REFUSE_IF(!handle || !x || !w || !conv || !x_data || !columns,
            CUDNN_STATUS_BAD_PARAM);
  int out[CUDNN_DIM_MAX];
  REFUSE_IF(x->rank < 3 ||
                cudnnGetConvolutionNdForwardOutputDim(conv, x, w, x->rank, out),
            CUDNN_STATUS_BAD_PARAM);
  columns_t job = {.conv = *conv};
  int taps = 1, outputs = 1;
  for (int i = 2; i < x->rank; i++) {
    job.window[i - 2] = w->dim[i];
    job.out[i - 2] = out[i];
    taps *= w->dim[i];
    outputs *= out[i];
  }
  struct cudnnTensorStruct matrix = {.rank = 0};
  const int dim[] = {x->dim[0], x->dim[1] * taps, outputs};
  cudnnStatus_t status =
      cudnnSetTensorNdDescriptorEx(&matrix, CUDNN_TENSOR_NCHW, x->type, 3, dim);
  if (!status)
    status = host_view_init(x, x_data, &job.x);
  if (!status)
    status = host_view_init(&matrix, columns, &job.columns);
  return status ? status
                : host_work_queue(handle, run_columns, &job, sizeof job);
}
