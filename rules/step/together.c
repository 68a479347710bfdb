// SPDX-License-Identifier: Apache-2.0
// Puts the ranks' values together: those in host memory over the control
// channel, those in device memory by a plan.
#include "rules/step/together.h"

#include <cudnn.h>
#include <library_types.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/step/divergence.h"
#include "rules/step/step.h"
#include "rules/vendor/vendor.h"
#include "src/base/hash.h"
#include "src/job/job.h"
#include "src/job/thread.h"

typedef struct value {
  double re, im;
} value_t;

// What ranks tell each other. The ops of ranks on other nodes are compared only
// some time later (sdg_control_step): a value says what it is of.
typedef struct record {
  uint64_t hash, contents[2]; // 0: unknown
  value_t value;
} record_t;

static bool records_match(const record_t *a, const record_t *b) {
  for (int i = 0; i < 2; i++)
    if (a->contents[i] != b->contents[i] && a->contents[i] && b->contents[i])
      return false;
  return a->hash == b->hash;
}

static bool is_double(int type) {
  return type == CUDA_R_64F || type == CUDA_C_64F;
}

static int parts_of(int type) {
  return type == CUDA_C_32F || type == CUDA_C_64F ? 2 : 1;
}

bool sdg_together_may(const sdg_vector_t *vector) {
  int type = vector->type_result;
  return vector->op < SDG_VECTOR_INDEX &&
         (type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_C_32F ||
          type == CUDA_C_64F);
}

sdg_status_t sdg_together_check(const sdg_vector_t *vector) {
  if (vector->op == SDG_VECTOR_INDEX)
    return sdg_fail(SDG_E_VALUE_KIND,
                    "%s: the index of an element in one piece is not its index "
                    "in the whole",
                    vector->entry_name);
  return sdg_together_may(vector)
             ? SDG_OK
             : sdg_fail(SDG_E_VALUE_KIND, "%s: a result of type %d",
                        vector->entry_name, vector->type_result);
}

static sdg_report_row_t *row_of(const sdg_vector_t *vector) {
  return sdg_report_find(vector->entry_name, "-", "value");
}

// ---- in host memory --------------------------------------------------------

static value_t value_get(const sdg_vector_t *vector) {
  const void *at = vector->result;
  value_t value = {0, 0};
  if (is_double(vector->type_result))
    memcpy(&value, at, (size_t)parts_of(vector->type_result) * sizeof(double));
  else {
    float part[2] = {0, 0};
    memcpy(part, at, (size_t)parts_of(vector->type_result) * sizeof *part);
    value = (value_t){(double)part[0], (double)part[1]};
  }
  return value;
}

static void value_put(const sdg_vector_t *vector, value_t value) {
  size_t parts = (size_t)parts_of(vector->type_result);
  float part[2] = {(float)value.re, (float)value.im};
  if (is_double(vector->type_result))
    memcpy(vector->result, &value, parts * sizeof(double));
  else
    memcpy(vector->result, part, parts * sizeof *part);
}

// Square root of 1 to the number of ranks, by Heron's method: the library must
// need only the C library, not libm.
static double root(double square) {
  double x = square;
  for (int i = 0; i < 64; i++)
    x = (x + square / x) / 2;
  return x;
}

// The norm of norms, without overflow, in the order of ranks: the same bits on
// all of them.
static double norm_of(const value_t *value, int ranks) {
  double largest = 0, sum = 0;
  for (int i = 0; i < ranks; i++) {
    if (isnan(value[i].re))
      return value[i].re;
    if (value[i].re > largest)
      largest = value[i].re;
  }
  if (largest == 0 || isinf(largest))
    return largest;
  for (int i = 0; i < ranks; i++)
    sum += value[i].re / largest * (value[i].re / largest);
  return largest * root(sum);
}

static value_t all_of(const sdg_vector_t *vector, const value_t *value,
                      int ranks) {
  value_t sum = {0, 0};
  for (int i = 0; i < ranks; i++) {
    sum.re += value[i].re;
    sum.im += value[i].im;
  }
  if (vector->op == SDG_VECTOR_NRM2)
    sum.re = norm_of(value, ranks);
  return sum;
}

// `rank`: the ranks whose values become this rank's.
static sdg_status_t host_make(const sdg_vector_t *vector, uint64_t hash,
                              const uint64_t contents[2], const int *rank,
                              int ranks) {
  const sdg_group_t *group = sdg_job_group();
  sdg_records_t all = {.data = NULL};
  value_t *value;
  record_t mine = {hash, {contents[0], contents[1]}, value_get(vector)}, theirs;
  sdg_status_t status;
  SDG_TRY(
      SDG_ALLOCATE(value, group->count, "values of %d ranks", group->count));
  SDG_TRY_GOTO(sdg_job_gather(sdg_channel_get(), &mine, sizeof mine,
                              vector->entry_name, &all),
               out);
  for (int r = 0; r < group->count; r++) {
    memcpy(&theirs, all.data[r], sizeof theirs);
    if (all.bytes[r] != sizeof theirs || !records_match(&theirs, &mine)) {
      status = sdg_fail(
          SDG_E_DIVERGED,
          "rank %d does not make the same %s as rank %d: it makes another "
          "call, or has other lengths, increments, types or tensors",
          group->rank[r], vector->entry_name, sdg_job_rank());
      goto out;
    }
    for (int i = 0; i < ranks; i++)
      if (group->rank[r] == rank[i])
        value[i] = theirs.value;
  }
  value_put(vector, all_of(vector, value, ranks));
  sdg_report_update(row_of(vector));
out:
  free(value);
  sdg_records_free(&all);
  return status;
}

