// SPDX-License-Identifier: Apache-2.0
// The control channel: join, leave, count calls, post failures of the job.
#include "src/control/control.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/options.h"
#include "src/base/stopwatch.h"
#include "src/bootstrap/process.h"
#include "src/bootstrap/rendezvous.h"
#include "src/bootstrap/shm.h"
#include "src/control/state.h"

// The process that has joined a job of several ranks: one job per process.
// File locks do not exclude a process from its own locks, and closing a second
// descriptor of a lock file drops the locks held through the first.
static _Atomic(pid_t) joined_process;

// How long a process that ends waits until the others have received its
// farewell, in seconds. A stopped process receives it when it continues.
static double farewell_s(const sdg_control_t *control) {
  return control->timeout_s < 2 ? control->timeout_s : 2;
}

// Waits until every rank has joined, or a rank posts a failure.
static sdg_status_t all_await(sdg_control_t *control,
                              sdg_rendezvous_wait_t *wait) {
  const sdg_shm_view_t *view = &control->view;
  for (int all = 0;;) {
    uint32_t joins = atomic_load(&view->shared->joins);
    SDG_TRY(sdg_rendezvous_complete(view, control->rank, wait, &all));
    if (all)
      return SDG_OK;
    sdg_shm_sleep(&view->shared->joins, joins);
  }
}

static sdg_rendezvous_wait_t wait_begin(const sdg_control_t *control,
                                        const char *place) {
  return (sdg_rendezvous_wait_t){.place = place,
                                 .timeout_s = control->timeout_s,
                                 .watch = sdg_stopwatch_start()};
}

static void view_leave(sdg_control_t *control) {
  atomic_store(&control->view.shared->rank[control->rank].state,
               (uint32_t)SDG_SHM_LEFT);
  if (!control->tcp)
    return;
  sdg_tcp_sync(control->tcp, farewell_s(control));
  sdg_tcp_stop(control->tcp);
}

static sdg_status_t meet_over_tcp(sdg_control_t *control,
                                  const char *rendezvous,
                                  const sdg_secret_t *secret) {
  sdg_rendezvous_wait_t wait = wait_begin(control, rendezvous);
  sdg_shm_view_t *view = &control->view;
  sdg_status_t status;
  SDG_TRY(sdg_shm_replica(control->size, view));
  SDG_TRY_GOTO(sdg_shm_enter(view, control->rank), unmap);
  SDG_TRY_GOTO(sdg_tcp_start(rendezvous, secret, control->rank, control->size,
                             control->timeout_s, view, &control->tcp),
               unmap);
  SDG_TRY_GOTO(all_await(control, &wait), failed);
  return SDG_OK;
failed:
  view_leave(control);
  sdg_tcp_destroy(control->tcp);
unmap:
  sdg_shm_fini(view);
  return status;
}

static sdg_status_t meet(sdg_control_t *control) {
  sdg_rendezvous_wait_t wait = wait_begin(control, control->path);
  sdg_shm_view_t *view = &control->view;
  int rank = control->rank, size = control->size;
  sdg_status_t status = SDG_OK;
  if (rank == 0) {
    SDG_TRY(sdg_shm_create(size, view));
    SDG_TRY_GOTO(sdg_shm_enter(view, 0), failed);
    if (size > 1)
      SDG_TRY_GOTO(sdg_rendezvous_serve(view, &wait), failed);
    return SDG_OK;
  }
  SDG_TRY(sdg_rendezvous_connect(rank, size, &wait, view));
  control->met = 1;
  SDG_TRY_GOTO(all_await(control, &wait), failed);
  return SDG_OK;
failed:
  view_leave(control);
  sdg_shm_fini(view);
  return status;
}

// `holder` has this rank already. If `holder` started this process, directly
// or indirectly, this process is not a rank (SDG_E_DESCENDANT); otherwise the
// user gave two processes one rank.
static sdg_status_t taken_report(const char *rendezvous, int rank,
                                 int32_t holder) {
  char name[32];
  sdg_process_name(holder, name, sizeof name);
  if (holder > 0 && sdg_process_is_above(holder))
    return sdg_fail(SDG_E_DESCENDANT,
                    "process %d was started by process %d (%s), which is rank "
                    "%d",
                    (int)getpid(), (int)holder, name, rank);
  return sdg_fail(SDG_E_RANK_TAKEN,
                  "process %d (%s) is rank %d at %s, and did not start process "
                  "%d",
                  (int)holder, name, rank, rendezvous, (int)getpid());
}

sdg_status_t sdg_control_alone(const char *rendezvous) {
  const sdg_options_t *options = sdg_options_get();
  const char *path = NULL;
  char lock_path[PATH_MAX];
  sdg_secret_t secret;
  int32_t holder = 0;
  if (sdg_rendezvous_is_tcp(rendezvous)) {
    if (!*options->secret && !*options->secret_file)
      return SDG_OK;
    SDG_TRY(sdg_secret_find(options->secret, options->secret_file, &secret));
    SDG_TRY(
        sdg_rendezvous_lock(rendezvous, &secret, lock_path, sizeof lock_path));
    path = lock_path;
  } else if (*rendezvous) {
    SDG_TRY(sdg_rendezvous_path(rendezvous, &path));
  }
  int other = path ? sdg_rank_lock_other(path, &holder) : -1;
  return other < 0
             ? SDG_OK
             : sdg_fail(SDG_E_RENDEZVOUS,
                        "this is rank 0 of 1, and process %d is rank %d at %s",
                        (int)holder, other, rendezvous);
}

