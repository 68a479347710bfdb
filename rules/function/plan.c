// SPDX-License-Identifier: Apache-2.0
// Plans a function: brings the elements around a piece, calls the function on
// them, keeps the rank's own results.
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "rules/function/fit.h"
#include "rules/function/function.h"
#include "rules/kit/fetch.h"
#include "rules/place/same_split.h"
#include "rules/vendor/vendor.h"
#include "src/base/vendor.h"
#include "src/exchange/exec.h"
#include "src/job/job.h"

// ---- what a rank needs -----------------------------------------------------

static sdg_range_t dim_need(const sdg_function_t *function,
                            const sdg_placement_t *lead, int d,
                            sdg_range_t own) {
  sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, lead->dims);
  int64_t extent = sdg_placement_extent(lead, d), reach = function->reach[dim];
  if (!sdg_placement_splits(lead, d) || reach == 0)
    return own;
  if (reach == SDG_REACH_ALL)
    return (sdg_range_t){0, extent};
  sdg_range_t need = {own.lo - reach, own.hi + reach};
  if (function->border[dim] == SDG_BORDER_WRAP)
    return need;
  return (sdg_range_t){sdg_max64(need.lo, 0), sdg_min64(need.hi, extent)};
}

sdg_box_t sdg_function_need(const sdg_call_t *call,
                            const sdg_tagging_t *tagging, int rank) {
  const sdg_placement_t *lead = &tagging->placement[0];
  sdg_box_t box = sdg_placement_box(lead, tagging->mesh, rank);
  for (int d = 0; d < box.dims && !sdg_box_empty(&box); d++)
    box.dim[d] =
        dim_need(sdg_function_call_of(call)->function, lead, d, box.dim[d]);
  return box;
}

// ---- the sub-call ----------------------------------------------------------

// A plan's calls.
enum { CALL_FUNCTION, CALL_WAIT, CALL_UPLOAD, CALL_DOWNLOAD };

typedef struct state {
  int64_t integer[SDG_ARGUMENTS_MAX];
  unsigned changed;                  // bits of arguments: not the program's
  int64_t offset[SDG_ARGUMENTS_MAX]; // added to the program's value
  int slab[SDG_OPERANDS_MAX];        // of each operand
  int result[SDG_OPERANDS_MAX];      // slab that combines it; -1: its own
} state_t;

static void number_write(sdg_number_t number, int64_t value, void *at) {
  memcpy(at, &value, (size_t)number.bytes); // little endian
}

// What the function's arguments become.
typedef struct arguments {
  void *value[SDG_ARGUMENTS_MAX];
  int64_t number[SDG_ARGUMENTS_MAX];
  void *address[SDG_ARGUMENTS_MAX];
} arguments_t;

static void arguments_make(const state_t *state, const sdg_call_t *call,
                           const sdg_exec_t *exec, arguments_t *out) {
  const sdg_function_call_t *c = sdg_function_call_of(call);
  const sdg_function_t *function = c->function;
  memcpy(out->value, c->value,
         (size_t)function->arguments * sizeof *out->value);
  for (int a = 0; a < function->arguments; a++) {
    const sdg_argument_t *argument = &function->argument[a];
    bool size = state->changed >> a & 1;
    if (!size && !state->offset[a])
      continue;
    number_write(argument->number[0],
                 size ? state->integer[a] : c->integer[a] + state->offset[a],
                 &out->number[a]);
    out->address[a] = &out->number[a];
    out->value[a] = argument->by_reference ? (void *)&out->address[a]
                                           : (void *)&out->number[a];
  }
  for (int i = 0; i < call->operands; i++) {
    int a = function->tensor[sdg_function_tensor_of(function, i)].argument;
    if (sdg_function_is_result(function, sdg_function_tensor_of(function, i)))
      continue;
    out->address[a] = sdg_exec_address(exec, state->slab[i]);
    out->value[a] = &out->address[a];
  }
}

static int wait_for(const sdg_exec_t *exec) {
  return (int)sdg_vendor_get()->cudaStreamSynchronize(exec->stream);
}

// Between the program's memory, which may be the host's, and the slab in which
// the ranks' values are combined.
static int results_copy(const state_t *state, const sdg_call_t *call,
                        const sdg_exec_t *exec, bool upload) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  for (int i = 0; i < call->operands; i++) {
    if (state->result[i] < 0)
      continue;
    void *own = call->operand[i].data;
    void *slab = sdg_exec_address(exec, state->result[i]);
    size_t bytes = sdg_operand_access(&call->operand[i], true, true).width;
    cudaError_t got =
        cuda->cudaMemcpyAsync(upload ? slab : own, upload ? own : slab, bytes,
                              cudaMemcpyDefault, exec->stream);
    if (got != cudaSuccess)
      return (int)got;
  }
  return 0;
}

