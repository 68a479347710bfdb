// SPDX-License-Identifier: Apache-2.0
// From a captured call to a plan carried out: judge, agree, plan, run.
#include "rules/registry.h"

#include <cudnn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/history.h"
#include "rules/instep.h"
#include "rules/label.h"
#include "rules/memory.h"
#include "rules/plancache.h"
#include "rules/rule.h"
#include "rules/setup.h"
#include "rules/tagging.h"
#include "rules/values.h"
#include "rules/vendor.h"
#include "rules/whole.h"
#include "src/agree.h"
#include "src/comm.h"
#include "src/device.h"
#include "src/exec.h"
#include "src/job.h"
#include "src/log.h"
#include "src/lost.h"
#include "src/options.h"
#include "src/report.h"
#include "src/tag.h"
#include "src/thread.h"
#include "src/vendor.h"

enum { PARAMETERS_BYTES = 1024 };

static const sdg_rule_t *const rules_by_family[SDG_FAMILY_COUNT] = {
    [SDG_FAMILY_CONV] = &sdg_rule_conv,
    [SDG_FAMILY_POINTWISE] = &sdg_rule_pointwise,
};

// What becomes of a call that is not refused.
typedef enum way {
  WAY_UNTAGGED, // the program's call as it is, and not sundog's affair
  WAY_LITERAL,  // tagged, and the program's call as it is does it
  WAY_DONE,     // carried out or answered: call->result
} way_t;

bool sdg_registry_knows(const sdg_call_t *call) {
  const sdg_rule_t *rule = rules_by_family[call->family];
  return rule && rule->knows(call);
}

static int vendor_status(sdg_status_t status) {
  const sdg_error_info_t *info = sdg_error_find(status);
  switch (info ? info->vendor : SDG_VENDOR_FAILED) {
  case SDG_VENDOR_BAD_PARAM:
    return CUDNN_STATUS_BAD_PARAM;
  case SDG_VENDOR_UNSUPPORTED:
    return CUDNN_STATUS_NOT_SUPPORTED;
  case SDG_VENDOR_NOT_READY:
    return CUDNN_STATUS_NOT_INITIALIZED;
  case SDG_VENDOR_NONE:
  case SDG_VENDOR_FAILED:
    break;
  }
  return CUDNN_STATUS_EXECUTION_FAILED;
}

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
    if (!operand->is_filter && sdg_tagging_passes(call, i, rules))
      sdg_tag_set_pass(operand->descriptor, operand->generation, call->family,
                       sdg_rules_may_match(rules, call->family,
                                           call->entry_name, operand->extent,
                                           operand->dims));
  }
}

// Whether a [local] section, or a tag, names the call's tensors, judged by what
// this rank sees: asked where no [shard] section can match, whatever the other
// ranks have.
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

// Whether `op =` of the rules keeps a section from an activation of this call.
static bool left_out(const sdg_call_t *call, const sdg_rules_t *rules) {
  for (int i = 0; i < call->operands; i++) {
    const sdg_operand_t *operand = &call->operand[i];
    if (sdg_role_is_activation(operand->role) &&
        sdg_rules_leave_out(rules, call->family, call->entry_name,
                            operand->extent, operand->dims))
      return true;
  }
  return false;
}

// An untagged op that sees beyond its element is an error where its tensor may
// be split: with a window anywhere in a split network, otherwise where the
// rules are about other ops on that tensor.
static sdg_status_t unmatched_check(const sdg_call_t *call,
                                    const sdg_rules_t *rules, bool local) {
  const sdg_rule_t *rule = rules_by_family[call->family];
  bool windowed = call->family == SDG_FAMILY_POOL || (rule && rule->windowed);
  bool suspect = windowed || (call->family != SDG_FAMILY_POINTWISE &&
                              left_out(call, rules));
  if (!suspect || local)
    return SDG_OK;
  const sdg_operand_t *x = &call->operand[0];
  char extents[128];
  size_t used = 0;
  for (int d = 0; d < x->dims && used < sizeof extents; d++)
    used += (size_t)snprintf(extents + used, sizeof extents - used, "%s%lld",
                             d ? "," : "", (long long)x->extent[d]);
  return sdg_fail(SDG_E_UNMATCHED, "%s with %s [%s]", call->entry_name,
                  sdg_role_name(x->role), used ? extents : "");
}

