// SPDX-License-Identifier: Apache-2.0
// What cuBLAS and cuBLASLt share: numbers and matrices when work runs, and work
// in a stream.
#include "src/host/cublas/blas.h"

#include <stdlib.h>
#include <string.h>

host_number_t host_scalar_get(const host_scalar_t *scalar) {
  return scalar->device ? host_number_load(scalar->device, scalar->type, 0)
                        : scalar->value;
}

bool host_matrix_resolve(host_matrix_t *matrix, const void *at, int64_t rows,
                         int64_t columns, int64_t batch) {
  int64_t bytes = (int64_t)host_type_bytes(matrix->type);
  int64_t last =
      matrix->by_address
          ? batch * (int64_t)sizeof(void *)
          : ((batch - 1) * matrix->stride + (columns - 1) * matrix->ld + rows) *
                bytes;
  bool empty = rows == 0 || columns == 0 || batch == 0;
  matrix->at = empty ? NULL : host_memory_resolve(at, (size_t)last);
  return empty || matrix->at;
}

void *host_matrix_at(const host_matrix_t *matrix, int64_t index, int64_t rows,
                     int64_t columns) {
  int64_t bytes = (int64_t)host_type_bytes(matrix->type);
  if (!matrix->by_address)
    return (char *)matrix->at + index * matrix->stride * bytes;
  return host_memory_resolve(
      ((void *const *)matrix->at)[index],
      (size_t)(((columns - 1) * matrix->ld + rows) * bytes));
}

typedef struct work {
  cudaError_t (*run)(void *job);
  size_t bytes; // of the job
  _Alignas(max_align_t) char job[];
} work_t;

static cudaError_t work_run(void *argument) {
  work_t *work = argument;
  return work->run(work->job);
}

// For another launch of a graph; a job is plain data.
static void *work_again(const void *argument) {
  const work_t *work = argument;
  work_t *copy = malloc(sizeof *work + work->bytes);
  if (copy)
    memcpy(copy, work, sizeof *work + work->bytes);
  return copy;
}

cublasStatus_t host_work_submit(cudaStream_t stream,
                                cudaError_t (*run)(void *job), const void *job,
                                size_t job_bytes) {
  work_t *work = malloc(sizeof *work + job_bytes);
  if (!work)
    return CUBLAS_STATUS_ALLOC_FAILED;
  work->run = run;
  work->bytes = job_bytes;
  memcpy(work->job, job, job_bytes);
  return host_stream_submit_again(stream, work_run, work, free, work_again) ==
                 cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
