/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-commands of `sundog`. Each is a main function: argv[0] is its name in
 * messages, the result is the exit status. */
#ifndef SDG_TOOLS_COMMAND_H
#define SDG_TOOLS_COMMAND_H

#include <argp.h>

#include "tools/launch/exits.h"

int command_run(int argc, char **argv);
int command_exec(int argc, char **argv);
int command_options(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_split(int argc, char **argv);
int command_join(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_rules(int argc, char **argv);
int command_report(int argc, char **argv);
int command_compare(int argc, char **argv);

/* The sub-commands' arguments, which `--help` and the manual pages print. */
extern const struct argp run_argp, exec_argp, options_argp, explain_argp,
    split_argp, join_argp, verify_argp, inspect_argp, doctor_argp, diff_argp,
    rules_argp, report_argp, compare_argp;

/* One row of the list of sub-commands. */
typedef struct command {
  const char *name, *as; /* "run", "sundog run" */
  int (*main)(int argc, char **argv);
  const struct argp *argp;
  const char *summary;
} command_t;

/* Writes the manual page `page` to stdout: "sundog.1", "sundog-run.1" ..., or
 * "sundog.7". Returns an exit status. */
int manual_print(const command_t *commands, int count, const char *page);

#endif
