// SPDX-License-Identifier: Apache-2.0
// Keeps the halos of x that forward calls fetch, by x's address.
#include "rules/reuse/kept.h"

#include <string.h>

#include "rules/memory/kept_slot.h"
#include "rules/step/step.h"
#include "src/base/hash.h"
#include "src/base/options.h"

// ---- which calls -----------------------------------------------------------

static uint64_t placement_mix(uint64_t hash, const sdg_placement_t *placement) {
  for (int d = 0; d < placement->dims; d++) {
    const sdg_part_t *part = &placement->part[d];
    const sdg_split_t *split = &placement->split[d];
    hash = sdg_hash_bytes(hash, &split->axes, sizeof split->axes);
    hash = sdg_hash_bytes(hash, split->axis,
                          (size_t)split->axes * sizeof split->axis[0]);
    hash = sdg_hash_bytes(hash, part->offset,
                          ((size_t)part->pieces + 1) * sizeof part->offset[0]);
  }
  return hash;
}

static int part_of(const sdg_call_t *call, const sdg_op_t *op,
                   bool *out_first) {
  return sdg_op_knows(op, call) && op->reuse && op->reuse->leaves
             ? op->reuse->leaves(call, out_first, NULL)
             : -1;
}

uint64_t sdg_kept_messages(const sdg_call_t *call, const sdg_op_t *op,
                           const sdg_tagging_t *tagging) {
  bool first;
  uint64_t hash = SDG_HASH_SEED;
  int operand = part_of(call, op, &first);
  if (operand < 0 || tagging->remote)
    return 0;
  const sdg_operand_t *tensor = &call->operand[operand];
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].is_colocated)
      return 0;
  (void)op->reuse->leaves(call, &first, &hash);
  hash = sdg_hash_bytes(hash, &tensor->type, sizeof tensor->type);
  hash = sdg_hash_bytes(hash, tensor->nesting,
                        (size_t)tensor->dims * sizeof tensor->nesting[0]);
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].role == SDG_ROLE_X ||
        call->operand[i].role == SDG_ROLE_Y ||
        call->operand[i].role == SDG_ROLE_DY)
      hash = placement_mix(hash, &tagging->placement[i]);
  return hash ? hash : 1;
}

void sdg_kept_ready(const sdg_call_t *call, const sdg_op_t *op,
                    uint64_t messages, sdg_plan_entry_t *entry) {
  bool first = false;
  int operand = part_of(call, op, &first);
  if (operand < 0 || entry->plan->refusal)
    return;
  sdg_plan_keep(entry->plan);
  if (!sdg_plan_is_early(entry->plan, operand))
    return;
  entry->leaves = first ? SDG_PREFETCH_FIRST : SDG_PREFETCH_SECOND;
  entry->left = operand;
  entry->messages = messages;
}

// ---- running ---------------------------------------------------------------

static sdg_kept_slot_t *slot_of(const sdg_call_t *call,
                                const sdg_plan_entry_t *entry,
                                uint64_t *out_number) {
  sdg_kept_slot_t is;
  if (entry->leaves != SDG_PREFETCH_SECOND)
    return NULL;
  sdg_kept_slot_t *slot =
      sdg_kept_slot_find(call->operand[entry->left].data, &is);
  if (!slot || is.what != entry->messages ||
      is.number + SDG_KEPT_SLOTS <= sdg_kept_slot_number())
    return NULL;
  *out_number = is.number;
  return slot;
}

uint32_t sdg_kept_mark(const sdg_call_t *call, const sdg_plan_entry_t *entry) {
  uint64_t number;
  return slot_of(call, entry, &number) ? (uint32_t)number << 1 : 0;
}

static sdg_status_t digest_make(sdg_call_t *call, const sdg_plan_entry_t *entry,
                                cudaStream_t stream, uint64_t *out) {
  const sdg_prefetch_t prefetch = {entry->plan, call};
  return sdg_exec_digest(&prefetch, stream, out);
}

static sdg_status_t first_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                              cudaStream_t stream) {
  const sdg_operand_t *x = &call->operand[entry->left];
  sdg_layout_t layout = sdg_operand_layout(x);
  sdg_kept_slot_t *slot;
  SDG_TRY(sdg_kept_slot_take(x->data, &slot));
  SDG_TRY(sdg_kept_slot_room(slot, entry->plan->kept_bytes));
  sdg_report_count(entry->row, entry->plan);
  if (sdg_options_get()->check)
    SDG_TRY(digest_make(call, entry, stream, &slot->digest));
  SDG_TRY(sdg_step_run_how(call, entry, stream,
                           &(sdg_exec_how_t){.kept = slot->memory}));
  if (!call->result)
    sdg_kept_slot_fill(
        slot, (sdg_span_t){(uintptr_t)x->data, sdg_layout_bytes(&layout)}, 0,
        entry->messages);
  return SDG_OK;
}

static sdg_status_t promise_check(sdg_call_t *call,
                                  const sdg_plan_entry_t *entry,
                                  const sdg_kept_slot_t *slot,
                                  cudaStream_t stream) {
  uint64_t digest;
  if (!sdg_options_get()->check)
    return SDG_OK;
  SDG_TRY(digest_make(call, entry, stream, &digest));
  return digest == slot->digest
             ? SDG_OK
             : sdg_fail(SDG_E_KEPT,
                        "rows of x of %s have changed since the forward call",
                        call->entry_name);
}

sdg_status_t sdg_kept_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                          cudaStream_t stream, const sdg_prefetch_t *prefetch) {
  if (entry->leaves == SDG_PREFETCH_FIRST)
    return first_run(call, entry, stream);
  uint64_t number;
  sdg_kept_slot_t *slot = slot_of(call, entry, &number);
  if (slot) {
    sdg_report_count(entry->row, NULL);
    sdg_report_copied(entry->row, entry->plan);
    sdg_report_summed(entry->row, entry->plan);
    SDG_TRY(promise_check(call, entry, slot, stream));
    return sdg_step_run_how(call, entry, stream,
                            &(sdg_exec_how_t){.prefetch = prefetch,
                                              .kept = slot->memory,
                                              .rest = true});
  }
  SDG_TRY(sdg_kept_slot_spare(0, &slot));
  SDG_TRY(sdg_kept_slot_room(slot, entry->plan->kept_bytes));
  sdg_report_count(entry->row, entry->plan);
  return sdg_step_run_how(
      call, entry, stream,
      &(sdg_exec_how_t){.prefetch = prefetch, .kept = slot->memory});
}
