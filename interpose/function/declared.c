// SPDX-License-Identifier: Apache-2.0
// Functions that the rules declare: a stub stands for each, and the first call
// decides where it leads.
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "interpose/capture.h"
#include "interpose/function/closure.h"
#include "interpose/function/function.h"
#include "interpose/function/real.h"
#include "interpose/load.h"
#include "interpose/slot.h"
#include "rules/cut/cut.h"
#include "rules/file/setup.h"
#include "src/call/functions.h"
#include "src/job/job.h"
#include "src/observe/declared.h"
#include "src/observe/report.h"

// In the object that `sundog run` preloads; NULL without it.
extern sdg_functions_t sundog_functions __attribute__((weak));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of first calls
// The functions behind the stubs.
static _Atomic(void *) found[SDG_SECTIONS_MAX];

int sdg_function_find(const char *name) {
  if (!&sundog_functions)
    return -1;
  for (uint64_t i = 0; i < sundog_functions.count; i++) {
    const char *a = name, *b = sundog_functions.row[i].name;
    while (*a && *a == *b)
      a++, b++;
    if (*a == *b)
      return (int)i;
  }
  return -1;
}

void *sdg_function_record(int index, void *address) {
  sdg_functions_row_t *row = &sundog_functions.row[index];
  void *kept = NULL;
  if (!address || address == row->stub || index >= SDG_SECTIONS_MAX)
    return address;
  if (atomic_compare_exchange_strong(&found[index], &kept, address) ||
      kept == address)
    return row->stub;
  (void)!sdg_fail(SDG_E_FUNCTION_UNSEEN,
                  "the program has looked up several functions '%s'",
                  row->name);
  return address;
}

// ---- the first call --------------------------------------------------------

// A function that no loaded library has, or whose closure could not be made.
static sdg_returned_t nothing(void) {
  return (sdg_returned_t){UINT64_MAX, -1};
}

static const sdg_function_t *declared(const char *symbol) {
  const sdg_rules_t *rules;
  if (sdg_setup_rules(&rules) != SDG_OK)
    return NULL;
  for (int f = 0; f < rules->functions; f++)
    if (!rules->function[f].is_kernel &&
        strcmp(rules->function[f].symbol, symbol) == 0)
      return &rules->function[f];
  return NULL;
}

static void *target_make(unsigned index) {
  const char *name = sundog_functions.row[index].name;
  const sdg_function_t *function =
      sdg_job_asked() || sdg_cut_wanted() ? declared(name) : NULL;
  void *real = atomic_load(&found[index]), *code;
  if (!real)
    real = sdg_function_real(name, function ? function->library : "");
  if (!real) {
    (void)sdg_job_fail(SDG_E_FUNCTION_UNSEEN);
    sdg_report_fail();
    return (void *)nothing;
  }
  atomic_store(&found[index], real);
  if (!function || sdg_slot_disarmed())
    return real;
  sdg_load_watch_fork();
  sdg_status_t status = sdg_function_closure_at(index, function, real, &code);
  if (status == SDG_OK)
    return code;
  // It is not called, and may have no status to return: later calls of the
  // CUDA runtime fail.
  (void)sdg_job_fail(status);
  sdg_report_fail();
  return (void *)nothing;
}

void *sdg_function_resolve(unsigned index) {
  sdg_load_options();
  sdg_capture_enter();
  pthread_mutex_lock(&lock);
  void *target = target_make(index);
  __atomic_store_n(&sundog_functions.row[index].slot, target, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&lock);
  sdg_capture_leave();
  return target;
}

void sdg_function_finish(void) {
  const sdg_rules_t *rules;
  sdg_function_defined_finish();
  if (!&sundog_functions || sdg_setup_rules(&rules) != SDG_OK)
    return;
  for (int f = 0; f < rules->functions; f++) {
    const sdg_function_t *function = &rules->function[f];
    if (function->is_kernel)
      continue;
    int index = sdg_function_find(function->symbol);
    bool called = index >= 0 && atomic_load(&found[index]);
    sdg_declared_write(function->name, called ? SDG_DECLARED_CALLED
                                       : sdg_function_exists(function->symbol,
                                                             function->library)
                                           ? SDG_DECLARED_UNUSED
                                           : SDG_DECLARED_ABSENT);
  }
}

void sdg_function_disarm(void) {
  if (!&sundog_functions)
    return;
  for (uint64_t i = 0; i < sundog_functions.count; i++) {
    void *real = atomic_load(&found[i]);
    if (real)
      __atomic_store_n(&sundog_functions.row[i].slot, real, __ATOMIC_RELEASE);
  }
}
