/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that die, stop, leave, abort or disagree: an error in time for all
 * others, and nothing left behind. */
#include <dirent.h>
#include <pthread.h>

#include "tests/host/nccl/ranks.h"
#include "tests/unit/harness.h"

enum { COUNT = 100000 };

static float *device_floats(void) {
  float *device;
  CUDA(cudaMalloc((void **)&device, COUNT * sizeof(float)));
  CUDA(cudaMemset(device, 0, COUNT * sizeof(float)));
  return device;
}

static ncclResult_t all_reduce(float *device, size_t count, ncclComm_t comm) {
  return ncclAllReduce(device, device, count, ncclFloat32, ncclSum, comm, 0);
}

/* Checks what a rank sees after `culprit` has ended. */
static void expect_lost(ncclComm_t comm, float *device, int culprit) {
  ncclResult_t state;
  char name[32];
  NCCL(ncclCommGetAsyncError(comm, &state));
  RANK_REQUIRE(state == ncclRemoteError);
  RANK_REQUIRE(all_reduce(device, 1, comm) == ncclRemoteError);
  snprintf(name, sizeof name, "rank %d", culprit);
  RANK_REQUIRE(strstr(ncclGetLastError(comm), name) != NULL);
  NCCL(ncclCommDestroy(comm));
}

/* The last rank kills itself while the others wait for it. */
static void play_kill(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  float *device = device_floats();
  NCCL(all_reduce(device, COUNT, comm));
  CUDA(cudaStreamSynchronize(0));
  if (info->rank == info->ranks - 1) {
    usleep(200000);
    raise(SIGKILL);
  }
  double from = now_s();
  NCCL(all_reduce(device, COUNT, comm));
  RANK_REQUIRE(cudaStreamSynchronize(0) != cudaSuccess);
  RANK_REQUIRE(now_s() - from < harness_soon(3));
  expect_lost(comm, device, info->ranks - 1);
}

/* Messages all the time until the launcher kills one. */
static void play_kill_busy(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  float *device = device_floats();
  float *other = device_floats();
  for (;;) {
    NCCL(ncclGroupStart());
    for (int p = 0; p < info->ranks; p++) {
      ncclSend(device, COUNT, ncclFloat32, p, comm, 0);
      ncclRecv(other, COUNT, ncclFloat32, p, comm, 0);
    }
    ncclResult_t launched = ncclGroupEnd();
    cudaError_t done = cudaStreamSynchronize(0);
    if (launched != ncclSuccess || done != cudaSuccess)
      break;
  }
  expect_lost(comm, device, info->ranks - 1);
}

typedef struct watcher {
  ncclComm_t comm;
  double aborted;
} watcher_t;

static void *watch(void *argument) {
  watcher_t *watcher = argument;
  usleep(300000);
  watcher->aborted = now_s();
  NCCL(ncclCommAbort(watcher->comm));
  return NULL;
}

/* Waits for a message that never comes, until a second thread aborts. Then the
 * other ranks continue with a new communicator. */
static void abort_wait(const rank_info_t *info) {
  watcher_t watcher = {.comm = join(info)};
  float *device = device_floats();
  pthread_t thread;
  pthread_create(&thread, NULL, watch, &watcher);
  NCCL(all_reduce(device, COUNT, watcher.comm));
  cudaStream_t second;
  CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  NCCL(ncclBroadcast(device, device, COUNT, ncclFloat32, info->ranks - 1,
                     watcher.comm, second));
  CUDA(cudaStreamSynchronize(0));
  CUDA(cudaStreamSynchronize(second));
  double ended = now_s();
  pthread_join(thread, NULL);
  RANK_REQUIRE(ended - watcher.aborted < 1);
  ncclComm_t rest;
  NCCL(ncclCommInitRank(&rest, info->ranks - 1, info->id[1], info->rank));
  CUDA(cudaMemset(device, 0, sizeof(float)));
  NCCL(all_reduce(device, 1, rest));
  float value = 1;
  CUDA(cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost));
  RANK_REQUIRE(value == 0);
  NCCL(ncclCommDestroy(rest));
}

static void play_stop(const rank_info_t *info) {
  if (info->rank == info->ranks - 1) {
    join(info);
    raise(SIGSTOP);
    return;
  }
  abort_wait(info);
}

