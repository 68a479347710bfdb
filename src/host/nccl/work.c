// SPDX-License-Identifier: Apache-2.0
// Runs launched groups on the threads of streams: in order, with resolved
// addresses; a failure becomes the communicator's and the device's error.
#include "src/host/nccl/work.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "src/host/nccl/reduce.h"

typedef struct work {
  ncclComm_t comm;
  uint64_t ticket;
  host_op_t *ops;
  int count;
  bool recorded; // in a graph: has no ticket; each launch has a copy with one
  bool ran;      // data has moved, or the reason why not is recorded
} work_t;

// Multiplies the sent data in a copy, which the caller frees.
static bool op_scale(host_op_t *op, size_t bytes, void **out_copy) {
  size_t size = host_type_bytes(op->type);
  const void *factor =
      op->factor_at ? host_memory_resolve(op->factor_at, size) : &op->factor;
  void *copy = factor ? malloc(bytes) : NULL;
  if (!copy)
    return false;
  host_scale(op->type, factor, op->send, copy, bytes / size);
  op->send = *out_copy = copy;
  return true;
}

// Replaces the program's addresses by ones that this process can use.
static bool work_resolve(work_t *work, void **scaled) {
  const ncclComm_t comm = work->comm;
  for (int i = 0; i < work->count; i++) {
    host_op_t *op = &work->ops[i];
    size_t send = host_op_send_bytes(op, comm->rank, comm->ranks);
    size_t recv = host_op_recv_bytes(op, comm->rank, comm->ranks);
    op->send = send > 0 ? host_memory_resolve(op->send, send) : NULL;
    op->recv = recv > 0 ? host_memory_resolve(op->recv, recv) : NULL;
    if ((send > 0 && !op->send) || (recv > 0 && !op->recv)) {
      host_fault_set(&comm->endpoint, (host_fault_t){HOST_FAULT_ADDRESS,
                                                     comm->rank, comm->rank});
      return false;
    }
    if (op->scaled && send > 0 && !op_scale(op, send, &scaled[i])) {
      host_fault_set(&comm->endpoint, (host_fault_t){HOST_FAULT_ADDRESS,
                                                     comm->rank, comm->rank});
      return false;
    }
  }
  return true;
}

// Waits for this work's turn. Returns false if it must not run; otherwise marks
// the communicator as running.
static bool work_begin(work_t *work) {
  ncclComm_t comm = work->comm;
  pthread_mutex_lock(&comm->lock);
  while (comm->turn != work->ticket && !comm->aborted &&
         comm->broken == ncclSuccess)
    pthread_cond_wait(&comm->changed, &comm->lock);
  bool run = !comm->aborted && comm->broken == ncclSuccess;
  if (run)
    comm->running = true; // not cleared here: another work may be running
  pthread_mutex_unlock(&comm->lock);
  return run;
}

static void work_finish(work_t *work, ncclResult_t result) {
  ncclComm_t comm = work->comm;
  if (result != ncclSuccess && result != HOST_STOPPED) {
    char text[sizeof comm->text];
    host_fault_text(host_fault_get(&comm->endpoint), text, sizeof text);
    host_comm_say(comm, "%s", text);
  }
  pthread_mutex_lock(&comm->lock);
  comm->running = false;
  comm->turn = work->ticket + 1;
  if (comm->broken == ncclSuccess && result != HOST_STOPPED)
    comm->broken = result;
  pthread_cond_broadcast(&comm->changed);
  pthread_mutex_unlock(&comm->lock);
}

// A failure becomes a device error: what should have been received must not be
// read as data. After an abort the program knows, and may continue with another
// communicator, as with NVIDIA's library.
static cudaError_t work_run(void *argument) {
  work_t *work = argument;
  ncclComm_t comm = work->comm;
  work->ran = true;
  if (!work_begin(work)) {
    pthread_mutex_lock(&comm->lock);
    bool aborted = comm->aborted;
    pthread_mutex_unlock(&comm->lock);
    return aborted ? cudaSuccess : cudaErrorLaunchFailure;
  }
  void **scaled = calloc((size_t)work->count, sizeof *scaled);
  bool resolved = scaled && work_resolve(work, scaled);
  ncclResult_t result =
      resolved ? host_ops_run(&comm->endpoint, work->ops, work->count)
               : ncclUnhandledCudaError;
  for (int i = 0; scaled && i < work->count; i++)
    free(scaled[i]);
  free(scaled);
  work_finish(work, result);
  if (!resolved)
    return cudaErrorIllegalAddress;
  return result == ncclSuccess || result == HOST_STOPPED
             ? cudaSuccess
             : cudaErrorLaunchFailure;
}

