// SPDX-License-Identifier: Apache-2.0
// Starts a child and waits for it, with signals as messages.
#include "tools/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void child_signals(sigset_t *out_set) {
  sigemptyset(out_set);
  sigaddset(out_set, SIGCHLD);
  sigaddset(out_set, SIGTERM);
  sigaddset(out_set, SIGHUP);
  sigaddset(out_set, SIGINT);
  sigaddset(out_set, SIGQUIT);
}

pid_t child_fork(sigset_t *out_mask) {
  sigset_t set;
  child_signals(&set);
  fflush(NULL);
  // Where it is ignored, nobody is told how a child ended.
  signal(SIGCHLD, SIG_DFL);
  // Blocked before the child is there, so that none is missed.
  sigprocmask(SIG_BLOCK, &set, out_mask);
  pid_t pid = fork();
  if (pid <= 0)
    sigprocmask(SIG_SETMASK, out_mask, NULL);
  return pid;
}

int child_wait(pid_t pid, const sigset_t *mask) {
  sigset_t set;
  siginfo_t info;
  int status = 0;
  child_signals(&set);
  while (waitpid(pid, &status, WNOHANG) == 0) {
    int number = sigwaitinfo(&set, &info);
    // When a terminal hangs up the system tells the leader of the session
    // alone.
    bool child_knows = info.si_code == SI_KERNEL && number != SIGHUP;
    if (number > 0 && number != SIGCHLD && !child_knows)
      kill(pid, number);
  }
  // What came to both has done its work.
  const struct timespec now = {0, 0};
  while (sigtimedwait(&set, NULL, &now) > 0)
    continue;
  sigprocmask(SIG_SETMASK, mask, NULL);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
