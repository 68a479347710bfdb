// SPDX-License-Identifier: Apache-2.0
// Creates and destroys communicators and keeps their errors.
#include "src/host/nccl/comm.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/host/nccl/net/fork.h"
#include "src/host/nccl/net/join.h"
#include "src/host/thread.h"

static const uint64_t comm_magic = 0x6d6d6f636c63636e; // "ncclcomm"

// As in NVIDIA's library, NCCL_COMM_BLOCKING=0 or 1 replaces what the program
// says.
static bool blocking_of(bool wanted) {
  const char *text = getenv("NCCL_COMM_BLOCKING");
  if (text && (strcmp(text, "0") == 0 || strcmp(text, "1") == 0))
    return *text == '1';
  return wanted;
}

ncclResult_t host_comm_create(const ncclUniqueId *id, int rank, int ranks,
                              bool blocking, ncclComm_t *out_comm) {
  int device;
  if (cudaGetDevice(&device) != cudaSuccess) {
    host_comm_say(NULL, "no current device");
    return ncclUnhandledCudaError;
  }
  ncclComm_t comm = calloc(1, sizeof *comm);
  if (!comm)
    return ncclSystemError;
  comm->magic = comm_magic;
  comm->rank = rank;
  comm->ranks = ranks;
  comm->device = device;
  comm->blocking = blocking_of(blocking);
  comm->generation = host_fork_generation();
  comm->id = *id;
  comm->references = 1;
  pthread_mutex_init(&comm->launch, NULL);
  pthread_mutex_init(&comm->lock, NULL);
  pthread_cond_init(&comm->changed, NULL);
  *out_comm = comm;
  return ncclSuccess;
}

ncclResult_t host_comm_join(ncclComm_t comm) {
  ncclResult_t result = host_join(&comm->endpoint, &comm->id, comm->rank,
                                  comm->ranks, &comm->stop_joining);
  if (result != ncclSuccess && result != HOST_STOPPED)
    host_comm_say(comm, "rank %d of %d could not join: %s", comm->rank,
                  comm->ranks, ncclGetErrorString(result));
  pthread_mutex_lock(&comm->lock);
  comm->state = result == ncclSuccess ? HOST_COMM_READY : HOST_COMM_FAILED;
  if (result == HOST_STOPPED)
    result = ncclRemoteError;
  comm->broken = result;
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
  return result;
}

static void *join_main(void *argument) {
  host_comm_join(argument);
  return NULL;
}

ncclResult_t host_comm_join_begin(ncclComm_t comm) {
  int error = host_thread_start(&comm->joiner, join_main, comm);
  comm->has_joiner = error == 0;
  return error == 0 ? ncclSuccess : ncclSystemError;
}

ncclResult_t host_comm_joined(ncclComm_t comm) {
  pthread_mutex_lock(&comm->lock);
  while (comm->state == HOST_COMM_JOINING)
    pthread_cond_wait(&comm->changed, &comm->lock);
  ncclResult_t result = comm->broken;
  pthread_mutex_unlock(&comm->lock);
  return result;
}

ncclResult_t host_comm_check(ncclComm_t comm) {
  if (!comm || comm->magic != comm_magic) {
    host_comm_say(NULL, "not a communicator");
    return ncclInvalidArgument;
  }
  if (comm->generation != host_fork_generation()) {
    host_comm_say(NULL, "the communicator belongs to the parent process");
    return ncclInvalidUsage;
  }
  return ncclSuccess;
}

// Call with comm->lock held.
static ncclResult_t comm_error(ncclComm_t comm) {
  if (comm->state == HOST_COMM_JOINING)
    return ncclInProgress;
  if (comm->broken != ncclSuccess || comm->state != HOST_COMM_READY)
    return comm->broken;
  host_fault_t fault = host_fault_get(&comm->endpoint);
  if (fault.kind != HOST_FAULT_NONE) {
    comm->broken = host_fault_result(&comm->endpoint, fault);
    host_fault_text(fault, comm->text, sizeof comm->text);
    return comm->broken;
  }
  if (comm->finalized && !comm->blocking && comm->ended != comm->issued)
    return ncclInProgress;
  return ncclSuccess;
}