// ---- in device memory ------------------------------------------------------

enum { KINDS = 2 * 2 * 2 * 2, AXES = 1 << SDG_AXES_MAX };

// Of each thread: of the first pieces or of this rank's, a norm or a sum, of
// float or double, real or complex.
static sdg_plan_t *plans[SDG_CHANNEL_THREADS][KINDS][AXES];

void sdg_together_forget(void) {
  for (int t = 0; t < SDG_CHANNEL_THREADS; t++)
    for (int kind = 0; kind < KINDS; kind++)
      for (int axes = 0; axes < AXES; axes++) {
        sdg_plan_destroy(plans[t][kind][axes]);
        plans[t][kind][axes] = NULL;
      }
}

// The norm of the ranks' norms.
typedef struct norm {
  int slab, ranks;
} norm_t;

static int norm_run(void *state, int index, const sdg_call_t *call,
                    const sdg_exec_t *exec) {
  const norm_t *norm = state;
  const sdg_cublas_t *cublas = sdg_cublas_get();
  cublasHandle_t handle = (cublasHandle_t)(uintptr_t)call->handle;
  const void *all = sdg_exec_address(exec, norm->slab);
  void *result = call->operand[0].data;
  (void)index;
  // The pointer mode is still that of the program's call.
  return call->operand[0].type == CUDNN_DATA_DOUBLE
             ? (int)cublas->cublasDnrm2_v2(handle, norm->ranks, all, 1, result)
             : (int)cublas->cublasSnrm2_v2(handle, norm->ranks, all, 1, result);
}

// `me`: the place of this rank's norm among all; -1: it has none.
static sdg_status_t norm_plan(const sdg_call_t *call, int own, int me,
                              int ranks, sdg_plan_t *plan) {
  const int64_t stride[SDG_DIMS_MAX] = {1};
  sdg_box_t all = {.dims = 1};
  norm_t *norm = calloc(1, sizeof *norm);
  all.dim[0].hi = ranks;
  if (!norm)
    return sdg_fail(SDG_E_NO_MEMORY, "a plan");
  plan->state = norm;
  plan->state_destroy = free;
  plan->run = norm_run;
  norm->ranks = ranks;
  SDG_TRY(sdg_plan_packed(plan, &all, stride, call->operand[0].elem_bytes,
                          &norm->slab));
  SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, norm->slab, &all));
  const int64_t shift[SDG_DIMS_MAX] = {me};
  if (me >= 0)
    SDG_TRY(sdg_plan_copy(plan, SDG_LANE_MAIN, own, norm->slab, shift, NULL,
                          SDG_COPY_STRIP));
  SDG_TRY(sdg_plan_reduce(plan, norm->slab, call->operand[0].type,
                          SDG_COMBINE_SUM));
  SDG_TRY(sdg_plan_join(plan, SDG_LANE_MAIN));
  return sdg_plan_call(plan, 0);
}

// Which ranks' values become one. Example: where axis `data` has the same
// pieces again, the sums over `y` of ranks 0 to 3 and of ranks 4 to 7 may
// differ in their last bits, and a loop that ends by them would end at
// different steps. So all ranks take that of ranks 0 to 3: then they sum over
// both axes, and ranks 4 to 7 give 0.
typedef struct pieces {
  int rank[SDG_RANKS_MAX], ranks; /* whose values count */
  int me;                         /* this rank's place among them; -1: none */
  sdg_axes_t axes, reduce_axes;
} pieces_t;

static void pieces_of(sdg_axes_t axes, bool same, pieces_t *out) {
  int from = same ? sdg_job_group()->rank[0] : sdg_job_rank();
  out->axes = axes;
  out->reduce_axes = same ? sdg_job_axes() : axes;
  out->ranks = sdg_mesh_group(sdg_job_mesh(), from, axes, out->rank);
  out->me = -1;
  for (int i = 0; i < out->ranks; i++)
    if (out->rank[i] == sdg_job_rank())
      out->me = i;
}

static sdg_status_t sum_plan(const sdg_call_t *call, int own,
                             const sdg_box_t *box, const pieces_t *pieces,
                             sdg_plan_t *plan) {
  if (pieces->me < 0)
    SDG_TRY(sdg_plan_zero(plan, SDG_LANE_MAIN, own, box));
  return sdg_plan_reduce(plan, own, call->operand[0].type, SDG_COMBINE_SUM);
}

