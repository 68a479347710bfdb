// SPDX-License-Identifier: Apache-2.0
// Decides which exchange an earlier call carries out.
#include "rules/reuse/prefetch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/memory/kept_slot.h"
#include "rules/reuse/kept.h"
#include "rules/step/divergence.h"
#include "rules/step/held.h"
#include "rules/step/step.h"
#include "src/base/options.h"
#include "src/exchange/update.h"
#include "src/geometry/hint.h"
#include "src/job/job.h"
#include "src/job/thread.h"
#include "src/observe/report.h"

// The state of a calling thread.
typedef struct state {
  bool any;             // a first call was made:
  sdg_plan_key_t first; // its plan
  const void *data;     // its tensor
  sdg_span_t tensor;    // the memory of that tensor
  uint64_t generation;  // of the tensor's descriptor
  uint64_t number;      // whole view: of the tensor's buffer
  bool sent;            // shard view: an exchange was made early, and is to be
  sdg_plan_key_t whose; // used by this plan
  uint64_t digest;      // digest of what was sent; in checked runs
} state_t;
static state_t states[SDG_CHANNEL_THREADS]; // by the thread's channel number
// Guards `tensor` and `sent`, which other threads may change.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static state_t *state_get(void) {
  return &states[sdg_channel_get()];
}

void sdg_prefetch_forget(void) {
  pthread_mutex_lock(&lock);
  memset(states, 0, sizeof states);
  pthread_mutex_unlock(&lock);
}

static int part_of(const sdg_call_t *call, const sdg_op_t *op,
                   bool *out_first) {
  return sdg_op_knows(op, call) && op->reuse && op->reuse->prefetch
             ? op->reuse->prefetch(call, out_first)
             : -1;
}

static void first_note(state_t *state, const sdg_plan_entry_t *entry,
                       const sdg_operand_t *tensor) {
  sdg_layout_t layout = sdg_operand_layout(tensor);
  state->any = true;
  state->first = *entry->key;
  state->data = tensor->data;
  state->generation = tensor->generation;
  pthread_mutex_lock(&lock);
  state->tensor =
      (sdg_span_t){(uintptr_t)tensor->data, sdg_layout_bytes(&layout)};
  pthread_mutex_unlock(&lock);
}

// Lets the first call's plan send what this call needs.
static sdg_status_t pair(const state_t *state, const sdg_plan_entry_t *second) {
  sdg_plan_entry_t *first = sdg_plan_cache_find(&state->first);
  if (!first)
    return SDG_OK;
  if (!first->prefetch)
    SDG_TRY(SDG_ALLOCATE(first->prefetch, 1, "a cached plan"));
  *first->prefetch = *second->key;
  return SDG_OK;
}

static sdg_plan_entry_t *second_of(const sdg_plan_entry_t *first) {
  sdg_plan_entry_t *second =
      first->prefetch ? sdg_plan_cache_find(first->prefetch) : NULL;
  return second && second->part == SDG_PREFETCH_SECOND ? second : NULL;
}

// ---- the shard view --------------------------------------------------------

void sdg_prefetch_ready(const sdg_call_t *call, const sdg_op_t *op,
                        const sdg_section_t *section, sdg_plan_entry_t *entry) {
  bool first = false;
  int operand = section->keeps_dy ? part_of(call, op, &first) : -1;
  entry->part = operand < 0 ? SDG_PREFETCH_NONE
                : first     ? SDG_PREFETCH_FIRST
                            : SDG_PREFETCH_SECOND;
  entry->operand = operand;
  if (entry->part != SDG_PREFETCH_NONE)
    sdg_hint_watch();
  if (entry->part == SDG_PREFETCH_SECOND)
    sdg_plan_keep(entry->plan);
}

static bool is_sent(const state_t *state, const sdg_plan_entry_t *entry) {
  pthread_mutex_lock(&lock);
  bool sent = state->sent;
  pthread_mutex_unlock(&lock);
  return sent && memcmp(&state->whose, entry->key, sizeof state->whose) == 0;
}

static void sent_set(state_t *state, bool sent) {
  pthread_mutex_lock(&lock);
  state->sent = sent;
  pthread_mutex_unlock(&lock);
}

void sdg_prefetch_written(const void *at, size_t bytes) {
  sdg_span_t span = {(uintptr_t)at, bytes};
  if (bytes == 0 || !sdg_hint_watched())
    return; // no call of a pair has been planned
  if (bytes > UINTPTR_MAX - span.at)
    span.bytes = UINTPTR_MAX - span.at;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SDG_CHANNEL_THREADS; i++)
    if (sdg_span_overlap(states[i].tensor, span))
      states[i].sent = false;
  pthread_mutex_unlock(&lock);
  sdg_kept_slot_drop(span);
}

