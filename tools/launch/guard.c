// SPDX-License-Identifier: Apache-2.0
// Removes the folder of a command that is killed.
#include "tools/launch/guard.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/launch/folder.h"

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

static _Noreturn void guard_run(const char *folder, pid_t parent) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, NULL);
  (void)setpgid(0, 0);
  guard_close(NULL, 0);
  dup2(STDOUT_FILENO, STDERR_FILENO);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  while (getppid() == parent)
    (void)sigwaitinfo(&all, NULL);
  folder_remove(folder);
  _exit(EXIT_SUCCESS);
}

pid_t guard_start(const char *folder) {
  pid_t self = getpid(), guard = fork();
  if (guard == 0)
    guard_run(folder, self);
  return guard;
}

void guard_end(pid_t guard) {
  // A guard that has ended is reaped here; later its pid may belong to another
  // process.
  if (guard <= 0 || waitpid(guard, NULL, WNOHANG) != 0)
    return;
  kill(guard, SIGKILL);
  (void)waitpid(guard, NULL, 0);
}
