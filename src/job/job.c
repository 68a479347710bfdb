// SPDX-License-Identifier: Apache-2.0
// Keeps this process's rank in the job, and the job's one failure.
#include "src/job/job.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/log.h"
#include "src/base/options.h"
#include "src/bootstrap/rendezvous.h"
#include "src/control/thread_name.h"
#include "src/job/live.h"
#include "src/job/thread.h"

atomic_int sdg_job_failure = SDG_OK;

static atomic_bool disarmed;
// What this process is after a fork; set before the child has threads.
static enum { CHILD_NOT, CHILD_OF_RANK, CHILD_OF_NONE } child;
static struct {
  pthread_mutex_t lock; // held while joining
  bool tried;
  sdg_status_t result; // of the first attempt
  sdg_control_t *control;
  const sdg_job_carrier_t *carrier;
  sdg_mesh_t mesh;
  sdg_group_t group;
  sdg_axes_t axes;
  int rank; // kept in a forked child, which has no control channel
} job = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool sdg_job_asked(void) {
  return sdg_options_asked(sdg_options_get());
}

sdg_status_t sdg_job_fail(sdg_status_t status) {
  int none = SDG_OK;
  if (atomic_compare_exchange_strong(&sdg_job_failure, &none, (int)status) &&
      job.control)
    sdg_control_fail(job.control, status, sdg_last_error());
  return status;
}

static sdg_status_t join(const sdg_mesh_t *mesh, sdg_axes_t axes,
                         const sdg_job_carrier_t *carrier) {
  const sdg_options_t *options = sdg_options_get();
  int rank, size, local_rank;
  const char *origin;
  SDG_TRY(sdg_rank_require(&rank, &size, &local_rank, &origin));
  sdg_log_set_rank(rank);
  char fallback[256];
  const char *rendezvous = options->rendezvous;
  SDG_TRY(sdg_rendezvous_check(rendezvous, size));
  if (size > 1 && !*rendezvous) {
    SDG_TRY(sdg_rendezvous_default(fallback, sizeof fallback));
    rendezvous = fallback;
  }
  if (size == 1)
    SDG_TRY(sdg_control_alone(rendezvous));
  else
    SDG_TRY(carrier->check());
  sdg_live_begin(rank);
  sdg_status_t joined = sdg_control_join(rendezvous, rank, size,
                                         options->timeout_s, &job.control);
  sdg_live_joined(joined);
  SDG_TRY(joined);
  job.rank = rank;
  job.mesh = *mesh;
  job.axes = axes;
  job.group.count = sdg_mesh_group(mesh, rank, axes, job.group.rank);
  while (job.group.rank[job.group.me] != rank)
    job.group.me++;
  job.carrier = carrier;
  return carrier->begin(options->timeout_s);
}

sdg_status_t sdg_job_join(const sdg_mesh_t *mesh, sdg_axes_t axes,
                          const sdg_job_carrier_t *carrier) {
  pthread_mutex_lock(&job.lock);
  if (!job.tried) {
    job.tried = true;
    job.result = join(mesh, axes, carrier);
    if (job.result == SDG_E_DESCENDANT)
      sdg_job_disarm();
    else if (job.result != SDG_OK)
      (void)sdg_job_fail(job.result);
  }
  sdg_status_t result = job.result;
  pthread_mutex_unlock(&job.lock);
  return result;
}

void sdg_job_abort(void) {
  if (job.carrier)
    job.carrier->abort();
}

bool sdg_job_joined(void) {
  return job.control != NULL;
}

sdg_control_t *sdg_job_control(void) {
  return job.control;
}

const sdg_mesh_t *sdg_job_mesh(void) {
  return &job.mesh;
}

const sdg_group_t *sdg_job_group(void) {
  return &job.group;
}

sdg_axes_t sdg_job_axes(void) {
  return job.axes;
}

int sdg_job_rank(void) {
  return job.control ? sdg_control_rank(job.control) : 0;
}

int sdg_job_size(void) {
  return job.control ? sdg_control_size(job.control) : 1;
}

// Writes "call 12 cudnnConvolutionForward of thread 'io'". The thread of
// channel 0 has no name.
static void call_write(int channel, uint64_t call, const char *entry, char *out,
                       size_t out_bytes) {
  char label[64] = "";
  if (channel > 0)
    sdg_thread_name_label(job.control, channel, label, sizeof label);
  snprintf(out, out_bytes, "call %llu %s%s", (unsigned long long)call, entry,
           label);
}

void sdg_job_call_of(int channel, char *out, size_t out_bytes) {
  char entry[96];
  uint64_t call = sdg_control_count_of(job.control, channel, sdg_job_rank(),
                                       entry, sizeof entry);
  call_write(channel, call, entry, out, out_bytes);
}

void sdg_job_call_next(const char *entry_name, char *out, size_t out_bytes) {
  char last[96];
  int channel = sdg_channel_get();
  uint64_t call = sdg_control_count_of(job.control, channel, sdg_job_rank(),
                                       last, sizeof last);
  call_write(channel, call + 1, entry_name, out, out_bytes);
}

void sdg_job_call(char *out, size_t out_bytes) {
  sdg_job_call_of(sdg_channel_get(), out, out_bytes);
}

void sdg_job_disarm(void) {
  atomic_store(&disarmed, true);
  sdg_control_forget(job.control);
}

void sdg_job_forked(void) {
  sdg_live_forget();
  if (!sdg_job_disarmed())
    child = job.control ? CHILD_OF_RANK : CHILD_OF_NONE;
  sdg_job_disarm();
}

sdg_status_t sdg_job_child(const char *entry_name) {
  static atomic_bool said;
  switch (child) {
  case CHILD_OF_NONE:
    return sdg_fail(SDG_E_FORKED, "process %d calls %s", (int)getpid(),
                    entry_name);
  case CHILD_OF_RANK:
    if (!atomic_exchange(&said, true))
      (void)sdg_fail(SDG_E_DESCENDANT,
                     "process %d, which rank %d made with fork, calls %s",
                     (int)getpid(), job.rank, entry_name);
    break;
  case CHILD_NOT:
    break;
  }
  return SDG_OK;
}

bool sdg_job_disarmed(void) {
  return atomic_load_explicit(&disarmed, memory_order_relaxed);
}

sdg_status_t sdg_job_gather(int channel, const void *mine, size_t bytes,
                            const char *what, sdg_records_t *out) {
  const sdg_group_t *group = sdg_job_group();
  sdg_live_wait_begin(channel);
  sdg_status_t status =
      sdg_control_gather(sdg_job_control(), channel, group->rank, group->count,
                         mine, bytes, what, out);
  sdg_live_wait_end(channel);
  return status;
}

void sdg_job_leave(void) {
  if (job.control && !sdg_job_disarmed()) {
    // Nothing else: threads may still be in a call.
    sdg_control_leave(job.control);
    sdg_live_leave();
  }
}
