// SPDX-License-Identifier: Apache-2.0
// Starts a child and waits for it. Signals are blocked and read one by one.
#include "tools/launch/child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/launch/descendants.h"

// The state of the child, and the signals that this process got meanwhile.
typedef struct child {
  pid_t pid;
  bool ended;
  int status;   // from waitpid, once the child has ended
  bool stopped; // the child is stopped now
  bool asked;   // this process got a stop signal since it was last continued
} child_t;

// All signals that another process can send. Faults of this process stay
// unblocked.
static void child_signals(sigset_t *out_set) {
  static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                               SIGILL,  SIGTRAP, SIGSYS};
  sigfillset(out_set);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    sigdelset(out_set, faults[i]);
}

pid_t child_fork(sigset_t *out_mask) {
  sigset_t set;
  struct sigaction before;
  const struct sigaction told = {.sa_handler = SIG_DFL};
  child_signals(&set);
  fflush(NULL);
  // If SIGCHLD were ignored, the exit status of a child would be lost.
  sigaction(SIGCHLD, &told, &before);
  // Blocked before the child exists, so that no signal is missed.
  sigprocmask(SIG_BLOCK, &set, out_mask);
  pid_t pid = fork();
  if (pid == 0)
    sigaction(SIGCHLD, &before, NULL);
  if (pid <= 0)
    sigprocmask(SIG_SETMASK, out_mask, NULL);
  return pid;
}

// Reads the new state of the child. Reaps orphans without looking at their
// status.
static void child_look(child_t *child) {
  int status;
  for (pid_t pid;
       (pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED)) > 0;) {
    if (pid != child->pid)
      continue;
    child->stopped = WIFSTOPPED(status);
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      child->ended = true;
      child->status = status;
    }
  }
}

static bool is_stop(int number) {
  return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

// Returns whether the child has this signal already, or it concerns this
// process alone. Exceptions: a terminal that hangs up sends SIGHUP only to the
// session's leader, and a timer was set for the program before this process
// became the command.
static bool child_knows(int number) {
  return number == SIGINT || number == SIGQUIT || is_stop(number) ||
         number == SIGWINCH || number == SIGXCPU || number == SIGXFSZ ||
         number == SIGPIPE;
}

static void signal_pass(child_t *child, const siginfo_t *info) {
  int number = info->si_signo;
  child->asked |= is_stop(number);
  if (number == SIGCHLD)
    return;
  if (number == SIGCONT) {
    // A signal that continues the group has continued the child already.
    child->asked = false;
    if (child->stopped)
      kill(child->pid, SIGCONT);
    return;
  }
  if (info->si_code == SI_KERNEL && child_knows(number))
    return;
  // A signal that the child sends to its group, as `kill 0` does, has reached
  // the child.
  if (info->si_code == SI_USER && family_has(info->si_pid))
    return;
  if (info->si_code == SI_QUEUE)
    sigqueue(child->pid, number, info->si_value);
  else
    kill(child->pid, number);
}

// Stops this process after the child, because a shell that stops a job waits
// for both. Does so only if both got the signal: a child that was stopped alone
// is continued alone.
static void stop_follow(child_t *child) {
  if (!child->stopped || !child->asked)
    return;
  child->asked = false;
  kill(getpid(), SIGSTOP); // until a SIGCONT, which is pending afterwards
}

int child_wait_status(pid_t pid, const sigset_t *mask) {
  sigset_t set;
  siginfo_t info;
  child_t child = {.pid = pid};
  child_signals(&set);
  for (;;) {
    child_look(&child);
    if (child.ended)
      break;
    stop_follow(&child);
    if (sigwaitinfo(&set, &info) > 0) {
      child_look(&child);
      if (!child.ended)
        signal_pass(&child, &info);
    }
  }
  // Drops signals that have reached both.
  const struct timespec now = {0, 0};
  while (sigtimedwait(&set, NULL, &now) > 0)
    continue;
  sigprocmask(SIG_SETMASK, mask, NULL);
  return child.status;
}

int child_exit(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int child_wait(pid_t pid, const sigset_t *mask) {
  return child_exit(child_wait_status(pid, mask));
}

int child_end_alike(int status) {
  if (!WIFSIGNALED(status))
    return child_exit(status);
  // The child has already written a core file.
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, WTERMSIG(status));
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  return child_exit(
      status); // only the first process of a container survives its signal
}