static int function_run(void *user, int index, const sdg_call_t *call,
                        const sdg_exec_t *exec) {
  const state_t *state = user;
  const sdg_function_call_t *c = sdg_function_call_of(call);
  arguments_t arguments;
  int failed;
  switch (index) {
  case CALL_WAIT:
    return wait_for(exec);
  case CALL_UPLOAD:
  case CALL_DOWNLOAD:
    return results_copy(state, call, exec, index == CALL_UPLOAD);
  default:
    // The function reads on the host what is still on its way there.
    failed = c->function->on_host ? wait_for(exec) : 0;
    if (failed)
      return failed;
    arguments_make(state, call, exec, &arguments);
    c->invoke(c, arguments.value);
    return 0;
  }
}

// ---- the plan --------------------------------------------------------------

typedef struct maker {
  const sdg_call_t *call;
  const sdg_tagging_t *tagging;
  const sdg_function_t *function;
  sdg_plan_t *plan;
  state_t *state;
  sdg_box_t own, piece; // of the lead
  bool extends;         // some rank needs more than its own
  sdg_fetch_t fetch[SDG_OPERANDS_MAX];
} maker_t;

// The elements of an operand in a box of the lead.
static sdg_box_t operand_box(const maker_t *m, int index,
                             const sdg_box_t *lead) {
  sdg_box_t box = *lead;
  int tensor = sdg_function_tensor_of(m->function, index);
  for (int d = 0; d < box.dims; d++)
    if (sdg_function_extent_at(m->function, tensor, d) < 0)
      box.dim[d] = (sdg_range_t){0, m->call->operand[index].extent[d]};
  return box;
}

static bool is_result(const maker_t *m, int index) {
  return m->call->operand[index].role == SDG_ROLE_RESULT;
}

static bool reads(const maker_t *m, int index) {
  const sdg_operand_t *operand = &m->call->operand[index];
  return !operand->is_output || operand->is_updated;
}

// Whether an operand's piece is larger than what some rank has of it.
static bool operand_extends(const maker_t *m, int index) {
  for (int r = 0; r < m->tagging->ranks; r++) {
    int rank = m->tagging->rank_list[r];
    sdg_box_t own =
        sdg_placement_box(&m->tagging->placement[0], m->tagging->mesh, rank);
    sdg_box_t need = sdg_function_need(m->call, m->tagging, rank);
    own = operand_box(m, index, &own);
    need = operand_box(m, index, &need);
    if (!sdg_box_equal(&own, &need))
      return true;
  }
  return false;
}

static void periods_get(const maker_t *m, int64_t *out) {
  const sdg_placement_t *lead = &m->tagging->placement[0];
  for (int d = 0; d < lead->dims; d++) {
    sdg_dim_t dim = sdg_dim_at(SDG_FAMILY_FUNCTION, d, lead->dims);
    bool wraps = m->function->border[dim] == SDG_BORDER_WRAP &&
                 m->function->reach[dim] != SDG_REACH_ALL;
    out[d] = wraps ? sdg_placement_extent(lead, d) : 0;
  }
}

// This rank's messages of an input, from the program's memory to slab `into`.
static sdg_status_t fetch_open(maker_t *m, int index, int from, int into) {
  sdg_fetch_t *fetch = &m->fetch[index];
  int64_t period[SDG_DIMS_MAX] = {0};
  sdg_box_t *need;
  periods_get(m, period);
  SDG_TRY(SDG_ALLOCATE(need, m->tagging->ranks, "boxes of %d ranks",
                       m->tagging->ranks));
  for (int r = 0; r < m->tagging->ranks; r++) {
    need[r] = sdg_function_need(m->call, m->tagging, m->tagging->rank_list[r]);
    need[r] = operand_box(m, index, &need[r]);
  }
  fetch->from = from;
  fetch->into = into;
  sdg_status_t status =
      sdg_fetch_transfer(m->tagging, &m->tagging->placement[index], need,
                         period, &fetch->transfer);
  free(need);
  SDG_TRY(status);
  SDG_TRY(SDG_ALLOCATE(fetch->landed, fetch->transfer.recvs + 1, "a transfer"));
  return sdg_plan_messages(m->plan, &fetch->transfer, from, &into, 1,
                           fetch->landed);
}

