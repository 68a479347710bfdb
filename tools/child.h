/* SPDX-License-Identifier: Apache-2.0 */
/* A child process in the foreground: signals to this one reach it. */
#ifndef SDG_TOOLS_CHILD_H
#define SDG_TOOLS_CHILD_H

#include <signal.h>
#include <sys/types.h>

/* fork(); 0 in the child, which has the signal mask from before, -1 on
 * failure. *out_mask is what child_wait() restores. */
pid_t child_fork(sigset_t *out_mask);

/* Waits until it has ended, so that what was made for it can be removed
 * whatever happens. SIGTERM and SIGHUP are passed on to it, as are SIGINT and
 * SIGQUIT but from a terminal, which sends them to both. Its exit status, or
 * 128 + n for signal n. */
int child_wait(pid_t pid, const sigset_t *mask);

#endif
