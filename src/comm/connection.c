// SPDX-License-Identifier: Apache-2.0
// Makes and connects a thread's communicators in a thread of sundog's own, and
// watches that one.
#include "src/comm/connection.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/channel.h"
#include "src/base/log.h"
#include "src/base/options.h"
#include "src/base/vendor.h"
#include "src/job/job.h"
#include "src/job/peer_failure.h"

enum { LOOK_MS = 50, FIRST_WORD_S = 30, PAUSE_NS = 50000, CELL_BYTES = 8 };
static const char SET_UP[] = "the set-up of a communicator";

// ---- making, in the thread of its own -------------------------------------

// Shared by the thread that makes communicators and the one that waits for it;
// the last one to let go frees it.
typedef struct making {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int holders;
  bool ended;
  atomic_bool abandoned; // nobody waits; set under the lock

  // Constant while the thread runs:
  int device, ranks, me;
  ncclUniqueId id;
  int colors[1 << SDG_AXES_MAX]; // index: a set of axes; -1: no communicator

  // Written by the thread before it has ended:
  sdg_connection_t made;
  sdg_status_t status;
  char text[512]; // the reason of a failure
} making_t;

static bool refuse(making_t *m, sdg_status_t status, const char *what,
                   const char *why) {
  m->status = status;
  snprintf(m->text, sizeof m->text, "%s: %s", what, why);
  return false;
}

static bool cuda_holds(making_t *m, cudaError_t result, const char *what) {
  return result == cudaSuccess ||
         refuse(m, SDG_E_CUDA, what,
                sdg_vendor_get()->cudaGetErrorString(result));
}

static void pause_briefly(void) {
  const struct timespec time = {.tv_nsec = PAUSE_NS};
  nanosleep(&time, NULL);
}

// NCCL_COMM_BLOCKING=0 makes every communicator a non-blocking one.
static bool nccl_holds(making_t *m, ncclComm_t comm, ncclResult_t result,
                       const char *what) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  while (result == ncclInProgress && comm && !atomic_load(&m->abandoned)) {
    ncclResult_t state;
    pause_briefly();
    result = nccl->ncclCommGetAsyncError(comm, &state);
    if (result == ncclSuccess)
      result = state;
  }
  if (result == ncclSuccess)
    return true;
  char why[256];
  snprintf(why, sizeof why, "%s: %s", nccl->ncclGetErrorString(result),
           nccl->ncclGetLastError(comm));
  return refuse(m, SDG_E_NCCL, what, why);
}

static bool comms_make(making_t *m) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  int ctas = sdg_options_get()->nccl_ctas;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  config.splitShare = 1; // then an abort of `all` ends its parts' transfers too
  if (ctas > 0)
    config.maxCTAs = ctas;
  ncclResult_t result = nccl->ncclCommInitRankConfig(&m->made.all, m->ranks,
                                                     m->id, m->me, &config);
  if (!nccl_holds(m, m->made.all, result, "ncclCommInitRankConfig"))
    return false;
  for (int axes = 0; axes < 1 << SDG_AXES_MAX; axes++) {
    if (m->colors[axes] < 0)
      continue;
    ncclComm_t *part = &m->made.part[axes];
    // The configuration is that of `all`.
    result =
        nccl->ncclCommSplit(m->made.all, m->colors[axes], m->me, part, NULL);
    if (!nccl_holds(m, m->made.all, result, "ncclCommSplit") ||
        !nccl_holds(m, *part, result, "ncclCommSplit"))
      return false;
  }
  return true;
}

// NCCL connects a pair of ranks at its first message, and the ranks of a sum at
// the first one of its kind: each side waits on the host for the other.
static bool pairs_connect(making_t *m, cudaStream_t stream) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  char *cells = m->made.cells;
  ncclResult_t result = nccl->ncclGroupStart();
  for (int r = 0; r < m->ranks && result == ncclSuccess; r++) {
    if (r == m->me)
      continue;
    result =
        nccl->ncclSend(cells, CELL_BYTES, ncclInt8, r, m->made.all, stream);
    if (result == ncclSuccess || result == ncclInProgress)
      result = nccl->ncclRecv(cells + (size_t)(r + 1) * CELL_BYTES, CELL_BYTES,
                              ncclInt8, r, m->made.all, stream);
    if (result == ncclInProgress)
      result = ncclSuccess;
  }
  ncclResult_t end = nccl->ncclGroupEnd();
  return nccl_holds(m, m->made.all, result == ncclSuccess ? end : result,
                    "the connection of all pairs of ranks");
}

