// SPDX-License-Identifier: Apache-2.0
// Replaces the rules and the job in libsundog_alone.so, which contains only the
// interposition. The tests set the verdict on calls with these variables.
//
//   SDG_DOUBLE_ASKED=1    a split was asked for
//   SDG_DOUBLE_VERDICT    pass: the call is not tagged (the default);
//                         ask: the same, and ask again the next time;
//                         the cudnnStatus_t of a call that was carried out
//   SDG_DOUBLE_BROKEN=1   the job has failed
//   SDG_DOUBLE_KERNELS=1  the rules declare kernels
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose/function/function.h"
#include "interpose/function/kernel.h"
#include "interpose/slot.h"
#include "interpose/symbol.h"
#include "rules/cut/cut.h"
#include "rules/file/setup.h"
#include "rules/graph/chain/clock.h"
#include "rules/graph/statistics/statistics.h"
#include "rules/memory/memory.h"
#include "rules/observe/arguments.h"
#include "rules/observe/inspect.h"
#include "rules/observe/reach.h"
#include "rules/observe/run_record.h"
#include "rules/observe/values.h"
#include "rules/place/label.h"
#include "rules/view/registry.h"
#include "rules/view/shard/outside.h"
#include "rules/view/whole/full.h"
#include "src/call/functions.h"
#include "src/call/tag.h"
#include "src/comm/comm.h"
#include "src/job/job.h"
#include "src/job/peer_failure.h"
#include "src/job/thread.h"
#include "src/observe/report.h"

atomic_int sdg_job_failure;

static const char *setting(const char *name) {
  const char *value = getenv(name);
  return value ? value : "";
}

bool sdg_job_asked(void) {
  if (setting("SDG_DOUBLE_BROKEN")[0])
    atomic_store(&sdg_job_failure, SDG_E_INTERNAL);
  return setting("SDG_DOUBLE_ASKED")[0];
}

bool sdg_registry_watches(void) {
  return sdg_job_asked();
}

void sdg_job_disarm(void) {
}

void sdg_job_forked(void) {
}

sdg_status_t sdg_job_child(const char *entry_name) {
  (void)entry_name;
  return SDG_OK;
}

void sdg_report_fail(void) {
}

bool sdg_job_disarmed(void) {
  return false;
}

void sdg_setup_set_entries(const char *const *names, int count) {
  (void)names, (void)count;
}

bool sdg_registry_knows(const sdg_call_t *call) {
  (void)call;
  return false;
}

void sdg_inspect_call(const sdg_call_t *call,
                      bool (*knows)(const sdg_call_t *call)) {
  (void)call, (void)knows;
}

bool sdg_inspect_reduces(const char *entry_name) {
  (void)entry_name;
  return false;
}
void sdg_inspect_reduction(const char *entry_name) {
  (void)entry_name;
}
void sdg_inspect_opaque(const char *entry_name) {
  (void)entry_name;
}

void sdg_run_record_begin(void) {
}
void sdg_run_record_finish(void) {
}
void sdg_run_record_drop(void) {
}

atomic_bool sdg_graph_used;

bool sdg_registry_graph_begin(sdg_graph_use_t *use) {
  (void)use;
  return false;
}

bool sdg_registry_graph_end(const sdg_graph_use_t *use, bool good) {
  (void)use, (void)good;
  return false;
}

void sdg_registry_finish(void) {
}

sdg_verdict_t sdg_registry_opaque(const char *entry_name, bool space,
                                  const sdg_memory_access_t *memory,
                                  int *out_result) {
  (void)space;
  if (!setting("SDG_DOUBLE_OPAQUE")[0])
    return SDG_VERDICT_PASS;
  printf("opaque %s on %s %p\n", entry_name,
         memory->stream_kind == SDG_STREAM_GIVEN ? "stream" : "handle's stream",
         memory->stream);
  *out_result = atoi(setting("SDG_DOUBLE_OPAQUE"));
  return SDG_VERDICT_DONE;
}

atomic_int sdg_hint_count;

