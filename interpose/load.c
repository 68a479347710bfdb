// SPDX-License-Identifier: Apache-2.0
// Constructor (reads options, nothing else), fork handler, destructor.
#include "interpose/load.h"

#include <pthread.h>
#include <unistd.h>

#include "interpose/function/function.h"
#include "interpose/function/kernel.h"
#include "interpose/loaded.h"
#include "interpose/real.h"
#include "interpose/slot.h"
#include "rules/cut/cut.h"
#include "rules/file/setup.h"
#include "rules/memory/memory.h"
#include "rules/observe/observe.h"
#include "rules/view/registry.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/bootstrap/launcher.h"
#include "src/job/job.h"

static void options_read(void) {
  sdg_library_set_finder(sdg_real_function);
  sdg_setup_set_entries(sdg_entry_name, SDG_ENTRY_COUNT);
  sdg_memory_set_loaded(sdg_loaded_find);
  // An error is kept, and reported at the first call on tensors.
  sdg_status_t status = sdg_options_load(environ);
  sdg_launcher_load();
  (void)status;
  const sdg_options_t *options = sdg_options_get();
  sdg_log_set_files(options->messages, options->messages_else);
}

void sdg_load_options(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, options_read);
}

static void child_disarm(void) {
  sdg_slot_disarm_child();
  sdg_real_after_fork();
  sdg_job_forked();
  sdg_observe_drop();
  sdg_cut_drop();
}

static void fork_watch(void) {
  pthread_atfork(NULL, NULL, child_disarm);
}

void sdg_load_watch_fork(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fork_watch);
}

__attribute__((constructor)) static void constructor(void) {
  sdg_load_options();
}

__attribute__((destructor)) static void destructor(void) {
  if (!sdg_slot_disarmed()) {
    if (sdg_job_asked()) {
      sdg_function_finish();
      sdg_kernel_finish();
    }
    sdg_registry_finish();
    sdg_observe_finish();
  }
}