static bool sum_connect(making_t *m, ncclComm_t comm, cudaStream_t stream) {
  void *cell = m->made.cells;
  ncclResult_t result = sdg_vendor_get()->ncclAllReduce(
      cell, cell, 1, ncclFloat32, ncclSum, comm, stream);
  return nccl_holds(m, comm, result, "the first sum over ranks");
}

static bool transfers_end(making_t *m, cudaEvent_t event, cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  cudaError_t result = cuda->cudaEventRecord(event, stream);
  while (result == cudaSuccess &&
         (result = cuda->cudaEventQuery(event)) == cudaErrorNotReady &&
         !atomic_load(&m->abandoned)) {
    pause_briefly();
    result = cudaSuccess;
  }
  return cuda_holds(m, result, "the first transfers");
}

static bool comms_connect(making_t *m) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  int least, greatest;
  cudaStream_t stream;
  cudaEvent_t event;
  size_t bytes = (size_t)(m->ranks + 1) * CELL_BYTES;
  if (!cuda_holds(m, cuda->cudaMalloc(&m->made.cells, bytes),
                  "memory of messages") ||
      !cuda_holds(m, cuda->cudaDeviceGetStreamPriorityRange(&least, &greatest),
                  "range of priorities") ||
      !cuda_holds(m,
                  cuda->cudaStreamCreateWithPriority(
                      &stream, cudaStreamNonBlocking, greatest),
                  "creation of a stream") ||
      !cuda_holds(
          m, cuda->cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
          "creation of an event"))
    return false;
  bool good = pairs_connect(m, stream) && sum_connect(m, m->made.all, stream);
  for (int axes = 0; axes < 1 << SDG_AXES_MAX && good; axes++)
    if (m->made.part[axes])
      good = sum_connect(m, m->made.part[axes], stream);
  good = good && transfers_end(m, event, stream);
  (void)cuda->cudaEventDestroy(event);
  (void)cuda->cudaStreamDestroy(stream);
  return good;
}

static void making_drop(making_t *m) {
  pthread_mutex_lock(&m->lock);
  bool last = --m->holders == 0;
  pthread_mutex_unlock(&m->lock);
  if (!last)
    return;
  pthread_cond_destroy(&m->changed);
  pthread_mutex_destroy(&m->lock);
  free(m);
}

static void *making_main(void *argument) {
  making_t *m = argument;
  const sdg_vendor_t *cuda = sdg_vendor_get();
  // While the program captures a graph, calls of this thread would spoil it.
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  sdg_channel_apart = true;
  (void)cuda->cudaThreadExchangeStreamCaptureMode(&mode);
  bool good = cuda_holds(m, cuda->cudaSetDevice(m->device), "cudaSetDevice") &&
              comms_make(m) && (m->ranks == 1 || comms_connect(m));
  sdg_connection_t made = m->made;
  pthread_mutex_lock(&m->lock);
  m->ended = true;
  bool unwanted = !good || atomic_load(&m->abandoned);
  pthread_cond_signal(&m->changed);
  pthread_mutex_unlock(&m->lock);
  if (unwanted)
    sdg_connection_abort(&made);
  making_drop(m);
  return NULL;
}

// ---- the thread that waits ------------------------------------------------

sdg_status_t sdg_connection_check(sdg_stopwatch_t *since, const char *what,
                                  bool *said) {
  char at[128], who[512];
  if (sdg_job_failed())
    return SDG_E_JOB_BROKEN; // whoever broke the job has reported it
  sdg_job_call(at, sizeof at);
  SDG_TRY(sdg_peer_failure_check(sdg_channel_get(), at, false));
  double waited_s = sdg_stopwatch_read(since);
  bool late = waited_s >= sdg_options_get()->timeout_s;
  if (!late && (waited_s < FIRST_WORD_S || *said))
    return SDG_OK;
  sdg_peer_failure_behind(sdg_channel_get(), who, sizeof who);
  if (late)
    return sdg_fail(SDG_E_PEER_TIMEOUT,
                    "%s has waited %.0f s in %s; waiting for %s", at, waited_s,
                    what, who);
  sdg_log("%s has been waiting %.0f s in %s; waiting for %s", at, waited_s,
          what, who);
  *said = true;
  return SDG_OK;
}

