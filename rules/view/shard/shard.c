// SPDX-License-Identifier: Apache-2.0
// One call in the shard view: match, agree, plan, carry out.
#include "rules/view/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/memory/memory.h"
#include "rules/observe/run_record.h"
#include "rules/observe/values.h"
#include "rules/place/ones.h"
#include "rules/place/own.h"
#include "rules/place/tagging.h"
#include "rules/reuse/kept.h"
#include "rules/reuse/prefetch.h"
#include "rules/step/compare.h"
#include "rules/step/divergence.h"
#include "rules/step/plan_cache.h"
#include "rules/step/step.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/sequence.h"
#include "rules/vendor/vendor.h"
#include "rules/view/shard/outside.h"
#include "rules/view/shard/replay.h"
#include "rules/view/shard/verdict.h"
#include "src/base/options.h"
#include "src/call/tag.h"
#include "src/exchange/exchange.h"
#include "src/job/agree.h"
#include "src/job/job.h"
#include "src/job/thread.h"
#include "src/observe/report.h"

// What becomes of a call that is not refused.
typedef enum way {
  WAY_UNTAGGED, // the real function gets the program's call; not counted
  WAY_LITERAL,  // tagged, but right on pieces: the same, counted
  WAY_DONE,     // carried out or answered; call->result is the status
} way_t;

// ---- what the rules can reach ----------------------------------------------

static bool may_match(const sdg_call_t *call, const sdg_rules_t *rules) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (operand->label && !operand->label->is_local)
      return true;
    if (sdg_role_is_activation(operand->role) && !operand->label &&
        sdg_rules_may_match(rules, call->family, call->entry_name,
                            operand->extent, operand->dims))
      return true;
  }
  return false;
}

static void mark_passes(const sdg_call_t *call, const sdg_rules_t *rules) {
  if (sdg_values_wanted())
    return; // they are counted
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    // The same filter or parameters may be used with any activation.
    if (operand->kind != SDG_OPERAND_FILTER &&
        operand->kind != SDG_OPERAND_PARAMETERS &&
        sdg_tagging_passes(call, i, rules))
      sdg_tag_set_pass(operand->descriptor, operand->generation, call->family,
                       sdg_rules_may_match(rules, call->family,
                                           call->entry_name, operand->extent,
                                           operand->dims));
  }
}

// Whether a [local] section or a tag names the call's tensors, by what this
// rank sees. For calls that no [shard] section can match, whatever extents the
// other ranks have.
static bool named_local(const sdg_call_t *call, const sdg_rules_t *rules) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].label && call->operand[i].label->is_local)
      return true;
  for (int s = 0; s < rules->sections; s++)
    for (int i = 0; i < call->operands; i++)
      if (rules->section[s].is_local &&
          sdg_role_is_activation(call->operand[i].role) &&
          sdg_section_match(&rules->section[s], call->family, call->entry_name,
                            call->operand[i].extent, call->operand[i].dims))
        return true;
  return false;
}

// The program's call is made as it is.
static sdg_status_t untagged_leave(const sdg_call_t *call,
                                   const sdg_rules_t *rules,
                                   const sdg_op_t *op) {
  SDG_TRY(named_local(call, rules) ? sdg_own_check(call, op)
                                   : sdg_own_check_value(call));
  SDG_TRY(sdg_sequence_whole(call));
  // For calls that pass the probe does the same (sdg_capture_passed).
  sdg_outside_call(call);
  mark_passes(call, rules);
  return SDG_OK;
}

// ---- agreed calls ----------------------------------------------------------

// Whether this call needs an agreement. Queries of agreed descriptors do not,
// and are not counted: one rank may ask more often than another (if a workspace
// is too large there). Products of matrices always do: they have no descriptors
// that keep what was agreed on, so a rank cannot know whether another rank's
// sizes have changed.
static bool agreement_due(const sdg_call_t *call, const sdg_rules_t *rules) {
  return sdg_agree_needed(call) || sdg_ones_due(call, rules) ||
         sdg_family_is(call->family, SDG_FAMILY_STATED) ||
         (sdg_options_get()->check && !call->is_query);
}

