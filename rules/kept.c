// SPDX-License-Identifier: Apache-2.0
// Keeps what forward calls bring of x, by its address.
#include "rules/kept.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rules/step.h"
#include "src/device.h"
#include "src/options.h"
#include "src/thread.h"
#include "src/vendor.h"

// As many forward calls ago one may have been whose messages are still read:
// a number that is the same on every rank, whatever their addresses are.
enum { SLOTS = 256 };

// One forward call's messages.
typedef struct slot {
  sdg_span_t x;
  uint64_t number;   // of the forward call, from 1; 0: nothing
  uint64_t messages; // sdg_kept_messages
  uint64_t digest;   // of what was sent; checked runs
  void *memory;
  size_t bytes;
} slot_t;

// Of a calling thread.
typedef struct state {
  slot_t *slot; // SLOTS, and one for messages that nobody keeps
  uint64_t number;
} state_t;
static state_t states[SDG_CONTROL_THREADS]; // by the thread's channel
// Slots are their thread's; others only take from them what they write to.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static state_t *state_get(void) {
  return &states[sdg_thread_channel()];
}

void sdg_kept_forget(void) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SDG_CONTROL_THREADS; i++)
    free(states[i].slot);
  memset(states, 0, sizeof states);
  pthread_mutex_unlock(&lock);
}

// ---- which calls -----------------------------------------------------------

static uint64_t mix(uint64_t hash, const void *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) // FNV-1a
    hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
  return hash;
}

static uint64_t placement_mix(uint64_t hash, const sdg_placement_t *placement) {
  for (int d = 0; d < placement->dims; d++) {
    const sdg_part_t *part = &placement->part[d];
    const sdg_split_t *split = &placement->split[d];
    hash = mix(hash, &split->axes, sizeof split->axes);
    hash = mix(hash, split->axis, (size_t)split->axes * sizeof split->axis[0]);
    hash = mix(hash, part->offset,
               ((size_t)part->pieces + 1) * sizeof part->offset[0]);
  }
  return hash;
}

static int part_of(const sdg_call_t *call, const sdg_rule_t *rule,
                   bool *out_first) {
  return rule && rule->leaves && rule->knows(call)
             ? rule->leaves(call, out_first, NULL)
             : -1;
}

uint64_t sdg_kept_messages(const sdg_call_t *call, const sdg_rule_t *rule,
                           const sdg_tagging_t *tagging) {
  bool first;
  uint64_t hash = UINT64_C(14695981039346656037);
  int operand = part_of(call, rule, &first);
  if (operand < 0 || !tagging->section->keeps_x || tagging->fetch)
    return 0;
  const sdg_operand_t *tensor = &call->operand[operand];
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].stands_in)
      return 0;
  (void)rule->leaves(call, &first, &hash);
  hash = mix(hash, &tensor->type, sizeof tensor->type);
  hash = mix(hash, tensor->nesting,
             (size_t)tensor->dims * sizeof tensor->nesting[0]);
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].role == SDG_ROLE_X ||
        call->operand[i].role == SDG_ROLE_Y ||
        call->operand[i].role == SDG_ROLE_DY)
      hash = placement_mix(hash, &tagging->placement[i]);
  return hash ? hash : 1;
}

void sdg_kept_ready(const sdg_call_t *call, const sdg_rule_t *rule,
                    uint64_t messages, sdg_plan_entry_t *entry) {
  bool first = false;
  int operand = messages ? part_of(call, rule, &first) : -1;
  if (operand < 0 || entry->plan->refusal)
    return;
  sdg_plan_keep(entry->plan);
  if (!sdg_plan_is_early(entry->plan, operand))
    return;
  entry->leaves = first ? SDG_EARLY_FIRST : SDG_EARLY_SECOND;
  entry->left = operand;
  entry->messages = messages;
}

// ---- slots -----------------------------------------------------------------

// Lock held.
static slot_t *slot_find(const state_t *state, const void *data) {
  for (int i = 0; state->slot && i < SLOTS; i++)
    if (state->slot[i].number > 0 && state->slot[i].x.at == (uintptr_t)data)
      return &state->slot[i];
  return NULL;
}

static slot_t *slot_of(const sdg_call_t *call, const sdg_plan_entry_t *entry,
                       uint64_t *out_number) {
  const state_t *state = state_get();
  if (entry->leaves != SDG_EARLY_SECOND)
    return NULL;
  pthread_mutex_lock(&lock);
  slot_t *slot = slot_find(state, call->operand[entry->left].data);
  bool good = slot && slot->messages == entry->messages &&
              slot->number + SLOTS > state->number;
  *out_number = good ? slot->number : 0;
  pthread_mutex_unlock(&lock);
  return good ? slot : NULL;
}