// What is known of a descriptor is known of a generation of it.
static sdg_status_t generations_check(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].generation == 0)
      return sdg_fail(SDG_E_DESCRIPTOR, "%s of %s",
                      sdg_role_name(call->operand[i].role), call->entry_name);
  if (call->op_descriptor && call->op_generation == 0)
    return sdg_fail(SDG_E_DESCRIPTOR, "the op's of %s", call->entry_name);
  return SDG_OK;
}

// Whether this call is an agreement. An answer may make a program ask once more
// on one rank (a workspace that is too large there), so that a query of agreed
// descriptors is each rank's own, and not even counted.
static bool agreement_due(const sdg_call_t *call) {
  return sdg_agree_needed(call) ||
         (sdg_options_get()->check && !call->is_query);
}

static sdg_status_t agree(const sdg_call_t *call, const sdg_rule_t *rule,
                          int64_t *out_wait_ns) {
  char parameters[PARAMETERS_BYTES] = "";
  if (rule && rule->knows(call))
    SDG_TRY(rule->describe(call, parameters, sizeof parameters));
  return sdg_agree(call, parameters, out_wait_ns);
}

// Judges a call whose descriptors are agreed; fills `tagging` if it is tagged.
static sdg_status_t call_derive(const sdg_call_t *call,
                                const sdg_rules_t *rules,
                                const sdg_rule_t *rule, sdg_tagging_t *tagging,
                                bool *out_tagged) {
  const sdg_section_t *section;
  bool local;
  SDG_TRY(sdg_tagging_derive(call, rules, &section, &local, tagging));
  *out_tagged = section != NULL;
  if (!section)
    return unmatched_check(call, rules, local);
  if (rule && rule->knows(call))
    return SDG_OK;
  sdg_tagging_fini(tagging);
  return sdg_fail(SDG_E_NO_RULE, "%s", call->entry_name);
}

static sdg_status_t query_answer(sdg_call_t *call, const sdg_rules_t *rules,
                                 const sdg_rule_t *rule, int64_t wait_ns,
                                 way_t *out_way) {
  sdg_tagging_t tagging;
  bool tagged;
  SDG_TRY(call_derive(call, rules, rule, &tagging, &tagged));
  *out_way = tagged ? WAY_DONE : WAY_UNTAGGED;
  if (!tagged)
    return SDG_OK;
  sdg_tagging_say(call, &tagging);
  sdg_report_row_t *row =
      sdg_report_find(call->entry_name, tagging.section->name, "query");
  sdg_report_count(row, NULL);
  sdg_report_wait(row, wait_ns);
  sdg_history_use(sdg_history_plan(call, &tagging, NULL));
  sdg_status_t status = rule->answer(call, &tagging, &call->result);
  sdg_tagging_fini(&tagging);
  return status;
}

