// SPDX-License-Identifier: Apache-2.0
// CTC loss and its gradient, in doubles and logarithms, one sequence after the
// other (Graves et al., "Connectionist Temporal Classification", 2006).
//
// Symbol 0 is the blank. As on GPUs, with softmax the gradients are with
// respect to the input of the softmax: p - share, where share is the part of
// the paths that emit the symbol at that time. Without softmax they are with
// respect to p: -share / p, and p itself where no path emits the symbol.
// Gradients behind the end of a sequence keep their old values. A sequence too
// short for its labels has cost 0, and gradient 0 up to the end of the longest
// sequence; if such sequences are skipped, the gradient keeps its old values.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/base/work.h"
#include "src/host/cudnn/descriptor/life.h"
#include "src/host/host.h"

typedef struct {
  bool softmax,
      skips; // skips: leaves gradients of impossible sequences unchanged
  cudnnDataType_t cost_type;
  host_view_t probs, gradients; // gradients.data: NULL for costs only
  void *costs;
  // Addresses for the host. `device_labels` is a device address, because its
  // size is known only from the lengths. NULL: all three are in `copied`.
  const int *device_labels, *label_lengths, *input_lengths;
  int copied[]; // label lengths, input lengths, labels
} job_t;

typedef struct {
  int64_t times, states; // 2 * labels + 1
  int64_t alphabet;
  const int *labels;
  double *log_p;        // times x alphabet
  double *alpha, *beta; // times x states
} sequence_t;

static double log_add(double a, double b) {
  double most = a > b ? a : b, least = a > b ? b : a;
  return most == -INFINITY ? most : most + log1p(exp(least - most));
}

static int symbol(const sequence_t *s, int64_t state) {
  return state % 2 ? s->labels[state / 2] : 0;
}

// A path may leave out the blank between two different labels.
static bool jumps(const sequence_t *s, int64_t state) {
  return state % 2 && state > 1 && symbol(s, state) != symbol(s, state - 2);
}

static double log_of(const sequence_t *s, int64_t t, int64_t state) {
  return s->log_p[t * s->alphabet + symbol(s, state)];
}

// alpha: log probability of all ways to a state at t; beta: of all ways from it
// to the end. Both include the symbol emitted at t.
static void walk(const sequence_t *s) {
  int64_t n = s->states;
  for (int64_t t = 0; t < s->times; t++)
    for (int64_t i = 0; i < n; i++) {
      const double *past = s->alpha + (t - 1) * n;
      double sum = t == 0 ? (i < 2 ? 0 : -INFINITY) : past[i];
      if (t && i > 0)
        sum = log_add(sum, past[i - 1]);
      if (t && jumps(s, i))
        sum = log_add(sum, past[i - 2]);
      s->alpha[t * n + i] = sum + log_of(s, t, i);
    }
  for (int64_t t = s->times - 1; t >= 0; t--)
    for (int64_t i = n - 1; i >= 0; i--) {
      const double *next = s->beta + (t + 1) * n;
      bool last = t == s->times - 1;
      double sum = last ? (i >= n - 2 ? 0 : -INFINITY) : next[i];
      if (!last && i + 1 < n)
        sum = log_add(sum, next[i + 1]);
      if (!last && i + 2 < n && jumps(s, i + 2))
        sum = log_add(sum, next[i + 2]);
      s->beta[t * n + i] = sum + log_of(s, t, i);
    }
}

static double likelihood(const sequence_t *s) {
  const double *last = s->alpha + (s->times - 1) * s->states;
  double sum = last[s->states - 1];
  return s->states > 1 ? log_add(sum, last[s->states - 2]) : sum;
}

// Rows of log p: given, or computed by softmax.
static void load(const job_t *job, int64_t n, const sequence_t *s) {
  int64_t box[3] = {1, 1, s->alphabet};
  for (int64_t t = 0; t < s->times; t++) {
    double *row = s->log_p + t * s->alphabet, most = -INFINITY, sum = 0;
    host_view_load(&job->probs, (const int64_t[]){t, n, 0}, box, row);
    for (int64_t k = 0; k < s->alphabet; k++)
      most = row[k] > most ? row[k] : most;
    for (int64_t k = 0; k < s->alphabet && job->softmax; k++)
      sum += exp(row[k] - most);
    for (int64_t k = 0; k < s->alphabet; k++)
      row[k] = job->softmax ? row[k] - most - log(sum) : log(row[k]);
  }
}

// Zeros for the `times` of an impossible sequence.
static void store_zeros(const job_t *job, int64_t n, int64_t times,
                        double *row) {
  int64_t box[3] = {1, 1, job->probs.dim[2]};
  memset(row, 0, (size_t)box[2] * sizeof *row);
  for (int64_t t = 0; t < times; t++)
    host_view_store(&job->gradients, (const int64_t[]){t, n, 0}, box, 1, row,
                    0);
}

