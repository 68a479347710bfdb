// SPDX-License-Identifier: Apache-2.0
// Tests NCCL without sundog: groups of messages, sums, and the end of a
// communicator. A blocking one first, with few blocks and a stream of the
// highest priority, as sundog uses it; then a non-blocking one. One process per
// rank, on the GPUs that they are given.
//
// usage: probe_comm RANK SIZE FILE
//
// FILE.0 and FILE.1 pass the communicators' ids from rank 0 to the others; they
// must not exist before.
#include <nccl.h>
#include <sched.h>
#include <unistd.h>

#include "tests/gpu/probe.h"

enum { LIMIT_S = 90, BLOCKS = 4, LARGE = 1 << 24, LARGE_ROUNDS = 4 };

static int rank_number, rank_count;
static ncclComm_t comm;
static cudaStream_t stream;

static double now_ms(void) {
  return probe_now_us() / 1e3;
}

// Waits until the communicator is done; returns how often it was queried.
static long settle(ncclResult_t result, const char *what) {
  long asked = 0;
  while (result == ncclInProgress) {
    ncclResult_t state;
    sched_yield();
    asked++;
    result = ncclCommGetAsyncError(comm, &state);
    if (result == ncclSuccess)
      result = state;
  }
  if (result != ncclSuccess) {
    fprintf(stderr, "rank %d: %s: %s: %s\n", rank_number, what,
            ncclGetErrorString(result), ncclGetLastError(comm));
    exit(1);
  }
  return asked;
}

// Writes to another name, and renames the complete file.
static void id_write(const char *path, const ncclUniqueId *id) {
  char part[4096];
  snprintf(part, sizeof part, "%s.part", path);
  FILE *file = fopen(part, "wb");
  if (!file || fwrite(id, sizeof *id, 1, file) != 1 || fclose(file) != 0 ||
      rename(part, path) != 0) {
    perror(part);
    exit(2);
  }
}

static void id_read(const char *path, ncclUniqueId *id) {
  const struct timespec pause = {.tv_nsec = 5000000};
  FILE *file;
  while (!(file = fopen(path, "rb")))
    nanosleep(&pause, NULL);
  if (fread(id, sizeof *id, 1, file) != 1)
    exit(2);
  fclose(file);
}

static void comm_open(const char *path, int blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  int least, greatest;
  config.blocking = blocking;
  if (blocking)
    config.maxCTAs = BLOCKS;
  PROBE_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  PROBE_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                          blocking ? greatest : least));
  if (rank_number == 0) {
    settle(ncclGetUniqueId(&id), "ncclGetUniqueId");
    id_write(path, &id);
  } else
    id_read(path, &id);
  double begin = now_ms();
  ncclResult_t first =
      ncclCommInitRankConfig(&comm, rank_count, id, rank_number, &config);
  double returned = now_ms();
  long asked = settle(first, "ncclCommInitRankConfig");
  if (rank_number == 0)
    probe_say(blocking ? "blocking init" : "non-blocking init",
              "%s after %.1f ms, ready after %.0f ms and %ld questions",
              first == ncclInProgress ? "in progress" : "done",
              returned - begin, now_ms() - begin, asked);
}

// Each rank sends to the next and receives from the one before; a single rank
// sends to itself.
static void ring(const float *from, float *to, size_t count) {
  int next = (rank_number + 1) % rank_count;
  int before = (rank_number + rank_count - 1) % rank_count;
  settle(ncclGroupStart(), "ncclGroupStart");
  settle(ncclSend(from, count, ncclFloat, next, comm, stream), "ncclSend");
  settle(ncclRecv(to, count, ncclFloat, before, comm, stream), "ncclRecv");
  settle(ncclGroupEnd(), "ncclGroupEnd");
}

typedef struct message {
  const float *from;
  float *to;
  size_t count;
} message_t;

static void message_send(void *with) {
  const message_t *message = with;
  ring(message->from, message->to, message->count);
}

static double large_ms(const float *from, float *to) {
  ring(from, to, LARGE / sizeof *from);
  PROBE_CUDA(cudaStreamSynchronize(stream));
  double begin = now_ms();
  for (int i = 0; i < LARGE_ROUNDS; i++)
    ring(from, to, LARGE / sizeof *from);
  PROBE_CUDA(cudaStreamSynchronize(stream));
  return (now_ms() - begin) / LARGE_ROUNDS;
}

static void messages_check(float *from, float *to) {
  float got, sum;
  const float mine = (float)(rank_number + 1);
  const int before = (rank_number + rank_count - 1) % rank_count;
  PROBE_CUDA(cudaMemcpy(from, &mine, sizeof mine, cudaMemcpyHostToDevice));
  ring(from, to, 1);
  PROBE_CUDA(cudaStreamSynchronize(stream));
  probe_download(to, &got, 1);
  settle(ncclAllReduce(from, to, 1, ncclFloat, ncclSum, comm, stream),
         "ncclAllReduce");
  PROBE_CUDA(cudaStreamSynchronize(stream));
  probe_download(to, &sum, 1);
  if (got != (float)(before + 1) ||
      sum != (float)(rank_count * (rank_count + 1) / 2)) {
    printf("FAILED: rank %d got %g, and the sum %g\n", rank_number, (double)got,
           (double)sum);
    probe_faults++;
  } else if (rank_number == 0)
    probe_say("messages and sums", "right on rank 0 of %d", rank_count);
}

static void comm_probe(const char *file, int blocking) {
  char path[4000];
  snprintf(path, sizeof path, "%s.%d", file, blocking);
  comm_open(path, blocking);
  float *from = probe_device(LARGE), *to = probe_device(LARGE);
  messages_check(from, to);
  message_t message = {from, to, 1024};
  probe_time_t small = probe_time(message_send, &message, stream);
  double large = large_ms(from, to);
  if (rank_number == 0) {
    probe_say(blocking ? "4 KiB to the next rank, blocking"
                       : "4 KiB to the next rank, non-blocking",
              "%.1f us on the device, the caller's %.1f", small.gpu_us,
              small.cpu_us);
    probe_say("16 MiB to the next rank", "%.2f ms, %.2f GB/s", large,
              LARGE / large * 1e-6);
  }
  settle(ncclCommFinalize(comm), "ncclCommFinalize");
  ncclResult_t end = ncclCommDestroy(comm);
  if (rank_number == 0)
    probe_say("finalize and destroy", "%s", ncclGetErrorString(end));
  probe_faults += end != ncclSuccess;
  PROBE_CUDA(cudaFree(from));
  PROBE_CUDA(cudaFree(to));
  PROBE_CUDA(cudaStreamDestroy(stream));
}

int main(int count, char **words) {
  if (count != 4)
    return 2;
  rank_number = atoi(words[1]);
  rank_count = atoi(words[2]);
  alarm(LIMIT_S); // the others may have failed
  for (int blocking = 1; blocking >= 0; blocking--)
    comm_probe(words[3], blocking);
  return probe_faults > 0;
}
