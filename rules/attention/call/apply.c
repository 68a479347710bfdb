// SPDX-License-Identifier: Apache-2.0
// Makes a rank's own call of an attention function.
#include "rules/attention/call/apply.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "rules/kit/subcall_state.h"
#include "rules/vendor/sequence.h"
#include "rules/vendor/vendor.h"
#include "src/base/vendor.h"

enum { Q, K, V, O, SEQUENCES, MORE = SEQUENCES };

// What the sub-call stores. `lo` is the address of one block of memory: lo, hi,
// then the lengths of queries, then those of keys. The lengths are copied to
// the end of the workspace.
typedef struct state {
  sdg_attention_kind_t kind;
  bool adds, residual, apart;
  int reserve; // index of its tensor in run->data; 0: none
  size_t reserve_bytes;
  cudnnAttnDescriptor_t attention;
  cudnnSeqDataDescriptor_t sequence[SEQUENCES];
  int *lo, *hi, *length;
  size_t work_bytes, q_lengths, lengths;
} state_t;

static void state_destroy(void *op) {
  state_t *state = op;
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (state->attention)
    (void)cudnn->cudnnDestroyAttnDescriptor(state->attention);
  for (int i = 0; i < SEQUENCES; i++)
    if (state->sequence[i])
      (void)cudnn->cudnnDestroySeqDataDescriptor(state->sequence[i]);
  free(state->lo);
  free(state);
}

// Copies the lengths of the descriptors to device memory.
static bool lengths_upload(const sdg_subcall_run_t *run, int **out_q,
                           int **out_k) {
  const state_t *state = run->op;
  cudaStream_t stream;
  *out_q = (int *)((char *)run->workspace + state->work_bytes);
  *out_k = *out_q + state->q_lengths;
  return sdg_cudnn_get()->cudnnGetStream(run->handle, &stream) ==
             CUDNN_STATUS_SUCCESS &&
         sdg_vendor_get()->cudaMemcpyAsync(
             *out_q, state->length, state->lengths * sizeof(int),
             cudaMemcpyHostToDevice, stream) == cudaSuccess;
}

// Parameters and reserve space of a sub-call: the program's, or the plan's.
typedef struct given {
  size_t weight_bytes, reserve_bytes;
  const void *weights;
  void *reserve;
} given_t;

static given_t given_read(const sdg_subcall_run_t *run) {
  const state_t *state = run->op;
  sdg_attention_t a;
  if (state->apart)
    return (given_t){.reserve_bytes = state->reserve_bytes,
                     .reserve =
                         state->reserve ? run->data[state->reserve] : NULL};
  (void)sdg_attention_read(run->call, &a);
  return (given_t){a.weight_bytes, a.reserve_bytes, a.weights, a.reserve};
}

static cudnnStatus_t forward_run(const sdg_subcall_run_t *run) {
  const state_t *state = run->op;
  given_t a = given_read(run);
  int *q_lengths, *k_lengths;
  if (!lengths_upload(run, &q_lengths, &k_lengths))
    return CUDNN_STATUS_EXECUTION_FAILED;
  return sdg_cudnn_get()->cudnnMultiHeadAttnForward(
      run->handle, state->attention, -1, state->lo, state->hi, q_lengths,
      k_lengths, state->sequence[Q], run->data[Q],
      state->residual ? run->data[MORE] : NULL, state->sequence[K],
      run->data[K], state->sequence[V], run->data[V], state->sequence[O],
      run->data[O], a.weight_bytes, a.weights, state->work_bytes,
      run->workspace, a.reserve_bytes, a.reserve);
}

static cudnnStatus_t data_run(const sdg_subcall_run_t *run) {
  const state_t *state = run->op;
  given_t a = given_read(run);
  int *q_lengths, *k_lengths;
  if (!lengths_upload(run, &q_lengths, &k_lengths))
    return CUDNN_STATUS_EXECUTION_FAILED;
  return sdg_cudnn_get()->cudnnMultiHeadAttnBackwardData(
      run->handle, state->attention, state->lo, state->hi, q_lengths, k_lengths,
      state->sequence[O], run->data[O], state->sequence[Q], run->data[MORE],
      run->data[Q], state->sequence[K], run->data[MORE + 1], run->data[K],
      state->sequence[V], run->data[MORE + 2], run->data[V], a.weight_bytes,
      a.weights, state->work_bytes, run->workspace, a.reserve_bytes, a.reserve);
}

static cudnnStatus_t weights_run(const sdg_subcall_run_t *run) {
  const state_t *state = run->op;
  given_t a = given_read(run);
  return sdg_cudnn_get()->cudnnMultiHeadAttnBackwardWeights(
      run->handle, state->attention,
      state->adds ? CUDNN_WGRAD_MODE_ADD : CUDNN_WGRAD_MODE_SET,
      state->sequence[Q], run->data[Q], state->sequence[K], run->data[K],
      state->sequence[V], run->data[V], state->sequence[O], run->data[O],
      a.weight_bytes, a.weights, run->data[MORE], state->work_bytes,
      run->workspace, a.reserve_bytes, a.reserve);
}

static int extent(const sdg_subcall_tensor_t *tensor, int dim) {
  return (int)(tensor->box.dim[dim].hi - tensor->box.dim[dim].lo);
}

static int greater(int a, int b) {
  return a > b ? a : b;
}

static void lengths_fill(const int *length, int full, size_t count, int *out) {
  for (size_t i = 0; i < count; i++)
    out[i] = length ? length[i] : full;
}

