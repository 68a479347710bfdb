/* SPDX-License-Identifier: Apache-2.0 */
/* What a command that waits for a program leaves to nobody else. */
#ifndef SDG_TOOLS_LAUNCH_GUARD_H
#define SDG_TOOLS_LAUNCH_GUARD_H

#include <sys/types.h>

/* Closes every descriptor but standard error, and makes input and output those
 * of /dev/null: whoever reads what a child writes sees its end when the child
 * closes it, and not when this process ends. */
void guard_close(void);

/* Starts a process that removes `folder` should this one be killed. It is in a
 * group of its own, so that what is sent to this one's group does not end both.
 * -1: there is none, and the folder stays then. */
pid_t guard_start(const char *folder);
/* Ends it; the folder stays. */
void guard_end(pid_t guard);

#endif