static sdg_status_t query_answer(sdg_call_t *call, const sdg_rules_t *rules,
                                 const sdg_op_t *op, int64_t wait_ns,
                                 way_t *out_way) {
  sdg_shard_verdict_t verdict;
  const sdg_tagging_t *tagging = &verdict.tagging;
  sdg_tag_nest(call);
  SDG_TRY(sdg_shard_derive(call, rules, op, &verdict));
  *out_way = verdict.tagged ? WAY_DONE : WAY_UNTAGGED;
  if (!verdict.tagged)
    return SDG_OK;
  sdg_tagging_say(call, tagging);
  sdg_report_row_t *row =
      sdg_report_find(call->entry_name, tagging->section->name, "query");
  sdg_report_count(row, NULL);
  sdg_report_wait(row, wait_ns);
  sdg_run_record_use(sdg_run_record_plan(call, tagging, NULL));
  sdg_status_t status = sdg_shard_answer(call, op, &verdict);
  sdg_shard_verdict_fini(&verdict);
  return status;
}

static bool extents_equal(const sdg_operand_t *a, const sdg_operand_t *b) {
  return a->dims == b->dims &&
         memcmp(a->extent, b->extent, sizeof *a->extent * (size_t)a->dims) == 0;
}

// Whether an op computes element by element of a tensor that every rank has,
// although a section matches its extents: as a step of weights, and not in
// pieces.
static bool is_of_copies(const sdg_call_t *call) {
  bool copies = false;
  if (!sdg_family_is(call->family, SDG_FAMILY_ELEMENTWISE) || !sdg_hint_any())
    return false;
  bool updates = sdg_call_scalar(call, SDG_BETA) != 0;
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!operand->data || operand->elem_bytes == 0 || operand->label ||
        (operand->is_output && !operand->is_updated && !updates))
      continue;
    size_t bytes = sdg_operand_access(operand, true, false).width;
    if (sdg_hint_within(operand->data, bytes))
      return false; // something is in pieces
    for (int k = 0; k < call->operands; k++)
      copies |= call->operand[k].is_output &&
                extents_equal(operand, &call->operand[k]) &&
                sdg_hint_of(operand->data, bytes) == SDG_HINT_KNOWN;
  }
  return copies;
}

static void written_note(const sdg_call_t *call,
                         const sdg_plan_entry_t *entry) {
  bool copies = is_of_copies(call);
  for (int i = 0; i < call->operands; i++) {
    const sdg_written_t *written = &entry->written[i];
    if (written->bytes > 0)
      sdg_hint_put_contents(
          call->operand[i].data, written->bytes, written->gaps,
          copies ? SDG_HINT_KNOWN : written->hint, sdg_divergence_tensor(i));
    if (written->counts.all)
      sdg_hint_set_counts(call->operand[i].data, written->bytes,
                          written->counts);
  }
}

static void outputs_written(const sdg_call_t *call,
                            const sdg_plan_entry_t *entry) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (!operand->is_output || !operand->data || operand->elem_bytes == 0)
      continue;
    sdg_prefetch_written(operand->data, entry->written[i].bytes);
  }
}

// Nothing but the program's own call.
static bool is_nothing(const sdg_plan_t *plan) {
  return plan->literal && plan->steps == 0;
}

// Plans a call; *out_entry is NULL if it is untagged.
static sdg_status_t entry_make(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_op_t *op, const sdg_plan_key_t *key,
                               sdg_plan_entry_t **out_entry) {
  sdg_shard_verdict_t verdict;
  const sdg_tagging_t *tagging = &verdict.tagging;
  *out_entry = NULL;
  SDG_TRY(sdg_shard_derive(call, rules, op, &verdict));
  if (!verdict.tagged)
    return SDG_OK;
  sdg_tagging_say(call, tagging);
  sdg_plan_t *plan = NULL;
  sdg_status_t status = sdg_shard_plan(call, op, &verdict, &plan);
  const sdg_section_t *section = tagging->section;
  uint32_t hash = status == SDG_OK ? sdg_divergence_hash(call, op, tagging) : 0;
  bool observed = status == SDG_OK && sdg_options_get()->observing;
  int recorded = observed ? sdg_run_record_plan(call, tagging, plan) : 0;
  sdg_box_t *boxes = observed ? sdg_values_boxes(call, tagging) : NULL;
  sdg_written_t written[SDG_OPERANDS_MAX] = {{.bytes = 0}};
  if (status == SDG_OK)
    sdg_shard_written(call, tagging, plan, written);
  sdg_compared_t *compared = NULL;
  if (status == SDG_OK)
    status = sdg_compare_plan(call, op, rules, tagging, &compared);
  uint64_t messages = status == SDG_OK && section->keeps_x
                          ? sdg_kept_messages(call, op, tagging)
                          : 0;
  sdg_shard_verdict_fini(&verdict);
  if (status != SDG_OK)
    goto fail;
  if (!is_nothing(plan) && !plan->refusal)
    SDG_TRY_GOTO(sdg_replay_check_new(call), fail);
  SDG_TRY_GOTO(sdg_step_connect(plan), fail);
  sdg_report_row_t *row =
      sdg_report_find(call->entry_name, section->name, plan->strategy);
  sdg_report_family(row, sdg_family_word(call->family));
  status = sdg_plan_cache_add(key, plan, row, out_entry);
  if (status == SDG_OK) {
    (*out_entry)->hash = hash;
    (*out_entry)->recorded = recorded;
    (*out_entry)->boxes = boxes;
    memcpy((*out_entry)->written, written, sizeof written);
    (*out_entry)->compared = compared;
    sdg_prefetch_ready(call, op, section, *out_entry);
    if (messages)
      sdg_kept_ready(call, op, messages, *out_entry);
    return SDG_OK;
  }
fail:
  sdg_plan_destroy(plan);
  free(boxes);
  free(compared);
  return status;
}

