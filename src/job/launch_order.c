// SPDX-License-Identifier: Apache-2.0
// Turns: the group's first rank publishes them, the other ranks wait for them.
#include "src/job/launch_order.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/options.h"
#include "src/base/stopwatch.h"
#include "src/bootstrap/shm.h"
#include "src/control/state.h"
#include "src/control/thread_name.h"
#include "src/job/job.h"
#include "src/job/peer_failure.h"
#include "src/job/thread.h"

enum { SPINS = 256, CHECK_EVERY = 1000 };

typedef enum mode {
  MODE_ALONE,   // only channel 0 exists
  MODE_FROZEN,  // all ranks have a further thread, and are agreeing
  MODE_ORDERED, // channel 0 only up to turns.until, then in order
} mode_t_;

static struct {
  pthread_mutex_t lock; // guards the other fields; held for a few instructions
  mode_t_ mode;
  bool busy;       // a thread is taking its turn
  uint64_t alone;  // launches before the order
  uint64_t frozen; // value of `alone` when the ranks' further threads had met
  uint64_t until;  // the maximum of `frozen` over all ranks
  uint64_t taken;  // turns of the order that this rank has launched
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER};

static sdg_shm_turns_t *turns_of(int rank) {
  return &sdg_job_control()->view.shared->rank[rank].turns;
}

// First rank only: gives a turn to the thread that asks, unless another rank
// is so far behind that its pending turns would be overwritten.
static bool turn_give(const sdg_group_t *group, int channel) {
  sdg_shm_turns_t *own = turns_of(group->rank[0]);
  for (int i = 1; i < group->count; i++) {
    uint64_t theirs = atomic_load_explicit(&turns_of(group->rank[i])->taken,
                                           memory_order_acquire);
    if (turns.taken - theirs >= SDG_SHM_TURNS)
      return false;
  }
  atomic_store_explicit(&own->turn[turns.taken % SDG_SHM_TURNS],
                        (uint8_t)channel, memory_order_relaxed);
  atomic_store_explicit(&own->given, ++turns.taken, memory_order_release);
  sdg_shm_ring(&sdg_job_control()->view);
  return true;
}

// Returns the channel whose turn is next; -1 if the first rank has not
// published it yet.
static int turn_next(const sdg_group_t *group) {
  const sdg_shm_turns_t *first = turns_of(group->rank[0]);
  if (atomic_load_explicit(&first->given, memory_order_acquire) <= turns.taken)
    return -1;
  return atomic_load_explicit(&first->turn[turns.taken % SDG_SHM_TURNS],
                              memory_order_relaxed);
}

// Lock held.
static bool turn_take(const sdg_group_t *group, int channel) {
  if (turns.busy)
    return false;
  if (turns.mode == MODE_ALONE ||
      (turns.mode == MODE_ORDERED && turns.alone < turns.until)) {
    if (channel != 0)
      return false; // this rank's channel 0 has not yet reached turns.until
    turns.alone++;
  } else if (turns.mode == MODE_FROZEN) {
    return false;
  } else if (group->me == 0) {
    if (!turn_give(group, channel))
      return false;
  } else {
    if (turn_next(group) != channel)
      return false;
    turns.taken++;
    atomic_store_explicit(&turns_of(group->rank[group->me])->taken, turns.taken,
                          memory_order_release);
  }
  turns.busy = true;
  return true;
}

static void pause_briefly(unsigned tries) {
  const struct timespec time = {.tv_nsec = 50000};
  if (tries < SPINS)
    sched_yield();
  else
    nanosleep(&time, NULL);
}

static sdg_status_t stall_report(const sdg_group_t *group, int channel,
                                 double waited_s) {
  char at[128], who[512], label[64], next_label[64];
  pthread_mutex_lock(&turns.lock);
  bool ordered = turns.mode == MODE_ORDERED && turns.alone >= turns.until;
  int next = ordered && group->me != 0 ? turn_next(group) : ordered ? -1 : 0;
  pthread_mutex_unlock(&turns.lock);
  sdg_job_call(at, sizeof at);
  if (next < 0) {
    sdg_peer_failure_behind(channel, who, sizeof who);
    return sdg_fail(SDG_E_PEER_TIMEOUT,
                    "%s has waited %.3g s for its turn to launch a transfer; "
                    "waiting for %s",
                    at, waited_s, who);
  }
  sdg_thread_name_label(sdg_job_control(), channel, label, sizeof label);
  sdg_thread_name_label(sdg_job_control(), next, next_label, sizeof next_label);
  return sdg_fail(SDG_E_THREADS_ORDER,
                  "%s of rank %d has waited %.3g s: rank %d launched a call%s "
                  "before it, and this rank has not made that call",
                  at, sdg_job_rank(), waited_s, group->rank[0],
                  next_label[0] ? next_label : " of the thread without a name");
}