static void play_leave(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  float *device = device_floats();
  NCCL(all_reduce(device, COUNT, comm));
  if (info->rank == info->ranks - 1) {
    NCCL(ncclCommDestroy(comm));
    return;
  }
  NCCL(ncclRecv(device, 5, ncclFloat32, info->ranks - 1, comm, 0));
  double from = now_s();
  RANK_REQUIRE(cudaStreamSynchronize(0) != cudaSuccess);
  RANK_REQUIRE(now_s() - from < harness_soon(3));
  expect_lost(comm, device, info->ranks - 1);
}

/* Destroyed with work that waits for a dead rank. */
static void play_destroy(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  float *device = device_floats();
  if (info->rank == info->ranks - 1)
    raise(SIGKILL);
  NCCL(all_reduce(device, COUNT, comm));
  double from = now_s();
  NCCL(ncclCommDestroy(comm));
  RANK_REQUIRE(now_s() - from < harness_soon(3));
}

static void play_mismatch(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  float *device = device_floats();
  ncclResult_t state;
  if (info->rank == 0) {
    NCCL(ncclSend(device, 10, ncclFloat32, 1, comm, 0));
    do {
      NCCL(ncclCommGetAsyncError(comm, &state));
      usleep(1000);
    } while (state == ncclSuccess);
  } else {
    float host[11];
    NCCL(ncclRecv(device, 11, ncclFloat32, 0, comm, 0));
    RANK_REQUIRE(cudaStreamSynchronize(0) != cudaSuccess);
    RANK_REQUIRE(cudaMemcpy(host, device, sizeof host,
                            cudaMemcpyDeviceToHost) != cudaSuccess);
    NCCL(ncclCommGetAsyncError(comm, &state));
  }
  RANK_REQUIRE(state == ncclInvalidUsage);
  RANK_REQUIRE(all_reduce(device, 1, comm) == ncclInvalidUsage);
  RANK_REQUIRE(strstr(ncclGetLastError(comm), "sizes") != NULL);
  NCCL(ncclCommDestroy(comm));
}

/* Passes host memory in place of device memory. */
static void play_address(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  float *device = device_floats(), host[4] = {0};
  ncclResult_t state;
  ncclResult_t launched = all_reduce(info->rank == 0 ? host : device, 4, comm);
  cudaError_t error = cudaStreamSynchronize(0);
  /* The other ranks may learn of it before they launch. */
  RANK_REQUIRE(info->rank == 0
                   ? error == cudaErrorIllegalAddress
                   : launched == ncclRemoteError || error != cudaSuccess);
  NCCL(ncclCommGetAsyncError(comm, &state));
  RANK_REQUIRE(state ==
               (info->rank == 0 ? ncclUnhandledCudaError : ncclRemoteError));
  NCCL(ncclCommAbort(comm));
}

/* A forked child may not use the communicator, and its parent's death is found
 * although the child lives. */
static void play_fork(const rank_info_t *info) {
  ncclComm_t comm = join(info);
  float *device = device_floats();
  NCCL(all_reduce(device, COUNT, comm));
  CUDA(cudaStreamSynchronize(0));
  if (info->rank == info->ranks - 1) {
    pid_t self = getpid();
    int told[2];
    RANK_REQUIRE(pipe(told) == 0);
    if (fork() == 0) {
      int number;
      char good = ncclCommCount(comm, &number) == ncclInvalidUsage &&
                  all_reduce(device, 1, comm) == ncclInvalidUsage &&
                  ncclCommDestroy(comm) == ncclInvalidUsage &&
                  ncclCommAbort(comm) == ncclInvalidUsage;
      if (write(told[1], &good, 1) != 1)
        _exit(1);
      while (getppid() == self)
        usleep(10000);
      usleep(3000000);
      _exit(0);
    }
    char good = 0;
    RANK_REQUIRE(read(told[0], &good, 1) == 1 && good);
    NCCL(all_reduce(device, COUNT, comm));
    CUDA(cudaStreamSynchronize(0));
    raise(SIGKILL);
  }
  NCCL(all_reduce(device, COUNT, comm));
  CUDA(cudaStreamSynchronize(0));
  double from = now_s();
  NCCL(all_reduce(device, COUNT, comm));
  RANK_REQUIRE(cudaStreamSynchronize(0) != cudaSuccess);
  RANK_REQUIRE(now_s() - from < harness_soon(2.5));
  expect_lost(comm, device, info->ranks - 1);
}

static ncclComm_t join_begin(const rank_info_t *info) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm;
  RANK_REQUIRE(ncclCommInitRankConfig(&comm, info->ranks, info->id[0],
                                      info->rank, &config) == ncclInProgress);
  return comm;
}

