// SPDX-License-Identifier: Apache-2.0
// TransformTensorEx and TransformFilter: padding, folding, layouts and types.
//
// Folded channel before[1] + (i * fold[1] + j) * C + c holds point (i, j) of
// every block of channel c of C. The padding of channels lies before and after
// all of them. A GPU uses this order, measured (RTX 3060, cuDNN 9.27) by the
// tests of pantheongpu/pantheonsim.
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"

typedef struct {
  struct cudnnTensorTransformStruct how;
  host_view_t in, out;
  double alpha, beta;
} job_t;

static int64_t fold_of(const job_t *job, int dimension) {
  unsigned fold = job->how.fold[dimension - 2];
  return fold ? fold : 1;
}

static int64_t folds(const job_t *job) {
  int64_t all = 1;
  for (int i = 2; i < job->in.rank; i++)
    all *= fold_of(job, i);
  return all;
}

// Maps `at` from a folded tensor to the tensor that it was folded from; false
// for padding of channels.
static bool unfold(const job_t *job, int64_t *at) {
  int64_t channel = at[1] - job->how.before[1], channels = job->in.dim[1];
  if (channel < 0 || channel >= channels * folds(job))
    return false;
  int64_t block = channel / channels;
  for (int i = job->in.rank - 1; i >= 2; i--) {
    int64_t fold = fold_of(job, i);
    at[i] = at[i] * fold + block % fold;
    block /= fold;
  }
  at[1] = channel % channels + job->how.before[1];
  return true;
}

// The inverse of unfold: channels that unfolding cuts off are the padding that
// folding added. False outside.
static bool fold(const job_t *job, int64_t *at) {
  int64_t before = job->how.before[1], after = job->how.after[1];
  int64_t front = before < 0 ? -before : 0, back = after < 0 ? -after : 0;
  int64_t channels = job->in.dim[1] / folds(job) - front - back, block = 0;
  at[1] -= front;
  if (at[1] < 0 || at[1] >= channels)
    return false;
  for (int i = 2; i < job->in.rank; i++) {
    int64_t fold = fold_of(job, i);
    if (at[i] < 0)
      return false;
    block = block * fold + at[i] % fold;
    at[i] /= fold;
  }
  at[1] += front + block * channels;
  return true;
}

static bool is_inside(const job_t *job, const int64_t *at) {
  for (int i = 0; i < job->in.rank; i++)
    if (at[i] < 0 || at[i] >= job->in.dim[i])
      return false;
  return true;
}

// The position from which the value at `to` comes; false for padding.
static bool source(const job_t *job, const int64_t *to, int64_t *from) {
  int rank = job->in.rank;
  memcpy(from, to, (size_t)rank * sizeof *from);
  if (!job->how.unfold && !unfold(job, from))
    return false;
  for (int i = 0; i < rank; i++) {
    from[i] -= job->how.before[i];
    int64_t end = (int64_t)job->in.dim[i] + job->how.after[i];
    if (from[i] < 0 || (!job->how.unfold && from[i] >= end))
      return false; // cut off, although a block may extend beyond it
  }
  if (job->how.unfold && !fold(job, from))
    return false;
  return is_inside(job, from);
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

// Checks the extents that cudnnInitTransformDest computes.
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
  for (int i = 2; i < in->rank && !how->unfold; i++)
    REFUSE_IF(how->fold[i - 2] > 1 && host_scalar(beta, out->type) != 0,
              CUDNN_STATUS_NOT_SUPPORTED);
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

// A filter as a tensor.
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
