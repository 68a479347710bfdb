/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the descendants of this process and sends them signals. */
#ifndef SDG_TOOLS_LAUNCH_DESCENDANTS_H
#define SDG_TOOLS_LAUNCH_DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Sends a signal (0: none) to every descendant. Returns their number, zombies
 * included. Call prctl(PR_SET_CHILD_SUBREAPER) before: otherwise orphans are no
 * longer descendants of this process. */
int family_signal(int signal_number);

/* Excludes a descendant from family_signal() and its count; at most three. */
void family_spare(pid_t pid);

/* Returns whether `pid` is a descendant of this process. */
bool family_has(pid_t pid);

#endif
