// SPDX-License-Identifier: Apache-2.0
// The `sundog` command: finds the sub-command.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/words.h"
#include "tools/command.h"
#include "tools/mistakes.h"

static const command_t commands[] = {
    {"run", "sundog run", command_run, &run_argp,
     "start the ranks of a program on this machine"},
    {"exec", "sundog exec", command_exec, &exec_argp,
     "one rank inside srun, mpirun, torchrun or flux"},
    {"options", "sundog options", command_options, &options_argp,
     "all options with value, origin and default"},
    {"explain", "sundog explain", command_explain, &explain_argp,
     "cause and remedy of a code SDG-nnn"},
    {"split", "sundog split", command_split, &split_argp,
     "cut an array file into one piece per rank"},
    {"join", "sundog join", command_join, &join_argp,
     "join the pieces of an array file"},
    {"inspect", "sundog inspect", command_inspect, &inspect_argp,
     "what of a program could be split, with a draft of rules"},
    {"verify", "sundog verify", command_verify, &verify_argp,
     "compare one rank with several"},
    {"doctor", "sundog doctor", command_doctor, &doctor_argp,
     "what a run needs and this machine has or lacks"},
    {"diff", "sundog diff", command_diff, &diff_argp,
     "compare two array files"},
    {"rules", "sundog rules", command_rules, &rules_argp,
     "check rules without a run"},
    {"report", "sundog report", command_report, &report_argp,
     "a page about a recorded run"},
    {"compare", "sundog compare", command_compare, &compare_argp,
     "two recorded runs side by side"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int help(FILE *to) {
  fprintf(to, "Usage: sundog COMMAND [ARGUMENT...]\n"
              "Runs an unmodified cuDNN program over several GPUs.\n\n");
  for (int i = 0; i < COMMANDS; i++)
    fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].summary);
  fprintf(to, "\n`sundog COMMAND --help` describes a command. Example:\n"
              "  sundog run -n 4 --split H --view shard -- solver "
              "in-{rank}.npy out-{rank}.npy\n\nExit statuses:\n");
  const char *text;
  for (int i = 0, number; (text = command_exit_text(i, &number)); i++)
    fprintf(to, " %3d  %s\n", number, text);
  return to == stdout ? COMMAND_OK : COMMAND_USAGE;
}

// Output that could not be written, as on a full disk, is a failure.
static int output_close(int status) {
  if (fflush(stdout) == 0 && !ferror(stdout))
    return status;
  if (status == COMMAND_OK)
    status =
        command_exit(sdg_fail(SDG_E_FILE_IO, "cannot write standard output"));
  return status;
}

int main(int argc, char **argv) {
  const char *names[COMMANDS];
  if (argc < 2)
    return help(stderr);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
      strcmp(argv[1], "help") == 0)
    return output_close(help(stdout));
  if (strcmp(argv[1], "--version") == 0) {
    puts("sundog " SUNDOG_VERSION);
    return output_close(COMMAND_OK);
  }
  // Used by the build, which installs the printed pages.
  if (strcmp(argv[1], "--manual") == 0 && argc == 3)
    return manual_print(commands, COMMANDS, argv[2]);
  for (int i = 0; i < COMMANDS; i++) {
    names[i] = commands[i].name;
    if (strcmp(argv[1], names[i]) != 0)
      continue;
    argv[1] = (char *)(uintptr_t)commands[i].as;
    argp_err_exit_status = COMMAND_USAGE;
    if (mistakes_find(&commands[i], argc - 1, argv + 1))
      return COMMAND_USAGE;
    return output_close(commands[i].main(argc - 1, argv + 1));
  }
  bool dashed = argv[1][0] == '-';
  const char *options[] = {"--help", "--version"};
  fprintf(stderr, "sundog: no command '%s'; nearest: %s (see sundog --help)\n",
          argv[1],
          dashed ? sdg_word_nearest(argv[1], options, 2)
                 : sdg_word_nearest(argv[1], names, COMMANDS));
  return COMMAND_USAGE;
}
