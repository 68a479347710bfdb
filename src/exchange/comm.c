// SPDX-License-Identifier: Apache-2.0
// Makes, checks and aborts communicators.
#include "src/exchange/comm.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "src/base/hash.h"
#include "src/base/options.h"
#include "src/base/stopwatch.h"
#include "src/base/vendor.h"
#include "src/control/control.h"
#include "src/exchange/device.h"
#include "src/job/job.h"
#include "src/job/launch_order.h"
#include "src/job/peer_failure.h"
#include "src/job/thread.h"

enum { COMMS_MAX = 1 << SDG_AXES_MAX, SPINS = 256, CHECK_EVERY = 1000 };

// Protects communicators from an abort by the watching thread, which frees
// them: every NCCL call on a communicator holds this lock. NCCL's calls return
// at once because communicators are non-blocking. A channel's row is written
// by its own thread, under the lock, and only that thread reads it without the
// lock.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  sdg_comm_t *comm[COMMS_MAX];
  int count;
  cudaStream_t stream;
} threads[SDG_CHANNEL_THREADS];
static bool aborted;

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

// Checks the peers that a pending operation waits for.
static sdg_status_t peers_check(sdg_stopwatch_t *since, const char *what) {
  char at[128], who[512];
  sdg_job_call(at, sizeof at);
  SDG_TRY(sdg_peer_failure_check(sdg_channel_get(), at, false));
  double waited_s = sdg_stopwatch_read(since);
  if (waited_s < sdg_options_get()->timeout_s)
    return SDG_OK;
  sdg_peer_failure_behind(sdg_channel_get(), who, sizeof who);
  return sdg_fail(SDG_E_PEER_TIMEOUT,
                  "%s has waited %.0f s in %s; waiting for %s", at, waited_s,
                  what, who);
}

sdg_status_t sdg_comm_check(sdg_comm_t *comm, ncclResult_t result,
                            const char *what) {
  if (result == ncclSuccess)
    return SDG_OK;
  const sdg_vendor_t *nccl = sdg_vendor_get();
  sdg_stopwatch_t since = sdg_stopwatch_start();
  for (unsigned tries = 0; result == ncclInProgress; tries++) {
    if (sdg_job_failed())
      return SDG_E_JOB_BROKEN; // whoever broke the job has reported it
    pause_briefly(tries);
    ncclResult_t state;
    SDG_TRY(sdg_comm_lock());
    result = nccl->ncclCommGetAsyncError(comm->nccl, &state);
    sdg_comm_unlock();
    if (result == ncclSuccess)
      result = state;
    if (tries % CHECK_EVERY == CHECK_EVERY - 1)
      SDG_TRY(peers_check(&since, what));
  }
  if (result == ncclSuccess)
    return SDG_OK;
  SDG_TRY(sdg_comm_lock());
  sdg_status_t status =
      sdg_fail(SDG_E_NCCL, "%s: %s: %s", what, nccl->ncclGetErrorString(result),
               nccl->ncclGetLastError(comm->nccl));
  sdg_comm_unlock();
  return status;
}

// ---- the ranks' GPUs -------------------------------------------------------

// This rank's GPU, in a form that other ranks can compare.
typedef struct gpu {
  uint64_t machine; // hash of the boot id, the process namespace, NCCL_HOSTID
  char bus[24];     // "0000:3B:00.0"
} gpu_t;

// Containers on one machine may share a host name or have different ones; the
// boot id is the same. The host device's bus id contains a process number,
// which is valid only within its process namespace. NCCL_HOSTID is part of the
// hash because NCCL lets ranks with different values share a GPU.
static uint64_t machine_hash(void) {
  char boot[64] = "";
  const char *told = getenv("NCCL_HOSTID");
  struct stat processes = {0};
  uint64_t hash = sdg_hash_text(SDG_HASH_SEED, told ? told : "");
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file && !fgets(boot, sizeof boot, file))
    boot[0] = '\0';
  if (file)
    fclose(file);
  hash = sdg_hash_text(hash, boot);
  if (stat("/proc/self/ns/pid", &processes) == 0)
    hash = sdg_hash_word(hash, (uint64_t)processes.st_ino);
  return hash;
}

static sdg_status_t gpu_find(gpu_t *out_gpu) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  int device;
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  memset(out_gpu, 0, sizeof *out_gpu);
  SDG_TRY(sdg_vendor_check(cuda->cudaGetDevice(&device), "current device"));
  SDG_TRY(sdg_vendor_check(cuda->cudaDeviceGetPCIBusId(
                               out_gpu->bus, (int)sizeof out_gpu->bus, device),
                           "bus of the device"));
  out_gpu->machine = machine_hash();
  return SDG_OK;
}

static bool gpu_same(const gpu_t *a, const gpu_t *b) {
  return a->machine == b->machine &&
         strncmp(a->bus, b->bus, sizeof a->bus) == 0;
}

// ---- communicators ---------------------------------------------------------

// The record that ranks exchange before they create a communicator.
typedef struct introduction {
  ncclUniqueId id; // set by the communicator's first rank
  gpu_t gpu;
} introduction_t;