sdg_status_t sdg_control_join(const char *rendezvous, int rank, int size,
                              double timeout_s, sdg_control_t **out_control) {
  if (size < 1 || size > SDG_SHM_RANKS || rank < 0 || rank >= size)
    return sdg_fail(SDG_E_RANK_UNKNOWN,
                    "rank %d of %d ranks; at most %d ranks are possible", rank,
                    size, SDG_SHM_RANKS);
  if (!(timeout_s > 0))
    return sdg_fail(SDG_E_INTERNAL, "timeout of %g s", timeout_s);
  const char *path = NULL;
  char lock_path[PATH_MAX];
  sdg_secret_t secret;
  bool over_tcp = size > 1 && sdg_rendezvous_is_tcp(rendezvous);
  if (over_tcp) {
    const sdg_options_t *options = sdg_options_get();
    SDG_TRY(sdg_secret_find(options->secret, options->secret_file, &secret));
    SDG_TRY(
        sdg_rendezvous_lock(rendezvous, &secret, lock_path, sizeof lock_path));
    path = lock_path;
  } else if (size > 1) {
    SDG_TRY(sdg_rendezvous_path(rendezvous, &path));
  }
  sdg_status_t status = SDG_OK;
  sdg_control_t *control = calloc(1, sizeof *control);
  if (!control || (path && !(control->path = strdup(path)))) {
    free(control);
    return sdg_fail(SDG_E_NO_MEMORY, "control channel");
  }
  control->rank = rank;
  control->size = size;
  control->timeout_s = timeout_s;
  control->owner = getpid();
  control->lock.fd = -1;
  int32_t holder = 0;
  pid_t before = atomic_load(&joined_process);
  if (path && (before == control->owner ||
               !atomic_compare_exchange_strong(&joined_process, &before,
                                               control->owner))) {
    status = sdg_fail(SDG_E_RANK_TAKEN, "this process has already joined");
    goto not_claimed;
  }
  if (path) {
    status = sdg_rank_lock_take(path, rank, &control->lock, &holder);
    if (status == SDG_E_RANK_TAKEN)
      status = taken_report(rendezvous, rank, holder);
    if (status != SDG_OK)
      goto not_locked;
  }
  SDG_TRY_GOTO(over_tcp ? meet_over_tcp(control, rendezvous, &secret)
                        : meet(control),
               not_met);
  *out_control = control;
  return SDG_OK;
not_met:
  if (path)
    sdg_rank_lock_release(&control->lock, rank, control->met ? path : NULL);
not_locked:
  if (path)
    atomic_store(&joined_process, 0);
not_claimed:
  free(control->path);
  free(control);
  return status;
}

void sdg_control_leave(sdg_control_t *control) {
  if (!control || control->owner != getpid() ||
      atomic_exchange(&control->left, 1))
    return;
  view_leave(control);
  if (control->path) {
    sdg_rank_lock_release(&control->lock, control->rank,
                          control->met ? control->path : NULL);
    atomic_store(&joined_process, 0);
  }
}

void sdg_control_forget(sdg_control_t *control) {
  if (control && control->owner != getpid())
    sdg_tcp_forget(control->tcp);
}

void sdg_control_destroy(sdg_control_t *control) {
  if (!control)
    return;
  sdg_control_leave(control);
  sdg_control_forget(control);
  sdg_tcp_destroy(control->tcp);
  // In a child: its copy; else already released.
  sdg_rank_lock_forget(&control->lock);
  sdg_shm_fini(&control->view);
  free(control->path);
  free(control);
}

int sdg_control_rank(const sdg_control_t *control) {
  return control->rank;
}

int sdg_control_size(const sdg_control_t *control) {
  return control->size;
}

// ---- counts ---------------------------------------------------------------

void sdg_control_count(sdg_control_t *control, int channel, uint64_t calls,
                       const char *what) {
  if (channel < 0 || channel >= SDG_CHANNELS)
    return;
  sdg_shm_count(&control->view.shared->rank[control->rank].channel[channel],
                calls, what, SDG_SHM_WHAT_BYTES);
}