// Plans a call; *out_entry is NULL where it is untagged.
static sdg_status_t entry_make(const sdg_call_t *call, const sdg_rules_t *rules,
                               const sdg_rule_t *rule,
                               const sdg_plan_key_t *key,
                               sdg_plan_entry_t **out_entry) {
  sdg_tagging_t tagging;
  bool tagged;
  *out_entry = NULL;
  SDG_TRY(call_derive(call, rules, rule, &tagging, &tagged));
  if (!tagged)
    return SDG_OK;
  sdg_tagging_say(call, &tagging);
  sdg_plan_t *plan = NULL;
  sdg_status_t status = rule->plan(call, &tagging, &plan);
  const char *section = tagging.section->name;
  uint32_t hash = status == SDG_OK ? sdg_instep_hash(call, rule, &tagging) : 0;
  int recorded = status == SDG_OK ? sdg_history_plan(call, &tagging, plan) : 0;
  sdg_box_t *boxes = status == SDG_OK ? sdg_values_boxes(call, &tagging) : NULL;
  sdg_tagging_fini(&tagging);
  if (status != SDG_OK)
    return status;
  // Here, where all ranks are: at a run of the plan some may have nothing to
  // exchange.
  sdg_comm_t *comm;
  if (plan->axes)
    SDG_TRY_GOTO(sdg_comm_get(plan->axes, &comm), fail);
  status = sdg_plancache_add(
      key, plan, sdg_report_find(call->entry_name, section, plan->strategy),
      out_entry);
  if (status == SDG_OK) {
    (*out_entry)->hash = hash;
    (*out_entry)->recorded = recorded;
    (*out_entry)->boxes = boxes;
    return SDG_OK;
  }
fail:
  sdg_plan_destroy(plan);
  free(boxes);
  return status;
}

static sdg_status_t capture_check(const sdg_call_t *call, cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  SDG_TRY(sdg_device_check(cuda->cudaStreamIsCapturing(stream, &capturing),
                           "cudaStreamIsCapturing"));
  if (capturing == cudaStreamCaptureStatusNone)
    return SDG_OK;
  return sdg_fail(SDG_E_CAPTURE, "%s", call->entry_name);
}

sdg_status_t sdg_registry_stream(const sdg_call_t *call,
                                 cudaStream_t *out_stream) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnHandle_t handle = (cudnnHandle_t)(uintptr_t)call->handle;
  cudnnStatus_t got = cudnn->cudnnGetStream(handle, out_stream);
  if (got != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_VENDOR_CALL, "cudnnGetStream: %d", (int)got);
  return capture_check(call, *out_stream);
}

sdg_status_t sdg_registry_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                              cudaStream_t stream) {
  SDG_TRY(sdg_exec_run(entry->plan, call, stream, entry->row, &call->result));
  if (call->result == CUDNN_STATUS_SUCCESS)
    return SDG_OK;
  return sdg_fail(
      SDG_E_VENDOR_CALL, "%s: %s", call->entry_name,
      sdg_cudnn_get()->cudnnGetErrorString((cudnnStatus_t)call->result));
}

static sdg_status_t plan_run(sdg_call_t *call, const sdg_plan_entry_t *entry) {
  cudaStream_t stream;
  SDG_TRY(sdg_registry_stream(call, &stream));
  return sdg_registry_run(call, entry, stream);
}

// A verdict (bad parameters, an unsupported op) falls alike on every rank; an
// accident (no memory, a library's refusal) need not.
static bool is_verdict(sdg_status_t status) {
  const sdg_error_info_t *info = sdg_error_find(status);
  return info && (info->vendor == SDG_VENDOR_BAD_PARAM ||
                  info->vendor == SDG_VENDOR_UNSUPPORTED);
}

// Numbers the call, if it is one that the other ranks make too, and has
// failures name the number that the rank is at.
static void call_number(const sdg_call_t *call, bool counts) {
  static uint64_t numbers[SDG_CONTROL_THREADS];
  int channel = sdg_thread_channel();
  if (counts)
    sdg_control_count(sdg_job_control(), channel, ++numbers[channel],
                      call->entry_name);
  if (numbers[channel] > 0)
    sdg_log_set_place(sdg_job_call);
}

