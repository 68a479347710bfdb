// SPDX-License-Identifier: Apache-2.0
// The watching thread: one transfer at a time is followed to its end.
#include "src/watch.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "src/comm.h"
#include "src/control.h"
#include "src/device.h"
#include "src/job.h"
#include "src/log.h"
#include "src/vendor.h"

enum { POLL_MS = 50, GRACE_MS = 1000, FIRST_WORD_MS = 30000 };

// A transfer is watched from its enqueueing until its event is reached; those
// enqueued meanwhile are not, since streams are ordered: if a later one hangs,
// the next to be watched hangs too.
static struct {
  pthread_mutex_t lock; // guards the fields below, never held across a wait
  pthread_cond_t wake;
  pthread_t thread;
  bool started, stop;
  bool watching;
  cudaEvent_t event;
  struct timespec since;
  char what[96];
  double timeout_s;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t elapsed_ms(const struct timespec *since) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (now.tv_sec - since->tv_sec) * 1000 +
         (now.tv_nsec - since->tv_nsec) / 1000000;
}

// Ranks whose count of tagged calls is behind ours, as "1 3 (at call 12 ...)".
static void laggards_format(char *out, size_t out_bytes) {
  sdg_control_t *control = sdg_job_control();
  uint64_t own = sdg_control_count_of(control, 0, sdg_job_rank(), NULL, 0);
  size_t used = 0;
  out[0] = 0;
  for (int r = 0; r < sdg_job_size() && used < out_bytes; r++) {
    char at[96];
    uint64_t count = sdg_control_count_of(control, 0, r, at, sizeof at);
    if (r == sdg_job_rank() || count >= own)
      continue;
    int n = snprintf(out + used, out_bytes - used, "%srank %d (%s)",
                     used ? ", " : "", r, count ? at : "no tagged call yet");
    used += n > 0 ? (size_t)n : 0;
  }
  if (!out[0])
    snprintf(out, out_bytes, "no rank is behind: the transfer itself stalls");
}

static void transfer_break(sdg_status_t status) {
  (void)sdg_job_fail(status);
  sdg_comm_abort_all();
}

// Looks once at the transfer in flight; `said` remembers the 30 s line.
static void transfer_look(const struct timespec *since, const char *what,
                          double timeout_s, bool *said) {
  int64_t ms = elapsed_ms(since);
  if (sdg_job_failed()) {
    sdg_comm_abort_all();
    return;
  }
  // A peer that has ended may have sent all we wait for: a moment of grace.
  if (ms > GRACE_MS) {
    sdg_status_t status = sdg_control_check(sdg_job_control(), false);
    if (status != SDG_OK) {
      transfer_break(sdg_control_check(sdg_job_control(), true));
      return;
    }
  }
  if ((double)ms > timeout_s * 1000) {
    char who[512];
    laggards_format(who, sizeof who);
    transfer_break(sdg_fail(SDG_E_PEER_TIMEOUT,
                            "%s has waited %.0f s for the halo; waiting for %s",
                            what, (double)ms / 1000, who));
    return;
  }
  if (ms > FIRST_WORD_MS && !*said) {
    char who[512];
    laggards_format(who, sizeof who);
    sdg_log("%s waits for the halo since %d s; waiting for %s", what,
            (int)(ms / 1000), who);
    *said = true;
  }
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

static void *watch_main(void *unused) {
  (void)unused;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  bool said = false;
  pthread_mutex_lock(&watch.lock);
  while (!watch.stop) {
    if (!watch.watching) {
      pthread_cond_wait(&watch.wake, &watch.lock);
      said = false;
      continue;
    }
    struct timespec since = watch.since;
    char what[sizeof watch.what];
    snprintf(what, sizeof what, "%s", watch.what);
    double timeout_s = watch.timeout_s;
    cudaEvent_t event = watch.event;
    pthread_mutex_unlock(&watch.lock);

    cudaError_t state = cuda->cudaEventQuery(event);
    if (state == cudaErrorNotReady)
      transfer_look(&since, what, timeout_s, &said);
    pthread_mutex_lock(&watch.lock);
    if (state == cudaErrorNotReady && !watch.stop)
      nap();
    // Finished, or failed: then the program's next CUDA call says so.
    if (state != cudaErrorNotReady || sdg_job_failed())
      watch.watching = false;
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
  watch.timeout_s = timeout_s;
  // Signals are the program's: its handlers must not run on our thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&watch.thread, NULL, watch_main, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error)
    return sdg_fail(SDG_E_NO_MEMORY, "the watching thread");
  watch.started = true;
  return SDG_OK;
}

sdg_status_t sdg_watch_transfer(cudaStream_t stream, const char *entry) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  sdg_status_t status = SDG_OK;
  pthread_mutex_lock(&watch.lock);
  if (!watch.watching && watch.started) {
    if (!watch.event)
      status = sdg_device_check(
          cuda->cudaEventCreateWithFlags(&watch.event, cudaEventDisableTiming),
          "creation of an event");
    if (status == SDG_OK)
      status = sdg_device_check(cuda->cudaEventRecord(watch.event, stream),
                                "event record");
    if (status == SDG_OK) {
      uint64_t call =
          sdg_control_count_of(sdg_job_control(), 0, sdg_job_rank(), NULL, 0);
      snprintf(watch.what, sizeof watch.what, "call %llu %s",
               (unsigned long long)call, entry);
      clock_gettime(CLOCK_MONOTONIC, &watch.since);
      watch.watching = true;
      pthread_cond_signal(&watch.wake);
    }
  }
  pthread_mutex_unlock(&watch.lock);
  return status;
}

void sdg_watch_stop(void) {
  if (!watch.started)
    return;
  pthread_mutex_lock(&watch.lock);
  watch.stop = true;
  pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.lock);
  pthread_join(watch.thread, NULL);
  watch.started = false;
}
