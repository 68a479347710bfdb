// SPDX-License-Identifier: Apache-2.0
// Starts ranks, watches them, and ends them together.
#include "tools/launch/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/geometry/mesh.h"
#include "tools/launch/descendants.h"
#include "tools/launch/exits.h"
#include "tools/program/setting.h"

static const int64_t SECOND_NS = 1000000000;
// Nanoseconds between two looks at processes that were sent SIGKILL.
static const int64_t POLL_NS = 50000000;

typedef struct rank {
  pid_t pid;
  bool ended;
  int status; // from waitpid
} rank_t;

// The message of a child that could not become its program.
typedef struct start_fault {
  int rank, error;
  bool streams; // the folder, input or output is at fault, not the program
} start_fault_t;

typedef struct job {
  int size, living;
  rank_t rank[SDG_RANKS_MAX];
  // Carries start_fault_t. Only children that are not yet their program hold
  // the writing end, so the reading end shows when it arrived all have started.
  int fault_pipe[2];
  const char *folder;   // holds notes on ranks that have ended
  int64_t *wrote_bytes; // launch.h
  int first;            // the first rank that failed by itself; -1: none
  int signal;           // the signal that interrupted the run; 0: none
  int64_t signal_ns;    // when
  int64_t term_ns;      // when to send SIGTERM, 0: never
  int64_t kill_ns;      // when to send SIGKILL
} job_t;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * SECOND_NS + now.tv_nsec;
}

void ranks_signals(sigset_t *out_set) {
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  sigemptyset(out_set);
  sigaddset(out_set, SIGCHLD);
  // While it is blocked, a background process can write to the terminal.
  sigaddset(out_set, SIGTTOU);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
    struct sigaction action;
    sigaction(ending[i], NULL, &action);
    if (action.sa_handler != SIG_IGN)
      sigaddset(out_set, ending[i]);
  }
}

static void number_set(const char *variable, int number) {
  char text[16];
  snprintf(text, sizeof text, "%d", number);
  (void)!setting_make(variable, text, SDG_ORIGIN_COMMAND);
}

// Runs in the child: becomes the rank's program, or reports why not.
static _Noreturn void rank_become(const launch_t *launch, const job_t *job,
                                  int rank, pid_t parent, const sigset_t *mask,
                                  pid_t group) {
  start_fault_t fault = {.rank = rank};
  // If the watching process is killed, the system kills the ranks too.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(COMMAND_FAILED);
  // The group may be gone if the command was killed meanwhile.
  (void)setpgid(0, group);
  number_set("SUNDOG_RANK", rank);
  number_set("SUNDOG_SIZE", job->size);
  number_set("SUNDOG_LOCAL_RANK", rank);
  if (launch_bind(launch, rank, job->size) != SDG_OK)
    _exit(COMMAND_FAILED);
  if (!streams_take(&launch->streams, rank, job->size)) {
    fault.error = errno;
    fault.streams = true;
    ssize_t told = write(job->fault_pipe[1], &fault, sizeof fault);
    (void)told;
    _exit(COMMAND_FAILED);
  }
  char **words = launch_arguments(launch->program, rank, job->size, rank);
  sigprocmask(SIG_SETMASK, mask, NULL);
  if (words)
    execvp(words[0], words);
  else
    errno = ENOMEM;
  fault.error = errno;
  ssize_t written = write(job->fault_pipe[1], &fault, sizeof fault);
  (void)written;
  _exit(fault.error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE);
}

// Writes a note about this rank's process for ranks that wait for it to join.
static void note_write(const job_t *job, const char *name, int rank,
                       const char *text) {
  char path[PATH_MAX], part[PATH_MAX + 8];
  snprintf(path, sizeof path, "%s/%s-%d", job->folder, name, rank);
  snprintf(part, sizeof part, "%s.part", path);
  FILE *file = fopen(part, "we");
  if (!file)
    return; // without a note they wait for the timeout
  fputs(text, file);
  if (fclose(file) == 0)
    (void)rename(part, path);
}

static void start_note(const job_t *job, int rank, pid_t pid) {
  char text[32];
  snprintf(text, sizeof text, "%d", (int)pid);
  note_write(job, "started", rank, text);
}