void sdg_outside_touch(const sdg_memory_access_t *memory) {
  (void)memory;
}

void sdg_outside_call(const sdg_call_t *call) {
  (void)call;
}

void sdg_outside_writes(const sdg_writes_t *writes) {
  (void)writes;
}

int sdg_comm_size(ncclComm_t comm) {
  return comm ? 1 : 0;
}

size_t sdg_comm_type_bytes(ncclDataType_t type) {
  return type == ncclFloat ? sizeof(float) : 0;
}

void sdg_outside_vector(const sdg_vector_t *vector) {
  (void)vector;
}

int sdg_registry_access(const sdg_memory_access_t *memory) {
  (void)memory;
  return 0;
}

int sdg_registry_result(const char *entry_name, void *result, size_t bytes) {
  (void)entry_name, (void)result, (void)bytes;
  return 0;
}

sdg_verdict_t sdg_registry_make_value(const sdg_memory_access_t *memory,
                                      const sdg_vector_t *vector,
                                      const sdg_vector_call_t *call,
                                      int *out_result) {
  (void)memory, (void)vector, (void)call, (void)out_result;
  return SDG_VERDICT_PASS;
}

int sdg_registry_value(const sdg_vector_t *vector) {
  (void)vector;
  return 0;
}

int sdg_registry_value_made(const sdg_vector_t *vector, bool refused) {
  (void)vector, (void)refused;
  return 0;
}

bool sdg_registry_reset_due(void) {
  return false;
}

void sdg_registry_reset(void) {
}

int sdg_registry_unseen(const char *entry_name) {
  (void)entry_name;
  return 0;
}

int sdg_registry_measured(const char *entry_name, int *io_count, void *measured,
                          size_t each, int room) {
  (void)entry_name, (void)io_count, (void)measured, (void)each, (void)room;
  return 0;
}

bool sdg_setup_may_be_whole(void) {
  return false;
}

bool sdg_setup_is_whole(void) {
  return false;
}

bool sdg_setup_in_pieces(void) {
  return true;
}

void sdg_graph_clock_plan_made(sdg_graph_pattern_t *pattern) {
  (void)pattern;
}

uint64_t sdg_graph_clock_calls(void) {
  return 0;
}

void sdg_graph_clock_executed(const sdg_graph_pattern_t *pattern) {
  (void)pattern;
}

sdg_status_t sdg_graph_clock_read(const char *entry_name, int status,
                                  float *io_ms) {
  (void)entry_name, (void)status, (void)io_ms;
  return SDG_OK;
}

const char *sdg_graph_statistics_judge(const sdg_graph_execution_t *execution,
                                       int64_t *out_all) {
  (void)execution;
  *out_all = 0;
  return NULL;
}

void sdg_graph_statistics_access(const sdg_graph_execution_t *execution,
                                 sdg_memory_access_t *out) {
  (void)execution, (void)out;
}

int sdg_graph_statistics_execute(const sdg_graph_execution_t *execution,
                                 cudnnHandle_t handle, int64_t all) {
  (void)execution, (void)handle, (void)all;
  return -1;
}

sdg_status_t sdg_job_fail(sdg_status_t status) {
  return status;
}

atomic_bool sdg_label_memory;

const sdg_tag_label_t *sdg_label_at(const void *at) {
  (void)at;
  return NULL;
}

bool sdg_registry_may_multiply(void) {
  return false;
}

void sdg_memory_allocated(const void *at, size_t bytes) {
  (void)at, (void)bytes;
}

void sdg_memory_hosted(const void *at, size_t bytes) {
  (void)at, (void)bytes;
}

void sdg_memory_set_loaded(sdg_loaded_find_t *find) {
  (void)find;
}

void sdg_memory_freed(const void *at) {
  (void)at;
}

void sdg_peer_failure_explain(const char *entry) {
  (void)entry;
}