// Allocates the block of windows and lengths, and fills it.
static sdg_status_t numbers_fill(const sdg_attention_apply_t *sub,
                                 state_t *state) {
  size_t rows = sub->lo ? (size_t)extent(&sub->q, SDG_SEQUENCE_TIME) : 0;
  state->q_lengths = (size_t)extent(&sub->q, SDG_SEQUENCE_BATCH) *
                     (size_t)extent(&sub->q, SDG_SEQUENCE_BEAM);
  state->lengths =
      state->q_lengths + (size_t)extent(&sub->k, SDG_SEQUENCE_BATCH) *
                             (size_t)extent(&sub->k, SDG_SEQUENCE_BEAM);
  state->lo = malloc((2 * rows + state->lengths) * sizeof *state->lo);
  if (!state->lo)
    return sdg_fail(SDG_E_NO_MEMORY, "windows of %zu queries", rows);
  state->hi = state->lo + rows;
  state->length = state->hi + rows;
  if (rows > 0) {
    memcpy(state->lo, sub->lo, rows * sizeof *sub->lo);
    memcpy(state->hi, sub->hi, rows * sizeof *sub->hi);
  }
  lengths_fill(sub->q_length, extent(&sub->q, SDG_SEQUENCE_TIME),
               state->q_lengths, state->length);
  lengths_fill(sub->k_length, extent(&sub->k, SDG_SEQUENCE_TIME),
               state->lengths - state->q_lengths,
               state->length + state->q_lengths);
  return SDG_OK;
}

static sdg_status_t state_fill(const sdg_plan_t *plan, const sdg_call_t *call,
                               const sdg_attention_apply_t *sub,
                               state_t *state) {
  sdg_attention_descriptor_t desc = sub->desc;
  sdg_attention_room_t room;
  sdg_attention_t a;
  (void)sdg_attention_read(call, &a);
  desc.q_time = greater(desc.q_time, extent(&sub->q, SDG_SEQUENCE_TIME));
  desc.k_time = greater(desc.k_time, extent(&sub->k, SDG_SEQUENCE_TIME));
  SDG_TRY(sdg_attention_descriptor_create(&desc, &state->attention));
  SDG_TRY(
      sdg_attention_descriptor_room(sdg_subcalls_handle(plan), &desc, &room));
  state->reserve_bytes = sub->reserve < 0 ? 0 : room.reserve_bytes;
  if (!sub->apart && a.reserve && a.reserve_bytes < room.reserve_bytes)
    return sdg_fail(SDG_E_ATTENTION_RESERVE,
                    "%s: the reserve space has %zu bytes, but %zu are needed",
                    call->entry_name, a.reserve_bytes, room.reserve_bytes);
  state->work_bytes = (room.work_bytes + 255) & ~(size_t)255;
  const sdg_subcall_tensor_t *const tensor[] = {&sub->q, &sub->k, &sub->v,
                                                &sub->o};
  for (int i = 0; i < SEQUENCES; i++)
    SDG_TRY(sdg_sequence_create(
        tensor[i]->type, &tensor[i]->box, plan->slab[tensor[i]->slab].stride,
        i == K || i == V ? sub->k_length : sub->q_length, &state->sequence[i]));
  return numbers_fill(sub, state);
}

sdg_status_t sdg_attention_apply_add(sdg_plan_t *plan, const sdg_call_t *call,
                                     const sdg_attention_apply_t *sub) {
  sdg_subcall_t made = {
      .fn = forward_run,
      .tensors = MORE,
      .tensor = {[Q] = sub->q, [K] = sub->k, [V] = sub->v, [O] = sub->o}};
  if (sub->kind == SDG_ATTENTION_FORWARD && sub->residual) {
    made.tensor[made.tensors++] = *sub->residual;
  } else if (sub->kind == SDG_ATTENTION_DATA) {
    made.fn = data_run;
    made.tensor[made.tensors++] = sub->dq;
    made.tensor[made.tensors++] = sub->dk;
    made.tensor[made.tensors++] = sub->dv;
  } else if (sub->kind == SDG_ATTENTION_WEIGHTS) {
    made.fn = weights_run;
    made.tensor[made.tensors++] = sub->dw;
  }
  state_t *state;
  SDG_TRY(SDG_ALLOCATE(state, 1, "a plan"));
  state->kind = sub->kind;
  state->adds = sub->adds;
  state->residual = sub->residual != NULL;
  state->apart = sub->apart;
  if (sub->apart && sub->reserve >= 0) {
    state->reserve = made.tensors;
    made.tensor[made.tensors++] =
        sdg_subcall_slab(plan, sub->reserve, CUDNN_DATA_FLOAT);
  }
  sdg_status_t status = state_fill(plan, call, sub, state);
  if (status != SDG_OK) {
    state_destroy(state);
    return status;
  }
  made.op = state;
  made.op_destroy = state_destroy;
  made.workspace_bytes = state->work_bytes + state->lengths * sizeof(int);
  return sdg_subcall_add(plan, &made);
}

sdg_status_t sdg_attention_apply_reserve(sdg_plan_t *plan,
                                         const sdg_attention_descriptor_t *desc,
                                         int *out_slab) {
  static const int64_t row_major[SDG_DIMS_MAX] = {4, 3, 2, 1};
  sdg_box_t box = {.dims = 4, .dim = {{0, 1}, {0, 1}, {0, 1}, {0, 1}}};
  sdg_attention_room_t room;
  SDG_TRY(
      sdg_attention_descriptor_room(sdg_subcalls_handle(plan), desc, &room));
  box.dim[3].hi = (int64_t)(room.reserve_bytes / sizeof(float)) + 1;
  return sdg_plan_packed(plan, &box, row_major, sizeof(float), out_slab);
}
