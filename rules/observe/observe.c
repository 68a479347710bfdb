// SPDX-License-Identifier: Apache-2.0
// Hands a call to the observers, one after the other.
#include "rules/observe/observe.h"

#include "rules/observe/arguments.h"
#include "rules/observe/inspect.h"
#include "rules/observe/reach.h"
#include "rules/observe/run_record.h"
#include "rules/observe/values.h"
#include "src/observe/inspect_record.h"
#include "src/observe/trace.h"

void sdg_observe_begin(const sdg_call_t *call,
                       bool (*knows)(const sdg_call_t *call)) {
  sdg_inspect_call(call, knows);
  if (sdg_values_wanted_of(call))
    sdg_values_begin(call);
}

void sdg_observe_end(const sdg_call_t *call, bool done) {
  sdg_trace_call(call, done);
  if (!done || !sdg_values_expected())
    return;
  if (call->refused || call->result)
    sdg_values_forget();
  else
    sdg_values_take();
}

void sdg_observe_finish(void) {
  sdg_trace_flush();
  if (sdg_inspect_record_wanted())
    sdg_arguments_finish();
  sdg_inspect_record_finish();
  sdg_run_record_finish();
}

void sdg_observe_drop(void) {
  sdg_trace_drop();
  sdg_arguments_drop();
  sdg_inspect_record_drop();
  sdg_run_record_drop();
  sdg_values_drop();
  sdg_reach_drop();
}
