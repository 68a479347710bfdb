// SPDX-License-Identifier: Apache-2.0
// Removes what a command that is killed would leave.
#include "tools/launch/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/bootstrap/rendezvous.h"
#include "tools/launch/folder.h"

enum { SWEEPS = 10, SWEEP_NS = 20000000 };

void guard_close(const int *kept, int count) {
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = STDIN_FILENO; null >= 0 && i <= STDOUT_FILENO; i++)
    dup2(null, i);
  DIR *all = opendir("/proc/self/fd");
  for (struct dirent *entry; all && (entry = readdir(all));) {
    int file = atoi(entry->d_name);
    bool keep = file <= STDERR_FILENO || file == dirfd(all);
    for (int i = 0; i < count; i++)
      keep = keep || file == kept[i];
    if (!keep)
      close(file);
  }
  if (all)
    closedir(all);
}

// Makes the folder itself: nothing that ends the command, at whatever time,
// leaves a folder that nobody removes.
static _Noreturn void guard_run(pid_t parent, int out) {
  char folder[PATH_MAX];
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  (void)setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (folder_create(folder, sizeof folder) != SDG_OK)
    _exit(EXIT_FAILURE);
  (void)!write(out, folder, strlen(folder) + 1); // an empty pipe takes it
  guard_close(NULL, 0);
  dup2(STDOUT_FILENO, STDERR_FILENO);
  while (getppid() == parent)
    (void)sigwaitinfo(&all, NULL);
  folder_remove(folder);
  // The program, which is killed at the same time, may hold its rank as yet.
  for (int i = 0; i < SWEEPS; i++) {
    sdg_rendezvous_sweep();
    nanosleep(&(struct timespec){.tv_nsec = SWEEP_NS}, NULL);
  }
  _exit(EXIT_SUCCESS);
}

// Returns false at the end of the pipe.
static bool name_read(int in, char *out, size_t bytes) {
  for (size_t used = 0; used < bytes;) {
    ssize_t n = read(in, out + used, bytes - used);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return false;
    used += (size_t)n;
    if (out[used - 1] == '\0')
      return true;
  }
  return false;
}

sdg_status_t guard_start(char *out_folder, size_t bytes, pid_t *out_guard) {
  pid_t self = getpid();
  int name[2], status = 0;
  if (pipe2(name, O_CLOEXEC) != 0)
    return sdg_fail(SDG_E_START, "pipe: %s", strerror(errno));
  fflush(NULL);
  pid_t guard = fork();
  if (guard == 0) {
    close(name[0]);
    guard_run(self, name[1]);
  }
  const int error = errno;
  close(name[1]);
  bool named = guard > 0 && name_read(name[0], out_folder, bytes);
  close(name[0]);
  if (guard < 0)
    return sdg_fail(SDG_E_START, "fork: %s", strerror(error));
  if (!named)
    (void)waitpid(guard, &status, 0);
  if (!named && WIFSIGNALED(status))
    return sdg_fail(SDG_E_START,
                    "the process that removes the command's folder was killed "
                    "by signal %d",
                    WTERMSIG(status));
  *out_guard = guard;
  return named ? SDG_OK : SDG_E_FOLDER; // the process has said why
}

void guard_end(pid_t guard) {
  // A guard that has ended is reaped here; later its pid may belong to another
  // process.
  if (guard <= 0 || waitpid(guard, NULL, WNOHANG) != 0)
    return;
  kill(guard, SIGKILL);
  (void)waitpid(guard, NULL, 0);
}