static void work_release(void *argument) {
  work_t *work = argument;
  ncclComm_t comm = work->comm;
  pthread_mutex_lock(&comm->lock);
  if (work->recorded)
    goto done;
  if (!work->ran && comm->state == HOST_COMM_READY && !comm->aborted) {
    // The peers would wait for work that will not run.
    host_fault_set(&comm->endpoint,
                   (host_fault_t){HOST_FAULT_SKIPPED, comm->rank, comm->rank});
    if (comm->broken == ncclSuccess)
      comm->broken = ncclUnhandledCudaError;
  }
  comm->ended++;
  pthread_cond_broadcast(&comm->changed);
done:
  pthread_mutex_unlock(&comm->lock);
  free(work->ops);
  free(work);
  host_comm_drop(comm);
}

// Returns the work of one launch of a graph; NULL after the communicator's end.
static void *work_again(const void *argument) {
  const work_t *recorded = argument;
  ncclComm_t comm = recorded->comm;
  size_t bytes = (size_t)recorded->count * sizeof *recorded->ops;
  work_t *work = malloc(sizeof *work);
  host_op_t *ops = malloc(bytes);
  if (!work || !ops)
    goto failed;
  memcpy(ops, recorded->ops, bytes);
  *work = (work_t){.comm = comm, .ops = ops, .count = recorded->count};
  pthread_mutex_lock(&comm->lock);
  bool good = comm->state == HOST_COMM_READY && !comm->finalized;
  if (good) {
    comm->references++;
    work->ticket = comm->issued++;
  }
  pthread_mutex_unlock(&comm->lock);
  if (good)
    return work;
failed:
  free(ops);
  free(work);
  return NULL;
}

// Makes one stream wait for the present end of the other.
static bool stream_follow(cudaStream_t waits, cudaStream_t other) {
  cudaEvent_t event;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
    return false;
  bool done = cudaEventRecord(event, other) == cudaSuccess &&
              cudaStreamWaitEvent(waits, event, 0) == cudaSuccess;
  cudaEventDestroy(event);
  return done;
}

// Collects the distinct streams of the operations, in order of their first use.
static int streams_of(const host_op_t *ops, int count, cudaStream_t *streams) {
  int found = 0;
  for (int i = 0; i < count; i++) {
    int k = 0;
    while (k < found && streams[k] != ops[i].stream)
      k++;
    if (k == found)
      streams[found++] = ops[i].stream;
  }
  return found;
}

static bool submit(work_t *work, const cudaStream_t *streams, int count) {
  bool good = true;
  for (int i = 1; i < count; i++)
    good = good && stream_follow(streams[0], streams[i]);
  if (!good) {
    work_release(work); // also tells the peers
    return false;
  }
  if (host_stream_submit_again(streams[0], work_run, work, work_release,
                               work_again) != cudaSuccess)
    return false;
  for (int i = 1; i < count; i++)
    good = good && stream_follow(streams[i], streams[0]);
  return good;
}

ncclResult_t host_work_launch(ncclComm_t comm, host_op_t *ops, int count) {
  work_t *work = calloc(1, sizeof *work);
  cudaStream_t *streams = malloc((size_t)count * sizeof *streams);
  ncclResult_t result = ncclSystemError;
  if (!work || !streams)
    goto refused;
  int streams_count = streams_of(ops, count, streams);
  *work = (work_t){.comm = comm,
                   .ops = ops,
                   .count = count,
                   .recorded = host_stream_capturing(streams[0])};
  pthread_mutex_lock(&comm->launch);
  pthread_mutex_lock(&comm->lock);
  // One reference for the work, and one for this function, because an abort may
  // come meanwhile.
  comm->references += 2;
  if (!work->recorded)
    work->ticket = comm->issued++;
  pthread_mutex_unlock(&comm->lock);
  bool taken = submit(work, streams, streams_count);
  pthread_mutex_unlock(&comm->launch);
  host_comm_drop(comm);
  free(streams);
  if (!taken)
    host_comm_say(NULL, "the stream does not take work");
  return taken ? ncclSuccess : ncclUnhandledCudaError;
refused:
  free(streams);
  free(work);
  free(ops);
  return result;
}