// Copies of what the rank has itself, images beyond the ends included.
static sdg_status_t own_copy(maker_t *m, const sdg_fetch_t *fetch) {
  for (int i = 0; i < fetch->transfer.locals; i++) {
    const sdg_message_t *local = &fetch->transfer.local[i];
    sdg_box_t to = sdg_box_shift(&local->box, local->shift);
    SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, fetch->from, fetch->into,
                          local->shift, &to, SDG_COPY_ACTIVATION));
  }
  return SDG_OK;
}

// Scratch for an operand's piece, laid out as the function expects.
static sdg_status_t scratch_make(maker_t *m, int index, int *out_slab) {
  const sdg_operand_t *operand = &m->call->operand[index];
  sdg_box_t box = operand_box(m, index, &m->piece);
  int64_t stride[SDG_DIMS_MAX];
  SDG_TRY(sdg_function_strides(m->function,
                               sdg_function_tensor_of(m->function, index), &box,
                               m->state->integer, stride));
  return sdg_plan_strided(m->plan, &box, stride, sdg_operand_nesting(operand),
                          operand->elem_bytes, out_slab);
}

// Chooses where the function finds an operand: in the program's memory, or in
// scratch with the elements around the rank's own.
static sdg_status_t operand_open(maker_t *m, int index) {
  sdg_box_t own = operand_box(m, index, &m->own);
  int from, *slab = &m->state->slab[index];
  m->state->result[index] = -1;
  if (is_result(m, index))
    own = sdg_operand_box(&m->call->operand[index]);
  SDG_TRY(sdg_plan_operand(m->plan, m->call, index, &own, &from));
  *slab = from;
  if (is_result(m, index) || !operand_extends(m, index))
    return SDG_OK;
  SDG_TRY(scratch_make(m, index, slab));
  if (reads(m, index))
    return fetch_open(m, index, from, *slab);
  // The function may leave elements of its outputs as they are.
  m->fetch[index] = (sdg_fetch_t){.from = from, .into = *slab};
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, from, *slab, NULL, &own,
                       SDG_COPY_ACTIVATION);
}

static sdg_status_t operands_bring(maker_t *m) {
  m->plan->axes = m->extends ? m->tagging->axes : 0;
  for (int i = 0; i < m->call->operands; i++)
    SDG_TRY(operand_open(m, i));
  if (!m->extends)
    return SDG_OK;
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < m->call->operands; i++)
    SDG_TRY(own_copy(m, &m->fetch[i]));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < m->call->operands; i++)
    SDG_TRY(sdg_fetch_land(m->plan, &m->fetch[i]));
  return SDG_OK;
}

static sdg_combine_t combine_of(const sdg_function_t *function, int tensor) {
  for (int r = 0; r < function->results; r++)
    if (function->result[r].tensor == tensor)
      return function->result[r].combine == SDG_FUNCTION_MAX ? SDG_COMBINE_MAX
             : function->result[r].combine == SDG_FUNCTION_MIN
                 ? SDG_COMBINE_MIN
                 : SDG_COMBINE_SUM;
  return SDG_COMBINE_SUM;
}

// Combines the ranks' numbers in packed scratch: the program's may lie in the
// memory of the host.
static sdg_status_t results_combine(maker_t *m) {
  m->plan->reduce_axes = sdg_placement_axes(&m->tagging->placement[0]);
  for (int i = 0; i < m->call->operands; i++) {
    const sdg_operand_t *operand = &m->call->operand[i];
    sdg_box_t box = sdg_operand_box(operand);
    if (is_result(m, i))
      SDG_TRY(sdg_plan_packed(m->plan, &box, sdg_operand_nesting(operand),
                              operand->elem_bytes, &m->state->result[i]));
  }
  SDG_TRY(sdg_plan_call(m->plan, CALL_UPLOAD));
  for (int i = 0; i < m->call->operands; i++)
    if (is_result(m, i))
      SDG_TRY(sdg_plan_reduce(
          m->plan, m->state->result[i], m->call->operand[i].type,
          combine_of(m->function, sdg_function_tensor_of(m->function, i))));
  return sdg_plan_call(m->plan, CALL_DOWNLOAD);
}