// If two ranks use one GPU, NCCL fails with an unclear message; this check
// reports it first.
static sdg_status_t gpus_compare(const sdg_group_t *group,
                                 char (*records)[SDG_CHANNEL_RECORD_BYTES],
                                 const size_t *bytes) {
  introduction_t a, b;
  for (int i = 0; i < group->count; i++) {
    memcpy(&a, records[i], sizeof a);
    for (int j = 0; j < i && bytes[i] == sizeof a; j++) {
      memcpy(&b, records[j], sizeof b);
      if (bytes[j] == sizeof b && gpu_same(&a.gpu, &b.gpu))
        return sdg_fail(SDG_E_ONE_GPU, "ranks %d and %d are on GPU %.23s",
                        group->rank[j], group->rank[i], a.gpu.bus);
    }
  }
  return SDG_OK;
}

// The first rank of each communicator makes an id. The whole agreement group,
// which contains the communicator, exchanges its ids, so that the control
// channel has one order of exchanges.
static sdg_status_t id_share(const sdg_comm_t *comm, ncclUniqueId *out_id) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  const sdg_group_t *group = sdg_job_group();
  introduction_t mine = {0}, theirs;
  SDG_TRY(gpu_find(&mine.gpu));
  if (comm->me == 0) {
    ncclResult_t result = nccl->ncclGetUniqueId(&mine.id);
    if (result != ncclSuccess)
      return sdg_fail(SDG_E_NCCL, "ncclGetUniqueId: %s",
                      nccl->ncclGetErrorString(result));
  }
  size_t count = (size_t)group->count;
  size_t *bytes = malloc(count * sizeof *bytes);
  char(*records)[SDG_CHANNEL_RECORD_BYTES] = malloc(count * sizeof *records);
  sdg_status_t status = SDG_OK;
  if (!bytes || !records) {
    status = sdg_fail(SDG_E_NO_MEMORY, "records of %zu ranks", count);
    goto out;
  }
  SDG_TRY_GOTO(sdg_control_exchange(sdg_job_control(), sdg_channel_get(),
                                    group->rank, group->count, &mine,
                                    sizeof mine, records, bytes,
                                    "the set-up of a communicator"),
               out);
  int first = 0;
  while (group->rank[first] != comm->rank[0])
    first++;
  if (bytes[first] != sizeof theirs)
    status = sdg_fail(
        SDG_E_DIVERGED,
        "rank %d makes another call while this rank sets up a communicator",
        comm->rank[0]);
  else
    status = gpus_compare(group, records, bytes);
  if (status == SDG_OK) {
    memcpy(&theirs, records[first], sizeof theirs);
    *out_id = theirs.id;
  }
out:
  free(records);
  free(bytes);
  return status;
}

// Makes the communicator visible to sdg_comm_abort_all; if an abort came
// first, aborts it at once.
static sdg_status_t comm_publish(sdg_comm_t *comm) {
  sdg_status_t status = sdg_comm_lock();
  if (status != SDG_OK) {
    (void)sdg_vendor_get()->ncclCommAbort(comm->nccl);
    return status;
  }
  int channel = sdg_channel_get();
  threads[channel].comm[threads[channel].count++] = comm;
  sdg_comm_unlock();
  return SDG_OK;
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
  if (sdg_options_get()->nccl_ctas > 0)
    config.maxCTAs = sdg_options_get()->nccl_ctas;
  ncclResult_t result = nccl->ncclCommInitRankConfig(&comm->nccl, comm->ranks,
                                                     id, comm->me, &config);
  SDG_TRY_GOTO(sdg_comm_check(comm, result, "ncclCommInitRankConfig"), fail);
  SDG_TRY_GOTO(comm_publish(comm), fail);
  *out_comm = comm;
  return SDG_OK;
fail:
  // The half-made communicator is leaked to NCCL: it cannot be destroyed
  // safely, and the job is over.
  free(comm);
  return sdg_job_fail(status);
}

sdg_status_t sdg_comm_get(sdg_axes_t axes, sdg_comm_t **out_comm) {
  int channel = sdg_channel_get();
  for (int i = 0; i < threads[channel].count; i++) {
    if (threads[channel].comm[i]->axes == axes) {
      *out_comm = threads[channel].comm[i];
      return SDG_OK;
    }
  }
  SDG_TRY(sdg_launch_order_begin());
  sdg_status_t status = comm_create(axes, out_comm);
  sdg_launch_order_end();
  return status;
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

void sdg_comm_abort_all(void) {
  pthread_mutex_lock(&lock);
  for (int channel = 0; channel < SDG_CHANNEL_THREADS && !aborted; channel++)
    for (int i = 0; i < threads[channel].count; i++)
      (void)sdg_vendor_get()->ncclCommAbort(threads[channel].comm[i]->nccl);
  aborted = true;
  pthread_mutex_unlock(&lock);
}

void sdg_comm_forget(void) {
  pthread_mutex_lock(&lock);
  for (int channel = 0; channel < SDG_CHANNEL_THREADS && !aborted; channel++) {
    for (int i = 0; i < threads[channel].count; i++) {
      (void)sdg_vendor_get()->ncclCommAbort(threads[channel].comm[i]->nccl);
      free(threads[channel].comm[i]);
    }
    threads[channel].count = 0;
    threads[channel].stream = NULL;
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