static void end_note(const job_t *job, int rank, int status) {
  char text[64];
  if (WIFSIGNALED(status))
    snprintf(text, sizeof text, "it was killed by signal %d", WTERMSIG(status));
  else
    snprintf(text, sizeof text, "it ended with status %d", WEXITSTATUS(status));
  note_write(job, "ended", rank, text);
}

static sdg_status_t ranks_start(launch_t *launch, job_t *job,
                                const sigset_t *mask, pid_t group) {
  pid_t self = getpid();
  SDG_TRY(streams_open(&launch->streams, job->size));
  fflush(NULL);
  for (int r = 0; r < job->size; r++) {
    pid_t pid = fork();
    if (pid == 0)
      rank_become(launch, job, r, self, mask, group);
    if (pid < 0)
      return sdg_fail(SDG_E_START, "rank %d of %d: fork: %s", r, job->size,
                      strerror(errno));
    job->rank[r].pid = pid;
    start_note(job, r, pid);
    job->living++;
  }
  close(job->fault_pipe[1]);
  job->fault_pipe[1] = -1;
  return streams_feed(&launch->streams, job->size, group);
}

static bool rank_failed(const rank_t *rank) {
  return rank->ended && rank->pid > 0 &&
         !(WIFEXITED(rank->status) && WEXITSTATUS(rank->status) == 0);
}

// Reads from the system what a process that was not reaped has written.
static int64_t wrote_bytes(pid_t pid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/io", (int)pid);
  const char *at =
      sdg_fd_text(path, 0, text, sizeof text) ? strstr(text, "wchar: ") : NULL;
  return at ? atoll(at + strlen("wchar: ")) : 0;
}

// Reaps every process that has ended. If several ranks ended, a rank that a
// signal killed counts as the first failure: the others failed because of it.
static void ranks_reap(job_t *job) {
  int status, first = -1;
  siginfo_t next = {.si_pid = 0};
  for (; waitid(P_ALL, 0, &next, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         next.si_pid > 0;
       next.si_pid = 0) {
    pid_t pid = next.si_pid;
    int64_t wrote = job->wrote_bytes ? wrote_bytes(pid) : 0;
    if (waitpid(pid, &status, 0) != pid)
      break;
    for (int r = 0; r < job->size; r++) {
      rank_t *rank = &job->rank[r];
      if (rank->pid != pid || rank->ended)
        continue;
      if (job->wrote_bytes)
        job->wrote_bytes[r] = wrote;
      rank->ended = true;
      rank->status = status;
      job->living--;
      end_note(job, r, status);
      if (rank_failed(rank) &&
          (first < 0 ||
           (WIFSIGNALED(status) && !WIFSIGNALED(job->rank[first].status))))
        first = r;
    }
  }
  // A rank that was sent SIGTERM did not fail by itself.
  if (first >= 0 && job->first < 0 && job->kill_ns == 0) {
    job->first = first;
    job->term_ns = now_ns() + SECOND_NS;
  }
}

// Returns whether every rank has become its program or ended.
static bool all_started(const job_t *job) {
  struct pollfd polled = {.fd = job->fault_pipe[0], .events = POLLIN};
  return poll(&polled, 1, 0) > 0 && (polled.revents & POLLHUP) != 0;
}

// Handles a signal that ends the run: passes it on to the ranks unless the
// terminal sent it to them too.
static void signal_take(job_t *job, const siginfo_t *info) {
  int64_t now = now_ns();
  if (job->signal == 0) {
    job->signal = info->si_signo;
    job->signal_ns = now;
    job->kill_ns = now + RANKS_GRACE_S * SECOND_NS;
    // A rank that was about to start missed the terminal's signal.
    if (info->si_code != SI_QUEUE || info->si_value.sival_int != RANKS_KNOW ||
        !all_started(job))
      family_signal(info->si_signo);
  } else if (now - job->signal_ns > SECOND_NS / 2) {
    job->kill_ns = now; // the second request
  }
}

static void timers_run(job_t *job) {
  int64_t now = now_ns();
  if (job->term_ns && now >= job->term_ns && job->kill_ns == 0) {
    family_signal(SIGTERM);
    family_signal(SIGCONT); // a stopped process handles no other signal
    job->kill_ns = now + RANKS_GRACE_S * SECOND_NS;
  }
  if (job->kill_ns && now >= job->kill_ns) {
    family_signal(SIGKILL);
    job->kill_ns = now + POLL_NS;
  }
}

static void ranks_watch(job_t *job, const sigset_t *set) {
  while (job->living > 0) {
    int64_t next = job->kill_ns ? job->kill_ns : job->term_ns;
    int64_t wait = next ? next - now_ns() : 3600 * SECOND_NS;
    if (wait < 0)
      wait = 0;
    struct timespec timeout = {wait / SECOND_NS, wait % SECOND_NS};
    siginfo_t info;
    int number = sigtimedwait(set, &info, &timeout);
    if (number > 0 && number != SIGCHLD && number != SIGTTOU)
      signal_take(job, &info);
    ranks_reap(job);
    timers_run(job);
  }
}

void ranks_sweep(int64_t grace_ns) {
  int64_t start = now_ns();
  const struct timespec pause = {0, 5000000};
  int number = SIGTERM;
  for (;;) {
    pid_t reaped;
    while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0)
      ;
    if (reaped < 0)
      return; // no child, so no descendant
    int64_t passed = now_ns() - start;
    // A process that SIGKILL does not end within seconds hangs in the kernel.
    if (family_signal(passed > grace_ns ? SIGKILL : number) == 0 ||
        passed > grace_ns + 3 * SECOND_NS)
      return;
    number = 0;
    nanosleep(&pause, NULL);
  }
}

