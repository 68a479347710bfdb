/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of `sundog run` as processes: started, watched, ended together. */
#ifndef SDG_TOOLS_LAUNCH_RANKS_H
#define SDG_TOOLS_LAUNCH_RANKS_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/launch/collect.h"
#include "tools/launch/launch.h"

enum {
  RANKS_GRACE_S = 4,
  RANKS_KNOW = 1,
  RANKS_SWEEP_NS =
      1000000000, /* time to end processes that a program leaves behind */
};

/* Returns the signals that end a run, SIGCHLD and SIGTTOU. Leaves out signals
 * that were ignored when this process started (nohup, background jobs). */
void ranks_signals(sigset_t *out_set);

/*
 * Starts `size` ranks and waits until all have ended, and all processes that
 * they left behind. When a rank fails, the others have a second for their
 * messages; then they get SIGTERM, and SIGKILL after RANKS_GRACE_S. A signal
 * to this process is passed on to the ranks, unless it was queued with the
 * value RANKS_KNOW and all ranks have become their program. When a rank ends,
 * a file ended-N in `folder` tells ranks that wait for it to join. `set` is
 * ranks_signals(), blocked. The ranks start with the signal mask `mask`, in
 * the process group `group`, with the pipes of `collect` and `label` (end
 * NULL: no labels). This process closes its own ends of these; when the
 * function returns, all output is written. Returns the exit status of the
 * first rank that failed by itself, 128 + n for signal n; 0 if none failed;
 * COMMAND_* if ranks could not be started. Reports failures.
 * */
int ranks_run(launch_t *launch, int size, const sigset_t *set,
              const sigset_t *mask, pid_t group, const char *folder,
              collect_t *collect, label_t *label);

/* Ends every descendant: sends SIGTERM, and SIGKILL after `grace_ns`. This
 * process must be a subreaper. */
void ranks_sweep(int64_t grace_ns);

#endif