// Called at intervals while a turn does not arrive.
static sdg_status_t stall_check(const sdg_group_t *group, int channel,
                                sdg_stopwatch_t *since) {
  char at[128];
  if (sdg_job_failed())
    return SDG_E_JOB_BROKEN; // whoever broke the job has reported it
  sdg_job_call(at, sizeof at);
  sdg_status_t status = sdg_peer_failure_check(channel, at, false);
  double waited_s = sdg_stopwatch_read(since);
  if (status == SDG_OK && waited_s >= sdg_options_get()->timeout_s)
    status = stall_report(group, channel, waited_s);
  return status == SDG_OK ? SDG_OK : sdg_job_fail(status);
}

sdg_status_t sdg_launch_order_begin(void) {
  const sdg_group_t *group = sdg_job_group();
  if (group->count < 2)
    return SDG_OK;
  int channel = sdg_channel_get();
  sdg_stopwatch_t since = {0};
  for (unsigned tries = 0;; tries++) {
    pthread_mutex_lock(&turns.lock);
    bool mine = turn_take(group, channel);
    pthread_mutex_unlock(&turns.lock);
    if (mine)
      return SDG_OK;
    if (tries == 0)
      since = sdg_stopwatch_start();
    pause_briefly(tries);
    if (tries % CHECK_EVERY == CHECK_EVERY - 1)
      SDG_TRY(stall_check(group, channel, &since));
  }
}

void sdg_launch_order_end(void) {
  if (sdg_job_group()->count < 2)
    return;
  pthread_mutex_lock(&turns.lock);
  turns.busy = false;
  pthread_mutex_unlock(&turns.lock);
}

// The largest of the ranks' numbers.
static sdg_status_t most_gather(int channel, uint64_t mine, const char *what,
                                uint64_t *out_most) {
  const sdg_group_t *group = sdg_job_group();
  sdg_records_t all;
  sdg_status_t status =
      sdg_control_gather(sdg_job_control(), channel, group->rank, group->count,
                         &mine, sizeof mine, what, &all);
  *out_most = 0;
  for (int r = 0; r < group->count && status == SDG_OK; r++) {
    uint64_t theirs = 0;
    if (all.bytes[r] != sizeof theirs)
      status = sdg_fail(SDG_E_INTERNAL,
                        "rank %d makes another call while this one is at %s",
                        group->rank[r], what);
    else
      memcpy(&theirs, all.data[r], sizeof theirs);
    *out_most = theirs > *out_most ? theirs : *out_most;
  }
  sdg_records_free(&all);
  return status;
}

// First the ranks' threads meet. Until then channel 0 launches as before: a
// thread may still wait for the device, and so for transfers of channel 0 that
// other ranks have not launched yet.
//
// Then each rank's number is fixed, once for all further threads, so that
// threads that enter at the same time agree on the same number. Channel 0 may
// then launch as many transfers as another rank has launched already. It need
// not have done so here: if the program waited for such a launch before it
// made this thread, the launch has happened on every rank.
sdg_status_t sdg_launch_order_enter(int channel, const char *entry) {
  char what[160], label[64];
  uint64_t most;
  if (sdg_job_group()->count < 2)
    return SDG_OK;
  sdg_thread_name_label(sdg_job_control(), channel, label, sizeof label);
  snprintf(what, sizeof what, "the first tagged call%s, %s", label, entry);
  SDG_TRY(most_gather(channel, 0, what, &most));
  pthread_mutex_lock(&turns.lock);
  if (turns.mode == MODE_ALONE) {
    turns.mode = MODE_FROZEN;
    turns.frozen = turns.alone;
  }
  uint64_t frozen = turns.frozen;
  pthread_mutex_unlock(&turns.lock);
  SDG_TRY(most_gather(channel, frozen, what, &most));
  pthread_mutex_lock(&turns.lock);
  turns.until = most;
  turns.mode = MODE_ORDERED;
  pthread_mutex_unlock(&turns.lock);
  return SDG_OK;
}
