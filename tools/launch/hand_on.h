/* SPDX-License-Identifier: Apache-2.0 */
/* A `sundog exec` within another command that reads reports. */
#ifndef SDG_TOOLS_LAUNCH_HAND_ON_H
#define SDG_TOOLS_LAUNCH_HAND_ON_H

/* Copies the reports (tools/record/report.h) in `folder` to `outer`, where that
 * of a rank comes behind those that are there, as of one more process of it. */
void hand_on_reports(const char *folder, const char *outer);

#endif
