// SPDX-License-Identifier: Apache-2.0
// Dropout: a mask of one bit per element, kept in the reserve space.
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/cudnn/elementwise/dropout_mask.h"
#include "src/host/host.h"

LIFE(Dropout, dropout, .states = NULL)

typedef struct {
  bool backward;
  float probability;
  host_view_t in, out;
  host_dropstates_t *states;
  uint32_t *mask;
} job_t;

// One image at a time. Elements are counted in the order of the dimensions,
// whatever the strides.
static bool run(void *argument) {
  const job_t *job = argument;
  int64_t count = host_view_elements(&job->in), done = 0;
  int64_t first[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX];
  memcpy(box, job->in.dim, sizeof box);
  box[0] = 1;
  int64_t image = count / job->in.dim[0];
  double *values =
      host_scratch_get(HOST_SCRATCH_INPUT, (size_t)image * sizeof *values);
  if (!values)
    return false;
  if (!job->backward)
    host_dropmask_draw(job->states, job->probability, count, job->mask);
  // Floats are scaled in float: the factor is rounded, then the product.
  bool is_double = job->in.type == CUDNN_DATA_DOUBLE;
  float p = job->probability, single = p == 1 ? 0 : 1 / (1 - p);
  double scale = !is_double ? (double)single : p == 1 ? 0 : 1 / (1 - (double)p);
  for (; first[0] < job->in.dim[0]; first[0]++) {
    host_view_load(&job->in, first, box, values);
    for (int64_t i = 0; i < image; i++, done++) {
      bool kept = job->mask[done / 32] >> (done % 32) & 1;
      double scaled = kept ? values[i] * scale : 0;
      values[i] = is_double ? scaled : (double)(float)scaled;
    }
    host_view_store(&job->out, first, box, 1, values, 0);
  }
  return true;
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t *bytes) {
  REFUSE_IF(!handle || !bytes, CUDNN_STATUS_BAD_PARAM);
  *bytes = sizeof(host_dropstates_t);
  return CUDNN_STATUS_SUCCESS;
}

// One bit per element, whole words of 4 bytes.
cudnnStatus_t cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t x,
                                              size_t *bytes) {
  REFUSE_IF(!x || !bytes, CUDNN_STATUS_BAD_PARAM);
  size_t elements = 1;
  for (int i = 0; i < x->rank; i++)
    elements *= (size_t)x->dim[i];
  *bytes = (elements + 31) / 32 * 4;
  return CUDNN_STATUS_SUCCESS;
}

typedef struct {
  host_dropstates_t *states;
  uint64_t seed;
} start_t;

static bool run_start(void *argument) {
  const start_t *start = argument;
  host_dropmask_seed(start->states, start->seed);
  return true;
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropout,
                                            cudnnHandle_t handle,
                                            float probability, void *states,
                                            size_t states_bytes,
                                            unsigned long long seed) {
  REFUSE_IF(!handle || !dropout, CUDNN_STATUS_BAD_PARAM);
  // Every probability is accepted: below 0 all elements are kept, above 1 none.
  REFUSE_IF(states && states_bytes < sizeof(host_dropstates_t),
            CUDNN_STATUS_BAD_PARAM);
  dropout->probability = probability;
  dropout->seed = seed;
  if (states) { // otherwise the earlier states stay
    dropout->states = states;
    dropout->states_bytes = states_bytes;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropout,
                                        cudnnHandle_t handle, float probability,
                                        void *states, size_t states_bytes,
                                        unsigned long long seed) {
  cudnnStatus_t status = cudnnRestoreDropoutDescriptor(
      dropout, handle, probability, states, states_bytes, seed);
  if (status || !states)
    return status;
  start_t start = {host_memory_resolve(states, sizeof(host_dropstates_t)),
                   seed};
  REFUSE_IF(!start.states, CUDNN_STATUS_EXECUTION_FAILED);
  return host_work_queue(handle, run_start, &start, sizeof start);
}

cudnnStatus_t cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropout,
                                        cudnnHandle_t handle,
                                        float *probability, void **states,
                                        unsigned long long *seed) {
  REFUSE_IF(!handle || !dropout, CUDNN_STATUS_BAD_PARAM);
  if (probability)
    *probability = dropout->probability;
  if (states)
    *states = dropout->states;
  if (seed)
    *seed = dropout->seed;
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t queue(cudnnHandle_t handle, bool backward,
                           const struct cudnnDropoutStruct *dropout,
                           const struct cudnnTensorStruct *in,
                           const void *in_data,
                           const struct cudnnTensorStruct *out, void *out_data,
                           void *reserve, size_t reserve_bytes) {
  REFUSE_IF(!handle || !dropout || !in || !out || !reserve,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(in->type != out->type || in->rank != out->rank,
            CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < in->rank; i++)
    REFUSE_IF(in->dim[i] != out->dim[i], CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(in->type == CUDNN_DATA_BFLOAT16, CUDNN_STATUS_NOT_SUPPORTED);
  size_t bytes;
  cudnnDropoutGetReserveSpaceSize((cudnnTensorDescriptor_t)in, &bytes);
  REFUSE_IF(reserve_bytes < bytes, CUDNN_STATUS_BAD_PARAM);
  job_t job = {.backward = backward, .probability = dropout->probability};
  REFUSE_IF(!dropout->states && dropout->probability > 0,
            CUDNN_STATUS_BAD_PARAM);
  if (dropout->states) {
    job.states =
        host_memory_resolve(dropout->states, sizeof(host_dropstates_t));
    REFUSE_IF(!job.states, CUDNN_STATUS_EXECUTION_FAILED);
  }
  job.mask = host_memory_resolve(reserve, bytes);
  REFUSE_IF(!job.mask, CUDNN_STATUS_EXECUTION_FAILED);
  cudnnStatus_t status = host_view_init(in, in_data, &job.in);
  if (!status)
    status = host_view_init(out, out_data, &job.out);
  return status ? status : host_work_queue(handle, run, &job, sizeof job);
}

cudnnStatus_t cudnnDropoutForward(cudnnHandle_t handle,
                                  const cudnnDropoutDescriptor_t dropout,
                                  const cudnnTensorDescriptor_t x,
                                  const void *x_data,
                                  const cudnnTensorDescriptor_t y, void *y_data,
                                  void *reserve, size_t reserve_bytes) {
  return queue(handle, false, dropout, x, x_data, y, y_data, reserve,
               reserve_bytes);
}

cudnnStatus_t cudnnDropoutBackward(cudnnHandle_t handle,
                                   const cudnnDropoutDescriptor_t dropout,
                                   const cudnnTensorDescriptor_t dy,
                                   const void *dy_data,
                                   const cudnnTensorDescriptor_t dx,
                                   void *dx_data, void *reserve,
                                   size_t reserve_bytes) {
  return queue(handle, true, dropout, dy, dy_data, dx, dx_data, reserve,
               reserve_bytes);
}
