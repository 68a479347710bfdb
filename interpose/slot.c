// SPDX-License-Identifier: Apache-2.0
// The jump targets of the entries' stubs, chosen at an entry's first call.
#include "interpose/slot.h"

#include "interpose/capture.h"
#include "interpose/function/function.h"
#include "interpose/function/kernel.h"
#include "interpose/load.h"
#include "interpose/real.h"
#include "rules/cut/cut.h"
#include "rules/file/setup.h"
#include "rules/observe/inspect.h"
#include "rules/view/registry.h"
#include "src/base/options.h"
#include "src/call/functions.h"
#include "src/job/job.h"
#include "src/observe/inspect_record.h"

static atomic_bool disarmed;
static bool ops_kept; // in a child made by fork

static bool is_op(int entry) {
  return sdg_entry[entry].operands > 0 || sdg_entry[entry].product;
}

int sdg_entry_find(const char *name) {
  for (int entry = 0; entry < SDG_ENTRY_COUNT; entry++) {
    const char *a = name, *b = sdg_entry[entry].name;
    while (*a && *a == *b)
      a++, b++;
    if (*a == *b)
      return entry;
  }
  return -1;
}

static cudnnStatus_t refuse_cudnn(void) {
  return CUDNN_STATUS_NOT_INITIALIZED;
}

static cudaError_t refuse_runtime(void) {
  return cudaErrorInitializationError;
}

static int refuse_cublas(void) {
  return 1; // CUBLAS_STATUS_NOT_INITIALIZED
}

static int refuse_nccl(void) {
  return 2; // ncclSystemError
}

static void refuse_text(char *message, size_t bytes) {
  if (message && bytes > 0)
    message[0] = '\0';
}

static void *refusal(sdg_refusal_t kind) {
  switch (kind) {
  case SDG_REFUSAL_RUNTIME:
    return (void *)refuse_runtime;
  case SDG_REFUSAL_CUBLAS:
    return (void *)refuse_cublas;
  case SDG_REFUSAL_NCCL:
    return (void *)refuse_nccl;
  case SDG_REFUSAL_TEXT:
    return (void *)refuse_text;
  default:
    return (void *)refuse_cudnn;
  }
}

// Kernels are registered before the rules are read.
static bool kernels_declared(int entry) {
  if (entry == SDG_ENTRY___cudaRegisterFunction)
    return *sdg_options_get()->rules;
  sdg_capture_enter();
  bool declared = sdg_kernel_declared();
  sdg_capture_leave();
  return declared;
}

// Several threads may make an entry's first call at the same time. Each finds
// the same addresses, and the stores are idempotent, so no lock is needed.
void *sdg_slot_resolve(unsigned entry, const char *saved) {
  if (entry >= SDG_FUNCTIONS_PROBED)
    return sdg_function_probe(entry - SDG_FUNCTIONS_PROBED, saved);
  if (entry >= SDG_FUNCTIONS_FIRST)
    return sdg_function_resolve(entry - SDG_FUNCTIONS_FIRST);
  sdg_load_options();
  void *real = sdg_real_find((int)entry);
  if (!real)
    return refusal(sdg_entry[entry].refusal);
  atomic_store_explicit(&sdg_real[entry], real, memory_order_release);
  void *target = real;
  bool product = sdg_entry[entry].product != NULL;
  bool captured =
      product ? sdg_registry_may_multiply() : sdg_registry_watches() != 0;
  bool kernels =
      sdg_entry[entry].kernel && !sdg_slot_disarmed() &&
      (sdg_job_asked() || sdg_cut_wanted() ? kernels_declared((int)entry)
                                           : sdg_inspect_record_wanted());
  bool armed = !sdg_slot_disarmed() || (ops_kept && is_op((int)entry));
  if (sdg_entry[entry].probe && captured && armed) {
    sdg_load_watch_fork();
    target = sdg_entry[entry].probe;
  }
  if (sdg_entry[entry].shard && sdg_job_asked() && !sdg_slot_disarmed() &&
      !sdg_setup_is_whole())
    target = sdg_entry[entry].shard;
  bool recorded = sdg_inspect_record_wanted() && !sdg_job_asked() &&
                  (((sdg_entry[entry].library == SDG_LIBRARY_CUBLAS ||
                     sdg_entry[entry].library == SDG_LIBRARY_CUBLASLT) &&
                    sdg_inspect_reduces(sdg_entry[entry].name)) ||
                   sdg_entry[entry].memory);
  if (sdg_entry[entry].whole && !sdg_slot_disarmed() &&
      !(product && captured) &&
      (recorded || (sdg_job_asked() &&
                    (sdg_setup_is_whole() || sdg_entry[entry].memory)))) {
    sdg_load_watch_fork();
    target = sdg_entry[entry].whole;
  }
  if (kernels) {
    sdg_load_watch_fork();
    target = sdg_entry[entry].kernel;
  }
  atomic_store_explicit(&sdg_slot[entry], target, memory_order_release);
  return target;
}

// Only resolved slots are replaced; NULL is not a target.
static void replace(int entry, void *old, void *target) {
  if (old)
    (void)atomic_compare_exchange_strong(&sdg_slot[entry], &old, target);
}

static void disarm(bool keeps_ops) {
  ops_kept = keeps_ops;
  atomic_store(&disarmed, true);
  for (int entry = 0; entry < SDG_ENTRY_COUNT; entry++) {
    void *real = atomic_load(&sdg_real[entry]);
    if (!keeps_ops || !is_op(entry))
      replace(entry, sdg_entry[entry].probe, real);
    replace(entry, sdg_entry[entry].whole, real);
    replace(entry, sdg_entry[entry].shard, real);
    replace(entry, sdg_entry[entry].kernel, real);
  }
  if (!keeps_ops)
    sdg_function_disarm();
}

void sdg_slot_disarm(void) {
  disarm(false);
}

void sdg_slot_disarm_child(void) {
  disarm(true);
}

static void *target_of_pieces(int entry) {
  if (sdg_entry[entry].shard)
    return sdg_entry[entry].shard;
  return sdg_entry[entry].probe ? sdg_entry[entry].probe
                                : atomic_load(&sdg_real[entry]);
}

void sdg_slot_narrow(void) {
  for (int entry = 0; entry < SDG_ENTRY_COUNT; entry++)
    if (!sdg_entry[entry].memory)
      replace(entry, sdg_entry[entry].whole, target_of_pieces(entry));
}

atomic_bool sdg_slot_products_left;

void sdg_slot_leave_products(void) {
  bool whole = sdg_setup_is_whole();
  for (int entry = 0; entry < SDG_ENTRY_COUNT; entry++)
    if (sdg_entry[entry].product)
      replace(entry, sdg_entry[entry].probe,
              whole ? sdg_entry[entry].whole : target_of_pieces(entry));
  if (!whole) // otherwise sundog still follows memory
    atomic_store(&sdg_slot_products_left, true);
}

void sdg_slot_take_products(void) {
  atomic_store(&sdg_slot_products_left, false);
  for (int entry = 0; entry < SDG_ENTRY_COUNT && !sdg_slot_disarmed(); entry++)
    if (sdg_entry[entry].product)
      replace(entry, atomic_load(&sdg_real[entry]), sdg_entry[entry].probe);
}

bool sdg_slot_disarmed(void) {
  return atomic_load_explicit(&disarmed, memory_order_acquire);
}
