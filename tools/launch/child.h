/* SPDX-License-Identifier: Apache-2.0 */
/* A child process in the foreground: signals to this one reach it. */
#ifndef SDG_TOOLS_LAUNCH_CHILD_H
#define SDG_TOOLS_LAUNCH_CHILD_H

#include <signal.h>
#include <sys/types.h>

/* fork(); 0 in the child, which has the signal mask from before, -1 on
 * failure. *out_mask is what child_wait() restores. */
pid_t child_fork(sigset_t *out_mask);

/* Waits until it has ended, so that what was made for it can be removed
 * whatever happens; every other child that ends is reaped. Signals are passed
 * on to it, once: not those that a terminal sends to both, nor those that it or
 * a process below it sent. This process stops when it does, if both were told
 * to, and continues it. Its exit status, or 128 + n for signal n. */
int child_wait(pid_t pid, const sigset_t *mask);

/* The same; its status as of waitpid(2), and the exit status of that. */
int child_wait_status(pid_t pid, const sigset_t *mask);
int child_exit(int status);

/* Ends this process by the signal that ended the child, without a core file; if
 * none did, or this process survives it, returns the exit status. */
int child_end_alike(int status);

#endif
