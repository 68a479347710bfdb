// SPDX-License-Identifier: Apache-2.0
// Judges a captured call in its view, and makes the status that the program
// gets.
#include "rules/view/registry.h"

#include <cudnn.h>
#include <stdatomic.h>

#include "rules/conv/answers.h"
#include "rules/file/setup.h"
#include "rules/memory/kept_slot.h"
#include "rules/memory/memory.h"
#include "rules/observe/run_record.h"
#include "rules/observe/values.h"
#include "rules/place/label.h"
#include "rules/place/op.h"
#include "rules/reuse/prefetch.h"
#include "rules/step/narrow.h"
#include "rules/step/divergence.h"
#include "rules/step/plan_cache.h"
#include "rules/vendor/vendor.h"
#include "rules/view/nearest.h"
#include "rules/view/shard/outside.h"
#include "rules/view/shard/shard.h"
#include "rules/step/together.h"
#include "rules/view/whole/root_broadcast.h"
#include "rules/view/whole/settle.h"
#include "rules/view/whole/value.h"
#include "rules/view/whole/whole.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/call/range.h"
#include "src/exchange/exchange.h"
#include "src/job/job.h"
#include "src/observe/inspect_record.h"
#include "src/observe/report.h"

static const sdg_op_t *const ops[SDG_FAMILY_COUNT] = {
#define SDG_FAMILY(name, op, word, dims, flags)                                \
  [SDG_FAMILY_##name] = &sdg_op_##op,
#include "src/call/families.def"
};

bool sdg_registry_knows(const sdg_call_t *call) {
  const sdg_op_t *op = ops[call->family];
  return sdg_op_knows(op, call);
}

static int vendor_status(sdg_status_t status, sdg_stream_kind_t library) {
  const sdg_error_info_t *info = sdg_error_find(status);
  sdg_vendor_class_t kind = info ? info->vendor : SDG_VENDOR_FAILED;
  if (library != SDG_STREAM_CUDNN)
    return sdg_cublas_status(kind);
  switch (kind) {
  case SDG_VENDOR_BAD_PARAM:
    return CUDNN_STATUS_BAD_PARAM;
  case SDG_VENDOR_UNSUPPORTED:
    return CUDNN_STATUS_NOT_SUPPORTED;
  case SDG_VENDOR_NO_NODES:
    return CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API;
  case SDG_VENDOR_NOT_READY:
    return CUDNN_STATUS_NOT_INITIALIZED;
  case SDG_VENDOR_NONE:
  case SDG_VENDOR_FAILED:
    break;
  }
  return CUDNN_STATUS_EXECUTION_FAILED;
}

// Whether a library is loaded that the whole view cannot follow. Searches until
// the first op has been judged: a program that loads one at its start is
// refused at its first op, even if no section matches that op. Ops that are
// split search again.
static bool starts_unseen(const sdg_rules_t *rules) {
  static atomic_bool searched;
  if (rules->view != SDG_VIEW_WHOLE ||
      atomic_load_explicit(&searched, memory_order_relaxed))
    return false;
  bool found = sdg_memory_unseen_library();
  atomic_store_explicit(&searched, !found, memory_order_relaxed);
  return found;
}

// Refuses programs that sundog cannot follow, after the ranks have met: what
// one rank has loaded, others may lack.
static sdg_status_t program_check(const char *entry_name,
                                  const sdg_rules_t *rules) {
  const char *own = sdg_library_own_cudart();
  if (!own && !starts_unseen(rules))
    return SDG_OK;
  SDG_TRY(sdg_exchange_join(&rules->mesh, rules->axes));
  sdg_status_t status = SDG_OK;
  if (own && sdg_job_size() > 1)
    status = sdg_fail(SDG_E_OWN_CUDART, "%s, at %s", own, entry_name);
  else if (!own) {
    (void)sdg_memory_lock();
    status = sdg_memory_survey(entry_name);
    sdg_memory_unlock();
  }
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

static sdg_status_t judge(sdg_call_t *call, bool *out_done) {
  const sdg_rules_t *rules;
  *out_done = false;
  if (sdg_options_get()->observing)
    sdg_run_record_begin();
  sdg_status_t status = sdg_setup_rules(&rules);
  if (status != SDG_OK)
    return sdg_options_get()->on_error == SDG_ON_ERROR_IGNORE ? SDG_OK : status;
  const sdg_op_t *op = ops[call->family];
  status = program_check(call->entry_name, rules);
  if (status == SDG_OK)
    status = rules->view == SDG_VIEW_WHOLE
                 ? sdg_whole_judge(call, rules, op, out_done)
                 : sdg_shard_judge(call, rules, op, out_done);
  sdg_log_set_place(NULL);
  return status;
}

sdg_verdict_t sdg_registry_judge(sdg_call_t *call) {
  if (sdg_job_disarmed()) {
    sdg_report_saw(SDG_SAW_STRANGER);
    return SDG_VERDICT_PASS;
  }
  sdg_report_saw(SDG_SAW_CALL);
  call->result = CUDNN_STATUS_SUCCESS;
  call->refused = false;
  bool done;
  sdg_status_t status = sdg_job_failed()
                            ? sdg_fail(SDG_E_JOB_BROKEN, "%s", call->entry_name)
                            : judge(call, &done);
  if (sdg_report_near_wanted())
    sdg_nearest_note(call);
  if (status == SDG_OK)
    return done ? SDG_VERDICT_DONE : SDG_VERDICT_PASS;
  // Another process of this rank joined first, so this one is not a rank.
  if (sdg_job_disarmed())
    return SDG_VERDICT_PASS;
  sdg_report_fail();
  call->refused = true;
  if (call->result == CUDNN_STATUS_SUCCESS) // else the vendor's own
    call->result = vendor_status(status, call->stream_kind);
  return SDG_VERDICT_DONE;
}

sdg_status_t sdg_registry_carry_out(sdg_call_t *call, bool *out_done) {
  if (sdg_job_failed())
    return sdg_fail(SDG_E_JOB_BROKEN, "%s", call->entry_name);
  sdg_status_t status = judge(call, out_done);
  if (status != SDG_OK && !sdg_job_disarmed())
    sdg_report_fail();
  return status;
}

// A split of N counts, too: a graph may contain sums over samples (filter
// gradients, batch norm, statistics).
static bool splits_anything(const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++)
    if (!rules->section[s].is_local && rules->section[s].splits > 0)
      return true;
  return sdg_label_splits();
}

static bool splits_space(const sdg_rules_t *rules) {
  for (int s = 0; s < rules->sections; s++)
    for (int i = 0; i < rules->section[s].splits; i++) {
      sdg_dim_t dim = rules->section[s].split[i].dim;
      if (!rules->section[s].is_local &&
          (dim == SDG_DIM_D || dim == SDG_DIM_H || dim == SDG_DIM_W))
        return true;
    }
  return sdg_label_splits();
}

sdg_verdict_t sdg_registry_opaque(const char *entry_name, bool space,
                                  const sdg_memory_access_t *memory,
                                  int *out_result) {
  const sdg_rules_t *rules;
  sdg_status_t status = SDG_OK;
  sdg_report_saw(sdg_job_disarmed() ? SDG_SAW_STRANGER : SDG_SAW_OPAQUE);
  if (sdg_job_disarmed())
    return SDG_VERDICT_PASS;
  if (sdg_job_failed())
    status = sdg_fail(SDG_E_JOB_BROKEN, "%s", entry_name);
  else if ((status = sdg_setup_rules(&rules)) != SDG_OK) {
    if (sdg_options_get()->on_error == SDG_ON_ERROR_IGNORE)
      return SDG_VERDICT_PASS;
  } else if ((status = program_check(entry_name, rules)) != SDG_OK) {
    // refused below
  } else if (rules->view == SDG_VIEW_WHOLE)
    status = sdg_whole_access(memory);
  else if (space && splits_space(rules))
    status = sdg_fail(SDG_E_COORDINATES, "%s", entry_name);
  else if (!space && splits_anything(rules))
    status = sdg_fail(SDG_E_OPAQUE, "%s", entry_name);
  if (status == SDG_OK)
    return SDG_VERDICT_PASS;
  sdg_report_fail();
  *out_result = vendor_status(status, SDG_STREAM_CUDNN);
  return SDG_VERDICT_DONE;
}

void sdg_registry_finish(void) {
  if (!sdg_job_asked())
    return;
  if (!sdg_job_disarmed())
    sdg_divergence_finish();
  sdg_report_write_seen();
  if (!sdg_job_disarmed())
    sdg_exchange_leave();
}

bool sdg_registry_watches(void) {
  return sdg_job_asked() || sdg_inspect_record_wanted() ||
         sdg_options_get()->values[0] != '\0';
}

int sdg_registry_access(const sdg_memory_access_t *memory) {
  if (sdg_job_disarmed())
    return 0;
  if (!sdg_job_failed() && sdg_whole_access(memory) == SDG_OK)
    return 0;
  if (!sdg_job_failed())
    sdg_report_fail();
  return 1;
}

int sdg_registry_result(const char *entry_name, void *result, size_t bytes) {
  if (sdg_job_disarmed() || sdg_job_failed() ||
      sdg_root_broadcast_result(entry_name, result, bytes) == SDG_OK)
    return 0;
  sdg_report_fail();
  return 1;
}

sdg_verdict_t sdg_registry_make_value(const sdg_memory_access_t *memory,
                                      const sdg_vector_t *vector,
                                      const sdg_vector_call_t *call,
                                      int *out_result) {
  bool done = false;
  if (sdg_job_disarmed())
    return SDG_VERDICT_PASS;
  sdg_status_t status =
      sdg_job_failed()
          ? sdg_fail(SDG_E_JOB_BROKEN, "%s", vector->entry_name)
          : sdg_whole_value(memory, vector, call, &done, out_result);
  if (status == SDG_OK && !done)
    status = sdg_whole_access(memory);
  sdg_log_set_place(NULL);
  if (status == SDG_OK)
    return done ? SDG_VERDICT_DONE : SDG_VERDICT_PASS;
  sdg_report_fail();
  *out_result = vendor_status(status, SDG_STREAM_CUBLAS);
  return SDG_VERDICT_DONE;
}

static int value_end(sdg_status_t status) {
  sdg_log_set_place(NULL);
  if (status == SDG_OK)
    return 0;
  sdg_report_fail();
  return vendor_status(status, SDG_STREAM_CUBLAS);
}

int sdg_registry_value(const sdg_vector_t *vector) {
  if (sdg_job_disarmed())
    return 0;
  return value_end(sdg_job_failed()
                       ? sdg_fail(SDG_E_JOB_BROKEN, "%s", vector->entry_name)
                       : sdg_outside_value(vector));
}

int sdg_registry_value_made(const sdg_vector_t *vector, bool refused) {
  if (sdg_job_disarmed())
    return 0;
  return value_end(sdg_job_failed()
                       ? sdg_fail(SDG_E_JOB_BROKEN, "%s", vector->entry_name)
                       : sdg_outside_combine(vector, refused));
}

bool sdg_registry_reset_due(void) {
  sdg_memory_forget();
  return !sdg_job_disarmed() && sdg_job_joined() && !sdg_job_failed();
}

void sdg_registry_reset(void) {
  // All ranks make the communicators again when they make new plans.
  sdg_plan_cache_forget();
  sdg_conv_answers_forget();
  sdg_prefetch_forget();
  sdg_kept_slot_forget();
  sdg_values_reset();
  sdg_together_forget();
  sdg_narrow_forget();
  sdg_exchange_forget();
}

static bool graph_failed(sdg_status_t status) {
  sdg_log_set_place(NULL);
  if (status != SDG_OK)
    sdg_report_fail();
  return status != SDG_OK;
}

bool sdg_registry_graph_begin(sdg_graph_use_t *use) {
  if (sdg_job_disarmed())
    return false;
  return graph_failed(use->launches && sdg_job_failed()
                          ? sdg_fail(SDG_E_JOB_BROKEN, "%s", use->entry_name)
                          : sdg_replay_begin(use));
}

bool sdg_registry_graph_end(const sdg_graph_use_t *use, bool good) {
  return (!sdg_job_disarmed() || use->begun) &&
         graph_failed(sdg_replay_end(use, good));
}

int sdg_registry_unseen(const char *entry_name) {
  const sdg_rules_t *rules;
  if (sdg_job_disarmed() || sdg_setup_rules(&rules) != SDG_OK ||
      rules->view != SDG_VIEW_WHOLE)
    return 0;
  (void)!sdg_fail(SDG_E_UNSEEN_LIBRARY, "%s", entry_name);
  sdg_report_fail();
  return 1;
}

int sdg_registry_measured(const char *entry_name, int *io_count, void *measured,
                          size_t each, int room) {
  const sdg_rules_t *rules;
  if (sdg_job_disarmed() || sdg_job_failed() || !sdg_setup_ready(&rules) ||
      rules->view != SDG_VIEW_WHOLE ||
      sdg_root_broadcast_measured(entry_name, rules, io_count, measured, each,
                                  room) == SDG_OK)
    return 0;
  // Another process of this rank joined first, so this one is not a rank.
  if (sdg_job_disarmed())
    return 0;
  sdg_report_fail();
  return 1;
}

bool sdg_registry_may_multiply(void) {
  const sdg_rules_t *rules;
  if (sdg_options_get()->values[0] != '\0') // calls are counted
    return true;
  if (!sdg_job_asked())
    return sdg_inspect_record_wanted();
  return !sdg_setup_ready(&rules) || sdg_rules_multiply(rules) ||
         sdg_range_any();
}