static void store_gradients(const job_t *job, int64_t n, const sequence_t *s,
                            double total, double *share) {
  int64_t box[3] = {1, 1, s->alphabet};
  for (int64_t t = 0; t < s->times; t++) {
    memset(share, 0, (size_t)s->alphabet * sizeof *share);
    for (int64_t i = 0; i < s->states; i++) {
      int64_t at = t * s->states + i;
      double log = s->alpha[at] + s->beta[at] - log_of(s, t, i) - total;
      if (log > -INFINITY)
        share[symbol(s, i)] += exp(log);
    }
    for (int64_t k = 0; k < s->alphabet; k++) {
      double p = exp(s->log_p[t * s->alphabet + k]);
      share[k] = job->softmax    ? p - share[k]
                 : share[k] == 0 ? p
                                 : -share[k] / p;
    }
    host_view_store(&job->gradients, (const int64_t[]){t, n, 0}, box, 1, share,
                    0);
  }
}

static bool run_sequence(const job_t *job, int64_t n, const int *labels,
                         int64_t count, int64_t times, int64_t longest,
                         double *out_cost) {
  sequence_t s = {.times = times,
                  .states = 2 * count + 1,
                  .alphabet = job->probs.dim[2],
                  .labels = labels};
  size_t cells = (size_t)(times * s.states);
  double *block =
      malloc((2 * cells + (size_t)((times + 1) * s.alphabet)) * sizeof *block);
  if (!block)
    return false;
  s.alpha = block;
  s.beta = block + cells;
  s.log_p = s.beta + cells;
  load(job, n, &s);
  walk(&s);
  double total = likelihood(&s);
  bool possible = total > -INFINITY;
  double *row = s.log_p + times * s.alphabet;
  *out_cost = possible ? -total : 0;
  if (job->gradients.data && possible)
    store_gradients(job, n, &s, total, row);
  else if (job->gradients.data && !job->skips)
    store_zeros(job, n, longest, row);
  free(block);
  return true;
}

// Lengths and symbols in device memory are read here first. Invalid ones end in
// NaN, not in access beyond the tables.
static bool fits(const job_t *job, const int *labels, int64_t count,
                 int64_t times) {
  if (count < 0 || times < 1 || times > job->probs.dim[0])
    return false;
  for (int64_t i = 0; i < count; i++)
    if (labels[i] < 1 || labels[i] >= job->probs.dim[2])
      return false;
  return true;
}

static bool run(void *argument) {
  const job_t *job = argument;
  int64_t batch = job->probs.dim[1], first = 0;
  const int *lengths = job->copied, *times = job->copied + batch;
  const int *labels = job->copied + 2 * batch;
  if (job->device_labels) {
    size_t count = 0;
    lengths = job->label_lengths;
    times = job->input_lengths;
    for (int64_t n = 0; n < batch; n++)
      count += lengths[n] > 0 ? (size_t)lengths[n] : 0;
    labels = host_memory_resolve(job->device_labels, count * sizeof *labels);
    if (!labels)
      return false;
  }
  size_t unit = host_type_bytes(job->cost_type);
  int64_t longest = 0;
  for (int64_t n = 0; n < batch; n++)
    if (times[n] > longest && times[n] <= job->probs.dim[0])
      longest = times[n];
  for (int64_t n = 0; n < batch; n++) {
    double cost = NAN;
    if (fits(job, labels + first, lengths[n], times[n]) &&
        !run_sequence(job, n, labels + first, lengths[n], times[n], longest,
                      &cost))
      return false;
    host_elements_store(job->cost_type, (char *)job->costs + (size_t)n * unit,
                        1, 1, 1, &cost, 0);
    first += lengths[n] > 0 ? lengths[n] : 0;
  }
  return true;
}