// A call that is not agreed on has a number if it is tagged: one that is not
// passes without a look on some ranks, while it is looked at on others.
static sdg_status_t op_run(sdg_call_t *call, const sdg_rules_t *rules,
                           const sdg_rule_t *rule, bool *numbered,
                           int64_t wait_ns, way_t *out_way) {
  sdg_plan_key_t key;
  sdg_plan_key_make(call, rule, &key);
  sdg_plan_entry_t *entry = sdg_plancache_find(&key);
  if (!entry) {
    sdg_status_t status = entry_make(call, rules, rule, &key, &entry);
    if (status != SDG_OK) {
      call_number(call, !*numbered);
      *numbered = true;
      if (is_verdict(status))
        SDG_TRY(sdg_instep_refused(call));
      return status;
    }
  }
  if (entry) {
    call_number(call, !*numbered);
    *numbered = true;
  }
  *out_way = !entry                 ? WAY_UNTAGGED
             : entry->plan->literal ? WAY_LITERAL
                                    : WAY_DONE;
  if (!entry)
    return SDG_OK;
  sdg_history_use(entry->recorded);
  if (entry->boxes)
    sdg_values_expect(call, entry->boxes);
  SDG_TRY(sdg_instep_check(call, rule, entry->hash));
  sdg_report_count(entry->row, entry->plan);
  sdg_report_wait(entry->row, wait_ns);
  return entry->plan->literal ? SDG_OK : plan_run(call, entry);
}

// What is no verdict may be this rank's alone: the others count on messages
// that will not come, so the job is over.
static sdg_status_t accident_check(sdg_status_t status) {
  return status == SDG_OK || is_verdict(status)
             ? status
             : sdg_job_fail(sdg_lost_accident(status));
}

sdg_status_t sdg_registry_enter(const sdg_call_t *call,
                                const sdg_rules_t *rules) {
  int64_t wait_ns;
  SDG_TRY(sdg_job_join(&rules->mesh, rules->axes));
  SDG_TRY(sdg_memory_own(call->entry_name));
  SDG_TRY(generations_check(call));
  call_number(call, true);
  // Ranks that see the same tensors have nothing to tell each other.
  return sdg_options_get()->check
             ? agree(call, rules_by_family[call->family], &wait_ns)
             : SDG_OK;
}

static sdg_status_t counted(sdg_call_t *call, const sdg_rules_t *rules,
                            bool *numbered, way_t *out_way) {
  bool due = *numbered;
  const sdg_rule_t *rule = rules_by_family[call->family];
  int64_t wait_ns = 0;
  if (due)
    SDG_TRY(agree(call, rule, &wait_ns));
  if (call->is_query)
    SDG_TRY(query_answer(call, rules, rule, wait_ns, out_way));
  else
    SDG_TRY(op_run(call, rules, rule, numbered, wait_ns, out_way));
  if (*out_way == WAY_UNTAGGED)
    mark_passes(call, rules);
  return SDG_OK;
}

// A call that may be tagged, and so concerns all ranks.
static sdg_status_t collective(sdg_call_t *call, const sdg_rules_t *rules,
                               way_t *out_way) {
  SDG_TRY(generations_check(call));
  bool numbered = agreement_due(call);
  call_number(call, numbered);
  sdg_status_t status = counted(call, rules, &numbered, out_way);
  if (numbered)
    sdg_history_call(call->entry_name, status != SDG_OK);
  return status;
}

static sdg_status_t judge(sdg_call_t *call, way_t *out_way) {
  const sdg_rules_t *rules;
  *out_way = WAY_UNTAGGED;
  sdg_status_t configured = sdg_setup_rules(&rules);
  if (configured != SDG_OK)
    return sdg_options_get()->on_error == SDG_ON_ERROR_IGNORE ? SDG_OK
                                                              : configured;
  if (rules->view == SDG_VIEW_WHOLE) {
    bool done;
    sdg_status_t status = accident_check(
        sdg_whole_judge(call, rules, rules_by_family[call->family], &done));
    sdg_log_set_place(NULL);
    *out_way = done ? WAY_DONE : WAY_UNTAGGED;
    return status;
  }
  if (!may_match(call, rules)) {
    SDG_TRY(unmatched_check(call, rules, named_local(call, rules)));
    mark_passes(call, rules);
    return SDG_OK;
  }
  SDG_TRY(sdg_job_join(&rules->mesh, rules->axes));
  SDG_TRY(sdg_thread_claim(call->entry_name));
  sdg_status_t status = accident_check(collective(call, rules, out_way));
  sdg_log_set_place(NULL);
  return status;
}

