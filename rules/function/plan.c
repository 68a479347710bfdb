// SPDX-License-Identifier: Apache-2.0
// Plans a function: brings the elements around a piece, calls the function on
// them, keeps the rank's own results.
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "rules/function/ghost.h"
#include "rules/function/maker.h"
#include "rules/place/same_split.h"
#include "src/base/vendor.h"
#include "src/job/job.h"

// ---- extend ----------------------------------------------------------------

// Chooses where the function finds an operand: in the program's memory, or in
// scratch with the elements around the rank's own.
static sdg_status_t operand_open(sdg_function_maker_t *m, int index,
                                 sdg_function_piece_t *piece) {
  sdg_box_t own = sdg_function_box(m, index, &m->own);
  if (sdg_ghosts_filled(m->call, m->tagging, index)) {
    int64_t period[SDG_DIMS_MAX] = {0};
    sdg_function_periods(m, period);
    SDG_TRY(sdg_ghosts_open(m->plan, m->call, m->tagging, period, index,
                            &m->fetch[index]));
    m->own_slab[index] = piece->slab[index] = m->fetch[index].into;
    return SDG_OK;
  }
  if (sdg_function_is_combined(m, index) || !sdg_function_extends(m, index))
    return SDG_OK;
  SDG_TRY(sdg_function_scratch(m, index, piece));
  if (sdg_function_reads(m, index))
    return sdg_function_fetch(m, index, &piece->slab[index], 1);
  // The function may leave elements of its outputs as they are.
  return sdg_plan_copy(m->plan, SDG_LANE_MAIN, m->own_slab[index],
                       piece->slab[index], NULL, &own, SDG_COPY_ACTIVATION);
}

static sdg_status_t operands_bring(sdg_function_maker_t *m,
                                   sdg_function_piece_t *piece) {
  for (int i = 0; i < m->call->operands; i++)
    SDG_TRY(operand_open(m, i, piece));
  if (!m->extends && !m->fills)
    return SDG_OK;
  SDG_TRY(sdg_plan_exchange(m->plan));
  for (int i = 0; i < m->call->operands; i++)
    SDG_TRY(sdg_function_own(m, i, piece->slab[i], SDG_COPY_ACTIVATION));
  SDG_TRY(sdg_plan_join(m->plan, SDG_LANE_MAIN));
  for (int i = 0; i < m->call->operands; i++)
    SDG_TRY(sdg_function_land(m, i, piece->slab[i]));
  return SDG_OK;
}

static sdg_status_t outputs_keep(sdg_function_maker_t *m,
                                 const sdg_function_piece_t *piece) {
  for (int i = 0; i < m->call->operands; i++) {
    sdg_box_t own = sdg_function_box(m, i, &m->own);
    if (m->call->operand[i].is_output && piece->slab[i] != m->own_slab[i])
      SDG_TRY(sdg_plan_copy(m->plan, SDG_LANE_MAIN, piece->slab[i],
                            m->own_slab[i], NULL, &own, SDG_COPY_ACTIVATION));
  }
  return SDG_OK;
}

static sdg_status_t extend(sdg_function_maker_t *m) {
  sdg_box_t need = sdg_function_need(m->call, m->tagging, m->tagging->rank);
  sdg_function_piece_t *piece;
  SDG_TRY(sdg_function_piece_add(m, &need, &piece));
  SDG_TRY(operands_bring(m, piece));
  SDG_TRY(sdg_plan_call(m->plan, SDG_FUNCTION_CALL));
  return outputs_keep(m, piece);
}

// ---- the plan --------------------------------------------------------------

sdg_status_t sdg_function_state_make(sdg_function_maker_t *m) {
  SDG_TRY(SDG_ALLOCATE(m->state, 1, "a plan"));
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    m->state->result[i] = -1;
  m->plan->state = m->state;
  m->plan->state_destroy = free;
  m->plan->run = sdg_function_run;
  m->plan->on_host =
      m->function->on_host || m->function->returned.number.bytes > 0;
  m->plan->on_host_as_operands = true;
  return SDG_OK;
}

sdg_status_t sdg_function_end(sdg_function_maker_t *m) {
  if (sdg_function_has_results(m->function))
    SDG_TRY(sdg_function_combine(m));
  return m->function->on_host ? sdg_plan_call(m->plan, SDG_FUNCTION_WAIT)
                              : SDG_OK;
}

