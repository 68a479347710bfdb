// SPDX-License-Identifier: Apache-2.0
// Makes, checks and aborts communicators.
#include "src/comm/comm.h"

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
#include "src/base/vendor.h"
#include "src/comm/connection.h"
#include "src/job/job.h"
#include "src/job/launch_order.h"
#include "src/job/thread.h"

enum {
  COMMS_MAX = 1 << SDG_AXES_MAX,
  SPINS = 256,
  CHECK_EVERY = 1000,
  GRACE_S = 1,
  DEVICE_UNKNOWN = -1
};

// Protects communicators from an abort by the watching thread, which frees
// them: every NCCL call on a communicator holds this lock. NCCL's calls return
// at once because every pair of ranks is connected. A channel's row is written
// by its own thread, its connection under the lock, and only that thread reads
// it without the lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  sdg_connection_t connection;
  sdg_comm_t *comm[COMMS_MAX];
  int count;
  cudaStream_t stream;
} threads[SDG_CHANNEL_THREADS];
static atomic_bool aborted; // set once, under the lock if it can be had
static atomic_int device = DEVICE_UNKNOWN; // of the first tagged call

sdg_status_t sdg_comm_lock(void) {
  pthread_mutex_lock(&lock);
  if (!aborted)
    return SDG_OK;
  pthread_mutex_unlock(&lock);
  return SDG_E_JOB_BROKEN; // whoever broke the job has reported it
}

void sdg_comm_unlock(void) {
  pthread_mutex_unlock(&lock);
}

// NCCL usually needs some microseconds, but much longer if a peer is late.
static void pause_briefly(unsigned tries) {
  const struct timespec time = {.tv_nsec = 50000};
  if (tries < SPINS)
    sched_yield();
  else
    nanosleep(&time, NULL);
}

sdg_status_t sdg_comm_check(ncclComm_t comm, ncclResult_t result,
                            const char *what) {
  if (result == ncclSuccess)
    return SDG_OK;
  const sdg_vendor_t *nccl = sdg_vendor_get();
  sdg_stopwatch_t since = sdg_stopwatch_start();
  bool said = false;
  for (unsigned tries = 0; result == ncclInProgress; tries++) {
    if (sdg_job_failed())
      return SDG_E_JOB_BROKEN; // whoever broke the job has reported it
    pause_briefly(tries);
    ncclResult_t state;
    SDG_TRY(sdg_comm_lock());
    result = nccl->ncclCommGetAsyncError(comm, &state);
    sdg_comm_unlock();
    if (result == ncclSuccess)
      result = state;
    if (tries % CHECK_EVERY == CHECK_EVERY - 1)
      SDG_TRY(sdg_connection_check(&since, what, &said));
  }
  if (result == ncclSuccess)
    return SDG_OK;
  SDG_TRY(sdg_comm_lock());
  sdg_status_t status =
      sdg_fail(SDG_E_NCCL, "%s: %s: %s", what, nccl->ncclGetErrorString(result),
               nccl->ncclGetLastError(comm));
  sdg_comm_unlock();
  return status;
}

// ---- communicators ---------------------------------------------------------

// Makes the thread's communicators visible to sdg_comm_abort_all; if an abort
// came first, aborts them at once.
static sdg_status_t connection_publish(const sdg_connection_t *made) {
  sdg_status_t status = sdg_comm_lock();
  if (status != SDG_OK) {
    sdg_connection_abort(made);
    return status;
  }
  threads[sdg_channel_get()].connection = *made;
  sdg_comm_unlock();
  return SDG_OK;
}

static sdg_status_t connection_get(const sdg_connection_t **out) {
  const sdg_connection_t *own = &threads[sdg_channel_get()].connection;
  if (!own->all) {
    sdg_connection_t made;
    int current;
    SDG_TRY(sdg_comm_device(&current));
    SDG_TRY(sdg_launch_order_begin());
    sdg_status_t status = sdg_connection_make(current, &made);
    if (status == SDG_OK)
      status = connection_publish(&made);
    else
      status = sdg_job_fail(status);
    sdg_launch_order_end();
    SDG_TRY(status);
  }
  *out = own;
  return SDG_OK;
}

// Numbers the ranks along `axes` in the group's communicator.
static sdg_status_t comm_fill(sdg_comm_t *comm) {
  const sdg_group_t *group = sdg_job_group();
  int rank[SDG_RANKS_MAX], i = 0;
  comm->ranks =
      sdg_mesh_group(sdg_job_mesh(), sdg_job_rank(), comm->axes, rank);
  for (int r = 0; r < comm->ranks; r++) { // both lists are ascending
    while (i < group->count && group->rank[i] != rank[r])
      i++;
    if (i == group->count)
      return sdg_fail(SDG_E_INTERNAL, "rank %d is not in the group", rank[r]);
    comm->peer[r] = i;
  }
  return SDG_OK;
}

