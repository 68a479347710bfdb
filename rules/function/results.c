// SPDX-License-Identifier: Apache-2.0
// Combines the ranks' results: numbers over all elements.
#include <cuda_runtime_api.h>
#include <string.h>

#include "rules/function/maker.h"
#include "src/base/vendor.h"

// ---- at a call -------------------------------------------------------------

// A rank's part of a mean, by a function that computes on the host.
static void mean_weigh(sdg_number_t number, int64_t count, double weight,
                       const void *mean, void *out) {
  for (int64_t i = 0; i < count; i++)
    if (number.bytes == sizeof(double))
      ((double *)out)[i] = ((const double *)mean)[i] * weight;
    else
      ((float *)out)[i] = (float)((double)((const float *)mean)[i] * weight);
}

static bool is_mean(const sdg_function_t *function, int tensor) {
  for (int r = 0; r < function->results; r++)
    if (function->result[r].tensor == tensor)
      return function->result[r].combine == SDG_FUNCTION_MEAN;
  return false;
}

// Between the room for what the function returns and its slab, which is managed
// memory.
static int returned_copy(const sdg_function_state_t *state,
                         const sdg_call_t *call, const sdg_exec_t *exec,
                         bool upload) {
  const sdg_function_call_t *c = sdg_function_call_of(call);
  sdg_number_t number = c->function->returned.number;
  if (number.bytes == 0)
    return 0;
  cudaError_t waited = sdg_vendor_get()->cudaStreamSynchronize(exec->stream);
  if (waited != cudaSuccess)
    return (int)waited;
  void *slab = sdg_exec_address(exec, state->returned);
  int64_t wide;
  if (upload && c->function->returned.combine == SDG_FUNCTION_MEAN) {
    mean_weigh(number, 1, state->weight, c->returned, slab);
  } else if (upload) {
    memcpy(slab, c->returned, (size_t)number.bytes);
  } else if (number.kind == 'f') {
    memcpy(c->returned, slab, (size_t)number.bytes);
  } else {
    wide = sdg_function_integer(number, slab);
    memcpy(c->returned, &wide, sizeof wide);
  }
  return 0;
}

// The program's memory may be the host's.
int sdg_function_results_copy(const sdg_function_state_t *state,
                              const sdg_call_t *call, const sdg_exec_t *exec,
                              bool upload) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  const sdg_function_t *function = sdg_function_call_of(call)->function;
  for (int i = 0; i < call->operands; i++) {
    if (state->result[i] < 0)
      continue;
    void *own = call->operand[i].data;
    void *slab = sdg_exec_address(exec, state->result[i]);
    int tensor = sdg_function_tensor_of(function, i);
    if (upload && is_mean(function, tensor)) {
      mean_weigh(function->tensor[tensor].element,
                 function->tensor[tensor].count, state->weight, own, slab);
      continue;
    }
    size_t bytes = sdg_operand_access(&call->operand[i], true, true).width;
    cudaError_t got =
        cuda->cudaMemcpyAsync(upload ? slab : own, upload ? own : slab, bytes,
                              cudaMemcpyDefault, exec->stream);
    if (got != cudaSuccess)
      return (int)got;
  }
  return returned_copy(state, call, exec, upload);
}

// ---- in a plan -------------------------------------------------------------

static sdg_combine_t combine_of(sdg_function_combine_t combine) {
  return combine == SDG_FUNCTION_MAX   ? SDG_COMBINE_MAX
         : combine == SDG_FUNCTION_MIN ? SDG_COMBINE_MIN
                                       : SDG_COMBINE_SUM;
}

static double weight_of(const sdg_function_maker_t *m) {
  const sdg_placement_t *lead = &m->tagging->placement[0];
  double weight = 1;
  for (int d = 0; d < lead->dims; d++)
    weight *= (double)sdg_box_length(&m->own, d) /
              (double)sdg_placement_extent(lead, d);
  return weight;
}

static sdg_status_t slabs_make(sdg_function_maker_t *m) {
  static const int64_t one[SDG_DIMS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
  sdg_number_t number = m->function->returned.number;
  for (int i = 0; i < m->call->operands; i++) {
    const sdg_operand_t *operand = &m->call->operand[i];
    sdg_box_t box = sdg_operand_box(operand);
    if (sdg_function_is_combined(m, i))
      SDG_TRY(sdg_plan_packed(m->plan, &box, sdg_operand_nesting(operand),
                              operand->elem_bytes, &m->state->result[i]));
  }
  sdg_box_t box = sdg_box_whole(m->call->operand[0].dims, one);
  return number.bytes ? sdg_plan_packed(m->plan, &box, one, number.bytes,
                                        &m->state->returned)
                      : SDG_OK;
}

static sdg_status_t slabs_reduce(sdg_function_maker_t *m) {
  const sdg_function_t *f = m->function;
  for (int r = 0; r < f->results; r++)
    for (int i = 0; i < m->call->operands; i++)
      if (sdg_function_tensor_of(f, i) == f->result[r].tensor)
        SDG_TRY(sdg_plan_reduce(m->plan, m->state->result[i],
                                m->call->operand[i].type,
                                combine_of(f->result[r].combine)));
  return f->returned.number.bytes
             ? sdg_plan_reduce(m->plan, m->state->returned,
                               sdg_function_type(f->returned.number),
                               combine_of(f->returned.combine))
             : SDG_OK;
}

// The slabs are packed scratch.
sdg_status_t sdg_function_combine(sdg_function_maker_t *m) {
  m->plan->reduce_axes = sdg_placement_axes(&m->tagging->placement[0]);
  m->state->weight = weight_of(m);
  SDG_TRY(slabs_make(m));
  SDG_TRY(sdg_plan_call(m->plan, SDG_FUNCTION_UPLOAD));
  SDG_TRY(slabs_reduce(m));
  return sdg_plan_call(m->plan, SDG_FUNCTION_DOWNLOAD);
}
