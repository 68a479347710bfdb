// SPDX-License-Identifier: Apache-2.0
// Finds the rank that a transfer waits for, or the rank whose end made it
// fail.
#include "src/job/peer_failure.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/control/control.h"
#include "src/control/parted.h"
#include "src/job/job.h"
#include "src/job/thread.h"

enum { LOOKS = 20, LOOK_MS = 10 };

// Appends "rank 1 (at call 3 cudnn..., stopped by a signal)". Unless `all` is
// set, appends only ranks that are behind or stopped.
static void rank_append(int channel, int rank, bool all, char *out,
                        size_t out_bytes) {
  sdg_control_t *control = sdg_job_control();
  char at[96];
  uint64_t own =
      sdg_control_count_of(control, channel, sdg_job_rank(), NULL, 0);
  uint64_t count = sdg_control_count_of(control, channel, rank, at, sizeof at);
  bool stopped = sdg_control_stopped(control, rank);
  size_t used = strlen(out);
  if (!all && count >= own && !stopped)
    return;
  if (count == 0)
    snprintf(out + used, out_bytes - used, "%srank %d (no tagged call yet%s)",
             used ? ", " : "", rank, stopped ? ", stopped by a signal" : "");
  else
    snprintf(out + used, out_bytes - used, "%srank %d (at call %llu %s%s)",
             used ? ", " : "", rank, (unsigned long long)count, at,
             stopped ? ", stopped by a signal" : "");
}

// A rank counts calls before its transfers run, so the rank that delays a
// transfer may not be behind.
void sdg_peer_failure_behind(int channel, char *out, size_t out_bytes) {
  const sdg_group_t *group = sdg_job_group();
  out[0] = 0;
  for (int all = 0; all < 2 && !out[0]; all++)
    for (int i = 0; i < group->count; i++)
      if (i != group->me)
        rank_append(channel, group->rank[i], all, out, out_bytes);
}

// Writes "rank 1 died at call 3 cudnn..., rank 2 ended at ...": the ranks that
// a transfer may be missing. They are those that died or are behind; if the
// transfer has failed, every rank that ended. Ranks outside the group make
// different calls and are not compared.
static void ended_text(int channel, bool has_failed, char *out,
                       size_t out_bytes) {
  sdg_control_t *control = sdg_job_control();
  const sdg_group_t *group = sdg_job_group();
  uint64_t own =
      sdg_control_count_of(control, channel, sdg_job_rank(), NULL, 0);
  out[0] = 0;
  enum { DIED, BEHIND, LEFT };
  // First the ranks that died, then those that left, perhaps because of the
  // death.
  for (int why = DIED; why <= (has_failed ? LEFT : BEHIND) && !out[0]; why++)
    for (int i = 0; i < group->count; i++) {
      char at[96];
      int r = group->rank[i];
      int end = i == group->me ? 0 : sdg_control_ended(control, r);
      uint64_t count = sdg_control_count_of(control, channel, r, at, sizeof at);
      size_t used = strlen(out);
      bool named = why == DIED ? end == SDG_CONTROL_DIED
                               : end != 0 && (why == LEFT || count < own);
      if (named)
        snprintf(out + used, out_bytes - used, "%srank %d %s at call %llu %s",
                 used ? ", " : "", r, sdg_control_end_word(control, r),
                 (unsigned long long)count, at);
    }
}

sdg_status_t sdg_peer_failure_check(int channel, const char *what,
                                    bool has_failed) {
  sdg_control_t *control = sdg_job_control();
  char ended[512];
  // If a rank posted a failure, that is why it left.
  sdg_status_t status = sdg_control_check(control, false);
  if (status != SDG_OK && status != SDG_E_PEER_LOST)
    return sdg_control_check(control, true);
  ended_text(channel, has_failed, ended, sizeof ended);
  // By now, anything that a rank posted before leaving has arrived.
  if (ended[0] && (status = sdg_control_check(control, false)) != SDG_OK &&
      status != SDG_E_PEER_LOST)
    return sdg_control_check(control, true);
  if (ended[0]) {
    char parted[160];
    sdg_parted_format(parted, sizeof parted);
    return sdg_fail(SDG_E_PEER_LOST,
                    "%s, and %s of rank %d still waits for data%s", ended, what,
                    sdg_job_rank(), parted);
  }
  return status == SDG_OK ? SDG_OK : sdg_control_check(control, true);
}

void sdg_peer_failure_explain(const char *entry) {
  if (!sdg_job_joined() || sdg_job_size() < 2 || sdg_job_failed())
    return;
  for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++) {
    char at[128], what[192];
    // If no transfer was made yet, the failure is the program's own.
    if (sdg_control_count_of(sdg_job_control(), channel, sdg_job_rank(), NULL,
                             0) == 0)
      continue;
    sdg_job_call_of(channel, at, sizeof at);
    snprintf(what, sizeof what, "%s after %s", entry, at);
    sdg_status_t status = sdg_peer_failure_check(channel, what, true);
    if (status == SDG_OK)
      continue;
    (void)sdg_job_fail(status);
    sdg_job_abort();
    return;
  }
}

sdg_status_t sdg_peer_failure_accident(sdg_status_t status) {
  bool elsewhere = status == SDG_E_CUDA || status == SDG_E_NCCL ||
                   status == SDG_E_VENDOR_CALL;
  if (!elsewhere || sdg_job_size() < 2 || sdg_job_failed())
    return status;
  char at[128];
  sdg_job_call(at, sizeof at);
  // The end of a process takes a moment: its sockets may close before its lock
  // is released.
  const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
  sdg_status_t lost = SDG_OK;
  for (int look = 0; look < LOOKS && lost == SDG_OK; look++) {
    if (look > 0)
      nanosleep(&pause, NULL);
    lost = sdg_peer_failure_check(sdg_channel_get(), at,
                                  status != SDG_E_VENDOR_CALL);
  }
  if (lost == SDG_OK)
    return status;
  (void)sdg_job_fail(lost);
  sdg_job_abort();
  return lost;
}
