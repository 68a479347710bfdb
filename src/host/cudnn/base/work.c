// SPDX-License-Identifier: Apache-2.0
// Makes work from an entry's arguments and queues it on the handle's stream.
#include "src/host/cudnn/base/work.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"

void *host_tensor_resolve(const struct cudnnTensorStruct *tensor,
                          const void *pointer) {
  return host_memory_resolve(pointer, (size_t)tensor->reach *
                                          host_type_bytes(tensor->type));
}

void *host_filter_resolve(const struct cudnnFilterStruct *filter,
                          const void *pointer) {
  size_t bytes = 0;
  cudnnGetFilterSizeInBytes((cudnnFilterDescriptor_t)filter, &bytes);
  return host_memory_resolve(pointer, bytes);
}

double host_scalar(const void *value, cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? *(const double *)value
                                   : *(const float *)value;
}

typedef struct {
  bool (*run)(void *job);
  size_t bytes; // of the job, in bytes
  _Alignas(max_align_t) char job[];
} work_t;

static cudaError_t work_run(void *argument) {
  work_t *work = argument;
  return work->run(work->job) ? cudaSuccess : cudaErrorMemoryAllocation;
}

// A copy for another launch of a graph; a job is plain data.
static void *work_again(const void *argument) {
  const work_t *work = argument;
  work_t *copy = malloc(sizeof *work + work->bytes);
  if (copy)
    memcpy(copy, work, sizeof *work + work->bytes);
  return copy;
}

cudnnStatus_t host_work_queue(cudnnHandle_t handle, bool (*run)(void *job),
                              const void *job, size_t bytes) {
  work_t *work = malloc(sizeof *work + bytes);
  REFUSE_IF(!work, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  work->run = run;
  work->bytes = bytes;
  memcpy(work->job, job, bytes);
  cudaError_t queued = host_stream_submit_again(handle->stream, work_run, work,
                                                free, work_again);
  REFUSE_IF(queued != cudaSuccess, CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}