static cudnnStatus_t check(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                           const struct cudnnCTCLossStruct *loss,
                           const struct cudnnTensorStruct *probs,
                           const struct cudnnTensorStruct *gradients) {
  REFUSE_IF(!handle || !loss || !probs, CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(!host_in_range(algo, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC,
                           CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC),
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(probs->rank < 3, CUDNN_STATUS_BAD_PARAM);
  for (int i = 3; i < probs->rank; i++)
    REFUSE_IF(probs->dim[i] != 1, CUDNN_STATUS_BAD_PARAM);
  for (int i = 0; gradients && i < 3; i++)
    REFUSE_IF(gradients->dim[i] != probs->dim[i], CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(gradients && gradients->rank != probs->rank,
            CUDNN_STATUS_BAD_PARAM);
  REFUSE_IF(loss->compute_type != CUDNN_DATA_FLOAT &&
                loss->compute_type != CUDNN_DATA_DOUBLE,
            CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t begin(const struct cudnnCTCLossStruct *loss,
                           const struct cudnnTensorStruct *probs,
                           const void *probs_data, void *costs,
                           const struct cudnnTensorStruct *gradients,
                           void *gradients_data, job_t *job) {
  REFUSE_IF(!probs_data || !costs || (gradients_data && !gradients),
            CUDNN_STATUS_BAD_PARAM);
  job->softmax = loss->norm == CUDNN_LOSS_NORMALIZATION_SOFTMAX;
  job->skips = loss->gradient != CUDNN_NOT_PROPAGATE_NAN;
  job->cost_type = loss->compute_type;
  cudnnStatus_t status = host_view_init(probs, probs_data, &job->probs);
  if (!status && gradients_data)
    status = host_view_init(gradients, gradients_data, &job->gradients);
  if (status)
    return status;
  job->probs.rank = job->gradients.rank = 3;
  job->costs = host_memory_resolve(
      costs, (size_t)probs->dim[1] * host_type_bytes(loss->compute_type));
  REFUSE_IF(!job->costs, CUDNN_STATUS_EXECUTION_FAILED);
  return CUDNN_STATUS_SUCCESS;
}

static const int *reach(const int *pointer, int64_t count) {
  return host_memory_resolve(pointer, (size_t)count * sizeof *pointer);
}

cudnnStatus_t cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                              cudnnCTCLossDescriptor_t loss,
                              const cudnnTensorDescriptor_t probs,
                              const void *probs_data, const int labels[],
                              const int label_lengths[],
                              const int input_lengths[], void *costs,
                              const cudnnTensorDescriptor_t gradients,
                              void *gradients_data, size_t work_bytes,
                              void *work) {
  (void)work_bytes; // intermediate results are not in the program's memory
  (void)work;
  cudnnStatus_t status = check(handle, algo, loss, probs, gradients);
  if (status)
    return status;
  REFUSE_IF(!labels || !label_lengths || !input_lengths,
            CUDNN_STATUS_BAD_PARAM);
  job_t job = {.device_labels = labels,
               .label_lengths = reach(label_lengths, probs->dim[1]),
               .input_lengths = reach(input_lengths, probs->dim[1])};
  REFUSE_IF(!reach(labels, 0) || !job.label_lengths || !job.input_lengths,
            CUDNN_STATUS_EXECUTION_FAILED);
  status =
      begin(loss, probs, probs_data, costs, gradients, gradients_data, &job);
  return status ? status : host_work_queue(handle, run, &job, sizeof job);
}

cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle,
                           const cudnnTensorDescriptor_t probs,
                           const void *probs_data, const int labels[],
                           const int label_lengths[], const int input_lengths[],
                           void *costs, const cudnnTensorDescriptor_t gradients,
                           void *gradients_data, cudnnCTCLossAlgo_t algo,
                           cudnnCTCLossDescriptor_t loss, void *work,
                           size_t work_bytes) {
  (void)work;
  (void)work_bytes;
  cudnnStatus_t status = check(handle, algo, loss, probs, gradients);
  if (status)
    return status;
  REFUSE_IF(!labels || !label_lengths || !input_lengths,
            CUDNN_STATUS_BAD_PARAM);
  size_t batch = (size_t)probs->dim[1], count = 0;
  for (size_t n = 0; n < batch; n++) {
    REFUSE_IF(label_lengths[n] < 0 || input_lengths[n] < 1 ||
                  input_lengths[n] > probs->dim[0],
              CUDNN_STATUS_BAD_PARAM);
    count += (size_t)label_lengths[n];
  }
  for (size_t i = 0; i < count; i++)
    REFUSE_IF(labels[i] < 1 || labels[i] >= probs->dim[2],
              CUDNN_STATUS_BAD_PARAM);
  size_t bytes = sizeof(job_t) + (2 * batch + count) * sizeof(int);
  job_t *job = calloc(1, bytes);
  REFUSE_IF(!job, CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
  memcpy(job->copied, label_lengths, batch * sizeof(int));
  memcpy(job->copied + batch, input_lengths, batch * sizeof(int));
  memcpy(job->copied + 2 * batch, labels, count * sizeof(int));
  status =
      begin(loss, probs, probs_data, costs, gradients, gradients_data, job);
  if (!status)
    status = host_work_queue(handle, run, job, bytes);
  free(job);
  return status;
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize_v8(
    cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
    cudnnCTCLossDescriptor_t loss, const cudnnTensorDescriptor_t probs,
    const cudnnTensorDescriptor_t gradients, size_t *bytes) {
  REFUSE_IF(!bytes, CUDNN_STATUS_BAD_PARAM);
  cudnnStatus_t status = check(handle, algo, loss, probs, gradients);
  if (!status)
    *bytes = 0;
  return status;
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t probs,
    const cudnnTensorDescriptor_t gradients, const int *labels,
    const int *label_lengths, const int *input_lengths, cudnnCTCLossAlgo_t algo,
    cudnnCTCLossDescriptor_t loss, size_t *bytes) {
  REFUSE_IF(!labels || !label_lengths || !input_lengths,
            CUDNN_STATUS_BAD_PARAM);
  return cudnnGetCTCLossWorkspaceSize_v8(handle, algo, loss, probs, gradients,
                                         bytes);
}
