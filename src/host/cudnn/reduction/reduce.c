// SPDX-License-Identifier: Apache-2.0
// ReduceTensor: every operation, with indices, along any dimensions.
#include <math.h>
#include <string.h>

#include "src/host/cudnn/base/scratch.h"
#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/host.h"
#include "src/host/cudnn/model/model.h"

typedef struct {
  struct cudnnReduceTensorStruct how;
  host_view_t a, c;
  uint32_t *indices; // one per element of c, or NULL
  double alpha, beta;
} job_t;

// Whether the operation chooses an element, and so has indices.
static bool chooses(cudnnReduceTensorOp_t op) {
  return op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX ||
         op == CUDNN_REDUCE_TENSOR_AMAX;
}

static bool wants_indices(const struct cudnnReduceTensorStruct *how) {
  return how->indices == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES &&
         chooses(how->op);
}

// The first element that wins. NaN wins if it propagates, else it loses.
static double choose(const struct cudnnReduceTensorStruct *how,
                     const double *values, int64_t count, uint32_t *out_index) {
  int64_t best = -1;
  bool least = how->op == CUDNN_REDUCE_TENSOR_MIN;
  bool size = how->op == CUDNN_REDUCE_TENSOR_AMAX;
  double best_key = 0;
  for (int64_t i = 0; i < count; i++) {
    double key = size ? fabs(values[i]) : least ? -values[i] : values[i];
    if (isnan(key)) {
      if (how->nan != CUDNN_PROPAGATE_NAN)
        continue;
      best = i;
      break;
    }
    if (best < 0 || key > best_key) {
      best = i;
      best_key = key;
    }
  }
  *out_index = best < 0 ? 0 : (uint32_t)best;
  double value = best < 0 ? NAN : values[best];
  return size ? fabs(value) : value;
}

static double combine(const struct cudnnReduceTensorStruct *how,
                      const double *values, int64_t count,
                      uint32_t *out_index) {
  double sum = 0, product = 1;
  *out_index = 0;
  switch (how->op) {
  case CUDNN_REDUCE_TENSOR_MIN:
  case CUDNN_REDUCE_TENSOR_MAX:
  case CUDNN_REDUCE_TENSOR_AMAX:
    return choose(how, values, count, out_index);
  case CUDNN_REDUCE_TENSOR_MUL:
    for (int64_t i = 0; i < count; i++)
      product *= values[i];
    return product;
  case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS:
    for (int64_t i = 0; i < count; i++)
      product *= values[i] == 0 ? 1 : values[i];
    return product;
  case CUDNN_REDUCE_TENSOR_NORM1:
    for (int64_t i = 0; i < count; i++)
      sum += fabs(values[i]);
    return sum;
  case CUDNN_REDUCE_TENSOR_NORM2:
    for (int64_t i = 0; i < count; i++)
      sum += values[i] * values[i];
    return sqrt(sum);
  case CUDNN_REDUCE_TENSOR_ADD:
  case CUDNN_REDUCE_TENSOR_AVG:
    break; // has no values
  }
  return NAN;
}

// Reduces the box at `at`.
static double reduced(const job_t *job, const int64_t *at, const int64_t *box,
                      int64_t count, double *values, uint32_t *out_index) {
  if (values) {
    host_view_load(&job->a, at, box, values);
    return combine(&job->how, values, count, out_index);
  }
  double sum = host_view_sum(&job->a, at, box);
  *out_index = 0;
  return job->how.op == CUDNN_REDUCE_TENSOR_AVG ? sum / (double)count : sum;
}

