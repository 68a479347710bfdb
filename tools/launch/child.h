/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a child process in the foreground, and passes this process's signals
 * on to it. */
#ifndef SDG_TOOLS_LAUNCH_CHILD_H
#define SDG_TOOLS_LAUNCH_CHILD_H

#include <signal.h>
#include <sys/types.h>

/* Forks. Returns the child's pid; 0 in the child, which has the former signal
 * mask; -1 on failure. *out_mask is the mask that child_wait() restores. */
pid_t child_fork(sigset_t *out_mask);

/* Waits until the child has ended; signals do not end this process before.
 * Reaps every other child that ends. Passes each signal on to the child once,
 * except signals that a terminal sends to both, and signals from the child or
 * its descendants. If both are asked to stop, this process stops after the
 * child, and continues it later. Returns the child's exit status, or 128 + n
 * for signal n. */
int child_wait(pid_t pid, const sigset_t *mask);

/* Like child_wait(), but returns the status in the form of waitpid(2).
 * child_exit() converts it to an exit status. */
int child_wait_status(pid_t pid, const sigset_t *mask);
int child_exit(int status);

/* Ends this process by the signal that ended the child, without a core file.
 * Returns the exit status if no signal ended the child, or this process
 * survives it. */
int child_end_alike(int status);

#endif
