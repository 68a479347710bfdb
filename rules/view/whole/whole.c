// SPDX-License-Identifier: Apache-2.0
// One call in the whole view: match, share, bring up to date, carry out.
#include "rules/view/whole/whole.h"

#include <cudnn.h>
#include <string.h>

#include "rules/memory/memory.h"
#include "rules/memory/uploads.h"
#include "rules/observe/run_record.h"
#include "rules/observe/values.h"
#include "rules/place/same_split.h"
#include "rules/place/tagging.h"
#include "rules/reuse/prefetch.h"
#include "rules/step/divergence.h"
#include "rules/step/plan_cache.h"
#include "rules/step/step.h"
#include "rules/vendor/vendor.h"
#include "rules/view/whole/contents.h"
#include "rules/view/whole/full.h"
#include "rules/view/whole/inputs.h"
#include "rules/view/whole/place.h"
#include "rules/view/whole/settle.h"
#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/call/tag.h"
#include "src/exchange/exchange.h"
#include "src/job/job.h"

// ---- the plan --------------------------------------------------------------

static void idle_find(sdg_share_t *share, const sdg_mesh_t *mesh) {
  for (int i = 0; i < share->outputs; i++)
    for (int r = 0; r < share->ranks; r++) {
      sdg_box_t own = sdg_placement_box(&share->output[i].placement, mesh, r);
      share->idle |= sdg_box_empty(&own);
    }
}

static sdg_status_t plan_make(const sdg_call_t *call, const sdg_op_t *op,
                              const sdg_tagging_t *tagging,
                              sdg_plan_t **out_plan) {
  *out_plan = NULL;
  bool lacks = sdg_step_null_operand(call, op);
  bool periodic = !lacks && op &&
                  sdg_family_is(call->family, SDG_FAMILY_WINDOWED) &&
                  tagging->section->wrap;
  bool knows = !lacks && sdg_op_knows(op, call) && op->share;
  if (periodic && !knows)
    return sdg_fail(SDG_E_NO_RULE, "%s with a periodic dimension",
                    call->entry_name);
  // A periodic dimension needs a plan on one rank, too.
  if (knows && (tagging->ranks > 1 || periodic))
    SDG_TRY(op->share(call, tagging, out_plan));
  if (*out_plan && (*out_plan)->share)
    idle_find((*out_plan)->share, tagging->mesh);
  if (*out_plan)
    return SDG_OK;
  return sdg_in_full_plan(NULL, out_plan);
}

static sdg_status_t entry_make(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_op_t *op, const sdg_section_t *section,
                               sdg_buffers_t *table, const sdg_plan_key_t *key,
                               sdg_plan_entry_t **out_entry) {
  sdg_tagging_t tagging;
  sdg_plan_t *plan;
  SDG_TRY(sdg_whole_tagging(call, rules, section, table, &tagging));
  sdg_tagging_say(call, &tagging);
  sdg_status_t status = plan_make(call, op, &tagging, &plan);
  uint32_t hash = sdg_divergence_hash(call, op, &tagging);
  int recorded =
      status == SDG_OK ? sdg_run_record_plan(call, &tagging, plan) : 0;
  sdg_tagging_fini(&tagging);
  if (status != SDG_OK)
    return status;
  status = sdg_step_connect(plan);
  sdg_report_row_t *row =
      sdg_report_find(call->entry_name, section->name, plan->strategy);
  sdg_report_family(row, sdg_family_word(call->family));
  if (status == SDG_OK)
    status = sdg_plan_cache_add(key, plan, row, out_entry);
  if (status == SDG_OK) {
    (*out_entry)->hash = hash;
    (*out_entry)->recorded = recorded;
  } else {
    sdg_plan_destroy(plan);
  }
  return status;
}

// Returns the operand of which the call can use more than its rows
// (sdg_op_reuse_t), -1 for none. The plan depends on whether ranks have more of
// it.
static int more_of(const sdg_call_t *call, const sdg_op_t *op) {
  bool first = false;
  int operand = sdg_op_knows(op, call) && op->reuse && op->reuse->prefetch
                    ? op->reuse->prefetch(call, &first)
                    : -1;
  return first ? -1 : operand;
}

