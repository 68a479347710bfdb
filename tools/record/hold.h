/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the folder of a record for one run at a time. */
#ifndef SDG_TOOLS_RECORD_HOLD_H
#define SDG_TOOLS_RECORD_HOLD_H

#include "src/base/status.h"

/* Holds the folder for the run that `job` names, until hold_drop(), or until
 * this process and those that it forks have ended. Several processes may hold
 * it for the same job. The file FOLDER/lock says who holds it. *out_hold is
 * the descriptor of this file; -1 if the folder cannot be held: it cannot be
 * written, which the ranks report, or its file system has no locks, which is
 * said. SDG_E_RECORD_HELD if another run holds it. */
sdg_status_t hold_take(const char *folder, const char *job,
                       int *out_hold) SDG_MUST_CHECK;

/* Processes that were forked meanwhile hold it no longer, either. */
void hold_drop(int hold);

#endif
