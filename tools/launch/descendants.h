/* SPDX-License-Identifier: Apache-2.0 */
/* The descendants of this process. */
#ifndef SDG_TOOLS_LAUNCH_DESCENDANTS_H
#define SDG_TOOLS_LAUNCH_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends a signal (0: none) to every process below this one; returns how many
 * there are, those included that have ended and wait for their parent.
 * Complete only if this process is a subreaper (PR_SET_CHILD_SUBREAPER), since
 * orphans go elsewhere otherwise. */
int family_signal(int signal_number);

/* A process below this one, of at most two, that family_signal() leaves alone,
 * and does not count. */
void family_spare(pid_t pid);

/* Whether `pid` is a process below this one. */
bool family_has(pid_t pid);

#endif
