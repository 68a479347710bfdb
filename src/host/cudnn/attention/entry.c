// SPDX-License-Identifier: Apache-2.0
// The entries of multi-head attention: the layout of its parameters, which is
// that of NVIDIA's library, sizes, and the job made from the arguments.
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/attention/compute.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/elementwise/dropout_mask.h"
#include "src/host/host.h"

// All matrices, then all biases. A projection that is absent has no elements.
host_attn_net_t host_attn_net(const struct cudnnAttnStruct *a) {
  host_attn_net_t net = {.heads = a->heads, .scale = a->scale};
  const int from[] = {a->q_size, a->k_size, a->v_size, 0};
  const int to[] = {a->q_projected, a->k_projected, a->v_projected,
                    a->o_projected};
  for (int i = 0; i < HOST_ATTN_PARTS; i++) {
    host_attn_part_t *p = &net.part[i];
    p->there = to[i] > 0;
    p->from = i == HOST_ATTN_O ? net.part[HOST_ATTN_V].to : from[i];
    p->to = p->there ? to[i] : p->from;
    p->matrix = p->there ? net.weights : -1;
    if (p->there)
      net.weights += net.heads * p->from * p->to;
  }
  for (int i = 0; i < HOST_ATTN_PARTS; i++) {
    host_attn_part_t *p = &net.part[i];
    bool biased = p->there && (a->mode & CUDNN_ATTN_ENABLE_PROJ_BIASES);
    p->bias = biased ? net.weights : -1;
    if (biased)
      net.weights += p->to * (i == HOST_ATTN_O ? 1 : net.heads);
  }
  const host_attn_part_t *o = &net.part[HOST_ATTN_O];
  net.out = o->there ? o->to : net.heads * net.part[HOST_ATTN_V].to;
  return net;
}

int64_t host_attn_masks(const host_attn_net_t *net, int64_t q_time,
                        int64_t k_time) {
  return q_time * (net->heads * k_time + net->out);
}

static size_t unit_of(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
}

// Bytes of the dropout masks.
static size_t masks_size(const host_attn_net_t *net, cudnnDataType_t type,
                         int64_t q_time, int64_t k_time, int64_t sequences) {
  return (size_t)(host_attn_masks(net, q_time, k_time) * sequences) *
         unit_of(type);
}

static size_t reserve_size(const host_attn_net_t *net, cudnnDataType_t type,
                           int64_t q_time, int64_t k_time, int64_t sequences) {
  return masks_size(net, type, q_time, k_time, sequences) +
         (size_t)host_attn_kept(q_time, sequences) * sizeof(int);
}

