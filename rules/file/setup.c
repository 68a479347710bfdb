// SPDX-License-Identifier: Apache-2.0
// Reads options and rules once, when the first call asks for them.
#include "rules/file/setup.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "src/base/log.h"
#include "src/base/options.h"
#include "src/bootstrap/rendezvous.h"

static struct {
  pthread_mutex_t lock;
  atomic_bool ready; // the rest is immutable from then on
  sdg_status_t status;
  sdg_rules_t rules;
  const char *const *entries;
  int entry_count;
} setup = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sdg_setup_set_entries(const char *const *names, int count) {
  setup.entries = names;
  setup.entry_count = count;
}

static sdg_status_t setup_load(void) {
  SDG_TRY(sdg_options_fault());
  int rank, size, local_rank;
  const char *origin;
  SDG_TRY(sdg_rank_require(&rank, &size, &local_rank, &origin));
  sdg_log_set_rank(rank);
  if (*sdg_options_get()->cuts)
    size = (int)sdg_options_get()->cut_ranks;
  SDG_TRY(sdg_rules_load(sdg_options_get(), size, &setup.rules));
  return sdg_rules_check_entries(&setup.rules, setup.entries,
                                 setup.entry_count);
}

sdg_status_t sdg_setup_rules(const sdg_rules_t **out_rules) {
  if (!atomic_load_explicit(&setup.ready, memory_order_acquire)) {
    pthread_mutex_lock(&setup.lock);
    if (!atomic_load_explicit(&setup.ready, memory_order_relaxed)) {
      setup.status = setup_load();
      atomic_store_explicit(&setup.ready, true, memory_order_release);
    }
    pthread_mutex_unlock(&setup.lock);
  }
  *out_rules = &setup.rules;
  return setup.status;
}

bool sdg_setup_ready(const sdg_rules_t **out_rules) {
  *out_rules = &setup.rules;
  return atomic_load_explicit(&setup.ready, memory_order_acquire) &&
         setup.status == SDG_OK;
}

bool sdg_setup_in_pieces(void) {
  const sdg_rules_t *rules;
  return sdg_setup_rules(&rules) == SDG_OK && rules->view == SDG_VIEW_SHARD;
}

bool sdg_setup_may_be_whole(void) {
  const sdg_options_t *options = sdg_options_get();
  return options->view == SDG_VIEW_WHOLE || *options->rules;
}

bool sdg_setup_is_whole(void) {
  const sdg_rules_t *rules;
  return sdg_setup_ready(&rules) ? rules->view == SDG_VIEW_WHOLE
                                 : sdg_setup_may_be_whole();
}
