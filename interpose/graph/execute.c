// SPDX-License-Identifier: Apache-2.0
// Executions of operation graphs, and what the program says of descriptors.
#include "interpose/graph/execute.h"

#include <stdio.h>

#include "interpose/capture.h"
#include "interpose/graph/shadow.h"
#include "interpose/slot.h"
#include "rules/file/setup.h"
#include "rules/graph/chain/clock.h"
#include "rules/graph/statistics/statistics.h"
#include "rules/observe/inspect.h"
#include "rules/observe/observe.h"
#include "rules/observe/values.h"
#include "rules/place/label.h"
#include "rules/vendor/vendor.h"
#include "rules/view/registry.h"
#include "rules/view/shard/outside.h"
#include "src/base/options.h"
#include "src/call/tag.h"
#include "src/job/job.h"
#include "src/observe/report.h"

// ---- descriptors -----------------------------------------------------------

void sdg_capture_cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t kind,
    const cudnnBackendDescriptor_t *descriptor, const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    sdg_shadow_created(*descriptor, kind);
}

void sdg_capture_cudnnBackendDestroyDescriptor(
    cudnnBackendDescriptor_t descriptor, const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    sdg_shadow_destroyed(descriptor);
}

void sdg_capture_cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor,
                                      const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    sdg_shadow_finalized(descriptor);
}

void sdg_capture_cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                          cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type,
                                          int64_t count, const void *element,
                                          const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    sdg_shadow_set(descriptor, name, type, count, element);
}

// A plan in pieces is no nodes of a CUDA graph. Programs that find no engine
// with that note execute, or capture executions. They may have room for as many
// notes only as they were told of before, whatever they ask for: cudnn-frontend
// has.
int sdg_answer_cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                        cudnnBackendAttributeName_t name,
                                        cudnnBackendAttributeType_t type,
                                        int64_t asked, int64_t *out_count,
                                        void *out, const void *caller) {
  cudnnBackendBehaviorNote_t note[CUDNN_BEHAVIOR_NOTE_TYPE_COUNT], *to = out;
  int64_t found = 0, kept = 0;
  if (name != CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE || asked < 0 ||
      sdg_capture_is_foreign(caller) || !sdg_job_asked() ||
      sdg_job_disarmed() || !sdg_setup_in_pieces())
    return -1;
  sdg_capture_enter();
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  int status = cudnn ? (int)cudnn->cudnnBackendGetAttribute(
                           descriptor, name, type,
                           CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, &found, note)
                     : -1;
  sdg_capture_leave();
  if (status != CUDNN_STATUS_SUCCESS)
    return status;
  for (int64_t i = 0; i < found && i < CUDNN_BEHAVIOR_NOTE_TYPE_COUNT; i++)
    if (note[i] != CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API) {
      if (to && kept < asked)
        to[kept] = note[i];
      kept++;
    }
  if (out_count)
    *out_count = kept;
  return status;
}