/* Rank 1 dies after it has joined; rank 2 joins later. */
static void play_join_kill(const rank_info_t *info) {
  ncclComm_t comm;
  if (info->rank == 1) {
    join_begin(info);
    usleep(200000);
    raise(SIGKILL);
  }
  if (info->rank == 2)
    usleep(500000);
  double from = now_s();
  RANK_REQUIRE(ncclCommInitRank(&comm, info->ranks, info->id[0], info->rank) ==
               ncclRemoteError);
  RANK_REQUIRE(comm == NULL && now_s() - from < harness_soon(3));
}

/* The rank that made the id dies. */
static void play_join_orphan(const rank_info_t *info) {
  if (info->rank == 0) {
    usleep(200000);
    raise(SIGKILL);
  }
  ncclComm_t comm;
  double from = now_s();
  RANK_REQUIRE(ncclCommInitRank(&comm, info->ranks, info->id[0], info->rank) ==
               ncclRemoteError);
  RANK_REQUIRE(now_s() - from < harness_soon(3));
}

/* No other rank joins. */
static void play_join_abort(const rank_info_t *info) {
  if (info->rank != 0)
    return;
  ncclComm_t comm = join_begin(info);
  usleep(100000);
  double from = now_s();
  NCCL(ncclCommAbort(comm));
  RANK_REQUIRE(now_s() - from < harness_soon(1));
}

/* All ranks claim to be rank 0. */
static void play_join_twice(const rank_info_t *info) {
  ncclComm_t comm;
  ncclResult_t result = ncclCommInitRank(&comm, info->ranks, info->id[0], 0);
  /* A rank that comes after the failure finds no other. */
  RANK_REQUIRE(result == ncclInvalidUsage || result == ncclRemoteError);
}

static void play_join_other_count(const rank_info_t *info) {
  ncclComm_t comm;
  ncclResult_t result = ncclCommInitRank(&comm, info->ranks + info->rank,
                                         info->id[0], info->rank);
  RANK_REQUIRE(result == ncclInvalidArgument || result == ncclRemoteError);
}

/* A rank is killed at a random time: the others get a result or abort. */
static void play_join_random(const rank_info_t *info) {
  ncclComm_t comm = join_begin(info);
  ncclResult_t state = ncclInProgress;
  double from = now_s();
  while (state == ncclInProgress && now_s() - from < 0.5) {
    NCCL(ncclCommGetAsyncError(comm, &state));
    usleep(500);
  }
  if (state == ncclSuccess) {
    float *device = device_floats();
    /* The death may be known by now. */
    ncclResult_t result = all_reduce(device, COUNT, comm);
    RANK_REQUIRE(result == ncclSuccess || result == ncclRemoteError);
    cudaStreamSynchronize(0);
  }
  NCCL(ncclCommAbort(comm));
}

static const rank_scenario_t scenarios[] = {
    {"kill", play_kill},
    {"kill_busy", play_kill_busy},
    {"stop", play_stop},
    {"leave", play_leave},
    {"destroy", play_destroy},
    {"mismatch", play_mismatch},
    {"address", play_address},
    {"fork", play_fork},
    {"join_kill", play_join_kill},
    {"join_orphan", play_join_orphan},
    {"join_abort", play_join_abort},
    {"join_twice", play_join_twice},
    {"join_other_count", play_join_other_count},
    {"join_random", play_join_random},
};

static int files_in(const char *folder) {
  DIR *stream = opendir(folder);
  int count = 0;
  while (stream != NULL && readdir(stream) != NULL)
    count++;
  if (stream != NULL)
    closedir(stream);
  return count;
}

/* Ends rank `victim`, a zombie, and checks that nothing is left. */
static void finish(launch_t *launch, int victim, int shm_before) {
  if (victim >= 0) {
    kill(launch->pid[victim], SIGKILL);
    launch_wait(launch, 0, 5);
  }
  ck_assert(!launch_left_a_socket(launch));
  ck_assert_int_eq(files_in("/dev/shm"), shm_before);
}

/* Runs a scenario in which `victim` (-1: no rank) stays a zombie or stopped
 * until all others have succeeded. */
static void launch_without(const char *scenario, int ranks, int victim) {
  int shm_before = files_in("/dev/shm");
  launch_t launch = launch_start(scenario, ranks);
  unsigned except = victim >= 0 ? 1u << victim : 0;
  launch_wait(&launch, except, 15);
  launch_expect_success(&launch, except);
  finish(&launch, victim, shm_before);
}

static const int rank_counts[] = {2, 3, 4, 8};