ncclResult_t host_comm_error(ncclComm_t comm) {
  pthread_mutex_lock(&comm->lock);
  ncclResult_t result = comm_error(comm);
  pthread_mutex_unlock(&comm->lock);
  return result;
}

ncclResult_t host_comm_usable(ncclComm_t comm) {
  ncclResult_t result = host_comm_check(comm);
  if (result != ncclSuccess)
    return result;
  pthread_mutex_lock(&comm->lock);
  bool finalized = comm->finalized;
  result = comm_error(comm);
  pthread_mutex_unlock(&comm->lock);
  if (finalized && (result == ncclSuccess || result == ncclInProgress)) {
    host_comm_say(NULL, "the communicator has been finalized");
    return ncclInvalidUsage;
  }
  if (result == ncclInProgress) {
    host_comm_say(NULL, "the communicator is still being initialised");
    return ncclInvalidArgument;
  }
  return result;
}

void host_comm_drain(ncclComm_t comm) {
  pthread_mutex_lock(&comm->lock);
  while (comm->ended != comm->issued && !comm->aborted)
    pthread_cond_wait(&comm->changed, &comm->lock);
  pthread_mutex_unlock(&comm->lock);
}

void host_comm_drop(ncclComm_t comm) {
  pthread_mutex_lock(&comm->lock);
  bool last = --comm->references == 0;
  pthread_mutex_unlock(&comm->lock);
  if (!last)
    return;
  pthread_mutex_destroy(&comm->launch);
  pthread_mutex_destroy(&comm->lock);
  pthread_cond_destroy(&comm->changed);
  comm->magic = 0;
  free(comm);
}

// Ends the joining thread, waits for running work, and leaves.
static void comm_close(ncclComm_t comm) {
  if (comm->has_joiner)
    pthread_join(comm->joiner, NULL);
  pthread_mutex_lock(&comm->lock);
  while (comm->running)
    pthread_cond_wait(&comm->changed, &comm->lock);
  bool open = comm->state == HOST_COMM_READY;
  comm->state = HOST_COMM_CLOSED;
  pthread_mutex_unlock(&comm->lock);
  if (open)
    host_endpoint_close(&comm->endpoint);
  host_comm_drop(comm);
}

void host_comm_destroy(ncclComm_t comm) {
  pthread_mutex_lock(&comm->lock);
  comm->closing = true;
  pthread_mutex_unlock(&comm->lock);
  host_comm_drain(comm);
  comm_close(comm);
}

void host_comm_abort(ncclComm_t comm) {
  atomic_store(&comm->stop_joining, true);
  pthread_mutex_lock(&comm->lock);
  comm->aborted = true;
  if (comm->state == HOST_COMM_READY)
    host_endpoint_stop(&comm->endpoint);
  bool closing = comm->closing;
  comm->closing = true;
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
  if (!closing)
    comm_close(comm);
}

static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;
static char last_text[256]; // guarded by text_lock

void host_comm_say(ncclComm_t comm, const char *format, ...) {
  char text[sizeof last_text];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&text_lock);
  memcpy(last_text, text, sizeof text);
  pthread_mutex_unlock(&text_lock);
  if (comm) {
    pthread_mutex_lock(&comm->lock);
    memcpy(comm->text, text, sizeof text);
    pthread_mutex_unlock(&comm->lock);
  }
  const char *debug = getenv("NCCL_DEBUG");
  if (debug &&
      (strcasecmp(debug, "WARN") == 0 || strcasecmp(debug, "INFO") == 0 ||
       strcasecmp(debug, "TRACE") == 0))
    fprintf(stderr, "host device NCCL WARN [%d] %s\n", (int)getpid(), text);
}

const char *host_comm_said(ncclComm_t comm) {
  static _Thread_local char text[sizeof last_text];
  text[0] = '\0';
  if (comm) {
    pthread_mutex_lock(&comm->lock);
    memcpy(text, comm->text, sizeof text);
    pthread_mutex_unlock(&comm->lock);
  }
  if (text[0] == '\0') {
    pthread_mutex_lock(&text_lock);
    memcpy(text, last_text, sizeof text);
    pthread_mutex_unlock(&text_lock);
  }
  return text;
}
