// SPDX-License-Identifier: Apache-2.0
// Runs plans that hold memory; finds that memory by the operand's address.
#include "rules/step/held.h"

#include "rules/memory/kept_slot.h"
#include "rules/step/step.h"
#include "src/base/options.h"
#include "src/exchange/tensor_digest.h"

static sdg_layout_t own_layout(const sdg_plan_t *plan, const sdg_held_t *held) {
  const sdg_slab_t *slab = &plan->slab[held->own];
  sdg_layout_t layout = {.elem_bytes = slab->elem_bytes,
                         .dims = slab->box.dims};
  for (int d = 0; d < layout.dims; d++) {
    layout.extent[d] = slab->box.dim[d].hi - slab->box.dim[d].lo;
    layout.stride[d] = slab->stride[d];
  }
  return layout;
}

static sdg_status_t digest_make(const void *data, const sdg_layout_t *layout,
                                cudaStream_t stream, uint64_t *out) {
  bool can;
  int64_t bytes = 0;
  *out = 0; // remains 0 if the memory cannot be read
  return sdg_layout_bytes(layout) == 0
             ? SDG_OK
             : sdg_tensor_digest(data, layout, stream, &can, out, &bytes);
}

// A run of a plan that holds memory.
typedef struct run {
  sdg_call_t *call;
  const sdg_plan_entry_t *entry;
  cudaStream_t stream;
  sdg_kept_slot_t *slot[SDG_HELD_MAX];
  void *memory[SDG_HELD_MAX];
} run_t;

static int operand_of(const run_t *r, int held) {
  const sdg_plan_t *plan = r->entry->plan;
  return plan->slab[plan->held[held].own].operand;
}

// Uses memory that an earlier call has filled. A checked run compares this
// rank's part of the operand with what it was then; each rank does so.
static sdg_status_t taken_open(run_t *r, int held) {
  const sdg_plan_t *plan = r->entry->plan;
  int index = operand_of(r, held);
  const sdg_operand_t *operand = &r->call->operand[index];
  sdg_kept_slot_t was;
  r->slot[held] = sdg_kept_slot_seen(index, &was);
  if (!sdg_options_get()->check)
    return SDG_OK;
  uint64_t digest;
  sdg_layout_t layout = own_layout(plan, &plan->held[held]);
  SDG_TRY(digest_make(operand->data, &layout, r->stream, &digest));
  return digest == r->slot[held]->digest
             ? SDG_OK
             : sdg_fail(SDG_E_KEPT, "%s of %s has changed since it was fetched",
                        sdg_role_name(operand->role), r->call->entry_name);
}

static sdg_status_t left_open(run_t *r, int held) {
  const sdg_plan_t *plan = r->entry->plan;
  const void *data = r->call->operand[operand_of(r, held)].data;
  bool same = held > 0 && data == r->call->operand[operand_of(r, 0)].data;
  // Every rank uses the same number of slots, and a slot has one address: an
  // operand without memory, or with that of another, gets a spare slot.
  SDG_TRY(sdg_kept_slot_take(same ? NULL : data, &r->slot[held]));
  if (!data || same)
    SDG_TRY(sdg_kept_slot_spare(held, &r->slot[held]));
  SDG_TRY(sdg_kept_slot_room(r->slot[held], plan->held[held].bytes + 1));
  if (!sdg_options_get()->check)
    return SDG_OK;
  sdg_layout_t layout = own_layout(plan, &plan->held[held]);
  return digest_make(data, &layout, r->stream, &r->slot[held]->digest);
}

static void left_close(const run_t *r, int held) {
  const sdg_plan_t *plan = r->entry->plan;
  sdg_layout_t layout = own_layout(plan, &plan->held[held]);
  const sdg_span_t span = {
      (uintptr_t)r->call->operand[operand_of(r, held)].data,
      sdg_layout_bytes(&layout)};
  sdg_kept_slot_fill(r->slot[held], span, plan->held[held].order,
                     plan->held[held].token);
}

sdg_status_t sdg_held_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                          cudaStream_t stream) {
  run_t r = {.call = call, .entry = entry, .stream = stream};
  const sdg_plan_t *plan = entry->plan;
  for (int i = 0; i < plan->helds; i++) {
    SDG_TRY(plan->held[i].taken ? taken_open(&r, i) : left_open(&r, i));
    r.memory[i] = r.slot[i]->memory;
  }
  sdg_report_count(entry->row, plan);
  SDG_TRY(sdg_step_run_how(call, entry, stream,
                           &(sdg_exec_how_t){.held = r.memory}));
  for (int i = 0; i < plan->helds && !call->result; i++)
    if (!plan->held[i].taken)
      left_close(&r, i);
  return SDG_OK;
}
