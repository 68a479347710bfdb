// SPDX-License-Identifier: Apache-2.0
// The entries of recurrent networks: from their arguments to one job.
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/elementwise/dropout_mask.h"
#include "src/host/cudnn/recurrent/network.h"
#include "src/host/host.h"

int64_t host_rnn_row(const host_rnn_job_t *job, cudnnRNNDataLayout_t layout,
                     int64_t time, int64_t batch) {
  if (layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
    return batch * job->time + time;
  if (layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED)
    return time * job->batch + batch;
  // Packed: for each step the sequences that reach it, longest first.
  int64_t row = 0;
  for (int64_t b = 0; b < job->batch; b++) {
    int64_t reach = job->length[b];
    row += reach < time ? reach : time;
    row += b < batch && reach > time;
  }
  return row;
}

static bool run(void *argument) {
  const host_rnn_job_t *job = argument;
  return job->type == CUDNN_DATA_DOUBLE ? host_rnn_run_double(job)
                                        : host_rnn_run_float(job);
}

// Number of rows of a layout in memory.
static int64_t rows_of(const struct cudnnRNNDataStruct *d) {
  if (d->layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED)
    return (int64_t)d->time * d->batch;
  int64_t rows = 0;
  for (int b = 0; b < d->batch; b++)
    rows += d->length[b];
  return rows;
}

static bool same_sequences(const struct cudnnRNNDataStruct *a,
                           const struct cudnnRNNDataStruct *b) {
  return a->type == b->type && a->time == b->time && a->batch == b->batch &&
         a->layout == b->layout &&
         memcmp(a->length, b->length, (size_t)a->batch * sizeof(int)) == 0;
}

// Makes a job for sequences x and y; the caller frees it.
static cudnnStatus_t begin(cudnnHandle_t handle, host_rnn_kind_t kind,
                           const struct cudnnRNNStruct *rnn,
                           const struct cudnnRNNDataStruct *x,
                           const struct cudnnRNNDataStruct *y,
                           host_rnn_job_t **out_job, size_t *out_bytes) {
  REFUSE_IF(!handle || !rnn || !x || !y, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!rnn->set, CUDNN_STATUS_NOT_INITIALIZED);
  REFUSE_IF(!x->length || !y->length, CUDNN_STATUS_BAD_PARAM);
  host_rnn_net_t net = host_rnn_net(rnn);
  REFUSE_IF(x->type != rnn->type || !same_sequences(x, y),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(x->vector != net.input || y->vector != net.out * net.ways,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(net.skips && net.input != net.hidden, CUDNN_STATUS_BAD_PARAM);
  // Padding in memory must be announced by the program.
  REFUSE_IF(x->layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED &&
                !(rnn->flags & CUDNN_RNN_PADDED_IO_ENABLED),
            CUDNN_STATUS_BAD_PARAM);
  size_t lengths = (size_t)x->batch * sizeof(int);
  *out_bytes = sizeof(host_rnn_job_t) + lengths;
  host_rnn_job_t *job = calloc(1, *out_bytes);
  REFUSE_IF(!job, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  job->kind = kind;
  job->net = net;
  job->type = rnn->type;
  job->time = x->time;
  job->batch = x->batch;
  job->x = (host_rnn_data_t){.layout = x->layout, .vector = x->vector};
  job->y = (host_rnn_data_t){.layout = y->layout, .vector = y->vector};
  memcpy(job->y.fill, y->fill, sizeof job->y.fill);
  memcpy(job->length, x->length, lengths);
  *out_job = job;
  return CUDNN_STATUS_SUCCESS;
}

// Resolves `bytes` bytes at `pointer`; NULL is allowed if `optional`.
static cudnnStatus_t reach(const void *pointer, size_t bytes, bool optional,
                           void **out) {
  *out = NULL;
  if (!pointer && optional)
    return CUDNN_STATUS_SUCCESS;
  REFUSE_IF(!pointer, CUDNN_STATUS_BAD_PARAM);
  *out = host_memory_resolve(pointer, bytes);
  REFUSE_IF(!*out, CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t sequences(const struct cudnnRNNDataStruct *d,
                               const void *pointer, bool optional, void **out) {
  size_t bytes =
      (size_t)rows_of(d) * (size_t)d->vector * host_type_bytes(d->type);
  return reach(pointer, bytes, optional, out);
}

// A state of all pseudo-layers; it exists only with its descriptor.
static cudnnStatus_t state(const host_rnn_job_t *job,
                           const struct cudnnTensorStruct *desc, bool is_cell,
                           const void *pointer, void **out) {
  *out = NULL;
  if (!pointer || (is_cell && job->net.cell != CUDNN_LSTM))
    return CUDNN_STATUS_SUCCESS;
  int64_t width = is_cell ? job->net.hidden : job->net.out;
  int64_t parts = job->net.layers * job->net.ways;
  REFUSE_IF(!desc || desc->rank < 3 || desc->type != job->type,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(desc->dim[0] != parts || desc->dim[1] != job->batch ||
                desc->dim[2] != width,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((desc->dim[2] > 1 && desc->stride[2] != 1) ||
                (desc->dim[1] > 1 && desc->stride[1] != width) ||
                (desc->dim[0] > 1 && desc->stride[0] != width * job->batch),
            CUDNN_STATUS_NOT_SUPPORTED);
  return reach(pointer,
               (size_t)(parts * job->batch * width) *
                   host_type_bytes(job->type),
               true, out);
}

typedef struct {
  const void *pointer;
  void **out;
} state_t;

static cudnnStatus_t states(const host_rnn_job_t *job,
                            const struct cudnnTensorStruct *desc, bool is_cell,
                            int count, const state_t *of) {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  for (int i = 0; i < count && !status; i++)
    status = state(job, desc, is_cell, of[i].pointer, of[i].out);
  return status;
}

static cudnnStatus_t weights(const host_rnn_job_t *job, size_t bytes,
                             const void *pointer, void **out) {
  size_t least =
      (size_t)host_rnn_weights(&job->net) * host_type_bytes(job->type);
  REFUSE_IF(bytes < least, CUDNN_STATUS_BAD_PARAM);
  return reach(pointer, least, false, out);
}

static cudnnStatus_t reserve(host_rnn_job_t *job, size_t bytes,
                             const void *pointer) {
  size_t unit = job->type == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
  host_rnn_reserve_t all = host_rnn_reserve(
      &job->net, job->time * job->batch, job->net.layers * job->net.ways - 1);
  size_t least = (size_t)all.elements * unit;
  REFUSE_IF(bytes < least, CUDNN_STATUS_BAD_PARAM);
  return reach(pointer, least, false, &job->reserve);
}

static cudnnStatus_t dropout(host_rnn_job_t *job,
                             const struct cudnnRNNStruct *rnn) {
  const struct cudnnDropoutStruct *d = rnn->dropout;
  if (!d || !(d->probability > 0) || job->net.layers == 1)
    return CUDNN_STATUS_SUCCESS;
  job->dropout = d->probability;
  return reach(d->states, sizeof(host_dropstates_t), false,
               &job->dropout_states);
}

static cudnnStatus_t finish(cudnnHandle_t handle, cudnnStatus_t status,
                            host_rnn_job_t *job, size_t bytes) {
  if (!status)
    status = host_work_queue(handle, run, job, bytes);
  free(job);
  return status;
}

// Of training, which uses the reserve space.
static cudnnStatus_t finish_training(cudnnHandle_t handle, cudnnStatus_t status,
                                     const struct cudnnRNNStruct *rnn,
                                     size_t reserve_bytes,
                                     const void *reserve_space,
                                     host_rnn_job_t *job, size_t bytes) {
  if (!status)
    status = reserve(job, reserve_bytes, reserve_space);
  if (!status)
    status = dropout(job, rnn);
  return finish(handle, status, job, bytes);
}

cudnnStatus_t cudnnRNNForward(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
    const int32_t device_lengths[], cudnnRNNDataDescriptor_t x,
    const void *x_data, cudnnRNNDataDescriptor_t y, void *y_data,
    cudnnTensorDescriptor_t h, const void *hx, void *hy,
    cudnnTensorDescriptor_t c, const void *cx, void *cy, size_t weight_bytes,
    const void *weight_space, size_t work_bytes, void *work,
    size_t reserve_bytes, void *reserve_space) {
  (void)device_lengths; // the lengths in the descriptors are used
  (void)work_bytes;
  (void)work;
  host_rnn_job_t *job = NULL;
  size_t bytes;
  REFUSE_IF(
      !host_in_range(mode, CUDNN_FWD_MODE_INFERENCE, CUDNN_FWD_MODE_TRAINING),
      CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t s = begin(handle, HOST_RNN_FORWARD, rnn, x, y, &job, &bytes);
  if (!s)
    s = sequences(x, x_data, false, &job->x.data);
  if (!s)
    s = sequences(y, y_data, false, &job->y.data);
  if (!s)
    s = states(job, h, false, 2, (state_t[]){{hx, &job->hx}, {hy, &job->hy}});
  if (!s)
    s = states(job, c, true, 2, (state_t[]){{cx, &job->cx}, {cy, &job->cy}});
  if (!s)
    s = weights(job, weight_bytes, weight_space, &job->weights);
  return mode == CUDNN_FWD_MODE_INFERENCE
             ? finish(handle, s, job, bytes)
             : finish_training(handle, s, rnn, reserve_bytes, reserve_space,
                               job, bytes);
}

cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
    const int32_t device_lengths[], cudnnRNNDataDescriptor_t y,
    const void *y_data, const void *dy, cudnnRNNDataDescriptor_t x, void *dx,
    cudnnTensorDescriptor_t h, const void *hx, const void *dhy, void *dhx,
    cudnnTensorDescriptor_t c, const void *cx, const void *dcy, void *dcx,
    size_t weight_bytes, const void *weight_space, size_t work_bytes,
    void *work, size_t reserve_bytes, void *reserve_space) {
  (void)device_lengths;
  (void)work_bytes;
  (void)work;
  host_rnn_job_t *job = NULL;
  size_t bytes;
  cudnnStatus_t s = begin(handle, HOST_RNN_DATA, rnn, x, y, &job, &bytes);
  if (!s)
    s = sequences(y, y_data, false, &job->y.data);
  if (!s)
    s = sequences(y, dy, false, &job->y.gradient);
  if (!s)
    s = sequences(x, dx, true, &job->x.gradient);
  if (!s)
    s = states(job, h, false, 3,
               (state_t[]){{hx, &job->hx}, {dhy, &job->dhy}, {dhx, &job->dhx}});
  if (!s)
    s = states(job, c, true, 3,
               (state_t[]){{cx, &job->cx}, {dcy, &job->dcy}, {dcx, &job->dcx}});
  if (!s)
    s = weights(job, weight_bytes, weight_space, &job->weights);
  return finish_training(handle, s, rnn, reserve_bytes, reserve_space, job,
                         bytes);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode,
    const int32_t device_lengths[], cudnnRNNDataDescriptor_t x,
    const void *x_data, cudnnTensorDescriptor_t h, const void *hx,
    cudnnRNNDataDescriptor_t y, const void *y_data, size_t weight_bytes,
    void *d_weight_space, size_t work_bytes, void *work, size_t reserve_bytes,
    void *reserve_space) {
  (void)device_lengths;
  (void)work_bytes;
  (void)work;
  REFUSE_IF(!host_in_range(mode, CUDNN_WGRAD_MODE_ADD, CUDNN_WGRAD_MODE_SET),
            CUDNN_STATUS_BAD_PARAM);
  // cuDNN has only this mode for recurrent networks.
  REFUSE_IF(mode != CUDNN_WGRAD_MODE_ADD, CUDNN_STATUS_NOT_SUPPORTED);
  host_rnn_job_t *job = NULL;
  size_t bytes;
  cudnnStatus_t s = begin(handle, HOST_RNN_WEIGHTS, rnn, x, y, &job, &bytes);
  if (!s)
    s = sequences(x, x_data, false, &job->x.data);
  if (!s)
    s = sequences(y, y_data, false, &job->y.data);
  if (!s)
    s = state(job, h, false, hx, &job->hx);
  if (!s)
    s = weights(job, weight_bytes, d_weight_space, &job->d_weights);
  return finish_training(handle, s, rnn, reserve_bytes, reserve_space, job,
                         bytes);
}

// Nothing is compiled for a batch size.
cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle,
                                   cudnnRNNDescriptor_t rnn, int batch) {
  REFUSE_IF(!handle || !rnn || batch < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!rnn->set, CUDNN_STATUS_NOT_INITIALIZED);
  return CUDNN_STATUS_SUCCESS; // for every algorithm
}
