/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks on different machines: strangers that connect while ranks join, and the
 * errors if machines cannot connect. */
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/host/nccl/ranks.h"
#include "tests/unit/harness.h"

enum { COUNT = 100000 };

/* Joins, perhaps late, and makes a sum over all ranks; either all ranks succeed
 * or none. */
static void play_join(const rank_info_t *info, int late_ms) {
  ncclComm_t comm;
  float *device;
  static float host[COUNT];
  usleep((useconds_t)late_ms * 1000);
  NCCL(ncclCommInitRank(&comm, info->ranks, info->id[0], info->rank));
  CUDA(cudaMalloc((void **)&device, sizeof host));
  for (int turn = 0; turn < 3; turn++) {
    for (int i = 0; i < COUNT; i++)
      host[i] = (float)(info->rank + 1) * (float)(i % 1000);
    CUDA(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
    NCCL(ncclAllReduce(device, device, COUNT, ncclFloat, ncclSum, comm, 0));
    CUDA(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    float sum = (float)(info->ranks * (info->ranks + 1) / 2);
    for (int i = 0; i < COUNT; i++)
      RANK_REQUIRE(host[i] == sum * (float)(i % 1000));
  }
  /* Rank 0 ends without a goodbye; its data must have arrived. */
  if (info->rank > 0)
    NCCL(ncclCommDestroy(comm));
}
static void play_late(const rank_info_t *info) {
  play_join(info, info->rank == 2 ? 1000 : 0);
}

/* The id has no address, so its ranks must be on one machine. */
static void play_unasked(const rank_info_t *info) {
  ncclComm_t comm = NULL;
  if (info->rank > 0)
    RANK_REQUIRE(ncclCommInitRank(&comm, 2, info->id[0], 1) ==
                 ncclInvalidUsage);
}

/* A last message right before the process ends. */
static void play_last_words(const rank_info_t *info) {
  ncclComm_t comm;
  float *device, first = 0;
  size_t bytes = COUNT * sizeof(float);
  NCCL(ncclCommInitRank(&comm, 2, info->id[0], info->rank));
  CUDA(cudaMalloc((void **)&device, bytes));
  CUDA(cudaMemset(device, info->rank == 0 ? 0x3f : 0, bytes));
  if (info->rank == 0) {
    NCCL(ncclSend(device, COUNT, ncclFloat, 1, comm, 0));
    CUDA(cudaDeviceSynchronize());
    _exit(0);
  }
  usleep(500000); /* the other is gone by now */
  NCCL(ncclRecv(device, COUNT, ncclFloat, 0, comm, 0));
  CUDA(cudaMemcpy(&first, device + COUNT - 1, sizeof first,
                  cudaMemcpyDeviceToHost));
  RANK_REQUIRE(first != 0);
}

/* Replaces send functions, for the library, too: checks that no message has the
 * secret. */
static unsigned char secret[16];
static _Atomic int known, sent, leaks; /* the id's maker sends before */

__attribute__((visibility("default"))) ssize_t
sendmsg(int fd, const struct msghdr *message, int flags) {
  sent++;
  for (size_t i = 0; known && i < message->msg_iovlen; i++)
    leaks += message->msg_iov[i].iov_len > 0 &&
             memmem(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len,
                    secret, sizeof secret) != NULL;
  return syscall(SYS_sendmsg, fd, message, flags);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes,
                                                    size_t count, int flags) {
  struct iovec part = {(void *)(uintptr_t)bytes, count};
  return sendmsg(fd, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1},
                 flags);
}

static void play_hush(const rank_info_t *info) {
  ncclComm_t comm;
  memcpy(secret, info->id[0].internal + 24, sizeof secret);
  known = 1;
  NCCL(ncclCommInitRank(&comm, info->ranks, info->id[0], info->rank));
  NCCL(ncclCommDestroy(comm));
  RANK_REQUIRE(sent > 0);
  RANK_REQUIRE(leaks == 0);
}

/* Programs may close standard descriptors and print to them nevertheless. */
static void play_closed(const rank_info_t *info) {
  close(0);
  close(1);
  close(2);
  play_join(info, 0);
  for (int fd = 0; fd < 3; fd++)
    RANK_REQUIRE(fcntl(fd, F_GETFD) < 0);
  _exit(0); /* rank 0 has not destroyed its communicator */
}

static const rank_scenario_t scenarios[] = {
    {"hush", play_hush},
    {"closed", play_closed},
    {"late", play_late},
    {"unasked", play_unasked},
    {"last_words", play_last_words},
};

/* Ports at which process `pid` listens. */
static int ports_of(pid_t pid, int *out_ports, int room) {
  char path[64], target[64], line[512];
  unsigned long inodes[64];
  int inode_count = 0, count = 0;
  snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *folder = opendir(path);
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    char name[400];
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    ssize_t n = readlink(name, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    if (inode_count < 64 &&
        sscanf(target, "socket:[%lu]", &inodes[inode_count]) == 1)
      inode_count++;
  }
  if (folder)
    closedir(folder);
  FILE *all = fopen("/proc/net/tcp", "r");
  while (all && fgets(line, sizeof line, all)) {
    unsigned port, state;
    unsigned long inode;
    if (sscanf(line, "%*s %*[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %lu", &port,
               &state, &inode) != 3 ||
        state != 0x0a)
      continue;
    for (int i = 0; i < inode_count; i++)
      if (inodes[i] == inode && count < room)
        out_ports[count++] = (int)port;
  }
  if (all)
    fclose(all);
  return count;
}

START_TEST(strangers_do_not_disturb_those_who_join) {
  setenv("SDG_TEST_WIRE", "yes", 1);
  launch_t launch = launch_start("late", 3);
  usleep(400000);
  int ports[32], count = 0, open_fds[600], open_count = 0;
  unsigned seed = 4711;
  for (int r = 0; r < 2; r++)
    count += ports_of(launch.pid[r], ports + count, 32 - count);
  ck_assert_int_ge(count, 2); /* the id's maker's, and each rank's */
  for (int turn = 0; turn < 100; turn++)
    for (int p = 0; p < count; p++) {
      char noise[300];
      struct sockaddr_in address = {.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)ports[p]),
                                    .sin_addr = {htonl(INADDR_LOOPBACK)}};
      int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (connect(fd, (void *)&address, sizeof(address)) != 0) {
        close(fd);
        continue;
      }
      for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(rand_r(&seed) >> 7);
      if (turn % 4 == 0) /* HELLO or MEET, and a wrong secret */
        memcpy(noise, &(int32_t){turn % 8 ? 1 : 8}, 4);
      (void)!send(fd, noise, (size_t)rand_r(&seed) % sizeof noise,
                  MSG_NOSIGNAL);
      if (turn % 2 && open_count < 600)
        open_fds[open_count++] = fd;
      else
        close(fd);
    }
  launch_wait(&launch, 0, 20);
  launch_expect_success(&launch, 0);
  while (open_count > 0)
    close(open_fds[--open_count]);
}
END_TEST