static sdg_status_t entry_get(sdg_call_t *call, const sdg_rules_t *rules,
                              const sdg_op_t *op, const sdg_section_t *section,
                              sdg_buffers_t *table,
                              sdg_plan_entry_t **out_entry) {
  sdg_plan_key_t key;
  int more = more_of(call, op);
  sdg_plan_key_make(call, op, &key);
  for (int i = 0; i < call->operands; i++) {
    const sdg_buffer_t *buffer = sdg_whole_buffer(table, &call->operand[i]);
    key.placed[i] = buffer ? buffer->placement_hash : 0;
    if (buffer && i == more && sdg_buffer_grown(buffer))
      key.placed[i] ^= 1;
  }
  *out_entry = sdg_plan_cache_find(&key);
  if (*out_entry)
    return SDG_OK;
  sdg_tag_nest(call);
  return entry_make(call, rules, op, section, table, &key, out_entry);
}

// ---- carrying it out -------------------------------------------------------

// Outputs must be in memory whose allocation sundog has seen: in other memory
// they could not be brought up to date before the program reads them.
static sdg_status_t output_check(const sdg_call_t *call,
                                 const sdg_operand_t *output) {
  bool seen;
  SDG_TRY(sdg_memory_fits(call, output, &seen));
  if (seen)
    return SDG_OK;
  sdg_layout_t layout = sdg_operand_layout(output);
  return sdg_fail(SDG_E_UNSEEN_MEMORY, "%s of %s at %p, %zu bytes",
                  sdg_role_name(output->role), call->entry_name, output->data,
                  sdg_layout_bytes(&layout));
}

static sdg_status_t input_prepare(const sdg_call_t *call, int index,
                                  sdg_buffers_t *table,
                                  const sdg_plan_entry_t *entry,
                                  cudaStream_t stream) {
  const sdg_operand_t *operand = &call->operand[index];
  const sdg_box_t *need = entry->plan->share->reads[index];
  if (!operand->data) // statistics that the program does not keep
    return SDG_OK;
  SDG_TRY(sdg_memory_fits(call, operand, NULL));
  sdg_layout_t layout = sdg_operand_layout(operand);
  sdg_buffer_t *buffer =
      sdg_buffers_find(table, (uintptr_t)operand->data, &layout);
  if (need && buffer)
    SDG_TRY(
        sdg_whole_update(buffer, need, call->entry_name, stream, entry->row));
  // Other tensors in the same memory, which other descriptors describe.
  sdg_access_t access = sdg_operand_access(operand, true, false);
  return sdg_whole_settle(&access, need ? buffer : NULL, call->entry_name,
                          stream, entry->row);
}

// Workspaces and other memory without a descriptor. What a function of the
// program's own gets beside tensors may point into one of them.
static sdg_status_t others_prepare(const sdg_call_t *call,
                                   const sdg_plan_entry_t *entry,
                                   cudaStream_t stream) {
  for (int i = 0; call->memory && i < call->memory->accesses; i++) {
    const sdg_access_t *access = &call->memory->access[i];
    bool operand = false;
    for (int k = 0; k < call->operands && call->family != SDG_FAMILY_FUNCTION;
         k++)
      operand |= access->at == (uintptr_t)call->operand[k].data;
    if (!operand)
      SDG_TRY(
          sdg_whole_settle(access, NULL, call->entry_name, stream, entry->row));
  }
  return SDG_OK;
}

// Brings other tensors in the output's memory up to date before a part of them
// is overwritten.
static sdg_status_t output_prepare(const sdg_call_t *call, int index,
                                   sdg_buffers_t *table,
                                   const sdg_plan_entry_t *entry,
                                   cudaStream_t stream) {
  const sdg_operand_t *output = &call->operand[index];
  sdg_layout_t layout = sdg_operand_layout(output);
  sdg_access_t written = sdg_operand_access(output, false, true);
  return sdg_whole_settle(
      &written, sdg_buffers_find(table, (uintptr_t)output->data, &layout),
      call->entry_name, stream, entry->row);
}

