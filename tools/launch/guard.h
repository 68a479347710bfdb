/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of a command that waits for a program: descriptors, and a process
 * that cleans up. */
#ifndef SDG_TOOLS_LAUNCH_GUARD_H
#define SDG_TOOLS_LAUNCH_GUARD_H

#include <sys/types.h>

/* Opens /dev/null as standard input and output, and closes all other
 * descriptors except standard error and the `count` that are `kept`. So a
 * reader of the child's output sees its end when the child closes it, even
 * while this process lives. */
void guard_close(const int *kept, int count);

/* Starts a process that removes `folder` if this one is killed. It has its own
 * process group, so that a signal to this one's group does not end both.
 * Returns -1 if it cannot be started: then the folder would stay. */
pid_t guard_start(const char *folder);
/* Ends the guard; the folder stays. */
void guard_end(pid_t guard);

#endif