// All ranks of the group list the same sets of axes in the same order.
static void colors_choose(making_t *m) {
  const sdg_group_t *group = sdg_job_group();
  const sdg_axes_t all = sdg_job_axes();
  for (sdg_axes_t axes = 0; axes < 1 << SDG_AXES_MAX; axes++) {
    int rank[SDG_RANKS_MAX];
    int ranks = axes & ~all ? 1
                            : sdg_mesh_group(sdg_job_mesh(), sdg_job_rank(),
                                             axes, rank);
    m->colors[axes] = ranks > 1 && ranks < group->count ? rank[0] : -1;
  }
}

static making_t *making_create(const ncclUniqueId *id, int device) {
  const sdg_group_t *group = sdg_job_group();
  making_t *m = calloc(1, sizeof *m);
  pthread_condattr_t attributes;
  if (!m)
    return NULL;
  pthread_mutex_init(&m->lock, NULL);
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&m->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  m->holders = 1;
  m->id = *id;
  m->device = device;
  m->ranks = group->count;
  m->me = group->me;
  colors_choose(m);
  return m;
}

// Signals belong to the program: its handlers must not run on this thread.
static sdg_status_t making_start(making_t *m) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  m->holders++;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread, NULL, making_main, m);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (error != 0) {
    m->holders--;
    return sdg_fail(SDG_E_NO_MEMORY, "the thread that sets up communicators");
  }
  pthread_detach(thread);
  return SDG_OK;
}

// Lock held.
static void making_look_later(making_t *m) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += LOOK_MS * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  pthread_cond_timedwait(&m->changed, &m->lock, &until);
}

static sdg_status_t making_wait(making_t *m) {
  sdg_stopwatch_t since = sdg_stopwatch_start();
  sdg_status_t status = SDG_OK;
  bool said = false;
  pthread_mutex_lock(&m->lock);
  while (!m->ended && status == SDG_OK) {
    making_look_later(m);
    if (m->ended)
      break;
    pthread_mutex_unlock(&m->lock);
    status = sdg_connection_check(&since, SET_UP, &said);
    pthread_mutex_lock(&m->lock);
  }
  bool ended = m->ended;
  atomic_store(&m->abandoned, !ended);
  pthread_mutex_unlock(&m->lock);
  if (ended && m->status != SDG_OK && status == SDG_OK)
    status = sdg_peer_failure_accident(sdg_fail(m->status, "%s", m->text));
  else if (ended && m->status == SDG_OK && status != SDG_OK)
    sdg_connection_abort(&m->made);
  return status;
}

sdg_status_t sdg_connection_make(int device, sdg_connection_t *out) {
  ncclUniqueId id;
  if (!sdg_vendor_get())
    return SDG_E_LIBRARY_MISSING;
  SDG_TRY(sdg_connection_introduce(SET_UP, &id));
  making_t *m = making_create(&id, device);
  if (!m)
    return sdg_fail(SDG_E_NO_MEMORY, "a communicator");
  sdg_status_t status = making_start(m);
  if (status == SDG_OK)
    status = making_wait(m);
  if (status == SDG_OK)
    *out = m->made;
  making_drop(m);
  return status;
}

void sdg_connection_abort(const sdg_connection_t *connection) {
  const sdg_vendor_t *nccl = sdg_vendor_get();
  // `all` first: where resources are shared this ends the transfers of all.
  if (connection->all)
    (void)nccl->ncclCommAbort(connection->all);
  for (int axes = 0; axes < 1 << SDG_AXES_MAX; axes++)
    if (connection->part[axes])
      (void)nccl->ncclCommAbort(connection->part[axes]);
}