uint64_t sdg_control_count_of(const sdg_control_t *control, int channel,
                              int rank, char *out_what, size_t what_bytes) {
  if (channel < 0 || channel >= SDG_CHANNELS || rank < 0 ||
      rank >= control->size)
    return 0;
  const sdg_shm_channel_t *peer =
      &control->view.shared->rank[rank].channel[channel];
  uint64_t words[SDG_SHM_WHAT_WORDS], calls;
  // Bounded: a peer that is killed while it writes leaves the version odd for
  // ever.
  for (int turn = 0; turn < 1000; turn++) {
    uint32_t version =
        atomic_load_explicit(&peer->version, memory_order_acquire);
    for (int i = 0; i < SDG_SHM_WHAT_WORDS; i++)
      words[i] = atomic_load_explicit(&peer->what[i], memory_order_acquire);
    calls = atomic_load_explicit(&peer->calls, memory_order_acquire);
    if (version % 2 == 0 && version == atomic_load(&peer->version))
      break;
  }
  if (out_what && what_bytes > 0) {
    char text[SDG_SHM_WHAT_BYTES];
    memcpy(text, words, sizeof text);
    text[sizeof text - 1] = '\0';
    snprintf(out_what, what_bytes, "%s", text);
  }
  return calls;
}

int sdg_control_step(sdg_control_t *control, int channel, uint32_t number,
                     uint32_t hash, const int *peers, int count) {
  sdg_shm_rank_t *ranks = control->view.shared->rank;
  sdg_shm_channel_t *own = &ranks[control->rank].channel[channel];
  uint64_t step = (uint64_t)number << 32 | hash;
  int place = (int)(number % SDG_SHM_STEPS);
  sdg_shm_mask_set(own->step_peers, peers, count);
  // Sequentially consistent: if two ranks each store and then look, at least
  // one sees the other's value.
  atomic_store(&own->step[place], step);
  atomic_store_explicit(&own->steps, number, memory_order_release);
  for (int i = 0; i < count; i++)
    if (sdg_shm_steps_differ(
            step, atomic_load(&ranks[peers[i]].channel[channel].step[place])))
      return peers[i];
  // In a replica: a difference that was reported since, as 1 + rank.
  return (int)atomic_load_explicit(&own->differs, memory_order_relaxed) - 1;
}

int sdg_control_steps_end(sdg_control_t *control, int channel, uint32_t number,
                          uint32_t hash, const int *peers, int count,
                          uint32_t *out_number) {
  sdg_shm_rank_t *ranks = control->view.shared->rank;
  uint64_t end = (uint64_t)number << 32 | (hash ? hash : 1);
  atomic_store(&ranks[control->rank].channel[channel].steps_end, end);
  if (control->tcp)
    sdg_tcp_sync(control->tcp, farewell_s(control));
  for (int i = 0; i < count; i++) {
    uint64_t theirs = atomic_load(&ranks[peers[i]].channel[channel].steps_end);
    *out_number = (uint32_t)(theirs >> 32);
    if (theirs && theirs != end)
      return peers[i];
  }
  // Hashes that equal any may not be part of the hash over all ops.
  *out_number = number;
  return (int)atomic_load(&ranks[control->rank].channel[channel].differs) - 1;
}

// ---- failures -------------------------------------------------------------

void sdg_control_fail(sdg_control_t *control, sdg_status_t status,
                      const char *text) {
  if (control->owner == getpid())
    sdg_shm_post(&control->view, control->rank, status, text);
}

sdg_status_t sdg_control_check(sdg_control_t *control, int report) {
  const sdg_shm_view_t *view = &control->view;
  SDG_TRY(sdg_shm_failure(view, control->rank, report));
  for (int r = 0; r < control->size; r++) {
    if (r == control->rank || sdg_shm_state(view, r) != SDG_SHM_JOINED ||
        sdg_shm_alive(view, r) || sdg_shm_state(view, r) != SDG_SHM_JOINED)
      continue;
    return report ? sdg_fail(SDG_E_PEER_LOST, "rank %d %s", r,
                             sdg_shm_end_word(view, r))
                  : SDG_E_PEER_LOST;
  }
  return SDG_OK;
}

int sdg_control_ended(const sdg_control_t *control, int rank) {
  const sdg_shm_view_t *view = &control->view;
  if (sdg_shm_state(view, rank) == SDG_SHM_JOINED &&
      !sdg_shm_alive(view, rank) && sdg_shm_state(view, rank) == SDG_SHM_JOINED)
    return SDG_CONTROL_DIED;
  return sdg_shm_state(view, rank) == SDG_SHM_LEFT ? SDG_CONTROL_LEFT : 0;
}

bool sdg_control_stopped(const sdg_control_t *control, int rank) {
  return sdg_shm_stopped(&control->view, rank);
}

const char *sdg_control_end_word(const sdg_control_t *control, int rank) {
  return sdg_control_ended(control, rank) == SDG_CONTROL_LEFT
             ? "ended"
             : sdg_shm_end_word(&control->view, rank);
}

sdg_status_t sdg_control_gather(sdg_control_t *control, int channel,
                                const int *ranks, int count, const void *mine,
                                size_t bytes, const char *what,
                                sdg_records_t *out) {
  *out = (sdg_records_t){.data = NULL};
  SDG_TRY(SDG_ALLOCATE(out->data, count, "records of %d ranks", count));
  SDG_TRY(SDG_ALLOCATE(out->bytes, count, "records of %d ranks", count));
  return sdg_control_exchange(control, channel, ranks, count, mine, bytes,
                              out->data, out->bytes, what);
}

void sdg_records_free(sdg_records_t *records) {
  free(records->data);
  free(records->bytes);
}
