// SPDX-License-Identifier: Apache-2.0
// Hands calls of declared functions and kernels to the ops.
#include <string.h>

#include "interpose/capture.h"
#include "interpose/function/function.h"
#include "interpose/slot.h"
#include "rules/file/setup.h"
#include "rules/observe/reach.h"
#include "rules/vendor/vendor.h"
#include "rules/view/registry.h"
#include "src/base/options.h"
#include "src/job/job.h"
#include "src/observe/report.h"
#include "src/observe/trace.h"

// Whole view: memory of unknown extent that a shared call may use, so that it
// has to be up to date. Tensors are brought up to date by what the section says
// of them. If the call is not shared, the calls that the function makes itself
// are followed, each by what it uses.
static void memory_note(const sdg_function_call_t *function,
                        sdg_memory_access_t *out, sdg_call_t *io_call) {
  int count = 0;
  if (!sdg_setup_is_whole())
    return;
  for (int a = 0; a < function->function->arguments; a++) {
    const sdg_argument_t *argument = &function->function->argument[a];
    bool address = argument->use == SDG_ARGUMENT_POINTER ||
                   (argument->use == SDG_ARGUMENT_IN && argument->tensor < 0);
    if (!address)
      continue;
    if (count == 0)
      *out = (sdg_memory_access_t){.name = function->function->name,
                                   .stream = io_call->stream};
    sdg_access_t *access = &out->access[count++];
    memcpy(&access->at, function->value[a], sizeof access->at);
    access->reads = true;
    access->writes = argument->use == SDG_ARGUMENT_POINTER;
    out->accesses = count;
    io_call->memory = out;
  }
}

bool sdg_function_capture(sdg_function_call_t *function, bool *out_refused) {
  sdg_memory_access_t memory;
  sdg_call_t call;
  bool done = true, refused = true, observed = sdg_options_get()->observing;
  sdg_capture_enter();
  sdg_status_t status = sdg_function_call_init(function, &call);
  if (status == SDG_OK) {
    memory_note(function, &memory, &call);
    if (observed)
      sdg_reach_try(&call);
    done = sdg_registry_judge(&call) == SDG_VERDICT_DONE;
    if (observed)
      sdg_trace_call(&call, done);
    refused = done && call.refused;
    if (done && !refused && call.result) { // of the runtime: no call was made
      refused = true;
      status = sdg_fail(SDG_E_CUDA, "%s: %s", function->function->name,
                        sdg_vendor_text(SDG_STREAM_GIVEN, call.result));
      sdg_report_fail();
    }
  } else {
    sdg_report_fail();
  }
  // The function may have no status to return: later calls of the CUDA runtime
  // fail, so that nobody takes old values for results.
  if (refused)
    (void)sdg_job_fail(status == SDG_OK ? SDG_E_FUNCTION : status);
  sdg_capture_leave();
  if (sdg_job_disarmed())
    sdg_slot_disarm();
  *out_refused = refused;
  return done;
}