START_TEST(death_of_a_rank_ends_the_waits_of_all_others) {
  launch_without("kill", rank_counts[_i], rank_counts[_i] - 1);
}
END_TEST

START_TEST(death_while_messages_flow_is_an_error_everywhere) {
  int shm_before = files_in("/dev/shm");
  int ranks = rank_counts[_i];
  launch_t launch = launch_start("kill_busy", ranks);
  usleep(500000 + (useconds_t)_i * 1371);
  kill(launch.pid[ranks - 1], SIGKILL);
  launch_wait(&launch, 1u << (ranks - 1), 15);
  launch_expect_success(&launch, 1u << (ranks - 1));
  finish(&launch, ranks - 1, shm_before);
}
END_TEST

START_TEST(abort_from_another_thread_ends_the_wait_for_a_stopped_rank) {
  launch_without("stop", rank_counts[_i], rank_counts[_i] - 1);
}
END_TEST

START_TEST(waiting_for_a_rank_that_destroyed_is_a_remote_error) {
  launch_without("leave", rank_counts[_i], -1);
}
END_TEST

START_TEST(destroy_does_not_wait_for_the_dead) {
  launch_without("destroy", rank_counts[_i], rank_counts[_i] - 1);
}
END_TEST

START_TEST(other_size_than_sent_is_invalid_usage_and_no_data) {
  launch_without("mismatch", 2, -1);
}
END_TEST

START_TEST(host_memory_is_an_illegal_address) {
  launch_without("address", rank_counts[_i], -1);
}
END_TEST

START_TEST(fork_neither_shares_a_communicator_nor_hides_a_death) {
  launch_without("fork", rank_counts[_i], rank_counts[_i] - 1);
}
END_TEST

START_TEST(joining_fails_when_one_that_came_dies) {
  launch_without("join_kill", 3, 1);
}
END_TEST

START_TEST(joining_fails_when_the_maker_of_the_id_dies) {
  launch_without("join_orphan", 3, 0);
}
END_TEST

START_TEST(joining_can_be_aborted) {
  launch_without("join_abort", 2, -1);
}
END_TEST

START_TEST(the_same_rank_twice_is_refused) {
  launch_without("join_twice", 2, -1);
}
END_TEST

START_TEST(other_numbers_of_ranks_are_refused) {
  launch_without("join_other_count", 2, -1);
}
END_TEST

START_TEST(a_rank_killed_at_any_moment_of_joining_leaves_nothing) {
  int shm_before = files_in("/dev/shm");
  launch_t launch = launch_start("join_random", 3);
  int victim = _i % 3;
  usleep((useconds_t)_i * 400);
  kill(launch.pid[victim], SIGKILL);
  launch_wait(&launch, 1u << victim, 15);
  launch_expect_success(&launch, 1u << victim);
  finish(&launch, victim, shm_before);
}
END_TEST

int main(int argc, char **argv) {
  if (argc == 4)
    return rank_play(argv, scenarios, sizeof scenarios / sizeof *scenarios);
  Suite *suite = suite_create("nccl faults");
  TCase *tcase = tcase_create("processes as ranks");
  tcase_set_timeout(tcase, 60);
  tcase_add_loop_test(tcase, death_of_a_rank_ends_the_waits_of_all_others, 0,
                      4);
  tcase_add_loop_test(tcase, death_while_messages_flow_is_an_error_everywhere,
                      0, 4);
  tcase_add_loop_test(
      tcase, abort_from_another_thread_ends_the_wait_for_a_stopped_rank, 0, 4);
  tcase_add_loop_test(
      tcase, waiting_for_a_rank_that_destroyed_is_a_remote_error, 0, 4);
  tcase_add_loop_test(tcase, destroy_does_not_wait_for_the_dead, 0, 4);
  tcase_add_test(tcase, other_size_than_sent_is_invalid_usage_and_no_data);
  tcase_add_loop_test(tcase, host_memory_is_an_illegal_address, 0, 4);
  tcase_add_loop_test(
      tcase, fork_neither_shares_a_communicator_nor_hides_a_death, 0, 2);
  tcase_add_test(tcase, joining_fails_when_one_that_came_dies);
  tcase_add_test(tcase, joining_fails_when_the_maker_of_the_id_dies);
  tcase_add_test(tcase, joining_can_be_aborted);
  tcase_add_test(tcase, the_same_rank_twice_is_refused);
  tcase_add_test(tcase, other_numbers_of_ranks_are_refused);
  tcase_add_loop_test(
      tcase, a_rank_killed_at_any_moment_of_joining_leaves_nothing, 0, 12);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
