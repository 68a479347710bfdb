// SPDX-License-Identifier: Apache-2.0
// Check, number, agree, run: what both views do with a tagged call.
#include "rules/step/step.h"

#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/setup.h"
#include "rules/step/narrow.h"
#include "rules/vendor/argument.h"
#include "rules/vendor/vendor.h"
#include "src/base/log.h"
#include "src/base/vendor.h"
#include "src/comm/comm.h"
#include "src/exchange/stretch.h"
#include "src/job/agree.h"
#include "src/job/cost.h"
#include "src/job/job.h"
#include "src/job/live.h"
#include "src/job/peer_failure.h"
#include "src/job/thread.h"
#include "src/plan/steps.h"

enum { PARAMETERS_BYTES = 1024 };

sdg_status_t sdg_step_check(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].generation == 0)
      return sdg_fail(SDG_E_DESCRIPTOR, "%s of %s",
                      sdg_role_name(call->operand[i].role), call->entry_name);
  if (call->op_descriptor && call->op_generation == 0)
    return sdg_fail(SDG_E_DESCRIPTOR, "the op descriptor of %s",
                    call->entry_name);
  return SDG_OK;
}

void sdg_step_number(const sdg_call_t *call) {
  static uint64_t numbers[SDG_CHANNEL_THREADS];
  int channel = sdg_channel_get();
  sdg_control_count(sdg_job_control(), channel, ++numbers[channel],
                    call->entry_name);
  sdg_live_reach(channel, numbers[channel], call->entry_name);
  sdg_log_set_place(sdg_job_call);
}

static _Thread_local const char *coming;

static void coming_call(char *out, size_t out_bytes) {
  sdg_job_call_next(coming, out, out_bytes);
}

void sdg_step_foresee(const sdg_call_t *call) {
  coming = call->entry_name;
  sdg_log_set_place(coming_call);
}

static sdg_status_t details_fill(const sdg_call_t *call, const sdg_op_t *op,
                                 sdg_details_t *out) {
  for (int i = 0; i < call->operands; i++) {
    int *number = NULL;
    SDG_TRY(op->numbers->details(call, i, &out->count[i], &number));
    out->number[i] = number;
  }
  return SDG_OK;
}

static void details_fini(sdg_details_t *details) {
  for (int i = 0; i < SDG_OPERANDS_MAX; i++)
    free((void *)(uintptr_t)details->number[i]);
}

sdg_status_t sdg_step_agree(const sdg_call_t *call, const sdg_op_t *op,
                            int64_t *out_wait_ns) {
  char parameters[PARAMETERS_BYTES] = "";
  // A single rank has no strategy to choose, and may only ask for sizes.
  if (sdg_job_size() > 1)
    SDG_TRY(sdg_cost_prepare());
  // A program that calls no cuDNN may lack it.
  if (call->stream_kind == SDG_STREAM_CUDNN)
    sdg_device_set_narrow(sdg_narrow_copy);
  if (sdg_op_knows(op, call))
    SDG_TRY(op->describe(call, parameters, sizeof parameters));
  int64_t sizes[SDG_AGREE_SIZES];
  int count = 0;
  if (sdg_op_knows(op, call) && op->numbers && op->numbers->sizes)
    count = op->numbers->sizes(call, sizes);
  sdg_details_t details = {.count = {0}};
  sdg_status_t status = SDG_OK;
  if (sdg_op_knows(op, call) && op->numbers && op->numbers->details &&
      !sdg_setup_is_whole())
    status = details_fill(call, op, &details);
  const sdg_rules_t *rules = NULL;
  if (status == SDG_OK)
    status = sdg_setup_rules(&rules);
  if (status == SDG_OK)
    sdg_agree_set_rules(rules->digest);
  if (status == SDG_OK)
    status = sdg_agree(call, parameters, sizes, count, &details, out_wait_ns);
  details_fini(&details);
  return status;
}

sdg_status_t sdg_step_connect(sdg_plan_t *plan) {
  sdg_comm_t *comm;
  sdg_traffic_count(plan, sdg_job_mesh(), sdg_job_rank());
  for (int i = 0; i < plan->steps; i++)
    if (plan->step[i].axes)
      SDG_TRY(sdg_comm_get(plan->step[i].axes, &comm));
  sdg_stretch_find(plan);
  return SDG_OK;
}

// A rank's record of how its part of a call ended.
typedef struct verdict {
  char magic[8];
  int vendor; // the vendor's status; NOTHING: this rank computes no part
} verdict_t;
enum { NOTHING = -1 };
static const char verdict_magic[8] = "verdict";

static const char *vendor_text(const sdg_call_t *call, int status) {
  return sdg_vendor_text(call->stream_kind, status);
}