static sdg_status_t plan_make(const sdg_vector_t *vector,
                              const sdg_call_t *call, const pieces_t *pieces,
                              sdg_plan_t **out_plan) {
  sdg_box_t own = {.dims = 1};
  int slab;
  own.dim[0].hi = call->operand[0].extent[0];
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("value", &plan));
  plan->reduce_axes = pieces->reduce_axes;
  sdg_status_t status = sdg_plan_operand(plan, call, 0, &own, &slab);
  if (status == SDG_OK)
    status = vector->op == SDG_VECTOR_NRM2
                 ? norm_plan(call, slab, pieces->me, pieces->ranks, plan)
                 : sum_plan(call, slab, &own, pieces, plan);
  if (status == SDG_OK)
    status = sdg_step_connect(plan);
  return sdg_plan_finish(plan, status, out_plan);
}

static sdg_status_t device_make(const sdg_vector_t *vector,
                                const pieces_t *pieces, sdg_call_t *call,
                                cudaStream_t stream) {
  bool wide = is_double(vector->type_result);
  int parts = parts_of(vector->type_result);
  call->operands = 1;
  call->operand[0] = (sdg_operand_t){
      .role = SDG_ROLE_Y,
      .is_output = true,
      .data = vector->result,
      .type = wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
      .elem_bytes = wide ? 8 : 4,
      .dims = 1,
      .extent = {parts},
      .stride = {1},
  };
  int kind = (pieces->reduce_axes != pieces->axes) * 8 +
             (vector->op == SDG_VECTOR_NRM2) * 4 + wide * 2 + (parts - 1);
  sdg_plan_t **plan = &plans[sdg_channel_get()][kind][pieces->axes];
  if (!*plan)
    SDG_TRY(plan_make(vector, call, pieces, plan));
  sdg_outcome_t outcome;
  sdg_report_row_t *row = row_of(vector);
  SDG_TRY(sdg_exec_run(*plan, call, stream, row, &outcome));
  sdg_report_count(row, *plan);
  return outcome.vendor ? sdg_fail(SDG_E_VENDOR_CALL, "%s: %d",
                                   vector->entry_name, outcome.vendor)
                        : SDG_OK;
}

// ---- both ------------------------------------------------------------------

static uint64_t call_hash(uint64_t hash, const sdg_vector_t *vector,
                          sdg_axes_t axes, bool on_host) {
  const int word[] = {(int)vector->op,
                      vector->type_x,
                      vector->type_y,
                      vector->type_result,
                      vector->type_execution,
                      (int)axes,
                      on_host};
  for (size_t i = 0; i < sizeof word / sizeof *word; i++)
    hash = sdg_hash_word(hash, (uint64_t)word[i]);
  return hash;
}

static sdg_status_t value_make(const sdg_vector_t *vector, sdg_axes_t axes,
                               bool same, uint64_t hash,
                               const uint64_t contents[2], sdg_call_t *call,
                               cudaStream_t stream) {
  pieces_t pieces;
  cublasPointerMode_t mode;
  cublasStatus_t got = sdg_cublas_get()->cublasGetPointerMode_v2(
      (cublasHandle_t)(uintptr_t)vector->handle, &mode);
  if (got != CUBLAS_STATUS_SUCCESS)
    return sdg_fail(SDG_E_VENDOR_CALL, "cublasGetPointerMode: %d", (int)got);
  bool on_host = mode == CUBLAS_POINTER_MODE_HOST;
  hash = call_hash(hash, vector, axes, on_host);
  SDG_TRY(sdg_divergence_update(vector->entry_name, hash));
  SDG_TRY(
      sdg_divergence_contents(vector->entry_name, contents, vector->y ? 2 : 1));
  pieces_of(axes, same, &pieces);
  return on_host ? host_make(vector, hash, contents, pieces.rank, pieces.ranks)
                 : device_make(vector, &pieces, call, stream);
}

sdg_status_t sdg_together_make(const sdg_vector_t *vector, sdg_axes_t axes,
                               bool same, uint64_t hash,
                               const uint64_t contents[2]) {
  sdg_call_t call = {.entry_name = vector->entry_name,
                     .family = SDG_FAMILY_OTHER,
                     .handle = vector->handle,
                     .stream_kind = SDG_STREAM_CUBLAS};
  cudaStream_t stream;
  SDG_TRY(sdg_thread_claim(vector->entry_name));
  SDG_TRY(sdg_stream_of(&call, &stream));
  sdg_step_number(&call);
  sdg_status_t status =
      value_make(vector, axes, same, hash, contents, &call, stream);
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

sdg_status_t sdg_together_refused(const sdg_vector_t *vector) {
  const sdg_call_t call = {.entry_name = vector->entry_name};
  SDG_TRY(sdg_thread_claim(vector->entry_name));
  return sdg_divergence_refused(&call);
}