void sdg_capture_cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                          cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type,
                                          int64_t asked, const int64_t *count,
                                          const void *element,
                                          const void *caller) {
  (void)name;
  if (sdg_capture_is_foreign(caller))
    return;
  if (!element || type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return;
  int64_t filled = count && *count < asked ? *count : asked;
  sdg_shadow_read(descriptor, filled, element);
}

// ---- executions ------------------------------------------------------------

// Whether all activations of a call that was passed on will pass again.
static bool passes(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (sdg_role_is_activation(call->operand[i].role) &&
        !sdg_tag_passes(call->operand[i].descriptor, call->family))
      return false;
  return !sdg_setup_is_whole() && !sdg_label_any_at();
}

// What the graph uses of the program's memory. The workspace's size is not
// known.
static void access_list(const sdg_graph_execution_t *execution,
                        const sdg_call_t *call, sdg_memory_access_t *out) {
  *out = (sdg_memory_access_t){.name = call->entry_name,
                               .stream_kind = SDG_STREAM_CUDNN,
                               .stream = call->handle};
  for (int i = 0; i < execution->pattern->operands; i++)
    out->access[out->accesses++] =
        sdg_operand_access(&call->operand[i], true, call->operand[i].is_output);
  if (execution->workspace)
    out->access[out->accesses++] = (sdg_access_t){
        .at = (uintptr_t)execution->workspace, .reads = true, .writes = true};
}

// cudnn-frontend executes a plan that it has read from text once inside a
// capture that it throws away, with one pointer for all tensors: that call
// passes. What it would compute is never launched.
static bool is_warm_up(const sdg_graph_execution_t *execution,
                       const sdg_call_t *call) {
  cudaStream_t stream;
  bool capturing;
  int operands = execution->pattern->operands;
  for (int i = 1; i < operands; i++)
    if (call->operand[i].data != call->operand[0].data)
      return false;
  return operands > 1 && execution->config &&
         sdg_stream_state(call, &stream, &capturing) == SDG_OK && capturing;
}

static bool call_make(int entry, cudnnHandle_t handle,
                      const sdg_graph_execution_t *execution, sdg_call_t *out) {
  sdg_status_t status = sdg_graph_call_init(execution, entry, handle, out);
  if (status == SDG_OK)
    return true;
  (void)sdg_job_fail(status);
  sdg_report_fail();
  return false;
}

static void pass_note(const sdg_graph_execution_t *execution,
                      const sdg_call_t *call) {
  if (passes(call))
    sdg_tag_set_pass(execution->plan, execution->plan_generation, call->family,
                     true);
}

static int judge(int entry, cudnnHandle_t handle,
                 const sdg_graph_execution_t *execution) {
  sdg_call_t call;
  sdg_memory_access_t memory;
  if (!call_make(entry, handle, execution, &call))
    return CUDNN_STATUS_ALLOC_FAILED;
  if (is_warm_up(execution, &call))
    return -1;
  if (sdg_setup_is_whole()) {
    access_list(execution, &call, &memory);
    call.memory = &memory;
  }
  if (sdg_options_get()->observing)
    sdg_observe_begin(&call, sdg_registry_knows);
  uint64_t before = sdg_graph_clock_calls();
  bool done = sdg_registry_judge(&call) == SDG_VERDICT_DONE;
  // Not done: also where the program's own execution is right as it is.
  if (!(done && call.refused) && !sdg_setup_is_whole() &&
      sdg_graph_clock_calls() != before)
    sdg_graph_clock_executed(execution->pattern);
  if (sdg_options_get()->observing)
    sdg_observe_end(&call, done);
  sdg_capture_set_refused(done && call.refused);
  if (!done)
    pass_note(execution, &call);
  return done ? call.result : -1;
}

// Shard view: the plan is to be nodes of a CUDA graph.
static int nodes(int entry, cudnnHandle_t handle,
                 const sdg_graph_execution_t *execution) {
  sdg_call_t call;
  if (!call_make(entry, handle, execution, &call))
    return CUDNN_STATUS_ALLOC_FAILED;
  call.is_query = true;
  bool refused = sdg_registry_judge(&call) == SDG_VERDICT_DONE;
  sdg_capture_set_refused(refused);
  if (!refused)
    pass_note(execution, &call);
  return refused ? call.result : -1;
}

// The graph has what no rule can split.
static int lacks(int entry, const void *handle, const char *what) {
  char name[160];
  int result = -1;
  sdg_memory_access_t memory = {.name = sdg_entry[entry].name,
                                .stream_kind = SDG_STREAM_CUDNN,
                                .stream = handle,
                                .everything = true};
  snprintf(name, sizeof name, "%s of a graph with %s", sdg_entry[entry].name,
           what);
  bool refused =
      sdg_registry_opaque(name, false, &memory, &result) == SDG_VERDICT_DONE;
  sdg_capture_set_refused(refused);
  return refused ? result : -1;
}

// Parameters of a batch normalisation of sums. In the whole view every rank has
// all sums and counts.
static int finalize(int entry, cudnnHandle_t handle,
                    const sdg_graph_execution_t *execution) {
  bool whole = sdg_setup_is_whole();
  int64_t count = 0;
  const char *what =
      whole ? NULL : sdg_graph_statistics_judge(execution, &count);
  sdg_memory_access_t memory = {.name = sdg_entry[entry].name,
                                .stream_kind = SDG_STREAM_CUDNN,
                                .stream = handle};
  if (what || sdg_job_disarmed() || sdg_job_failed())
    return lacks(entry, handle, what ? what : execution->pattern->lacks);
  sdg_graph_statistics_access(execution, &memory);
  if (whole) {
    int result = -1;
    bool refused = sdg_registry_opaque(memory.name, false, &memory, &result) ==
                   SDG_VERDICT_DONE;
    sdg_capture_set_refused(refused);
    return refused ? result : -1;
  }
  sdg_outside_touch(&memory);
  return count ? sdg_graph_statistics_execute(execution, handle, count) : -1;
}

// Without a split: for records of calls and of their outputs.
static void observe(int entry, cudnnHandle_t handle,
                    const sdg_graph_execution_t *execution) {
  sdg_call_t call;
  if (!execution) {
    sdg_inspect_opaque(sdg_entry[entry].name);
    return;
  }
  if (sdg_graph_call_init(execution, entry, handle, &call) != SDG_OK)
    return;
  sdg_observe_begin(&call, sdg_registry_knows);
  if (sdg_values_wanted())
    sdg_values_expect(&call, NULL);
}

// What an execution has that cannot be split; NULL: nothing.
static const char *execution_lacks(const sdg_graph_execution_t *execution) {
  const sdg_graph_pattern_t *p = execution->pattern;
  if (p->lacks)
    return p->lacks;
  for (int i = 0; i < p->operands; i++)
    if (!execution->pointer[p->operand[i]])
      return "a tensor that the variant pack gives no memory";
  return execution->overrides ? "extents that the execution overrides" : NULL;
}

int sdg_capture_execute(int entry, cudnnHandle_t handle,
                        cudnnBackendDescriptor_t plan,
                        cudnnBackendDescriptor_t pack, const void *caller) {
  sdg_graph_execution_t execution;
  bool executes = entry == SDG_ENTRY_cudnnBackendExecute;
  if (sdg_capture_is_foreign(caller))
    return -1;
  if (!executes && (!sdg_job_asked() || !sdg_setup_in_pieces()))
    return sdg_capture_opaque(entry, SDG_STREAM_CUDNN, handle, caller);
  sdg_capture_enter();
  bool known = sdg_shadow_use(plan, pack, &execution);
  const char *missing =
      known ? execution_lacks(&execution) : "ops that sundog has not seen made";
  int result = -1;
  if (!sdg_job_asked()) // the call is passed on
    observe(entry, handle, missing ? NULL : &execution);
  else if (known && executes &&
           sdg_graph_statistics_is(execution.pattern->graph))
    result = finalize(entry, handle, &execution);
  else
    result = missing    ? lacks(entry, handle, missing)
             : executes ? judge(entry, handle, &execution)
                        : nodes(entry, handle, &execution);
  if (known)
    sdg_graph_pattern_release(execution.pattern);
  sdg_capture_leave();
  // Another process of this rank came first, so this one is not a rank.
  if (sdg_job_disarmed())
    sdg_slot_disarm();
  return result;
}

bool sdg_capture_timed(int entry, int status, float *io_ms,
                       const void *caller) {
  if (sdg_capture_is_foreign(caller) || sdg_job_disarmed() || sdg_job_failed())
    return false;
  sdg_capture_enter();
  bool failed =
      sdg_graph_clock_read(sdg_entry[entry].name, status, io_ms) != SDG_OK;
  if (failed)
    sdg_report_fail();
  sdg_capture_leave();
  return failed;
}
