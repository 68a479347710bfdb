/* SPDX-License-Identifier: Apache-2.0 */
/* The exit statuses of the sundog command, one table (exits.def). */
#ifndef SDG_TOOLS_LAUNCH_EXITS_H
#define SDG_TOOLS_LAUNCH_EXITS_H

#include "src/base/status.h"

/* Exit statuses of all commands; a program's own is passed on. */
enum {
#define SDG_EXIT(name, number, text) COMMAND_##name = number,
#include "tools/launch/exits.def"
#undef SDG_EXIT
  COMMAND_FAILED = COMMAND_REFUSED,
};
/* Returns the exit status of a command that failed with `status`. A command
 * that runs programs exits with COMMAND_REFUSED unless its command line is
 * wrong. */
int command_exit(sdg_status_t status);
int command_exit_run(sdg_status_t status);
/* Returns the text of one row of the table; NULL past the last row. */
const char *command_exit_text(int index, int *out_number);

#endif