// `at_once`: the program may read the output without a call.
static sdg_status_t output_note(const sdg_call_t *call, int index,
                                sdg_buffers_t *table,
                                const sdg_placement_t *placement, bool at_once,
                                cudaStream_t stream) {
  const sdg_operand_t *output = &call->operand[index];
  uintptr_t at = (uintptr_t)output->data;
  sdg_layout_t layout = sdg_operand_layout(output);
  sdg_uploads_made(output);
  SDG_TRY(sdg_buffers_put(table, at, &layout, placement, sdg_job_mesh(),
                          sdg_job_rank()));
  sdg_buffer_t *made = sdg_buffers_find(table, at, &layout);
  if (at_once)
    SDG_TRY(sdg_whole_update(made, NULL, call->entry_name, stream, NULL));
  if (sdg_buffer_complete(made))
    sdg_buffers_drop(table, made);
  return SDG_OK;
}

static bool is_seen(const sdg_buffers_t *table, const sdg_operand_t *output) {
  sdg_span_t allocation;
  return sdg_buffers_allocation(table, (uintptr_t)output->data, &allocation);
}

static sdg_status_t outputs_note(const sdg_call_t *call, sdg_buffers_t *table,
                                 const sdg_plan_t *plan, cudaStream_t stream) {
  bool wait = false;
  for (int i = 0; i < plan->share->outputs; i++) {
    int index = plan->share->output[i].operand;
    const sdg_placement_t *placement = &plan->share->output[i].placement;
    bool at_once =
        sdg_placement_axes(placement) && !is_seen(table, &call->operand[index]);
    wait |= at_once && plan->on_host;
    SDG_TRY(output_note(call, index, table, placement, at_once, stream));
  }
  int got = wait ? (int)sdg_vendor_get()->cudaStreamSynchronize(stream) : 0;
  return got ? sdg_fail(SDG_E_VENDOR_CALL, "cudaStreamSynchronize: %d", got)
             : SDG_OK;
}

static sdg_status_t share_run(sdg_call_t *call, const sdg_op_t *op,
                              sdg_buffers_t *table, sdg_plan_entry_t *entry,
                              cudaStream_t stream) {
  const sdg_share_t *share = entry->plan->share;
  SDG_TRY(sdg_prefetch_learn(call, op, table, entry));
  for (int i = 0; i < share->outputs; i++)
    if (sdg_placement_axes(&share->output[i].placement) &&
        (!share->completes ||
         is_seen(table, &call->operand[share->output[i].operand])))
      SDG_TRY(output_check(call, &call->operand[share->output[i].operand]));
  SDG_TRY(others_prepare(call, entry, stream));
  for (int i = 0; i < call->operands; i++)
    if (!sdg_share_placement(share, i) || share->reads[i])
      SDG_TRY(input_prepare(call, i, table, entry, stream));
  SDG_TRY(sdg_inputs_compare(call, table));
  for (int i = 0; i < share->outputs; i++)
    SDG_TRY(
        output_prepare(call, share->output[i].operand, table, entry, stream));
  SDG_TRY(sdg_prefetch_share(call, op, table, entry, stream));
  if (call->result)
    return SDG_OK;
  return outputs_note(call, table, entry->plan, stream);
}

// For `sundog verify`: keeps this rank's piece of each output.
static void values_expect(const sdg_call_t *call, const sdg_share_t *share) {
  sdg_box_t own[SDG_OPERANDS_MAX];
  memset(own, 0, sizeof own);
  for (int i = 0; i < share->outputs; i++)
    own[share->output[i].operand] = sdg_placement_box(
        &share->output[i].placement, sdg_job_mesh(), sdg_job_rank());
  sdg_values_expect(call, own);
}

static sdg_status_t note(const sdg_call_t *call, const sdg_op_t *op,
                         const sdg_plan_t *plan) {
  return op && op->reuse && op->reuse->note ? op->reuse->note(call, plan)
                                            : SDG_OK;
}

// The kind of this thread's call that every rank makes in full; NULL: none.
static _Thread_local sdg_report_row_t *full_row;

// A hash of what must be alike on all ranks: the plan, which tensors are in
// pieces, and numbers that change from call to call.
static uint32_t alike(const sdg_call_t *call, const sdg_op_t *op,
                      const sdg_buffers_t *table,
                      const sdg_plan_entry_t *entry) {
  uint32_t pieces = sdg_divergence_fold(sdg_contents_pieces(call, table));
  bool changes = sdg_op_knows(op, call) && op->numbers && op->numbers->changing;
  return entry->hash + pieces + (changes ? op->numbers->changing(call) : 0);
}