static sdg_status_t plan_run(sdg_call_t *call, sdg_plan_entry_t *entry,
                             cudaStream_t stream, bool captured) {
  if (captured)
    return sdg_replay_record(call, entry, stream);
  SDG_TRY(sdg_prefetch_run(call, entry, stream));
  entry->ran |= !call->result;
  return SDG_OK;
}

// Other ranks cannot know that memory is too small on this one. A product's
// call may state the sizes of the whole, although this rank has memory for a
// piece.
static sdg_status_t memory_check(const sdg_call_t *call) {
  sdg_status_t status = sdg_family_is(call->family, SDG_FAMILY_STATED)
                            ? SDG_OK
                            : sdg_memory_fits_all(call);
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

// Carries out a numbered call. wait_ns: what its agreement took.
static sdg_status_t entry_run(sdg_call_t *call, const sdg_op_t *op,
                              sdg_plan_entry_t *entry, int64_t wait_ns,
                              way_t *out_way) {
  *out_way = entry->plan->literal ? WAY_LITERAL : WAY_DONE;
  if (entry->recorded)
    sdg_run_record_use(entry->recorded);
  if (entry->boxes)
    sdg_values_expect(call, entry->boxes);
  bool nothing = is_nothing(entry->plan) && entry->part == SDG_PREFETCH_NONE &&
                 entry->leaves == SDG_PREFETCH_NONE;
  cudaStream_t stream = NULL;
  bool captured = false;
  if (!nothing && !entry->plan->refusal)
    SDG_TRY(sdg_stream_state(call, &stream, &captured));
  uint32_t mark = captured ? SDG_REPLAY_MARK : sdg_prefetch_mark(call, entry);
  if (op->numbers && op->numbers->changing)
    mark += op->numbers->changing(call);
  SDG_TRY(sdg_divergence_check(call, op, entry->hash + mark, captured));
  SDG_TRY(memory_check(call));
  sdg_report_wait(entry->row, wait_ns);
  call->result = entry->plan->refusal;
  if (!call->result && entry->compared && entry->compared->due)
    SDG_TRY(sdg_compare_call(call, entry->compared));
  if (sdg_family_is(call->family, SDG_FAMILY_REDUCES) &&
      entry->plan->reduce_axes)
    SDG_TRY(sdg_own_check_copies(call));
  if (!nothing && !call->result)
    SDG_TRY(plan_run(call, entry, stream, captured));
  else
    sdg_report_count(entry->row, entry->plan);
  if (!call->result)
    written_note(call, entry);
  outputs_written(call, entry);
  return SDG_OK;
}

// How far a call has come.
typedef struct stage {
  bool looks;    // what is known of memory matters
  bool numbered; // it is agreed on, or tagged
} stage_t;

// A call without an agreement gets a number only if it is tagged: an untagged
// one is judged on some ranks and passes the probe on others.
static sdg_status_t op_run(sdg_call_t *call, const sdg_rules_t *rules,
                           const sdg_op_t *op, stage_t *stage, int64_t wait_ns,
                           way_t *out_way) {
  sdg_plan_key_t key;
  sdg_plan_key_make(call, op, &key);
  for (int i = 0; i < call->operands; i++)
    key.placed[i] = call->operand[i].hint;
  bool checks = sdg_options_get()->check && stage->numbered;
  if (checks)
    key.extents = sdg_plan_cache_extents(call);
  sdg_plan_entry_t *entry = sdg_plan_cache_find(&key);
  if (checks)
    SDG_TRY(sdg_plan_cache_renew(call, &entry));
  if (!entry) {
    if (!stage->numbered)
      sdg_step_foresee(call);
    sdg_tag_nest(call);
    sdg_status_t status = entry_make(call, rules, op, &key, &entry);
    if (status != SDG_OK) {
      if (!stage->numbered)
        sdg_step_number(call);
      stage->numbered = true;
      if (sdg_step_is_verdict(status))
        SDG_TRY(sdg_divergence_refused(call));
      return status;
    }
    if (entry)
      entry->settled =
          !stage->looks && !sdg_family_is(call->family, SDG_FAMILY_STATED);
  }
  if (entry && !stage->numbered) {
    sdg_step_number(call);
    stage->numbered = true;
  }
  *out_way = WAY_UNTAGGED;
  return entry ? entry_run(call, op, entry, wait_ns, out_way) : SDG_OK;
}

static sdg_status_t counted(sdg_call_t *call, const sdg_rules_t *rules,
                            const sdg_op_t *op, stage_t *stage,
                            way_t *out_way) {
  int64_t wait_ns = 0;
  if (stage->numbered)
    SDG_TRY(sdg_step_agree(call, op, &wait_ns));
  sdg_ones_settle(call, rules);
  if (call->is_query)
    SDG_TRY(query_answer(call, rules, op, wait_ns, out_way));
  else
    SDG_TRY(op_run(call, rules, op, stage, wait_ns, out_way));
  return *out_way == WAY_UNTAGGED ? untagged_leave(call, rules, op) : SDG_OK;
}

// Judges a call that may be tagged, and so concerns all ranks.
static sdg_status_t collective(sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_op_t *op, way_t *out_way) {
  SDG_TRY(sdg_step_check(call));
  stage_t stage = {.looks = sdg_ones_look(call, rules)};
  stage.numbered = agreement_due(call, rules);
  if (stage
          .numbered) // what is not counted is no place that an error could name
    sdg_step_number(call);
  sdg_status_t status = counted(call, rules, op, &stage, out_way);
  if (stage.numbered && sdg_options_get()->observing)
    sdg_run_record_call(call, status != SDG_OK);
  return status;
}

// ---- calls like an earlier one ---------------------------------------------

// The plan of a call whose descriptors are those of an earlier call of this
// thread, since then not set again. NULL: the call has to be looked at.
static sdg_plan_entry_t *settled_find(const sdg_call_t *call,
                                      const sdg_op_t *op) {
  if (!sdg_channel_claimed || call->is_query || sdg_options_get()->check)
    return NULL;
  sdg_plan_key_t key;
  sdg_plan_key_make(call, op, &key);
  sdg_plan_entry_t *entry = sdg_plan_cache_find(&key);
  return entry && entry->settled ? entry : NULL;
}

static sdg_status_t settled_run(sdg_call_t *call, const sdg_op_t *op,
                                sdg_plan_entry_t *entry, way_t *out_way) {
  sdg_step_number(call);
  sdg_status_t status = entry_run(call, op, entry, 0, out_way);
  if (sdg_options_get()->observing)
    sdg_run_record_call(call, status != SDG_OK);
  return status;
}

sdg_status_t sdg_shard_judge(sdg_call_t *call, const sdg_rules_t *rules,
                             const sdg_op_t *op, bool *out_done) {
  way_t way = WAY_UNTAGGED;
  *out_done = false;
  sdg_plan_entry_t *entry = settled_find(call, op);
  if (entry) {
    SDG_TRY(sdg_step_accident(settled_run(call, op, entry, &way)));
    *out_done = way == WAY_DONE;
    return SDG_OK;
  }
  if (!may_match(call, rules)) {
    SDG_TRY(sdg_shard_unmatched(call, rules, named_local(call, rules)));
    return untagged_leave(call, rules, op);
  }
  SDG_TRY(sdg_exchange_join(&rules->mesh, rules->axes));
  SDG_TRY(sdg_thread_claim(call->entry_name));
  SDG_TRY(sdg_step_accident(collective(call, rules, op, &way)));
  *out_done = way == WAY_DONE;
  return SDG_OK;
}