cudnnStatus_t cudnnGetMultiHeadAttnBuffers(cudnnHandle_t handle,
                                           const cudnnAttnDescriptor_t a,
                                           size_t *weight_bytes,
                                           size_t *work_bytes,
                                           size_t *reserve_bytes) {
  REFUSE_IF(!handle || !a || !weight_bytes || !work_bytes,
            CUDNN_STATUS_BAD_PARAM);
  host_attn_net_t net = host_attn_net(a);
  *weight_bytes = (size_t)net.weights * host_type_bytes(a->type);
  *work_bytes = 0; // intermediate results are not in the program's memory
  if (reserve_bytes)
    *reserve_bytes = reserve_size(&net, a->type, a->qo_time, a->kv_time,
                                  (int64_t)a->batch * a->beam);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetMultiHeadAttnWeights(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t a,
    cudnnMultiHeadAttnWeightKind_t kind, size_t weight_bytes,
    const void *weights, cudnnTensorDescriptor_t desc, void **address) {
  REFUSE_IF(!handle || !a || !desc || !address, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(
      !host_in_range(kind, CUDNN_MH_ATTN_Q_WEIGHTS, CUDNN_MH_ATTN_O_BIASES),
      CUDNN_STATUS_BAD_PARAM);
  host_attn_net_t net = host_attn_net(a);
  size_t unit = host_type_bytes(a->type);
  REFUSE_IF(weight_bytes < (size_t)net.weights * unit, CUDNN_STATUS_BAD_PARAM);
  int part = (int)kind % HOST_ATTN_PARTS;
  bool bias = kind >= CUDNN_MH_ATTN_Q_BIASES, o = part == HOST_ATTN_O;
  const host_attn_part_t *p = &net.part[part];
  int64_t at = bias ? p->bias : p->matrix;
  *desc = (struct cudnnTensorStruct){.rank = 0};
  *address = NULL;
  if (at < 0)
    return CUDNN_STATUS_SUCCESS;
  int heads = (int)net.heads, to = (int)p->to, from = (int)p->from;
  int dim[] = {bias && o ? 1 : heads, to, bias ? 1 : from};
  int stride[] = {bias || !o ? to : to * from, 1,
                  bias ? 1
                  : o  ? to
                       : heads * to};
  *address = weights ? (char *)weights + (size_t)at * unit : NULL;
  return cudnnSetTensorNdDescriptor(desc, a->type, 3, dim, stride);
}

static bool run(void *argument) {
  const host_attn_job_t *job = argument;
  return job->type == CUDNN_DATA_DOUBLE ? host_attn_run_double(job)
                                        : host_attn_run_float(job);
}

static cudnnStatus_t reach(const void *pointer, size_t bytes, void **out) {
  REFUSE_IF(!pointer, CUDNN_STATUS_BAD_PARAM);
  *out = host_memory_resolve(pointer, bytes);
  REFUSE_IF(!*out, CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

// Vectors of a descriptor, checked against the attention's limits `most`.
static cudnnStatus_t vectors(const struct cudnnAttnStruct *a, int64_t width,
                             int time, const struct cudnnSeqDataStruct *d,
                             const void *data, host_attn_data_t *out) {
  REFUSE_IF(!d || !d->length || d->type != a->type, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(d->dim[CUDNN_SEQDATA_VECT_DIM] != width, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(d->dim[CUDNN_SEQDATA_TIME_DIM] > time ||
                d->dim[CUDNN_SEQDATA_BATCH_DIM] > a->batch ||
                d->dim[CUDNN_SEQDATA_BEAM_DIM] > a->beam,
            CUDNN_STATUS_BAD_PARAM);
  *out = (host_attn_data_t){.vector = width,
                            .time = d->dim[CUDNN_SEQDATA_TIME_DIM],
                            .batch = d->dim[CUDNN_SEQDATA_BATCH_DIM],
                            .beam = d->dim[CUDNN_SEQDATA_BEAM_DIM]};
  int64_t at = 1;
  for (int i = CUDNN_SEQDATA_DIM_COUNT - 1; i >= 0; i--) {
    out->stride[d->axis[i]] = at;
    at *= d->dim[d->axis[i]];
  }
  return reach(data, (size_t)at * host_type_bytes(d->type), &out->data);
}

static cudnnStatus_t lengths(const int *device, host_attn_data_t *d) {
  void *at;
  cudnnStatus_t status =
      reach(device, (size_t)(d->batch * d->beam) * sizeof(int), &at);
  if (!status)
    d->length = at;
  return status;
}

static bool alike(const host_attn_data_t *a, const host_attn_data_t *b) {
  return a->time == b->time && a->batch == b->batch && a->beam == b->beam;
}

// A job with q, k, v and o in place; the caller frees it.
static cudnnStatus_t
begin(cudnnHandle_t handle, host_attn_kind_t kind,
      const struct cudnnAttnStruct *a, const int *low, const int *high,
      const struct cudnnSeqDataStruct *q, const void *q_data,
      const struct cudnnSeqDataStruct *k, const void *k_data,
      const struct cudnnSeqDataStruct *v, const void *v_data,
      const struct cudnnSeqDataStruct *o, const void *o_data,
      host_attn_job_t **out, size_t *out_bytes) {
  REFUSE_IF(!handle || !a || !q || !k || !v || !o || a->heads < 1,
            CUDNN_STATUS_BAD_PARAM);
  int64_t steps = q->dim[CUDNN_SEQDATA_TIME_DIM];
  *out_bytes = sizeof(host_attn_job_t) + 2 * (size_t)steps * sizeof(int);
  host_attn_job_t *job = calloc(1, *out_bytes);
  REFUSE_IF(!job, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  *out = job;
  job->kind = kind;
  job->net = host_attn_net(a);
  job->type = a->type;
  job->only = -1;
  for (int64_t i = 0; low && high && i < steps; i++) {
    job->window[2 * i] = low[i];
    job->window[2 * i + 1] = high[i];
  }
  cudnnStatus_t s = vectors(a, a->q_size, a->qo_time, q, q_data, &job->q);
  if (!s)
    s = vectors(a, a->k_size, a->kv_time, k, k_data, &job->k);
  if (!s)
    s = vectors(a, a->v_size, a->kv_time, v, v_data, &job->v);
  if (!s)
    s = vectors(a, job->net.out, a->qo_time, o, o_data, &job->o);
  if (s)
    return s;
  REFUSE_IF(!alike(&job->q, &job->o) || !alike(&job->k, &job->v),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(job->k.batch != job->q.batch ||
                (job->k.beam != 1 && job->k.beam != job->q.beam),
            CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t weights(const host_attn_job_t *job, size_t bytes,
                             const void *pointer, void **out) {
  size_t least = (size_t)job->net.weights * host_type_bytes(job->type);
  REFUSE_IF(bytes < least, CUDNN_STATUS_BAD_PARAM);
  return least ? reach(pointer, least, out) : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t dropout(const struct cudnnDropoutStruct *d, double *p,
                             void **states) {
  if (!d || !(d->probability > 0))
    return CUDNN_STATUS_SUCCESS;
  *p = d->probability;
  return reach(d->states, sizeof(host_dropstates_t), states);
}

static cudnnStatus_t reserve(host_attn_job_t *job,
                             const struct cudnnAttnStruct *a, size_t bytes,
                             const void *pointer) {
  int64_t sequences = job->q.batch * job->q.beam;
  size_t least =
      reserve_size(&job->net, job->type, job->q.time, job->k.time, sequences);
  REFUSE_IF(bytes < least, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t s = reach(pointer, least, &job->masks);
  if (!s)
    job->kept = (int *)((char *)job->masks +
                        masks_size(&job->net, job->type, job->q.time,
                                   job->k.time, sequences));
  if (!s)
    s = dropout(a->dropout, &job->dropout, &job->states);
  if (!s)
    s = dropout(a->post_dropout, &job->post_dropout, &job->post_states);
  return s;
}

static cudnnStatus_t finish(cudnnHandle_t handle, cudnnStatus_t status,
                            host_attn_job_t *job, size_t bytes) {
  if (!status)
    status = host_work_queue(handle, run, job, bytes);
  free(job);
  return status;
}

cudnnStatus_t cudnnMultiHeadAttnForward(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t a, int only,
    const int low[], const int high[], const int q_lengths[],
    const int k_lengths[], const cudnnSeqDataDescriptor_t q, const void *q_data,
    const void *residual, const cudnnSeqDataDescriptor_t k, const void *k_data,
    const cudnnSeqDataDescriptor_t v, const void *v_data,
    const cudnnSeqDataDescriptor_t o, void *o_data, size_t weight_bytes,
    const void *weight_data, size_t work_bytes, void *work,
    size_t reserve_bytes, void *reserve_data) {
  (void)work_bytes;
  (void)work;
  REFUSE_IF(!low || !high, CUDNN_STATUS_BAD_PARAM);
  // Training computes all time steps at once.
  REFUSE_IF(only >= 0 && reserve_data, CUDNN_STATUS_BAD_PARAM);
  host_attn_job_t *job = NULL;
  size_t bytes;
  cudnnStatus_t s = begin(handle, HOST_ATTN_FORWARD, a, low, high, q, q_data, k,
                          k_data, v, v_data, o, o_data, &job, &bytes);
  if (!s)
    s = lengths(q_lengths, &job->q);
  if (!s)
    s = lengths(k_lengths, &job->k);
  if (!s && only >= job->q.time)
    s = host_refuse(CUDNN_STATUS_BAD_PARAM, "time step beyond the queries");
  if (!s && residual && job->net.out != job->q.vector)
    s = host_refuse(CUDNN_STATUS_BAD_PARAM, "residuals of another size");
  if (!s && residual)
    s = reach(
        residual,
        (size_t)(job->q.time * job->q.batch * job->q.beam * job->q.vector) *
            host_type_bytes(job->type),
        &job->residual);
  if (!s)
    s = weights(job, weight_bytes, weight_data, &job->weights);
  if (!s && reserve_data)
    s = reserve(job, a, reserve_bytes, reserve_data);
  if (!s)
    job->only = only < 0 ? -1 : only;
  return finish(handle, s, job, bytes);
}

cudnnStatus_t cudnnMultiHeadAttnBackwardData(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t a, const int low[],
    const int high[], const int q_lengths[], const int k_lengths[],
    const cudnnSeqDataDescriptor_t o, const void *d_out,
    const cudnnSeqDataDescriptor_t q, void *dq, const void *q_data,
    const cudnnSeqDataDescriptor_t k, void *dk, const void *k_data,
    const cudnnSeqDataDescriptor_t v, void *dv, const void *v_data,
    size_t weight_bytes, const void *weight_data, size_t work_bytes, void *work,
    size_t reserve_bytes, void *reserve_data) {
  (void)work_bytes;
  (void)work;
  REFUSE_IF(!low || !high || !a, CUDNN_STATUS_BAD_PARAM);
  host_attn_job_t *job = NULL;
  size_t bytes;
  cudnnStatus_t s = begin(handle, HOST_ATTN_DATA, a, low, high, q, q_data, k,
                          k_data, v, v_data, o, d_out, &job, &bytes);
  if (!s)
    s = lengths(q_lengths, &job->q);
  if (!s)
    s = lengths(k_lengths, &job->k);
  if (!s)
    s = vectors(a, a->q_size, a->qo_time, q, dq, &job->dq);
  if (!s)
    s = vectors(a, a->k_size, a->kv_time, k, dk, &job->dk);
  if (!s)
    s = vectors(a, a->v_size, a->kv_time, v, dv, &job->dv);
  if (!s)
    s = weights(job, weight_bytes, weight_data, &job->weights);
  if (!s)
    s = reserve(job, a, reserve_bytes, reserve_data);
  return finish(handle, s, job, bytes);
}

cudnnStatus_t cudnnMultiHeadAttnBackwardWeights(
    cudnnHandle_t handle, const cudnnAttnDescriptor_t a, cudnnWgradMode_t mode,
    const cudnnSeqDataDescriptor_t q, const void *q_data,
    const cudnnSeqDataDescriptor_t k, const void *k_data,
    const cudnnSeqDataDescriptor_t v, const void *v_data,
    const cudnnSeqDataDescriptor_t o, const void *d_out, size_t weight_bytes,
    const void *weight_data, void *d_weight_data, size_t work_bytes, void *work,
    size_t reserve_bytes, void *reserve_data) {
  (void)work_bytes;
  (void)work;
  REFUSE_IF(
      !a || !host_in_range(mode, CUDNN_WGRAD_MODE_ADD, CUDNN_WGRAD_MODE_SET),
      CUDNN_STATUS_BAD_PARAM);
  host_attn_job_t *job = NULL;
  size_t bytes;
  cudnnStatus_t s = begin(handle, HOST_ATTN_WEIGHTS, a, NULL, NULL, q, q_data,
                          k, k_data, v, v_data, o, d_out, &job, &bytes);
  if (!s)
    s = weights(job, weight_bytes, weight_data, &job->weights);
  if (!s)
    s = weights(job, weight_bytes, d_weight_data, &job->d_weights);
  if (!s)
    s = reserve(job, a, reserve_bytes, reserve_data);
  if (!s)
    job->adds = mode == CUDNN_WGRAD_MODE_ADD;
  return finish(handle, s, job, bytes);
}
