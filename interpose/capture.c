// SPDX-License-Identifier: Apache-2.0
// Passes what the program invokes to the ops, and answers for them.
#include "interpose/capture.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "interpose/invocation.h"
#include "interpose/ranges.h"
#include "interpose/real.h"
#include "interpose/slot.h"
#include "rules/file/setup.h"
#include "rules/memory/memory.h"
#include "rules/observe/inspect.h"
#include "rules/observe/observe.h"
#include "rules/observe/values.h"
#include "rules/vendor/vendor.h"
#include "rules/view/registry.h"
#include "rules/view/shard/outside.h"
#include "rules/view/whole/full.h"
#include "rules/view/whole/settle.h"
#include "src/base/options.h"
#include "src/base/status.h"
#include "src/geometry/hint.h"
#include "src/job/job.h"
#include "src/job/peer_failure.h"
#include "src/observe/report.h"

// Greater than 0 while sundog itself works: entries that cuDNN calls meanwhile,
// through the linker, are not calls by the program. Initial-exec, because
// libsundog.so is loaded at the start and the general model calls a function.
static _Thread_local int depth __attribute__((tls_model("initial-exec")));
static _Thread_local bool last_refused
    __attribute__((tls_model("initial-exec")));

static _Thread_local int cancelled __attribute__((
    tls_model("initial-exec"))); // the thread's earlier cancel state

// Entries that only the whole view probes keep their probe until the rules are
// read.
static void whole_check(void) {
  static atomic_bool checked;
  if (atomic_load_explicit(&checked, memory_order_relaxed) ||
      !sdg_setup_may_be_whole() || sdg_setup_is_whole())
    return;
  atomic_store(&checked, true);
  sdg_slot_narrow();
}

// A thread cancelled in here would keep locks and leave other ranks in the
// middle of an exchange. Cancellation waits until the call ends.
void sdg_capture_enter(void) {
  if (depth++ == 0)
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled);
}

void sdg_capture_leave(void) {
  if (--depth > 0)
    return;
  pthread_setcancelstate(cancelled, NULL);
  whole_check(); // whatever was called may have read the rules
}

int sdg_capture_depth(void) {
  return depth;
}

void sdg_capture_unwind(int to) {
  while (depth > to)
    sdg_capture_leave();
}

bool sdg_capture_is_ours(const void *caller) {
  return depth > 0 || sdg_ranges_hold(caller);
}

bool sdg_capture_is_foreign(const void *caller) {
  return depth > 0 || sdg_channel_apart || sdg_slot_disarmed() ||
         sdg_ranges_hold(caller);
}

void sdg_capture_set_refused(bool refused) {
  last_refused = refused;
}

// Products of matrices keep their probe until the rules are read.
static void products_check(void) {
  static atomic_bool checked;
  if (atomic_load_explicit(&checked, memory_order_relaxed) ||
      sdg_registry_may_multiply())
    return;
  atomic_store(&checked, true);
  sdg_slot_leave_products();
  // Another thread may have tagged memory meanwhile.
  if (sdg_registry_may_multiply())
    sdg_slot_take_products();
}

static int refusal_of(int entry) {
  switch (sdg_entry[entry].library) {
  case SDG_LIBRARY_CUDNN:
    return CUDNN_STATUS_EXECUTION_FAILED;
  case SDG_LIBRARY_CUBLAS:
  case SDG_LIBRARY_CUBLASLT:
    return 13; // CUBLAS_STATUS_EXECUTION_FAILED
  case SDG_LIBRARY_NCCL:
    return 2; // ncclSystemError
  default:
    return cudaErrorLaunchFailure;
  }
}

// Shard view: forgets what is known of memory that the call is about to write.
static void writes_note(int entry, const void *args) {
  sdg_writes_t writes;
  if (!sdg_entry[entry].writes || !sdg_hint_any() || sdg_setup_is_whole())
    return;
  sdg_entry[entry].writes(args, &writes);
  sdg_outside_writes(&writes);
}

// An op in a forked child. True: it is refused.
static bool child_refuses(int entry, const void *caller) {
  if (sdg_capture_is_ours(caller) || !sdg_job_asked())
    return false;
  sdg_capture_enter();
  sdg_status_t status = sdg_job_child(sdg_entry[entry].name);
  if (status != SDG_OK)
    sdg_report_fail();
  sdg_capture_leave();
  return status != SDG_OK;
}

