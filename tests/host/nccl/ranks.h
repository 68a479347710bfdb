/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks for tests: the test program executes itself once per rank, so that no
 * rank inherits anything, and watches how they end. */
#ifndef SDG_TESTS_HOST_NCCL_RANKS_H
#define SDG_TESTS_HOST_NCCL_RANKS_H

#include <check.h>
#include <cuda_runtime_api.h>
#include <errno.h>
#include <fcntl.h>
#include <nccl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { IDS = 3, RANKS_MAX = 8, OUT_FD = 3, GATE_FD = 100 };

/* What a rank knows; the ids are for several communicators. */
typedef struct rank_info {
  int rank;
  int ranks;
  ncclUniqueId id[IDS];
} rank_info_t;

/* In ranks: ends the process with the line of the failure. */
#define RANK_REQUIRE(condition)                                                \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: rank %d: not %s; %s\n", __FILE__, __LINE__,      \
              rank_number, #condition, ncclGetLastError(NULL));                \
      _exit(1);                                                                \
    }                                                                          \
  } while (0)
#define NCCL(call) RANK_REQUIRE((call) == ncclSuccess)
#define CUDA(call) RANK_REQUIRE((call) == cudaSuccess)
static int rank_number;

static inline double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* In a rank: rank 0 makes the ids, the launcher passes them to the others. */
static inline rank_info_t rank_meet(int rank, int ranks) {
  rank_info_t info = {.rank = rank, .ranks = ranks};
  rank_number = rank;
  alarm(60); /* even if the launcher dies */
  if (rank == 0) {
    for (int i = 0; i < IDS; i++)
      NCCL(ncclGetUniqueId(&info.id[i]));
    RANK_REQUIRE(write(OUT_FD, info.id, sizeof info.id) == sizeof info.id);
  } else {
    size_t got = 0;
    while (got < sizeof info.id) {
      ssize_t part = read(0, (char *)info.id + got, sizeof info.id - got);
      RANK_REQUIRE(part > 0);
      got += (size_t)part;
    }
  }
  return info;
}

/* In a rank: opens the gate for all that wait, now and later. */
static inline void gate_open(void) {
  RANK_REQUIRE(eventfd_write(GATE_FD, RANKS_MAX) == 0);
}

/* In a rank: waits until another has opened the gate. */
static inline void gate_pass(void) {
  eventfd_t one;
  RANK_REQUIRE(eventfd_read(GATE_FD, &one) == 0);
}

/* What a rank does, by the name that the launcher gives it. */
typedef struct rank_scenario {
  const char *name;
  void (*play)(const rank_info_t *info);
} rank_scenario_t;

/* In a rank: main's work and status; argv is PROGRAM SCENARIO RANK RANKS. */
static inline int rank_play(char **argv, const rank_scenario_t *scenarios,
                            size_t count) {
  rank_info_t info = rank_meet(atoi(argv[2]), atoi(argv[3]));
  for (size_t i = 0; i < count; i++)
    if (strcmp(argv[1], scenarios[i].name) == 0) {
      scenarios[i].play(&info);
      return 0;
    }
  return 2;
}