uint32_t sdg_prefetch_mark(const sdg_call_t *call,
                           const sdg_plan_entry_t *entry) {
  uint32_t mark = entry->part == SDG_PREFETCH_FIRST ? entry->prefetch != NULL
                  : entry->part == SDG_PREFETCH_SECOND
                      ? is_sent(state_get(), entry)
                      : 0;
  return entry->leaves == SDG_PREFETCH_SECOND
             ? mark + sdg_kept_mark(call, entry)
             : mark;
}

// The call whose messages `second` needs, as far as they are read.
static sdg_prefetch_t exchange_of(const sdg_plan_entry_t *second,
                                  sdg_call_t *call, const char *name,
                                  void *data) {
  call->entry_name = name;
  call->operand[second->operand].data = data;
  return (sdg_prefetch_t){second->plan, call};
}

// Counts the call, and carries it out with what its forward call kept.
static sdg_status_t own_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                            cudaStream_t stream,
                            const sdg_prefetch_t *prefetch) {
  if (entry->leaves != SDG_PREFETCH_NONE)
    return sdg_kept_run(call, entry, stream, prefetch);
  if (entry->plan->helds > 0)
    return sdg_held_run(call, entry, stream);
  sdg_report_count(entry->row, entry->plan);
  return sdg_step_run_how(call, entry, stream,
                          &(sdg_exec_how_t){.prefetch = prefetch});
}

static sdg_status_t first_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                              cudaStream_t stream) {
  state_t *state = state_get();
  const sdg_operand_t *tensor = &call->operand[entry->operand];
  const sdg_plan_entry_t *second = second_of(entry);
  first_note(state, entry, tensor);
  if (!second)
    return own_run(call, entry, stream, NULL);
  sdg_call_t with = {.operands = 0};
  sdg_prefetch_t prefetch =
      exchange_of(second, &with, call->entry_name, tensor->data);
  sdg_report_received(entry->row, second->plan);
  state->whose = *second->key;
  sent_set(state, true);
  SDG_TRY(own_run(call, entry, stream, &prefetch));
  return sdg_options_get()->check
             ? sdg_exec_digest(&prefetch, stream, &state->digest)
             : SDG_OK;
}

static sdg_status_t promise_check(const sdg_call_t *call,
                                  const sdg_plan_entry_t *entry,
                                  const state_t *state, cudaStream_t stream) {
  const sdg_operand_t *tensor = &call->operand[entry->operand];
  const char *role = sdg_role_name(tensor->role);
  uint64_t digest;
  if (tensor->data != state->data)
    return sdg_fail(SDG_E_KEPT, "%s of %s is at %p, but rows were sent from %p",
                    role, call->entry_name, tensor->data, state->data);
  if (!sdg_options_get()->check)
    return SDG_OK;
  sdg_call_t with = {.operands = 0};
  sdg_prefetch_t prefetch =
      exchange_of(entry, &with, call->entry_name, tensor->data);
  SDG_TRY(sdg_exec_digest(&prefetch, stream, &digest));
  return digest == state->digest
             ? SDG_OK
             : sdg_fail(SDG_E_KEPT,
                        "rows of %s of %s have changed since they were sent",
                        role, call->entry_name);
}

// What a rank sends to the others about a second call with a new plan.
typedef struct answer {
  char magic[8];
  int yes; // it reads the last first call's tensor, and can be sent early
} answer_t;
static const char answer_magic[8] = "early";

static sdg_status_t answers_compare(const sdg_call_t *call,
                                    const sdg_records_t *all, bool *out_all) {
  const sdg_group_t *group = sdg_job_group();
  *out_all = true;
  for (int r = 0; r < group->count; r++) {
    answer_t theirs = {.yes = 0};
    if (all->bytes[r] == sizeof theirs)
      memcpy(&theirs, all->data[r], sizeof theirs);
    if (memcmp(theirs.magic, answer_magic, sizeof theirs.magic) != 0)
      return sdg_fail(SDG_E_DIVERGED, "%s: rank %d makes another call",
                      call->entry_name, group->rank[r]);
    *out_all &= theirs.yes != 0;
  }
  return SDG_OK;
}

static sdg_status_t answers_exchange(const sdg_call_t *call, bool mine,
                                     bool *out_all) {
  answer_t answer = {.yes = mine};
  memcpy(answer.magic, answer_magic, sizeof answer.magic);
  sdg_records_t all;
  char at[96];
  sdg_job_call(at, sizeof at);
  sdg_status_t status =
      sdg_job_gather(sdg_channel_get(), &answer, sizeof answer, at, &all);
  if (status == SDG_OK)
    status = answers_compare(call, &all, out_all);
  sdg_records_free(&all);
  return status;
}

static bool exchanges(const sdg_plan_t *plan) {
  for (int i = 0; i < plan->steps; i++)
    if (plan->step[i].kind == SDG_STEP_EXCHANGE)
      return true;
  return false;
}