bool sdg_capture(int entry, const void *args, const void *caller,
                 int *out_result) {
  if (sdg_slot_disarmed()) {
    bool refused = child_refuses(entry, caller);
    sdg_capture_set_refused(refused);
    *out_result = refusal_of(entry);
    return refused;
  }
  if (sdg_capture_is_foreign(caller))
    return false;
  sdg_call_t call;
  sdg_gemm_t gemm;
  bool product = sdg_entry[entry].product != NULL;
  bool done = false, refused = false;
  sdg_capture_enter();
  // A program that multiplies matrices may not have loaded cuDNN.
  const sdg_cudnn_t *cudnn = product ? NULL : sdg_cudnn_get();
  if (!cudnn && !product && sdg_job_asked()) {
    *out_result = CUDNN_STATUS_NOT_INITIALIZED;
    done = refused = true;
  } else if (!sdg_job_asked()) { // the call is passed on
    if ((cudnn || product) && sdg_invocation_call(entry, args, &gemm, &call)) {
      sdg_observe_begin(&call, sdg_registry_knows);
      if (sdg_values_wanted())
        sdg_values_expect(&call, NULL);
    }
  } else if (sdg_invocation_call(entry, args, &gemm, &call) ||
             sdg_job_failed()) {
    if (sdg_options_get()->observing)
      sdg_observe_begin(&call, sdg_registry_knows);
    sdg_memory_access_t memory;
    if (sdg_setup_is_whole()) {
      sdg_invocation_access(entry, args, &memory);
      sdg_invocation_trim(&call, &memory);
      call.memory = &memory;
    }
    writes_note(entry, args);
    done = sdg_registry_judge(&call) == SDG_VERDICT_DONE;
    if (sdg_options_get()->observing)
      sdg_observe_end(&call, done);
    refused = done && call.refused;
    if (done)
      *out_result = call.result;
  }
  sdg_capture_leave();
  if (!product) // cuDNN has the text
    sdg_capture_set_refused(refused);
  // Another process of this rank came first, so this one is not a rank.
  if (sdg_job_disarmed())
    sdg_slot_disarm();
  if (product)
    products_check();
  return done;
}

int sdg_capture_opaque(int entry, sdg_stream_kind_t kind, const void *stream,
                       const void *caller) {
  if (sdg_capture_is_foreign(caller))
    return -1;
  int result = -1;
  sdg_memory_access_t memory = {.name = sdg_entry[entry].name,
                                .stream_kind = kind,
                                .stream = stream,
                                .everything = !sdg_entry[entry].space};
  sdg_capture_enter();
  sdg_inspect_opaque(sdg_entry[entry].name);
  bool refused =
      sdg_job_asked() &&
      sdg_registry_opaque(sdg_entry[entry].name, sdg_entry[entry].space,
                          &memory, &result) == SDG_VERDICT_DONE;
  sdg_capture_leave();
  sdg_capture_set_refused(refused);
  return refused ? result : -1;
}

int sdg_capture_touch_memory(int entry, const void *args, const void *caller) {
  if (sdg_capture_is_foreign(caller))
    return 0;
  if (!sdg_job_asked()) { // the call is passed on
    sdg_capture_enter();
    sdg_inspect_reduction(sdg_entry[entry].name);
    sdg_capture_leave();
    return 0;
  }
  sdg_memory_access_t memory;
  sdg_capture_enter();
  sdg_invocation_access(entry, args, &memory);
  bool refused = sdg_registry_access(&memory);
  sdg_capture_leave();
  if (sdg_entry[entry].library == SDG_LIBRARY_CUDNN)
    sdg_capture_set_refused(refused);
  return refused ? refusal_of(entry) : 0;
}

bool sdg_capture_value(int entry, const void *args, const void *caller,
                       int *out_result) {
  if (sdg_capture_is_foreign(caller) || !sdg_job_asked()) {
    *out_result = sdg_capture_touch_memory(entry, args, caller);
    return *out_result != 0;
  }
  sdg_memory_access_t memory;
  sdg_vector_t vector;
  const sdg_vector_call_t call = {sdg_entry[entry].vector_call, args};
  sdg_capture_enter();
  sdg_invocation_access(entry, args, &memory);
  sdg_entry[entry].vector(args, &vector);
  bool done = sdg_registry_make_value(&memory, &vector, &call, out_result) ==
              SDG_VERDICT_DONE;
  sdg_capture_leave();
  return done;
}

void sdg_capture_passed(int entry, const void *args, const void *caller) {
  if (sdg_capture_is_foreign(caller))
    return;
  sdg_call_t call;
  sdg_gemm_t gemm;
  sdg_capture_enter();
  if (sdg_invocation_call(entry, args, &gemm, &call))
    sdg_outside_call(&call);
  writes_note(entry, args);
  sdg_capture_leave();
}

int sdg_capture_note(int entry, const void *args, const void *caller) {
  if (sdg_capture_is_foreign(caller))
    return 0;
  sdg_memory_access_t memory;
  sdg_vector_t vector;
  int result = 0;
  sdg_capture_enter();
  if (sdg_entry[entry].vector) {
    sdg_entry[entry].vector(args, &vector);
    if (vector.op <= SDG_VECTOR_INDEX)
      result = sdg_registry_value(&vector);
    else
      sdg_outside_vector(&vector);
  } else if (sdg_entry[entry].writes) {
    writes_note(entry, args);
  } else {
    for (size_t i = 0; sdg_invocation_copy(entry, args, i, &memory); i++)
      sdg_outside_touch(&memory);
  }
  sdg_capture_leave();
  return result;
}

int sdg_capture_made(int entry, const void *args, int status,
                     const void *caller) {
  if (sdg_capture_is_foreign(caller))
    return 0;
  sdg_vector_t vector;
  sdg_capture_enter();
  sdg_entry[entry].vector(args, &vector);
  int result = sdg_registry_value_made(&vector, status != 0);
  sdg_capture_leave();
  return result;
}