static bool run(void *argument) {
  const job_t *job = argument;
  const host_view_t *a = &job->a, *c = &job->c;
  int64_t at[CUDNN_DIM_MAX] = {0}, box[CUDNN_DIM_MAX], one[CUDNN_DIM_MAX];
  int64_t count = 1, outputs = host_view_elements(c);
  for (int i = 0; i < a->rank; i++) {
    box[i] = c->dim[i] == 1 ? a->dim[i] : 1;
    one[i] = 1;
    count *= box[i];
  }
  double *values = NULL;
  bool sums = job->how.op == CUDNN_REDUCE_TENSOR_ADD ||
              job->how.op == CUDNN_REDUCE_TENSOR_AVG;
  if (!sums)
    values =
        host_scratch_get(HOST_SCRATCH_INPUT, (size_t)count * sizeof *values);
  if (!sums && !values)
    return false;
  for (int64_t i = 0; i < outputs; i++) {
    uint32_t index;
    double value = reduced(job, at, box, count, values, &index);
    host_view_store(c, at, one, job->alpha, &value, job->beta);
    if (job->indices)
      job->indices[i] = index;
    for (int d = c->rank - 1; d >= 0 && ++at[d] == c->dim[d]; d--)
      at[d] = 0;
  }
  return true;
}

static cudnnStatus_t check(const struct cudnnReduceTensorStruct *how,
                           const struct cudnnTensorStruct *a,
                           const struct cudnnTensorStruct *c) {
  REFUSE_IF(!how || !a || !c || a->rank < 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(a->rank != c->rank, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; i < a->rank; i++)
    REFUSE_IF(c->dim[i] != a->dim[i] && c->dim[i] != 1, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF((a->type == CUDNN_DATA_DOUBLE) != (c->type == CUDNN_DATA_DOUBLE),
            CUDNN_STATUS_NOT_SUPPORTED);
  // Other index types are in the enumeration, but cuDNN never computed them.
  REFUSE_IF(wants_indices(how) && how->index_type != CUDNN_32BIT_INDICES,
            CUDNN_STATUS_NOT_SUPPORTED);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                             const cudnnReduceTensorDescriptor_t reduce,
                             const cudnnTensorDescriptor_t a,
                             const cudnnTensorDescriptor_t c, size_t *bytes) {
  REFUSE_IF(!handle || !bytes, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check(reduce, a, c);
  if (status)
    return status;
  size_t outputs = 1;
  for (int i = 0; i < c->rank; i++)
    outputs *= (size_t)c->dim[i];
  *bytes = wants_indices(reduce) ? outputs * sizeof(uint32_t) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                               const cudnnReduceTensorDescriptor_t reduce,
                               const cudnnTensorDescriptor_t a,
                               const cudnnTensorDescriptor_t c, size_t *bytes) {
  REFUSE_IF(!handle || !bytes, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check(reduce, a, c);
  if (!status)
    *bytes = 0;
  return status;
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle,
                                const cudnnReduceTensorDescriptor_t reduce,
                                void *indices, size_t indices_bytes,
                                void *workspace, size_t workspace_bytes,
                                const void *alpha,
                                const cudnnTensorDescriptor_t a,
                                const void *a_data, const void *beta,
                                const cudnnTensorDescriptor_t c, void *c_data) {
  (void)workspace;
  (void)workspace_bytes;
  REFUSE_IF(!handle || !alpha || !beta, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check(reduce, a, c);
  if (status)
    return status;
  // At least one dimension must be reduced.
  REFUSE_IF(memcmp(a->dim, c->dim, (size_t)a->rank * sizeof *a->dim) == 0,
            CUDNN_STATUS_BAD_PARAM);
  job_t job = {.how = *reduce,
               .alpha = host_scalar(alpha, c->type),
               .beta = host_scalar(beta, c->type)};
  const host_model_call_t model = {.operands = 2,
                                   .operand = {{a, a_data}, {c, c_data}},
                                   .inner = reduce->compute_type};
  status = host_model_check(__func__, "cudnnReduceTensor", &model);
  if (!status)
    status = host_view_init(a, a_data, &job.a);
  if (!status)
    status = host_view_init(c, c_data, &job.c);
  if (status)
    return status;
  if (wants_indices(reduce)) {
    size_t bytes = (size_t)host_view_elements(&job.c) * sizeof(uint32_t);
    REFUSE_IF(!indices || indices_bytes < bytes, CUDNN_STATUS_BAD_PARAM);
    job.indices = host_memory_resolve(indices, bytes);
    REFUSE_IF(!job.indices, CUDNN_STATUS_EXECUTION_FAILED);
  }
  return host_work_queue(handle, run, &job, sizeof job);
}