// Reports why ranks were not started. Returns COMMAND_* or 0.
static int start_faults_report(const job_t *job, const launch_t *launch) {
  start_fault_t fault;
  if (read(job->fault_pipe[0], &fault, sizeof fault) != sizeof fault)
    return 0;
  if (fault.streams) {
    (void)sdg_fail(SDG_E_START, "folder, input or output of rank %d: %s",
                   fault.rank, strerror(fault.error));
    return COMMAND_FAILED;
  }
  (void)sdg_fail(SDG_E_START, "%s: %s", launch->program[0],
                 strerror(fault.error));
  return fault.error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE;
}

static int first_report(const job_t *job) {
  int status = job->rank[job->first].status, failed = 0, ended = 0;
  char text[128];
  for (int r = 0; r < job->size; r++)
    failed += rank_failed(&job->rank[r]);
  ended = failed - 1;
  if (WIFSIGNALED(status))
    snprintf(text, sizeof text, "was killed by signal %d (%s)",
             WTERMSIG(status), strsignal(WTERMSIG(status)));
  else
    snprintf(text, sizeof text, "exited with status %d", WEXITSTATUS(status));
  if (job->size == 1)
    (void)sdg_fail(SDG_E_RANK_FAILED, "the program %s", text);
  else if (job->kill_ns && ended > 0)
    (void)sdg_fail(SDG_E_RANK_FAILED,
                   "rank %d %s; %d more ranks ended because of it", job->first,
                   text, ended);
  else
    (void)sdg_fail(SDG_E_RANK_FAILED, "rank %d %s", job->first, text);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int ranks_run(launch_t *launch, int size, const sigset_t *set,
              const sigset_t *mask, pid_t group, const char *folder,
              collect_t *collect, label_t *label) {
  static job_t job; // too large for a stack; one run per process
  job = (job_t){.size = size,
                .first = -1,
                .folder = folder,
                .wrote_bytes = launch->wrote_bytes};
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
      pipe2(job.fault_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    (void)sdg_fail(SDG_E_START, "%s", strerror(errno));
    return COMMAND_FAILED;
  }
  launch->streams.messages = collect->messages;
  launch->streams.label = label->end ? label : NULL;
  sdg_status_t started = ranks_start(launch, &job, mask, group);
  if (started != SDG_OK)
    job.kill_ns = now_ns();
  collect_leave(collect);
  label_leave(label);
  ranks_watch(&job, set);
  ranks_sweep(RANKS_SWEEP_NS);
  label_wait(label);
  collect_wait(collect);
  int status = started == SDG_OK ? 0 : COMMAND_FAILED;
  if (status == 0)
    status = start_faults_report(&job, launch);
  if (status == 0 && job.first >= 0)
    status = first_report(&job);
  if (status == 0 && job.signal)
    status = 128 + job.signal;
  close(job.fault_pipe[0]);
  if (job.fault_pipe[1] >= 0)
    close(job.fault_pipe[1]);
  return status;
}
