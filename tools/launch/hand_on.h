/* SPDX-License-Identifier: Apache-2.0 */
/* Gives the reports of a `sundog exec` to the command that runs it. */
#ifndef SDG_TOOLS_LAUNCH_HAND_ON_H
#define SDG_TOOLS_LAUNCH_HAND_ON_H

/* Copies the reports (tools/record/report.h) in `folder` to `outer`. If `outer`
 * has a report of the rank, the copy gets the next number, as another process
 * of this rank. */
void hand_on_reports(const char *folder, const char *outer);

#endif
