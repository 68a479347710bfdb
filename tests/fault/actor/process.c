// SPDX-License-Identifier: Apache-2.0
// Ends and stops of the process, and other processes that it starts.
#include "tests/fault/actor/actor.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Fills the disk on which the run keeps its files. */
int act_fill(void) {
  char name[4096];
  const char *folder = getenv("SUNDOG_REPORT");
  snprintf(name, sizeof name, "%s/filler-%d", folder ? folder : ".",
           actor.rank);
  FILE *file = fopen(name, "wb");
  for (int i = 0; file && i < 1 << 20 && fputc(0, file) == 0; i++)
    ;
  if (file)
    (void)!fclose(file);
  return 0;
}

int act_print(void) {
  printf("actor %d: here\n", actor.rank);
  fflush(stdout);
  return 0;
}

int act_careless(void) {
  actor.careless = 1;
  return 0;
}

int act_nap(void) {
  struct timespec time = {0, 100000000};
  nanosleep(&time, NULL);
  return 0;
}

int act_hang(void) {
  return pause();
}

int act_stop(void) {
  return raise(SIGSTOP);
}

int act_kill(void) {
  return raise(SIGKILL);
}

/* The signal that the rank gets while NCCL makes a communicator for it,
 * in another thread than this one. */
static volatile int signal_in_nccl;

int act_ncclkill(void) {
  signal_in_nccl = SIGKILL;
  return 0;
}

int act_ncclstop(void) {
  signal_in_nccl = SIGSTOP;
  return 0;
}

/* The program's definition is the one that NCCL's work-alike calls. */
__attribute__((visibility("default"))) cudaError_t cudaGetDevice(int *device) {
  if (signal_in_nccl && gettid() != getpid())
    raise(signal_in_nccl);
  *device = 0;
  return cudaSuccess;
}

int act_abort(void) {
  abort();
}

int act_segv(void) {
  return raise(SIGSEGV);
}

int act_exit0(void) {
  exit(0);
}

int act_exit3(void) {
  exit(3);
}

int act__exit0(void) {
  _exit(0);
}

int act_quick(void) {
  quick_exit(0);
}

int act_thread_exit(void) {
  pthread_exit(NULL);
}

static void *thread_sleep(void *unused) {
  (void)unused;
  const struct timespec pause = {0, 100000000};
  for (int i = 0; i < 1200; i++)
    nanosleep(&pause, NULL);
  return NULL;
}

/* The first thread ends; only SIGKILL ends the process. */
int act_zombie(void) {
  pthread_t thread;
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  pthread_create(&thread, NULL, thread_sleep, NULL);
  printf("actor: rank %d is a zombie\n", actor.rank);
  fflush(stdout);
  pthread_exit(NULL);
}

/* A child ends by exit(), which runs the destructors of inherited libraries. */
int act_fork(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    exit(0);
  int status;
  waitpid(child, &status, 0);
  return status != 0;
}

/* A child without exec makes a tagged query. */
int act_child(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    cudnnStatus_t status = actor_ask();
    fprintf(stderr, "child %d\n", (int)status);
    exit(0);
  }
  waitpid(child, NULL, 0);
  return 0;
}

int act_system(void) {
  return system("true") != 0;
}

/* Runs another process with the same rank that calls cuDNN, too. */
int act_second(void) {
  char command[4096], self[2048] = "";
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  snprintf(command, sizeof command, "'%s' 9 create h=8 set conv print write",
           n > 0 ? self : "");
  return system(command) != 0;
}

int act_become(void) {
  return execl("/bin/true", "true", (char *)NULL);
}

int act_clearenv(void) {
  return clearenv();
}

int act_close(void) {
  for (int fd = 3; fd < 1024; fd++)
    close(fd);
  return 0;
}
