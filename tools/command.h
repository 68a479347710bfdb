/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-commands of `sundog`. Each is a main of its own: argv[0] is what it
 * calls itself in messages, the result is the exit status. */
#ifndef SDG_TOOLS_COMMAND_H
#define SDG_TOOLS_COMMAND_H

/* Exit statuses of `run` and `exec` themselves, as those of env(1): the
 * program was not started; it cannot be executed; it is not there. */
enum {
  COMMAND_FAILED = 125,
  COMMAND_NOT_EXECUTABLE = 126,
  COMMAND_NOT_FOUND = 127,
};

int command_run(int argc, char **argv);
int command_exec(int argc, char **argv);
int command_options(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_split(int argc, char **argv);
int command_join(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_diff(int argc, char **argv);

#endif