static sdg_status_t verdicts_compare(const sdg_call_t *call, int mine,
                                     const sdg_records_t *all,
                                     int *out_vendor) {
  const sdg_group_t *group = sdg_job_group();
  int first = NOTHING, at = 0;
  for (int r = 0; r < group->count; r++) {
    verdict_t theirs = {.vendor = 0};
    if (all->bytes[r] == sizeof theirs)
      memcpy(&theirs, all->data[r], sizeof theirs);
    if (memcmp(theirs.magic, verdict_magic, sizeof theirs.magic) != 0)
      return sdg_fail(
          SDG_E_DIVERGED, "%s: %s on this rank, but rank %d makes another call",
          call->entry_name, vendor_text(call, mine), group->rank[r]);
    if (theirs.vendor == NOTHING)
      continue;
    if (first == NOTHING) {
      first = theirs.vendor;
      at = group->rank[r];
    }
    if ((first == 0) != (theirs.vendor == 0))
      return sdg_fail(SDG_E_VENDOR_CALL, "%s: %s on rank %d, %s on rank %d",
                      call->entry_name, vendor_text(call, first), at,
                      vendor_text(call, theirs.vendor), group->rank[r]);
  }
  *out_vendor = first == NOTHING ? 0 : first;
  return SDG_OK;
}

// Exchanges the ranks' verdicts. A rank whose part was accepted does not take
// part: it is at its next call, and the others see that.
static sdg_status_t verdict_agree(const sdg_call_t *call, int mine,
                                  int *out_vendor) {
  verdict_t verdict = {.vendor = mine};
  memcpy(verdict.magic, verdict_magic, sizeof verdict.magic);
  sdg_records_t all;
  char at[96], what[192];
  sdg_job_call(at, sizeof at);
  snprintf(what, sizeof what, "%s%s%s", at,
           mine > 0 ? ", refused by the vendor's library: " : "",
           mine > 0 ? vendor_text(call, mine) : "");
  sdg_status_t status =
      sdg_job_gather(sdg_channel_get(), &verdict, sizeof verdict, what, &all);
  if (status == SDG_OK)
    status = verdicts_compare(call, mine, &all, out_vendor);
  sdg_records_free(&all);
  return status;
}

static sdg_status_t outcome_judge(sdg_call_t *call, const sdg_plan_t *plan,
                                  const sdg_outcome_t *outcome) {
  call->result = outcome->vendor;
  // A rank without a part cannot know whether the vendor refused the others'.
  bool asks = plan->share && plan->share->idle;
  if (!outcome->vendor && !asks)
    return SDG_OK;
  if (outcome->mixed)
    return sdg_fail(SDG_E_VENDOR_CALL, "%s: %s", call->entry_name,
                    vendor_text(call, outcome->vendor));
  bool nothing = !outcome->vendor && outcome->calls == 0;
  return verdict_agree(call, nothing ? NOTHING : outcome->vendor,
                       &call->result);
}

sdg_status_t sdg_step_run_how(sdg_call_t *call, const sdg_plan_entry_t *entry,
                              cudaStream_t stream, const sdg_exec_how_t *how) {
  sdg_outcome_t outcome;
  SDG_TRY(
      sdg_exec_run_how(entry->plan, call, stream, entry->row, how, &outcome));
  return outcome_judge(call, entry->plan, &outcome);
}

sdg_status_t sdg_step_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                          cudaStream_t stream) {
  return sdg_step_run_how(call, entry, stream, &(sdg_exec_how_t){0});
}

bool sdg_step_is_verdict(sdg_status_t status) {
  const sdg_error_info_t *info = sdg_error_find(status);
  return info && (info->vendor == SDG_VENDOR_BAD_PARAM ||
                  info->vendor == SDG_VENDOR_UNSUPPORTED ||
                  info->vendor == SDG_VENDOR_NO_NODES);
}

sdg_status_t sdg_step_accident(sdg_status_t status) {
  return status == SDG_OK || sdg_step_is_verdict(status)
             ? status
             : sdg_job_fail(sdg_peer_failure_accident(status));
}

// ---- calls without the memory of a tensor, or without a scaling factor ------

// A z that is multiplied by 0 may be NULL.
static bool is_needed(const sdg_call_t *call, const sdg_operand_t *operand) {
  return operand->data_at != SDG_NOWHERE &&
         (operand->role != SDG_ROLE_Z ||
          sdg_call_scalar(call, SDG_ALPHA2) != 0);
}

bool sdg_step_null_operand(const sdg_call_t *call, const sdg_op_t *op) {
  if (!op || call->is_query)
    return false;
  if (sdg_call_lacks_scalar(call))
    return true;
  if (!sdg_family_is(call->family, SDG_FAMILY_NULL_OPERANDS))
    return false;
  for (int i = 0; i < call->operands; i++)
    if (!call->operand[i].data && is_needed(call, &call->operand[i]))
      return true;
  return false;
}

static int refused_run(void *user, int index, const sdg_call_t *call,
                       const sdg_exec_t *exec) {
  sdg_rebind_t own;
  (void)user, (void)index, (void)exec;
  sdg_rebind_init(call, &own);
  int status = sdg_rebind_invoke(&own);
  // The result would be that of this rank's piece only, without halos.
  return status == CUDNN_STATUS_SUCCESS ? CUDNN_STATUS_BAD_PARAM : status;
}

sdg_status_t sdg_step_null_operand_plan(const sdg_call_t *call,
                                        sdg_plan_t **out_plan) {
  if (sdg_family_is(call->family, SDG_FAMILY_STATED))
    return sdg_plan_create_refused(CUBLAS_STATUS_INVALID_VALUE, out_plan);
  sdg_plan_t *plan;
  SDG_TRY(sdg_plan_create("refused", &plan));
  plan->run = refused_run;
  sdg_status_t status = sdg_plan_call(plan, 0);
  return sdg_plan_finish(plan, status, out_plan);
}
