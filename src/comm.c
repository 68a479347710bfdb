// SPDX-License-Identifier: Apache-2.0
// Makes, checks and aborts communicators.
#include "src/comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/control.h"
#include "src/device.h"
#include "src/job.h"
#include "src/vendor.h"

enum { COMMS_MAX = 1 << SDG_AXES_MAX };

// comms[] grows by the calling thread and is read by the watching one: the
// count is published after the entry. The lock keeps an abort and the end of a
// communicator's creation apart.
static sdg_comm_t *comms[COMMS_MAX];
static atomic_int comm_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool aborted;

static void pause_briefly(void) {
  struct timespec time = {.tv_nsec = 50000};
  nanosleep(&time, NULL);
}

sdg_status_t sdg_comm_check(sdg_comm_t *comm, ncclResult_t result,
                            const char *what) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  if (!nccl)
    return SDG_E_LIBRARY_MISSING;
  for (unsigned tries = 0; result == ncclInProgress; tries++) {
    if (sdg_job_failed())
      return SDG_E_JOB_BROKEN; // reported by who broke it
    if (tries > 0)
      pause_briefly();
    ncclResult_t state;
    result = nccl->ncclCommGetAsyncError(comm->nccl, &state);
    if (result == ncclSuccess)
      result = state;
    if (tries % 1000 == 999)
      SDG_TRY(sdg_control_check(sdg_job_control(), true));
  }
  if (result == ncclSuccess)
    return SDG_OK;
  return sdg_fail(SDG_E_NCCL, "%s: %s: %s", what,
                  nccl->ncclGetErrorString(result),
                  nccl->ncclGetLastError(comm->nccl));
}

// Each communicator's first rank makes an id; the whole agreement group, of
// which a communicator is a part, exchanges what it has, so that the control
// channel keeps one order.
static sdg_status_t id_share(const sdg_comm_t *comm, ncclUniqueId *out_id) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  const sdg_group_t *group = sdg_job_group();
  ncclUniqueId mine = {0};
  if (comm->me == 0) {
    ncclResult_t result = nccl->ncclGetUniqueId(&mine);
    if (result != ncclSuccess)
      return sdg_fail(SDG_E_NCCL, "ncclGetUniqueId: %s",
                      nccl->ncclGetErrorString(result));
  }
  size_t count = (size_t)group->count;
  size_t *bytes = malloc(count * sizeof *bytes);
  char(*records)[SDG_CONTROL_RECORD_BYTES] = malloc(count * sizeof *records);
  sdg_status_t status = SDG_OK;
  if (!bytes || !records) {
    status = sdg_fail(SDG_E_NO_MEMORY, "records of %zu ranks", count);
    goto out;
  }
  SDG_TRY_GOTO(sdg_control_exchange(sdg_job_control(), 0, group->rank,
                                    group->count, &mine, sizeof mine, records,
                                    bytes, "the set-up of a communicator"),
               out);
  int first = 0;
  while (group->rank[first] != comm->rank[0])
    first++;
  if (bytes[first] != sizeof *out_id)
    status = sdg_fail(SDG_E_DIVERGED,
                      "rank %d calls something else while this rank sets up a "
                      "communicator",
                      comm->rank[0]);
  else
    memcpy(out_id, records[first], sizeof *out_id);
out:
  free(records);
  free(bytes);
  return status;
}

static sdg_status_t comm_create(sdg_axes_t axes, sdg_comm_t **out_comm) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  if (!nccl)
    return SDG_E_LIBRARY_MISSING;
  sdg_comm_t *comm = calloc(1, sizeof *comm);
  if (!comm)
    return sdg_fail(SDG_E_NO_MEMORY, "a communicator");
  comm->axes = axes;
  comm->ranks =
      sdg_mesh_group(sdg_job_mesh(), sdg_job_rank(), axes, comm->rank);
  while (comm->rank[comm->me] != sdg_job_rank())
    comm->me++;
  sdg_status_t status;
  ncclUniqueId id;
  SDG_TRY_GOTO(id_share(comm, &id), fail);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result = nccl->ncclCommInitRankConfig(&comm->nccl, comm->ranks,
                                                     id, comm->me, &config);
  SDG_TRY_GOTO(sdg_comm_check(comm, result, "ncclCommInitRankConfig"), fail);
  pthread_mutex_lock(&lock);
  int count = atomic_load(&comm_count);
  comms[count] = comm;
  atomic_store(&comm_count, count + 1);
  pthread_mutex_unlock(&lock);
  *out_comm = comm;
  return SDG_OK;
fail:
  // A half-made communicator cannot be destroyed safely; the job is over.
  return sdg_job_fail(status);
}

sdg_status_t sdg_comm_get(sdg_axes_t axes, sdg_comm_t **out_comm) {
  int count = atomic_load(&comm_count);
  for (int i = 0; i < count; i++) {
    if (comms[i]->axes == axes) {
      *out_comm = comms[i];
      return SDG_OK;
    }
  }
  return comm_create(axes, out_comm);
}

sdg_status_t sdg_comm_stream(cudaStream_t *out_stream) {
  static cudaStream_t stream;
  if (!stream) {
    const sdg_vendor_t *cuda = sdg_vendor_get();
    if (!cuda)
      return SDG_E_LIBRARY_MISSING;
    // Not ordered with the legacy default stream: events say what waits.
    SDG_TRY(sdg_device_check(
        cuda->cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
        "creation of the communication stream"));
  }
  *out_stream = stream;
  return SDG_OK;
}

void sdg_comm_abort_all(void) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  pthread_mutex_lock(&lock);
  int count = aborted ? 0 : atomic_load(&comm_count);
  aborted = true;
  for (int i = 0; i < count; i++)
    (void)nccl->ncclCommAbort(comms[i]->nccl);
  pthread_mutex_unlock(&lock);
}