sdg_verdict_t sdg_registry_judge(sdg_call_t *call) {
  const char *verdict = setting("SDG_DOUBLE_VERDICT");
  if (verdict[0] >= '0' && verdict[0] <= '9') {
    call->result = atoi(verdict);
    call->refused = call->result != 0;
    if (call->result)
      (void)!sdg_fail(SDG_E_INTERNAL, "the double refuses %s",
                      call->entry_name);
    return SDG_VERDICT_DONE;
  }
  if (strcmp(verdict, "ask") != 0) {
    for (int i = 0; i < call->operands; i++)
      sdg_tag_set_pass(call->operand[i].descriptor, call->operand[i].generation,
                       call->family, true);
    sdg_tag_set_pass(call->op_descriptor, call->op_generation, call->family,
                     true);
  }
  return SDG_VERDICT_PASS;
}

bool sdg_values_wanted(void) {
  return false;
}

bool sdg_values_wanted_of(const sdg_call_t *call) {
  (void)call;
  return sdg_values_wanted();
}

void sdg_values_begin(const sdg_call_t *call) {
  (void)call;
}

void sdg_values_expect(const sdg_call_t *call, const sdg_box_t *boxes) {
  (void)call, (void)boxes;
}

bool sdg_values_expected(void) {
  return false;
}

void sdg_values_take(void) {
}

bool sdg_full_timed(void) {
  return false;
}

void sdg_full_end(void) {
}

void sdg_values_forget(void) {
}

void sdg_arguments_finish(void) {
}

void sdg_arguments_drop(void) {
}

void sdg_reach_drop(void) {
}

bool sdg_cut_wanted(void) {
  return false;
}

void sdg_cut_drop(void) {
}

void sdg_values_drop(void) {
}

// Functions of the program's own go on as they are.
extern sdg_functions_t sundog_functions __attribute__((weak));

int sdg_function_find(const char *name) {
  (void)name;
  return -1;
}

void *sdg_function_record(int index, void *address) {
  (void)index;
  return address;
}

atomic_bool sdg_function_defined;

void *sdg_function_redefined(const char *name, void *address) {
  (void)name, (void)address;
  return NULL;
}

sdg_status_t sdg_function_define(const char *name, const char *text) {
  (void)name, (void)text;
  return SDG_E_INTERNAL; // no program of these tests calls it
}

void sdg_function_finish(void) {
}

void sdg_function_disarm(void) {
}

void *sdg_function_probe(unsigned index, const char *saved) {
  (void)saved;
  return sundog_functions.row[index].slot;
}

// Watched functions: spoils the registers that have to be kept.
extern sdg_functions_t sundog_watched __attribute__((weak));
unsigned sdg_watch_vector_bytes = 16;

void *sdg_watch_called(unsigned number, const uint64_t *integer,
                       const uint64_t *stack);
void *sdg_watch_called(unsigned number, const uint64_t *integer,
                       const uint64_t *stack) {
  const char *name = sundog_watched.row[number - SDG_FUNCTIONS_FIRST].name;
  // A printed number uses registers of both kinds.
  fprintf(stderr, "watches %s %d %g\n", name, (int)integer[0],
          (double)(integer != stack) * 0.5);
  return sdg_symbol_next(name);
}

bool sdg_kernel_declared(void) {
  return setting("SDG_DOUBLE_KERNELS")[0];
}

bool sdg_kernel_capture(int entry, const void *args, const void *caller,
                        int *out_result) {
  (void)args, (void)caller, (void)out_result;
  fprintf(stderr, "launches by %s\n", sdg_entry[entry].name);
  return false;
}

bool sdg_kernel_node(int entry, const void *kernel, const void *caller) {
  (void)entry, (void)kernel, (void)caller;
  return false;
}

void sdg_kernel_register(const char *symbol) {
  fprintf(stderr, "registers %s\n", symbol);
}

void sdg_kernel_finish(void) {
}

void *sdg_function_resolve(unsigned index) {
  sdg_functions_row_t *row = &sundog_functions.row[index];
  fprintf(stderr, "resolves %s\n", row->name);
  row->slot = sdg_symbol_next(row->name);
  return row->slot;
}