static sdg_status_t locked(sdg_call_t *call, const sdg_rules_t *rules,
                           const sdg_op_t *op, const sdg_section_t *section,
                           sdg_buffers_t *table, bool *out_done) {
  sdg_plan_entry_t *entry;
  cudaStream_t stream;
  full_row = NULL;
  SDG_TRY(sdg_memory_survey(call->entry_name));
  SDG_TRY(entry_get(call, rules, op, section, table, &entry));
  if (entry->recorded)
    sdg_run_record_use(entry->recorded);
  SDG_TRY(sdg_divergence_check(call, op, alike(call, op, table, entry), false));
  SDG_TRY(sdg_contents_compare(call, table));
  sdg_report_count(entry->row, entry->plan);
  *out_done = !entry->plan->literal;
  if (!entry->plan->share)
    sdg_report_in_full();
  if (!*out_done) {
    full_row = entry->row;
    if (sdg_values_wanted_of(call))
      sdg_values_expect(call, NULL);
    return note(call, op, NULL);
  }
  SDG_TRY(sdg_stream_of(call, &stream));
  SDG_TRY(share_run(call, op, table, entry, stream));
  // The vendor refused the pieces on every rank, but may accept the whole:
  // every rank makes the program's own call.
  if (call->result && !entry->plan->share->around) {
    call->result = CUDNN_STATUS_SUCCESS;
    *out_done = false;
    if (sdg_values_wanted_of(call))
      sdg_values_expect(call, NULL);
    return note(call, op, NULL);
  }
  if (sdg_values_wanted_of(call))
    values_expect(call, entry->plan->share);
  return note(call, op, entry->plan);
}

// Joins the job and counts the call.
static sdg_status_t enter(const sdg_call_t *call, const sdg_rules_t *rules,
                          const sdg_op_t *op) {
  int64_t wait_ns;
  SDG_TRY(sdg_exchange_join(&rules->mesh, rules->axes));
  SDG_TRY(sdg_whole_own(call->entry_name));
  SDG_TRY(sdg_step_check(call));
  sdg_step_number(call);
  // All ranks see the same descriptors, so only checked runs compare them.
  return sdg_options_get()->check ? sdg_step_agree(call, op, &wait_ns) : SDG_OK;
}

static sdg_status_t shared(sdg_call_t *call, const sdg_rules_t *rules,
                           const sdg_op_t *op, const sdg_section_t *section,
                           bool *out_done) {
  sdg_buffers_t *table = sdg_memory_lock();
  sdg_status_t status = enter(call, rules, op);
  if (status == SDG_OK)
    status = locked(call, rules, op, section, table, out_done);
  if (status == SDG_OK && *out_done)
    sdg_contents_made(call, table);
  sdg_memory_unlock();
  if (sdg_options_get()->observing)
    sdg_run_record_call(call, status != SDG_OK);
  return status;
}

// A tagged call that every rank carries out in full. Its inputs are up to date.
static sdg_status_t in_full(const sdg_call_t *call) {
  sdg_buffers_t *table = sdg_memory_lock();
  sdg_status_t status = sdg_inputs_compare(call, table);
  for (int i = 0; i < call->operands && status == SDG_OK; i++)
    if (call->operand[i].is_output)
      sdg_uploads_made(&call->operand[i]);
  sdg_contents_made(call, table);
  sdg_memory_unlock();
  if (status == SDG_OK)
    sdg_full_begin(call, full_row);
  return sdg_step_accident(status);
}

sdg_status_t sdg_whole_judge(sdg_call_t *call, const sdg_rules_t *rules,
                             const sdg_op_t *op, bool *out_done) {
  const sdg_section_t *section = sdg_whole_section(call, rules);
  *out_done = false;
  if (section && !call->is_query)
    SDG_TRY(sdg_step_accident(shared(call, rules, op, section, out_done)));
  if (*out_done || !call->memory)
    return SDG_OK;
  bool full = section && !call->is_query;
  if (full)
    sdg_run_record_cause_begin();
  sdg_status_t status = sdg_whole_access(call->memory);
  sdg_run_record_cause_end();
  SDG_TRY(sdg_step_accident(status));
  return full ? in_full(call) : SDG_OK;
}
