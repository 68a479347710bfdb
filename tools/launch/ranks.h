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
  RANKS_SWEEP_NS = 1000000000, /* of what a program leaves behind */
};

/* The signals that end a run, less those that this process was started to
 * ignore (nohup, background jobs of a shell), with SIGCHLD and SIGTTOU. */
void ranks_signals(sigset_t *out_set);

/* Starts `size` ranks and waits until all have ended, and with them every
 * process they left behind. When one fails the others have a second to say
 * what they saw of it, then SIGTERM, then after RANKS_GRACE_S SIGKILL; a
 * signal to this process goes to the ranks, unless it was queued with the value
 * RANKS_KNOW and all have become their program. How a rank ended is left in
 * `folder`, as ended-N, where other ranks look when they wait for it to join.
 * `set` is ranks_signals(), blocked; the ranks start with the mask
 * `mask` in the process group `group`, and with the messages of `collect` and
 * the labels of `label` (end NULL: none), which this process leaves; all that
 * was said is written on return. Returns the exit status of the first rank that
 * failed by itself, 128 + n for signal n; 0 if none did; COMMAND_* if they
 * could not be started. Failures are reported.
 */
int ranks_run(launch_t *launch, int size, const sigset_t *set,
              const sigset_t *mask, pid_t group, const char *folder,
              collect_t *collect, label_t *label);

/* Ends every descendant of this process, which has to be their subreaper:
 * SIGTERM, and after `grace_ns` SIGKILL. */
void ranks_sweep(int64_t grace_ns);

#endif