static bool any_offset(const sdg_function_maker_t *m) {
  for (int o = 0; o < m->function->offsets; o++) {
    int d = sdg_function_dim(m->function, m->function->offset[o].dim);
    if (d >= 0 && sdg_placement_splits(&m->tagging->placement[0], d))
      return true;
  }
  return false;
}

static sdg_status_t steps_make(sdg_function_maker_t *m, bool repairs) {
  for (int i = 0; i < m->call->operands; i++) {
    sdg_box_t own = sdg_function_is_combined(m, i)
                        ? sdg_operand_box(&m->call->operand[i])
                        : sdg_function_box(m, i, &m->own);
    SDG_TRY(sdg_plan_operand(m->plan, m->call, i, &own, &m->own_slab[i]));
  }
  SDG_TRY(repairs ? sdg_function_repair(m) : extend(m));
  return sdg_function_end(m);
}

static sdg_status_t plan_make(sdg_function_maker_t *m) {
  sdg_price_t price = {0, 0};
  bool repairs = m->extends && sdg_function_repairs(m, &price);
  SDG_TRY(sdg_plan_create(repairs      ? "repair"
                          : m->extends ? "extend"
                          : m->fills   ? "ghosts"
                                       : "part",
                          &m->plan));
  m->plan->why = repairs ? "the function is pure: it works in place, and again "
                           "on the elements at inner borders"
                 : m->fills ? "the elements of other ranks come into the "
                              "ghosts of the program's tensors"
                 : m->extends
                     ? "the function works on the piece with the elements "
                       "around it that its own see"
                     : "no element sees those of another rank";
  m->plan->price = price;
  m->plan->axes = m->extends || m->fills ? m->tagging->axes : 0;
  SDG_TRY(sdg_function_state_make(m));
  return steps_make(m, repairs);
}

bool sdg_function_is_pageable(const void *at) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  struct cudaPointerAttributes is = {.type = cudaMemoryTypeUnregistered};
  if (cuda && cuda->cudaPointerGetAttributes(&is, at) != cudaSuccess)
    (void)cuda->cudaGetLastError(); // the error is not the program's
  return is.type == cudaMemoryTypeUnregistered;
}

static sdg_status_t memory_check(const sdg_call_t *call) {
  if (!sdg_vendor_get())
    return SDG_E_LIBRARY_MISSING;
  for (int i = 0; i < call->operands; i++) {
    const sdg_function_t *function = sdg_function_call_of(call)->function;
    int tensor = sdg_function_tensor_of(function, i);
    bool result = sdg_function_is_result(function, tensor);
    if (!(result && function->on_host) &&
        sdg_function_is_pageable(call->operand[i].data))
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

// An element would see what the function has already overwritten, but not on
// all ranks.
static sdg_status_t alias_check(const sdg_function_maker_t *m) {
  int alias = sdg_function_alias(m->call);
  if ((!m->extends && !m->fills) || alias < 0)
    return SDG_OK;
  int tensor = sdg_function_tensor_of(m->function, alias);
  return sdg_job_fail(sdg_fail(
      SDG_E_FUNCTION,
      "%s: '%s' is at the address of an input, of which it sees elements "
      "around its own: declare one inout argument, or give it another address",
      m->call->entry_name,
      m->function->argument[m->function->tensor[tensor].argument].name));
}

sdg_status_t sdg_function_plan(const sdg_call_t *call,
                               const sdg_tagging_t *tagging,
                               sdg_plan_t **out_plan) {
  sdg_function_maker_t m = {
      .call = call,
      .tagging = tagging,
      .function = sdg_function_call_of(call)->function,
      .own = sdg_tagging_own(tagging, &tagging->placement[0])};
  SDG_TRY(memory_check(call));
  for (int i = 0; i < call->operands; i++)
    m.extends |=
        !sdg_function_is_combined(&m, i) && sdg_function_extends(&m, i);
  for (int i = 0; i < call->operands; i++)
    m.fills |= sdg_ghosts_filled(call, tagging, i);
  SDG_TRY(alias_check(&m));
  if (!m.extends && !m.fills && !any_offset(&m) &&
      !sdg_function_has_results(m.function))
    return sdg_literal_plan(out_plan);
  sdg_status_t status = plan_make(&m);
  for (int i = 0; i < call->operands; i++)
    sdg_fetch_fini(&m.fetch[i]);
  return sdg_plan_finish(m.plan, status, out_plan);
}
