// SPDX-License-Identifier: Apache-2.0
// Stores the names of the job's threads in the memory that the ranks share.
#include "src/control/thread_name.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/base/stopwatch.h"
#include "src/bootstrap/shm.h"
#include "src/control/state.h"

enum { NAME_FREE, NAME_WRITING, NAME_COMPLETE, PATIENCE = 100000 };
_Static_assert((int)SDG_THREAD_NAME_BYTES == (int)SDG_SHM_NAME_BYTES,
               "a thread's name fits");

// Waits until the other rank has written its 32 bytes. Bounded, because that
// rank may be killed meanwhile.
static uint32_t state_settled(sdg_shm_name_t *entry) {
  uint32_t state = atomic_load_explicit(&entry->state, memory_order_acquire);
  for (int turn = 0; state == NAME_WRITING && turn < PATIENCE; turn++) {
    sched_yield();
    state = atomic_load_explicit(&entry->state, memory_order_acquire);
  }
  return state;
}

static int name_is(const sdg_shm_name_t *entry, const char *name) {
  return strncmp(entry->text, name, sizeof entry->text) == 0;
}

// The search starts at the lowest channel and takes the first free one, so
// that two ranks with the same name try the same channel.
sdg_status_t sdg_thread_name_claim(sdg_shm_t *shared, const char *name,
                                   int *out_channel) {
  for (int channel = 1; channel < SDG_CHANNEL_THREADS; channel++) {
    sdg_shm_name_t *entry = &shared->name[channel];
    sdg_thread_name_put(shared, channel, name);
    if (state_settled(entry) != NAME_COMPLETE)
      return sdg_fail(
          SDG_E_PEER_LOST,
          "a rank ended while it gave thread %d of the job its name", channel);
    if (name_is(entry, name)) {
      *out_channel = channel;
      return SDG_OK;
    }
  }
  return sdg_fail(
      SDG_E_THREADS_MANY,
      "'%s' is one name too many: the threads of a job can have %d names", name,
      SDG_CHANNEL_THREADS - 1);
}

void sdg_thread_name_put(sdg_shm_t *shared, int channel, const char *name) {
  sdg_shm_name_t *entry = &shared->name[channel];
  uint32_t none = NAME_FREE;
  if (!atomic_compare_exchange_strong(&entry->state, &none, NAME_WRITING))
    return;
  snprintf(entry->text, sizeof entry->text, "%s", name);
  atomic_store_explicit(&entry->state, NAME_COMPLETE, memory_order_release);
}

void sdg_thread_name_of(const sdg_shm_t *shared, int channel, char *out,
                        size_t bytes) {
  const sdg_shm_name_t *entry = &shared->name[channel];
  out[0] = '\0';
  if (atomic_load_explicit(&entry->state, memory_order_acquire) ==
      NAME_COMPLETE)
    snprintf(out, bytes, "%.*s", (int)sizeof entry->text - 1, entry->text);
}

// Returns true if the last question has been sent. The answer may arrive
// before that, if another rank asked for the same name.
static bool question_sent(const sdg_shm_rank_t *own) {
  return atomic_load_explicit(&own->asked_sent, memory_order_acquire) ==
         atomic_load_explicit(&own->asked, memory_order_relaxed);
}

// On several machines: asks rank 0, which tells every rank.
static sdg_status_t name_ask(sdg_control_t *control, const char *name,
                             int *out_channel) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // one at a time
  sdg_shm_rank_t *own = &control->view.shared->rank[control->rank];
  sdg_stopwatch_t watch = sdg_stopwatch_start();
  sdg_status_t status = SDG_OK;
  bool found = false, asked = false;
  pthread_mutex_lock(&lock);
  while (!found && status == SDG_OK) {
    char known[SDG_THREAD_NAME_BYTES];
    int names = 0;
    for (int c = 1; c < SDG_CHANNEL_THREADS && !found; c++) {
      sdg_thread_name_of(control->view.shared, c, known, sizeof known);
      names += known[0] != '\0';
      found = strcmp(known, name) == 0;
      *out_channel = c;
    }
    if (found)
      break;
    if (names == SDG_CHANNEL_THREADS - 1)
      status = sdg_fail(
          SDG_E_THREADS_MANY,
          "'%s' is one name too many: the threads of a job can have %d names",
          name, SDG_CHANNEL_THREADS - 1);
    else if (!asked && question_sent(own)) {
      asked = true;
      snprintf(own->name, sizeof own->name, "%s", name);
      atomic_fetch_add_explicit(&own->asked, 1, memory_order_release);
      sdg_shm_ring(&control->view);
    } else if (sdg_control_ended(control, 0)) {
      status = sdg_fail(SDG_E_PEER_LOST,
                        "rank 0, which numbers the job's threads, ended before "
                        "it received the name '%s'",
                        name);
    } else if (sdg_stopwatch_read(&watch) >= control->timeout_s) {
      status =
          sdg_fail(SDG_E_PEER_TIMEOUT,
                   "rank 0 did not give thread '%s' a number within %.3g s",
                   name, control->timeout_s);
    } else {
      status = sdg_shm_failure(&control->view, control->rank, 1);
      nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
  }
  pthread_mutex_unlock(&lock);
  return status;
}

sdg_status_t sdg_thread_name_find(sdg_control_t *control, const char *name,
                                  int *out_channel) {
  if (control->tcp && control->rank != 0)
    return name_ask(control, name, out_channel);
  sdg_status_t status =
      sdg_thread_name_claim(control->view.shared, name, out_channel);
  if (status == SDG_OK)
    sdg_shm_ring(&control->view);
  return status;
}

void sdg_thread_name_label(const sdg_control_t *control, int channel, char *out,
                           size_t bytes) {
  out[0] = '\0';
  if (channel < 1 || channel >= SDG_CHANNEL_THREADS)
    return;
  char name[SDG_THREAD_NAME_BYTES];
  sdg_thread_name_of(control->view.shared, channel, name, sizeof name);
  if (name[0])
    snprintf(out, bytes, " of thread '%s'", name);
}
