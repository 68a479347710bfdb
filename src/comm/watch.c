// SPDX-License-Identifier: Apache-2.0
// Watches the transfers in flight until they end.
#include "src/comm/watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "src/base/log.h"
#include "src/base/stopwatch.h"
#include "src/base/vendor.h"
#include "src/control/control.h"
#include "src/control/thread_name.h"
#include "src/comm/comm.h"
#include "src/job/job.h"
#include "src/job/live.h"
#include "src/job/peer_failure.h"
#include "src/job/thread.h"

enum { POLL_MS = 50, GRACE_S = 1, FIRST_WORD_S = 30 };

// The call that enqueued a transfer.
typedef struct place {
  uint64_t call;
  const char *entry;
} place_t;

// The transfers of one calling thread. One event marks the transfer being
// watched; the other marks the last transfer enqueued meanwhile, which is
// watched next. A transfer's event is recorded directly after the transfer, so
// that work the program enqueues later is not waited for.
typedef struct flight {
  bool watching;
  bool more;
  cudaEvent_t event, next;
  place_t at, last;  // the calls of the two events
  place_t from;      // the call that begins, or has ended, a launch
  uint64_t launches; // begins and ends: odd while a transfer is being enqueued
  // Used only by the watching thread:
  sdg_stopwatch_t since; // when the event was set
  bool said;             // the log line that names the awaited ranks is written
  uint64_t seen;         // the launch that these two are about:
  sdg_stopwatch_t launching;
  bool launch_said;
} flight_t;

static struct {
  pthread_mutex_t lock; // guards the fields below, never held across a wait
  pthread_cond_t wake;
  pthread_t thread;
  bool started, stop, alarm;
  flight_t flight[SDG_CHANNEL_THREADS]; // index: channel
  int device; // of the events; set before the first one
  double timeout_s;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static sdg_status_t stall_judge(int channel, place_t place,
                                sdg_stopwatch_t *since, bool *said) {
  double waited_s = sdg_stopwatch_read(since);
  char at[160], label[64], who[512];
  sdg_thread_name_label(sdg_job_control(), channel, label, sizeof label);
  snprintf(at, sizeof at, "call %llu %s%s", (unsigned long long)place.call,
           place.entry, label);
  // A peer that ended may already have sent all the data: wait a moment first.
  if (waited_s > GRACE_S)
    SDG_TRY(sdg_peer_failure_check(channel, at, false));
  bool late = waited_s > watch.timeout_s;
  if (!late && (waited_s < FIRST_WORD_S || *said))
    return SDG_OK;
  sdg_peer_failure_behind(channel, who, sizeof who);
  if (late)
    return sdg_fail(SDG_E_PEER_TIMEOUT, "%s has waited %.0f s for data from %s",
                    at, waited_s, who);
  sdg_log("%s has been waiting %.0f s for data from %s", at, waited_s, who);
  *said = true;
  return SDG_OK;
}

// Sleeps until the next look; the end of the process wakes it early. Lock
// held.
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

// Watches `flight->event`, which has been recorded. Lock held.
static void event_watch(flight_t *flight) {
  flight->more = false;
  flight->at = flight->last;
  flight->watching = true;
  flight->since = sdg_stopwatch_start();
  flight->said = false;
}

static void event_turn(flight_t *flight) {
  cudaEvent_t reached = flight->event;
  flight->event = flight->next;
  flight->next = reached;
  event_watch(flight);
}

// The thread's queries and aborts belong on the rank's device: without it they
// would make a context on device 0. While a program captures a graph, a query
// would spoil the capture unless the querying thread is in relaxed capture
// mode.
static void thread_prepare(void) {
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  sdg_channel_apart = true;
  (void)sdg_vendor_get()->cudaSetDevice(watch.device);
  (void)sdg_vendor_get()->cudaThreadExchangeStreamCaptureMode(&mode);
}

static void thread_prepare_once(void) {
  static bool prepared;
  if (!prepared)
    thread_prepare();
  prepared = true;
}

// Returns true if the job is broken, whichever thread broke it; then everything
// in flight is aborted.
static bool stalls(int channel, place_t place, sdg_stopwatch_t *since,
                   bool *said) {
  sdg_status_t status = stall_judge(channel, place, since, said);
  if (status != SDG_OK)
    (void)sdg_job_fail(status);
  bool failed = sdg_job_failed();
  if (failed)
    sdg_comm_abort_all();
  return failed;
}

static bool is_launching(const flight_t *flight) {
  return flight->launches % 2 != 0;
}

// Checks once whether a calling thread is still enqueuing the same transfer.
// Called with the lock held; releases it during the check.
static void launch_look(int channel) {
  flight_t *flight = &watch.flight[channel];
  place_t place = flight->from;
  if (flight->seen != flight->launches) {
    flight->seen = flight->launches;
    flight->launching = sdg_stopwatch_start();
    flight->launch_said = false;
    return;
  }
  pthread_mutex_unlock(&watch.lock);
  (void)stalls(channel, place, &flight->launching, &flight->launch_said);
  pthread_mutex_lock(&watch.lock);
}

// Checks once what a calling thread has in flight. Called with the lock held;
// releases it during the check. While `watching` is set, the calling thread
// changes only `more`, `next` and `last`.
static void flight_look(int channel) {
  flight_t *flight = &watch.flight[channel];
  pthread_mutex_unlock(&watch.lock);
  bool in_flight =
      sdg_vendor_get()->cudaEventQuery(flight->event) == cudaErrorNotReady;
  bool failed =
      in_flight && stalls(channel, flight->at, &flight->since, &flight->said);
  pthread_mutex_lock(&watch.lock);
  if (failed || !in_flight)
    flight->watching = false;
  flight->more &= !failed;
}

// Called with the lock held; releases it at times. Meanwhile a transfer may be
// enqueued, or the process may end, and its signal finds no waiter.
static void flights_look(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++) {
    flight_t *flight = &watch.flight[channel];
    // Not earlier: the first transfer loads the vendor's library.
    if (flight->watching || is_launching(flight))
      thread_prepare_once();
    if (flight->watching)
      flight_look(channel);
    if (!flight->watching && flight->more)
      event_turn(flight);
    if (is_launching(flight))
      launch_look(channel);
    sdg_live_flight(channel, flight->watching       ? flight->at.call
                             : is_launching(flight) ? flight->from.call
                                                    : 0);
  }
}