// Asked once for each plan; all ranks have one. Addresses differ between ranks.
static sdg_status_t second_ask(const sdg_call_t *call,
                               sdg_plan_entry_t *entry) {
  const state_t *state = state_get();
  const sdg_operand_t *tensor = &call->operand[entry->operand];
  if (entry->asked || !state->any || !exchanges(entry->plan))
    return SDG_OK;
  entry->asked = true;
  bool mine = tensor->data == state->data &&
              tensor->generation == state->generation &&
              sdg_plan_is_early(entry->plan, entry->operand);
  bool all = false;
  SDG_TRY(answers_exchange(call, mine, &all));
  return all ? pair(state, entry) : SDG_OK;
}

static sdg_status_t second_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                               cudaStream_t stream) {
  state_t *state = state_get();
  bool sent = is_sent(state, entry);
  sent_set(state,
           false); // the scratch now holds another call's messages, or none
  if (sent) {
    sdg_report_count(entry->row, NULL);
    sdg_report_copied(entry->row, entry->plan);
    SDG_TRY(promise_check(call, entry, state, stream));
    return sdg_step_run_how(call, entry, stream,
                            &(sdg_exec_how_t){.rest = true});
  }
  sdg_report_count(entry->row, entry->plan);
  SDG_TRY(sdg_step_run(call, entry, stream));
  return call->result ? SDG_OK : second_ask(call, entry);
}

sdg_status_t sdg_prefetch_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                              cudaStream_t stream) {
  if (entry->part == SDG_PREFETCH_FIRST)
    return first_run(call, entry, stream);
  if (entry->part == SDG_PREFETCH_SECOND)
    return second_run(call, entry, stream);
  return own_run(call, entry, stream, NULL);
}

// ---- the whole view --------------------------------------------------------

static sdg_buffer_t *buffer_of(sdg_buffers_t *table,
                               const sdg_operand_t *tensor) {
  sdg_layout_t layout = sdg_operand_layout(tensor);
  return sdg_buffers_find(table, (uintptr_t)tensor->data, &layout);
}

sdg_status_t sdg_prefetch_learn(const sdg_call_t *call, const sdg_op_t *op,
                                sdg_buffers_t *table, sdg_plan_entry_t *entry) {
  const state_t *state = state_get();
  bool first = false;
  int operand = part_of(call, op, &first);
  if (operand < 0 || first || !state->any)
    return SDG_OK;
  const sdg_operand_t *tensor = &call->operand[operand];
  const sdg_box_t *need = entry->plan->share->reads[operand];
  sdg_buffer_t *buffer = buffer_of(table, tensor);
  if (!need || !buffer || buffer->number != state->number ||
      tensor->generation != state->generation ||
      !sdg_buffer_lack(buffer, need, buffer->lack))
    return SDG_OK;
  entry->part = SDG_PREFETCH_SECOND;
  entry->operand = operand;
  return pair(state, entry);
}

// Whether the following call will need data of the buffer that is missing.
static bool needs_more(const sdg_plan_entry_t *entry, sdg_buffer_t *buffer) {
  const sdg_plan_entry_t *second = buffer ? second_of(entry) : NULL;
  return second &&
         sdg_buffer_lack(buffer, second->plan->share->reads[second->operand],
                         buffer->lack);
}

sdg_status_t sdg_prefetch_share(sdg_call_t *call, const sdg_op_t *op,
                                sdg_buffers_t *table,
                                const sdg_plan_entry_t *entry,
                                cudaStream_t stream) {
  state_t *state = state_get();
  bool first = false;
  int operand = part_of(call, op, &first);
  if (operand < 0 || !first)
    return sdg_step_run(call, entry, stream);
  const sdg_operand_t *tensor = &call->operand[operand];
  sdg_buffer_t *buffer = buffer_of(table, tensor);
  first_note(state, entry, tensor);
  state->any = buffer;
  state->number = buffer ? buffer->number : 0;
  if (!needs_more(entry, buffer))
    return sdg_step_run(call, entry, stream);
  sdg_call_t with;
  sdg_prefetch_t prefetch;
  sdg_outcome_t outcome;
  SDG_TRY(sdg_divergence_update(call->entry_name, buffer->number));
  SDG_TRY(sdg_update_early(buffer, buffer->lack, call->entry_name, &with,
                           &prefetch));
  sdg_report_moved(entry->row, prefetch.plan);
  SDG_TRY(sdg_step_run_how(call, entry, stream,
                           &(sdg_exec_how_t){.prefetch = &prefetch}));
  SDG_TRY(sdg_exec_run_how(prefetch.plan, &with, stream, entry->row,
                           &(sdg_exec_how_t){.rest = true}, &outcome));
  sdg_buffer_grow(buffer, buffer->lack);
  return SDG_OK;
}
