// SPDX-License-Identifier: Apache-2.0
// The watching thread: follows the transfers in flight to their end.
#include "src/watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "src/comm.h"
#include "src/control.h"
#include "src/device.h"
#include "src/job.h"
#include "src/log.h"
#include "src/lost.h"
#include "src/stopwatch.h"
#include "src/vendor.h"

enum { POLL_MS = 50, GRACE_S = 1, FIRST_WORD_S = 30 };

// The call that a transfer belongs to.
typedef struct place {
  uint64_t call;
  const char *entry;
} place_t;

// One event marks how far the stream of transfers is watched. What is enqueued
// before it is reached only sets `more`; the thread then marks the new end.
static struct {
  pthread_mutex_t lock; // guards the fields below, never held across a wait
  pthread_cond_t wake;
  pthread_t thread;
  bool started, stop;
  bool watching;
  bool more;
  cudaStream_t stream;
  cudaEvent_t event;
  place_t at, last; // the call of the event, and of the last transfer
  double timeout_s;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

// One wait of the thread for the event.
typedef struct look {
  sdg_stopwatch_t since;
  place_t at;
  double timeout_s;
  bool said; // the line that says who is waited for
} look_t;

static sdg_status_t stall_judge(look_t *look) {
  double waited_s = sdg_stopwatch_read(&look->since);
  char at[128], who[512];
  snprintf(at, sizeof at, "call %llu %s", (unsigned long long)look->at.call,
           look->at.entry);
  // A peer that has ended may have sent all we wait for: a moment of grace.
  if (waited_s > GRACE_S)
    SDG_TRY(sdg_lost_check(at, false));
  bool late = waited_s > look->timeout_s;
  if (!late && (waited_s < FIRST_WORD_S || look->said))
    return SDG_OK;
  sdg_lost_behind(who, sizeof who);
  if (late)
    return sdg_fail(SDG_E_PEER_TIMEOUT,
                    "%s has waited %.0f s for the halo; waiting for %s", at,
                    waited_s, who);
  sdg_log("%s waits for the halo since %.0f s; waiting for %s", at, waited_s,
          who);
  look->said = true;
  return SDG_OK;
}

// Until the next look; the end of the process cuts it short. Lock held.
static void nap(void) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += POLL_MS * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  pthread_cond_timedwait(&watch.wake, &watch.lock, &until);
}

// Marks the end of what is enqueued now as what is waited for. Lock held.
static cudaError_t event_set(void) {
  watch.more = false;
  watch.at = watch.last;
  cudaError_t result =
      sdg_vendor_get()->cudaEventRecord(watch.event, watch.stream);
  watch.watching = result == cudaSuccess;
  return result;
}

// While a program captures a graph, a query by a thread that does not say it
// knows what it does would spoil the capture.
static void capture_spare(void) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  (void)sdg_vendor_get()->cudaThreadExchangeStreamCaptureMode(&mode);
}

// Follows one event to its end. Lock held, but not while looking.
static void event_follow(void) {
  look_t look = {.since = sdg_stopwatch_start(),
                 .at = watch.at,
                 .timeout_s = watch.timeout_s};
  while (!watch.stop) {
    pthread_mutex_unlock(&watch.lock);
    bool in_flight =
        sdg_vendor_get()->cudaEventQuery(watch.event) == cudaErrorNotReady;
    sdg_status_t status = in_flight ? stall_judge(&look) : SDG_OK;
    if (status != SDG_OK)
      (void)sdg_job_fail(status);
    // Whoever broke the job: nothing may be left in flight.
    bool failed = sdg_job_failed();
    if (failed)
      sdg_comm_abort_all();
    pthread_mutex_lock(&watch.lock);
    if (failed || !in_flight) {
      watch.watching = false;
      watch.more &= !failed;
      return;
    }
    nap();
  }
}

static void *watch_main(void *unused) {
  (void)unused;
  bool spared = false;
  pthread_mutex_lock(&watch.lock);
  while (!watch.stop) {
    // Not before: the vendor's library is loaded by the first transfer.
    if (watch.watching && !spared) {
      capture_spare();
      spared = true;
    }
    if (watch.watching)
      event_follow();
    else if (watch.more)
      // A failure here is the stream's: the program's next CUDA call says so.
      (void)event_set();
    else
      pthread_cond_wait(&watch.wake, &watch.lock);
  }
  pthread_mutex_unlock(&watch.lock);
  return NULL;
}

sdg_status_t sdg_watch_start(double timeout_s) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&watch.wake, &attributes);
  pthread_condattr_destroy(&attributes);
  // Signals are the program's: its handlers must not run on our thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&watch.lock);
  watch.timeout_s = timeout_s;
  watch.started = pthread_create(&watch.thread, NULL, watch_main, NULL) == 0;
  bool started = watch.started;
  pthread_mutex_unlock(&watch.lock);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started ? SDG_OK : sdg_fail(SDG_E_NO_MEMORY, "the watching thread");
}

// Lock held.
static sdg_status_t event_make(void) {
  if (watch.event)
    return SDG_OK;
  return sdg_device_check(sdg_vendor_get()->cudaEventCreateWithFlags(
                              &watch.event, cudaEventDisableTiming),
                          "creation of an event");
}

sdg_status_t sdg_watch_transfer(cudaStream_t stream, const char *entry) {
  sdg_status_t status = SDG_OK;
  uint64_t call =
      sdg_control_count_of(sdg_job_control(), 0, sdg_job_rank(), NULL, 0);
  pthread_mutex_lock(&watch.lock);
  watch.stream = stream;
  watch.last = (place_t){call, entry};
  watch.more = watch.watching;
  if (watch.started && !watch.watching) {
    status = event_make();
    if (status == SDG_OK)
      status = sdg_device_check(event_set(), "event record");
    pthread_cond_signal(&watch.wake);
  }
  pthread_mutex_unlock(&watch.lock);
  return status;
}

void sdg_watch_stop(void) {
  pthread_mutex_lock(&watch.lock);
  bool started = watch.started;
  watch.started = false;
  watch.stop = true;
  pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.lock);
  if (started)
    pthread_join(watch.thread, NULL);
}