// Lock held.
static bool flights_any(void) {
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    if (watch.flight[channel].watching || is_launching(&watch.flight[channel]))
      return true;
  return false;
}

// Called with the lock held; releases it meanwhile.
static void alarm_look(void) {
  if (!watch.alarm)
    return;
  watch.alarm = false;
  pthread_mutex_unlock(&watch.lock);
  thread_prepare_once();
  sdg_comm_abort_all();
  pthread_mutex_lock(&watch.lock);
}

static void *watch_main(void *unused) {
  (void)unused;
  pthread_mutex_lock(&watch.lock);
  while (!watch.stop) {
    alarm_look();
    flights_look();
    if (watch.stop)
      break;
    if (flights_any())
      nap();
    else if (!watch.alarm)
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
  // Signals belong to the program: its handlers must not run on sundog's
  // thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_mutex_lock(&watch.lock);
  watch.timeout_s = timeout_s;
  watch.started = pthread_create(&watch.thread, NULL, watch_main, NULL) == 0;
  bool started = watch.started;
  pthread_mutex_unlock(&watch.lock);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started ? SDG_OK
                 : sdg_fail(SDG_E_NO_MEMORY,
                            "cannot start the thread that watches transfers");
}

// Lock held. Creates both events at the first transfer: the time of the second
// one's first use varies, and later calls must not allocate.
static sdg_status_t events_make(flight_t *flight) {
  cudaEvent_t *const each[] = {&flight->event, &flight->next};
  if (flight->next)
    return SDG_OK;
  SDG_TRY(sdg_comm_device(&watch.device));
  for (int i = 0; i < 2; i++)
    if (!*each[i])
      SDG_TRY(sdg_vendor_check(sdg_vendor_get()->cudaEventCreateWithFlags(
                                   each[i], cudaEventDisableTiming),
                               "creation of an event"));
  return SDG_OK;
}

// Lock held.
static sdg_status_t event_record(flight_t *flight, cudaStream_t stream) {
  return sdg_vendor_check(
      sdg_vendor_get()->cudaEventRecord(
          flight->watching ? flight->next : flight->event, stream),
      "event record");
}

sdg_status_t sdg_watch_begin(const char *entry) {
  sdg_status_t status = SDG_OK;
  int channel = sdg_channel_get();
  flight_t *flight = &watch.flight[channel];
  uint64_t call =
      sdg_control_count_of(sdg_job_control(), channel, sdg_job_rank(), NULL, 0);
  pthread_mutex_lock(&watch.lock);
  if (watch.started)
    status = events_make(flight);
  if (watch.started && status == SDG_OK) {
    flight->from = (place_t){call, entry};
    flight->launches++;
    if (!flight->watching)
      pthread_cond_signal(&watch.wake);
  }
  pthread_mutex_unlock(&watch.lock);
  return status;
}

sdg_status_t sdg_watch_end(sdg_status_t status, cudaStream_t stream) {
  flight_t *flight = &watch.flight[sdg_channel_get()];
  pthread_mutex_lock(&watch.lock);
  flight->launches += is_launching(flight);
  if (watch.started && status == SDG_OK) {
    status = event_record(flight, stream);
    flight->last = flight->from;
    flight->more = flight->watching && status == SDG_OK;
    if (!flight->watching && status == SDG_OK)
      event_watch(flight);
  }
  pthread_mutex_unlock(&watch.lock);
  return status;
}

sdg_status_t sdg_watch_enclosed(sdg_status_t status) {
  flight_t *flight = &watch.flight[sdg_channel_get()];
  pthread_mutex_lock(&watch.lock);
  flight->launches += is_launching(flight);
  pthread_mutex_unlock(&watch.lock);
  return status;
}

void sdg_watch_alarm(void) {
  pthread_mutex_lock(&watch.lock);
  watch.alarm = true;
  pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.lock);
}

void sdg_watch_forget(void) {
  const struct timespec pause = {.tv_nsec = 1000000};
  pthread_mutex_lock(&watch.lock);
  // The thread may be waiting for an event at this moment.
  while (watch.started && flights_any()) {
    pthread_cond_signal(&watch.wake);
    pthread_mutex_unlock(&watch.lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&watch.lock);
  }
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
    watch.flight[channel].event = watch.flight[channel].next = NULL;
  pthread_mutex_unlock(&watch.lock);
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