size_t sdg_capture_type_bytes(int type) {
  return sdg_vector_type_bytes(type);
}

bool sdg_capture_reset_due(const void *caller) {
  return !sdg_capture_is_foreign(caller) && sdg_registry_reset_due();
}

void sdg_capture_reset(void) {
  sdg_capture_enter();
  sdg_registry_reset();
  sdg_capture_leave();
}

int sdg_capture_polled(int entry, int *io_status, const void *caller) {
  if (sdg_capture_is_foreign(caller) ||
      (*io_status != cudaSuccess && *io_status != cudaErrorNotReady))
    return 0;
  int first = *io_status;
  sdg_capture_enter();
  bool refused =
      sdg_registry_result(sdg_entry[entry].name, &first, sizeof first);
  sdg_capture_leave();
  if (first == cudaSuccess || first == cudaErrorNotReady)
    *io_status = first;
  return refused ? refusal_of(entry) : 0;
}

bool sdg_capture_pause(void) {
  const struct timespec time = {.tv_nsec = 20000};
  nanosleep(&time, NULL);
  return !sdg_job_failed();
}

int sdg_capture_unseen(int entry, const void *caller) {
  if (sdg_capture_is_foreign(caller))
    return 0;
  sdg_capture_enter();
  bool refused = sdg_registry_unseen(sdg_entry[entry].name);
  sdg_capture_leave();
  return refused ? refusal_of(entry) : 0;
}

bool sdg_capture_is_changed(void) {
  static atomic_int known; // 0: not asked yet
  int version = atomic_load_explicit(&known, memory_order_relaxed);
  if (version == 0) {
    __typeof__(&cudaRuntimeGetVersion) ask;
    sdg_capture_enter();
    *(void **)&ask =
        sdg_real_function(SDG_LIBRARY_CUDART, "cudaRuntimeGetVersion");
    if (!ask || ask(&version) != cudaSuccess)
      version = 0;
    sdg_capture_leave();
    atomic_store_explicit(&known, version, memory_order_relaxed);
  }
  return version != 0 && version < 13000;
}

int sdg_capture_result(int entry, void *result, size_t bytes,
                       const void *caller) {
  if (sdg_capture_is_foreign(caller) || !sdg_job_asked() || !result ||
      bytes == 0 || bytes > SDG_HOST_READ_BYTES)
    return 0;
  sdg_capture_enter();
  bool refused = sdg_registry_result(sdg_entry[entry].name, result, bytes);
  sdg_capture_leave();
  return refused ? refusal_of(entry) : 0;
}

int sdg_capture_measured(int entry, int *io_count, void *measured, size_t each,
                         int room, const void *caller) {
  if (sdg_capture_is_foreign(caller) || !sdg_job_asked())
    return 0;
  sdg_capture_enter();
  bool refused = sdg_registry_measured(sdg_entry[entry].name, io_count,
                                       measured, each, room);
  sdg_capture_leave();
  last_refused |= refused;
  return refused ? refusal_of(entry) : 0;
}

void sdg_capture_allocated(void *at, size_t bytes, bool hosted,
                           const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    (hosted ? sdg_memory_hosted : sdg_memory_allocated)(at, bytes);
}

void sdg_capture_freed(void *at, const void *caller) {
  if (!sdg_capture_is_foreign(caller))
    sdg_memory_freed(at);
}

bool sdg_capture_watches(void) {
  return sdg_values_expected() || sdg_full_timed();
}

void sdg_capture_after(int status) {
  sdg_capture_enter();
  sdg_full_end();
  if (sdg_values_expected() && status == CUDNN_STATUS_SUCCESS)
    sdg_values_take();
  else if (sdg_values_expected())
    sdg_values_forget();
  sdg_capture_leave();
}

int sdg_capture_graph_begin(int entry, sdg_graph_use_t *use,
                            const void *caller) {
  if (sdg_capture_is_foreign(caller))
    return 0;
  sdg_capture_enter();
  use->entry_name = sdg_entry[entry].name;
  bool refused = sdg_registry_graph_begin(use);
  sdg_capture_leave();
  return refused ? refusal_of(entry) : 0;
}

int sdg_capture_graph_end(int entry, const sdg_graph_use_t *use, int status,
                          const void *caller) {
  if (sdg_capture_is_foreign(caller) && !use->begun)
    return status;
  sdg_capture_enter();
  bool failed = sdg_registry_graph_end(use, status == cudaSuccess);
  sdg_capture_leave();
  return failed && status == cudaSuccess ? refusal_of(entry) : status;
}

int sdg_capture_sync(int entry, int status) {
  if (!sdg_job_failed() && status != cudaErrorNotReady &&
      status != cudaSuccess && !sdg_slot_disarmed())
    sdg_peer_failure_explain(sdg_entry[entry].name);
  return sdg_job_failed() ? cudaErrorLaunchFailure : status;
}

bool sdg_capture_text(char *message, size_t bytes) {
  if (!last_refused || !message || bytes == 0)
    return false;
  snprintf(message, bytes, "%s", sdg_last_error());
  return true;
}