static sdg_status_t outputs_keep(maker_t *m) {
  for (int i = 0; i < m->call->operands; i++) {
    const sdg_fetch_t *fetch = &m->fetch[i];
    sdg_box_t own = operand_box(m, i, &m->own);
    if (m->call->operand[i].is_output && fetch->from != fetch->into)
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, fetch->into, fetch->from,
                            NULL, &own, SDG_COPY_ACTIVATION));
  }
  return SDG_OK;
}

// The arguments on this rank's piece.
static sdg_status_t arguments_fit(maker_t *m) {
  const sdg_function_call_t *c = sdg_function_call_of(m->call);
  state_t *state = m->state;
  SDG_TRY(sdg_function_fit(c, &m->piece, state->integer));
  for (int a = 0; a < m->function->arguments; a++)
    if (state->integer[a] != c->integer[a])
      state->changed |= 1u << a;
  for (int o = 0; o < m->function->offsets; o++) {
    int d = sdg_function_dim(m->function, m->function->offset[o].dim);
    if (d >= 0)
      state->offset[m->function->offset[o].argument] = m->piece.dim[d].lo;
  }
  return SDG_OK;
}

static bool any_offset(const maker_t *m) {
  for (int o = 0; o < m->function->offsets; o++) {
    int d = sdg_function_dim(m->function, m->function->offset[o].dim);
    if (d >= 0 && sdg_placement_splits(&m->tagging->placement[0], d))
      return true;
  }
  return false;
}

static sdg_status_t steps_make(maker_t *m) {
  SDG_TRY(arguments_fit(m));
  SDG_TRY(operands_bring(m));
  SDG_TRY(sdg_plan_call(m->plan, CALL_FUNCTION));
  SDG_TRY(outputs_keep(m));
  if (m->function->results > 0)
    SDG_TRY(results_combine(m));
  return m->function->on_host ? sdg_plan_call(m->plan, CALL_WAIT) : SDG_OK;
}

static sdg_status_t plan_open(maker_t *m) {
  SDG_TRY(sdg_plan_create(m->extends ? "extend" : "part", &m->plan));
  m->plan->why = m->extends
                     ? "the function works on the piece with the elements "
                       "around it that its own see"
                     : "no element sees those of another rank";
  SDG_TRY(SDG_ALLOCATE(m->state, 1, "a plan"));
  m->plan->state = m->state;
  m->plan->state_destroy = free;
  m->plan->run = function_run;
  m->plan->on_host = m->function->on_host;
  return SDG_OK;
}

// Whatever is not the device's own, managed or pinned memory cannot be sent.
static sdg_status_t memory_check(const sdg_call_t *call) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  for (int i = 0; i < call->operands; i++) {
    const sdg_function_t *function = sdg_function_call_of(call)->function;
    int tensor = sdg_function_tensor_of(function, i);
    struct cudaPointerAttributes is = {.type = cudaMemoryTypeUnregistered};
    if (cuda->cudaPointerGetAttributes(&is, call->operand[i].data) !=
        cudaSuccess)
      (void)cuda->cudaGetLastError(); // the error is not the program's
    bool result = sdg_function_is_result(function, tensor);
    if (is.type == cudaMemoryTypeUnregistered && !(result && function->on_host))
      return sdg_job_fail(sdg_fail(
          SDG_E_FUNCTION,
          "%s: '%s' is at %p, in memory that the CUDA runtime did not "
          "allocate: use cudaMallocManaged, cudaMalloc or cudaMallocHost",
          call->entry_name,
          function->argument[function->tensor[tensor].argument].name,
          call->operand[i].data));
  }
  return SDG_OK;
}

sdg_status_t sdg_function_plan(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  maker_t m = {.call = call,
               .tagging = tagging,
               .function = sdg_function_call_of(call)->function,
               .own = sdg_tagging_own(tagging, &tagging->placement[0]),
               .piece = sdg_function_need(call, tagging, tagging->rank)};
  SDG_TRY(memory_check(call));
  for (int i = 0; i < call->operands; i++)
    m.extends |= !is_result(&m, i) && operand_extends(&m, i);
  if (!m.extends && !any_offset(&m) && m.function->results == 0)
    return sdg_literal_plan(out_plan);
  sdg_status_t status = plan_open(&m);
  if (status == SDG_OK)
    status = steps_make(&m);
  for (int i = 0; i < call->operands; i++)
    sdg_fetch_fini(&m.fetch[i]);
  return sdg_plan_finish(m.plan, status, out_plan);
}
