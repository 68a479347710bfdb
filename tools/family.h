/* SPDX-License-Identifier: Apache-2.0 */
/* The descendants of this process. */
#ifndef SDG_TOOLS_FAMILY_H
#define SDG_TOOLS_FAMILY_H

/* Sends a signal (0: none) to every process below this one; returns how many
 * there are, those included that have ended and wait for their parent.
 * Complete only if this process is a subreaper (PR_SET_CHILD_SUBREAPER), since
 * orphans go elsewhere otherwise. */
int family_signal(int signal_number);

#endif