static sdg_status_t comm_create(sdg_axes_t axes, sdg_comm_t **out_comm) {
  const sdg_connection_t *connection;
  SDG_TRY(connection_get(&connection));
  sdg_comm_t *comm;
  SDG_TRY(SDG_ALLOCATE(comm, 1, "a communicator"));
  comm->axes = axes;
  sdg_status_t status = comm_fill(comm);
  if (status != SDG_OK) {
    free(comm);
    return status;
  }
  comm->exchange = connection->all;
  if (comm->ranks > 1)
    comm->sum = comm->ranks == sdg_job_group()->count ? connection->all
                                                      : connection->part[axes];
  int channel = sdg_channel_get();
  threads[channel].comm[threads[channel].count++] = comm;
  *out_comm = comm;
  return SDG_OK;
}

sdg_status_t sdg_comm_get(sdg_axes_t axes, sdg_comm_t **out_comm) {
  int channel = sdg_channel_get();
  for (int i = 0; i < threads[channel].count; i++) {
    if (threads[channel].comm[i]->axes == axes) {
      *out_comm = threads[channel].comm[i];
      return SDG_OK;
    }
  }
  return comm_create(axes, out_comm);
}

sdg_status_t sdg_comm_device(int *out_device) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  int current, first = DEVICE_UNKNOWN;
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  SDG_TRY(sdg_vendor_check(cuda->cudaGetDevice(&current), "current device"));
  if (!atomic_compare_exchange_strong(&device, &first, current) &&
      first != current)
    return sdg_fail(SDG_E_DEVICES,
                    "the first tagged call was made on device %d, and this one "
                    "on device %d",
                    first, current);
  *out_device = current;
  return SDG_OK;
}

// The stream does not wait for the legacy default stream; events order the
// two. Its priority is the highest, so that blocks of a transfer come first
// when those of a convolution make room.
static sdg_status_t stream_make(const sdg_vendor_t *cuda,
                                cudaStream_t *out_stream) {
  int least, greatest;
  SDG_TRY(sdg_vendor_check(
      cuda->cudaDeviceGetStreamPriorityRange(&least, &greatest),
      "range of priorities"));
  return sdg_vendor_check(cuda->cudaStreamCreateWithPriority(
                              out_stream, cudaStreamNonBlocking, greatest),
                          "creation of the communication stream");
}

sdg_status_t sdg_comm_stream(cudaStream_t *out_stream) {
  cudaStream_t *stream = &threads[sdg_channel_get()].stream;
  if (!*stream) {
    const sdg_vendor_t *cuda = sdg_vendor_get();
    if (!cuda)
      return SDG_E_LIBRARY_MISSING;
    SDG_TRY(stream_make(cuda, stream));
  }
  *out_stream = *stream;
  return SDG_OK;
}

// A thread that holds the lock for long is in a call of NCCL that waits for
// another rank. NCCL lets another thread abort the communicator then; the call
// returns an error.
void sdg_comm_abort_all(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += GRACE_S;
  bool held = pthread_mutex_timedlock(&lock, &until) == 0;
  if (!atomic_exchange(&aborted, true))
    for (int channel = 0; channel < SDG_CHANNEL_THREADS; channel++)
      sdg_connection_abort(&threads[channel].connection);
  if (held)
    pthread_mutex_unlock(&lock);
}

void sdg_comm_forget(void) {
  pthread_mutex_lock(&lock);
  for (int channel = 0; channel < SDG_CHANNEL_THREADS && !aborted; channel++) {
    sdg_connection_abort(&threads[channel].connection);
    for (int i = 0; i < threads[channel].count; i++)
      free(threads[channel].comm[i]);
    memset(&threads[channel], 0, sizeof threads[channel]);
  }
  pthread_mutex_unlock(&lock);
}

int sdg_comm_size(ncclComm_t comm) {
  const sdg_vendor_t *vendor = sdg_vendor_get();
  int ranks = 0;
  return vendor && vendor->ncclCommCount(comm, &ranks) == ncclSuccess ? ranks
                                                                      : 0;
}

size_t sdg_comm_type_bytes(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default: // numbers of 8 bits, which not every header has
    return (int)type == 10 || (int)type == 11 ? 1 : 0;
  }
}
