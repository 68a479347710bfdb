// SPDX-License-Identifier: Apache-2.0
// Tests NCCL without sundog, in the way that sundog uses it: a non-blocking
// communicator, groups of messages, sums, and its end. One process per rank, on
// the GPUs that they are given.
//
// usage: probe_comm RANK SIZE FILE
//
// FILE passes the communicator's id from rank 0 to the others; it must not
// exist before.
#include <nccl.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/probe.h"

enum { LIMIT_S = 90, ROUNDS = 50, LARGE = 1 << 24 };

static int rank_number, rank_count;
static ncclComm_t comm;
static cudaStream_t stream;

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
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

static void comm_open(const char *path) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  ncclUniqueId id;
  config.blocking = 0;
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
    probe_say("non-blocking init",
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

static double ring_ms(const float *from, float *to, size_t count, int rounds) {
  ring(from, to, count);
  PROBE_CUDA(cudaStreamSynchronize(stream));
  double begin = now_ms();
  for (int i = 0; i < rounds; i++)
    ring(from, to, count);
  PROBE_CUDA(cudaStreamSynchronize(stream));
  return (now_ms() - begin) / rounds;
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

int main(int count, char **words) {
  if (count != 4)
    return 2;
  rank_number = atoi(words[1]);
  rank_count = atoi(words[2]);
  alarm(LIMIT_S); // the others may have failed
  comm_open(words[3]);
  PROBE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  float *from = probe_device(LARGE), *to = probe_device(LARGE);
  messages_check(from, to);
  double small = ring_ms(from, to, 1024, ROUNDS);
  double large = ring_ms(from, to, LARGE / sizeof(float), 4);
  if (rank_number == 0) {
    probe_say("4 KiB to the next rank", "%.3f ms", small);
    probe_say("16 MiB to the next rank", "%.2f ms, %.2f GB/s", large,
              LARGE / large * 1e-6);
  }
  settle(ncclCommFinalize(comm), "ncclCommFinalize");
  ncclResult_t end = ncclCommDestroy(comm);
  if (rank_number == 0)
    probe_say("finalize and destroy", "%s", ncclGetErrorString(end));
  return probe_faults || end != ncclSuccess;
}