uint32_t sdg_kept_mark(const sdg_call_t *call, const sdg_plan_entry_t *entry) {
  uint64_t number;
  return slot_of(call, entry, &number) ? (uint32_t)number << 1 : 0;
}

static sdg_status_t slots_open(state_t *state) {
  pthread_mutex_lock(&lock);
  if (!state->slot)
    state->slot = calloc(SLOTS + 1, sizeof *state->slot);
  pthread_mutex_unlock(&lock);
  return state->slot ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "kept halos");
}

// The one of this x, or else the oldest; it is empty then.
static slot_t *slot_take(state_t *state, const void *data) {
  pthread_mutex_lock(&lock);
  slot_t *oldest = slot_find(state, data);
  for (int i = 0; !oldest || (i < SLOTS && oldest->x.at != (uintptr_t)data);
       i++)
    if (!oldest || state->slot[i].number < oldest->number)
      oldest = &state->slot[i];
  oldest->number = 0;
  pthread_mutex_unlock(&lock);
  return oldest;
}

static void slot_fill(slot_t *slot, const sdg_operand_t *x, uint64_t number,
                      uint64_t messages) {
  sdg_layout_t layout = sdg_operand_layout(x);
  pthread_mutex_lock(&lock);
  slot->x = (sdg_span_t){(uintptr_t)x->data, sdg_layout_bytes(&layout)};
  slot->number = number;
  slot->messages = messages;
  pthread_mutex_unlock(&lock);
}

static sdg_status_t memory_make(slot_t *slot, size_t bytes) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  if (bytes <= slot->bytes)
    return SDG_OK;
  // cudaFree waits for the work that uses the old memory.
  SDG_TRY(sdg_device_check(cuda->cudaFree(slot->memory), "free of halos"));
  slot->memory = NULL;
  slot->bytes = 0;
  if (cuda->cudaMalloc(&slot->memory, bytes) != cudaSuccess) {
    (void)cuda->cudaGetLastError();
    return sdg_fail(SDG_E_DEVICE_MEMORY, "%zu bytes for kept halos", bytes);
  }
  slot->bytes = bytes;
  return SDG_OK;
}

static sdg_status_t digest_make(sdg_call_t *call, const sdg_plan_entry_t *entry,
                                cudaStream_t stream, uint64_t *out) {
  const sdg_early_t early = {entry->plan, call};
  return sdg_exec_digest(&early, stream, out);
}

// ---- running ---------------------------------------------------------------

static sdg_status_t first_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                              cudaStream_t stream) {
  state_t *state = state_get();
  const sdg_operand_t *x = &call->operand[entry->left];
  SDG_TRY(slots_open(state));
  slot_t *slot = slot_take(state, x->data);
  state->number++;
  SDG_TRY(memory_make(slot, entry->plan->kept_bytes));
  sdg_report_count(entry->row, entry->plan);
  if (sdg_options_get()->check)
    SDG_TRY(digest_make(call, entry, stream, &slot->digest));
  SDG_TRY(sdg_step_run_kept(call, entry, stream, NULL, slot->memory, false));
  if (call->result)
    return SDG_OK;
  slot_fill(slot, x, state->number, entry->messages);
  return SDG_OK;
}

static sdg_status_t promise_check(sdg_call_t *call,
                                  const sdg_plan_entry_t *entry,
                                  const slot_t *slot, cudaStream_t stream) {
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
                          cudaStream_t stream, const sdg_early_t *early) {
  state_t *state = state_get();
  if (entry->leaves == SDG_EARLY_FIRST)
    return first_run(call, entry, stream);
  uint64_t number;
  slot_t *slot = slot_of(call, entry, &number);
  if (slot) {
    sdg_report_count(entry->row, NULL);
    sdg_report_copied(entry->row, entry->plan);
    sdg_report_summed(entry->row, entry->plan);
    SDG_TRY(promise_check(call, entry, slot, stream));
    return sdg_step_run_kept(call, entry, stream, early, slot->memory, true);
  }
  SDG_TRY(slots_open(state));
  slot = &state->slot[SLOTS];
  SDG_TRY(memory_make(slot, entry->plan->kept_bytes));
  sdg_report_count(entry->row, entry->plan);
  return sdg_step_run_kept(call, entry, stream, early, slot->memory, false);
}

void sdg_kept_drop(sdg_span_t span) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SDG_CONTROL_THREADS; i++)
    for (int k = 0; states[i].slot && k < SLOTS; k++)
      if (sdg_span_overlap(states[i].slot[k].x, span))
        states[i].slot[k].number = 0;
  pthread_mutex_unlock(&lock);
}