START_TEST(an_id_without_an_address_is_for_one_machine) {
  setenv("SDG_TEST_WIRE", "yes", 1);
  setenv("SDG_TEST_UNASKED", "yes", 1);
  launch_all("unasked", 2);
}
END_TEST

START_TEST(messages_arrive_after_their_sender_has_ended) {
  setenv("SDG_TEST_WIRE", "yes", 1);
  launch_all("last_words", 2);
}
END_TEST

START_TEST(the_secret_of_an_id_is_not_sent) {
  if (_i)
    setenv("SDG_TEST_WIRE", "yes", 1);
  launch_all("hush", 3);
}
END_TEST

START_TEST(closed_standard_streams_stay_closed) {
  if (_i)
    setenv("SDG_TEST_WIRE", "yes", 1);
  launch_all("closed", 3);
}
END_TEST

int main(int argc, char **argv) {
  if (argc == 4) {
    if (getenv("SDG_TEST_UNASKED"))
      unsetenv("NCCL_SOCKET_IFNAME");
    return rank_play(argv, scenarios, sizeof scenarios / sizeof *scenarios);
  }
  Suite *suite = suite_create("nccl wire");
  TCase *tcase = tcase_create("machines");
  tcase_set_timeout(tcase, 60);
  tcase_add_test(tcase, strangers_do_not_disturb_those_who_join);
  tcase_add_test(tcase, an_id_without_an_address_is_for_one_machine);
  tcase_add_loop_test(tcase, messages_arrive_after_their_sender_has_ended, 0,
                      3);
  tcase_add_loop_test(tcase, the_secret_of_an_id_is_not_sent, 0, 2);
  tcase_add_loop_test(tcase, closed_standard_streams_stay_closed, 0, 2);
  suite_add_tcase(suite, tcase);
  return harness_run(suite);
}