sdg_verdict_t sdg_registry_judge(sdg_call_t *call) {
  if (sdg_job_disarmed())
    return SDG_VERDICT_PASS;
  call->result = CUDNN_STATUS_SUCCESS;
  call->refused = false;
  way_t way = WAY_DONE;
  sdg_status_t status = sdg_job_failed()
                            ? sdg_fail(SDG_E_JOB_BROKEN, "%s", call->entry_name)
                            : judge(call, &way);
  if (status == SDG_OK)
    return way == WAY_DONE ? SDG_VERDICT_DONE : SDG_VERDICT_PASS;
  // Another process of this rank joined first: this one is no rank.
  if (sdg_job_disarmed())
    return SDG_VERDICT_PASS;
  sdg_report_fail();
  call->refused = true;
  if (call->result == CUDNN_STATUS_SUCCESS) // else the vendor's own
    call->result = vendor_status(status);
  return SDG_VERDICT_DONE;
}

static bool splits_only_batch(const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++)
    for (int i = 0; i < rules->section[s].splits; i++)
      if (!rules->section[s].is_local &&
          rules->section[s].split[i].dim != SDG_DIM_N)
        return false;
  return true;
}

sdg_verdict_t sdg_registry_opaque(const char *entry_name,
                                  const sdg_touch_t *touch, int *out_result) {
  const sdg_rules_t *rules;
  sdg_status_t status = SDG_OK;
  if (sdg_job_disarmed())
    return SDG_VERDICT_PASS;
  if (sdg_job_failed())
    status = sdg_fail(SDG_E_JOB_BROKEN, "%s", entry_name);
  else if ((status = sdg_setup_rules(&rules)) != SDG_OK) {
    if (sdg_options_get()->on_error == SDG_ON_ERROR_IGNORE)
      return SDG_VERDICT_PASS;
  } else if (rules->view == SDG_VIEW_WHOLE)
    status = sdg_memory_touch(touch);
  else if (!splits_only_batch(rules) || sdg_label_splits())
    status = sdg_fail(SDG_E_OPAQUE, "%s", entry_name);
  if (status == SDG_OK)
    return SDG_VERDICT_PASS;
  sdg_report_fail();
  *out_result = vendor_status(status);
  return SDG_VERDICT_DONE;
}

void sdg_registry_finish(void) {
  if (!sdg_job_disarmed() && sdg_job_asked())
    sdg_instep_finish();
}

int sdg_registry_touch(const sdg_touch_t *touch) {
  if (sdg_job_disarmed())
    return 0;
  if (!sdg_job_failed() && sdg_memory_touch(touch) == SDG_OK)
    return 0;
  if (!sdg_job_failed())
    sdg_report_fail();
  return 1;
}

int sdg_registry_result(const char *entry_name, void *result, size_t bytes) {
  if (sdg_job_disarmed() || sdg_job_failed() ||
      sdg_memory_result(entry_name, result, bytes) == SDG_OK)
    return 0;
  sdg_report_fail();
  return 1;
}

bool sdg_registry_may_be_whole(void) {
  const sdg_options_t *options = sdg_options_get();
  return options->view == SDG_VIEW_WHOLE || *options->rules;
}

bool sdg_registry_is_whole(void) {
  const sdg_rules_t *rules;
  return sdg_setup_ready(&rules) ? rules->view == SDG_VIEW_WHOLE
                                 : sdg_registry_may_be_whole();
}