/* Device memory with the bytes of `host`. */
static inline void *upload(const void *host, size_t bytes) {
  void *device;
  CUDA(cudaMalloc(&device, bytes + 1));
  CUDA(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return device;
}

static inline void download(void *host, const void *device, size_t bytes) {
  CUDA(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

static inline ncclComm_t join(const rank_info_t *info) {
  ncclComm_t comm;
  NCCL(ncclCommInitRank(&comm, info->ranks, info->id[0], info->rank));
  return comm;
}

typedef struct launch {
  int ranks;
  pid_t pid[RANKS_MAX];
  int status[RANKS_MAX];
  bool ended[RANKS_MAX];
  ncclUniqueId id[IDS];
} launch_t;

/* Starts `ranks` processes "self SCENARIO RANK RANKS". */
static inline launch_t launch_start(const char *scenario, int ranks) {
  launch_t launch = {.ranks = ranks};
  int in[RANKS_MAX][2], out[2];
  int gate = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  ck_assert_int_ge(gate, 0);
  ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
  for (int r = 0; r < ranks; r++) {
    ck_assert_int_eq(pipe2(in[r], O_CLOEXEC), 0);
    launch.pid[r] = fork();
    if (launch.pid[r] == 0) {
      char rank_text[12], ranks_text[12];
      snprintf(rank_text, sizeof rank_text, "%d", r);
      snprintf(ranks_text, sizeof ranks_text, "%d", ranks);
      dup2(in[r][0], 0);
      dup2(gate, GATE_FD);
      if (getenv("SDG_TEST_WIRE")) { /* each on a machine of its own */
        setenv("NCCL_HOSTID", rank_text, 1);
        setenv("NCCL_SOCKET_IFNAME", "lo", 1);
      }
      if (out[1] == OUT_FD)
        fcntl(OUT_FD, F_SETFD, 0);
      else
        dup2(out[1], OUT_FD);
      execl("/proc/self/exe", "rank", scenario, rank_text, ranks_text,
            (char *)NULL);
      _exit(127);
    }
  }
  ck_assert_int_eq(read(out[0], launch.id, sizeof launch.id), sizeof launch.id);
  for (int r = 0; r < ranks; r++) {
    if (r > 0)
      ck_assert_int_eq(write(in[r][1], launch.id, sizeof launch.id),
                       sizeof launch.id);
    close(in[r][0]);
    close(in[r][1]);
  }
  close(out[0]);
  close(out[1]);
  close(gate);
  return launch;
}

/* Reaps rank r if it has ended. */
static inline bool launch_poll(launch_t *launch, int r) {
  if (!launch->ended[r] &&
      waitpid(launch->pid[r], &launch->status[r], WNOHANG) == launch->pid[r])
    launch->ended[r] = true;
  return launch->ended[r];
}

/* Waits for all ranks but those in `except` (a bit each); kills what is left
 * after `limit_s` and fails. */
static inline void launch_wait(launch_t *launch, unsigned except,
                               double limit_s) {
  double from = now_s();
  bool all = false;
  while (!all && now_s() - from < limit_s) {
    all = true;
    for (int r = 0; r < launch->ranks; r++)
      all &= except >> r & 1 || launch_poll(launch, r);
    if (!all)
      usleep(2000);
  }
  for (int r = 0; r < launch->ranks && !all; r++)
    if (!launch->ended[r])
      kill(launch->pid[r], SIGKILL);
  ck_assert_msg(all, "ranks still run after %g s", limit_s);
}

static inline void launch_expect_success(const launch_t *launch,
                                         unsigned except) {
  for (int r = 0; r < launch->ranks; r++)
    if (!(except >> r & 1))
      ck_assert_msg(launch->ended[r] && WIFEXITED(launch->status[r]) &&
                        WEXITSTATUS(launch->status[r]) == 0,
                    "rank %d ended with %x", r, launch->status[r]);
}

/* Runs a scenario in which every rank succeeds. */
static inline void launch_all(const char *scenario, int ranks) {
  launch_t launch = launch_start(scenario, ranks);
  launch_wait(&launch, 0, 50);
  launch_expect_success(&launch, 0);
}

/* Returns whether a socket of one of the launch's ids still exists. */
static inline bool launch_left_a_socket(const launch_t *launch) {
  FILE *stream = fopen("/proc/net/unix", "r");
  ck_assert_ptr_nonnull(stream);
  char line[512];
  bool found = false;
  while (fgets(line, sizeof line, stream) != NULL)
    for (int i = 0; i < IDS; i++) {
      char name[33];
      for (int k = 0; k < 16; k++)
        snprintf(name + 2 * k, 3, "%02x",
                 (unsigned char)launch->id[i].internal[8 + k]);
      found |= strstr(line, name) != NULL;
    }
  fclose(stream);
  return found;
}

#endif
