// SPDX-License-Identifier: Apache-2.0
// `sundog exec`: one rank inside a launcher of its own.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/options.h"
#include "src/rendezvous.h"
#include "tools/command.h"
#include "tools/launch.h"

static error_t exec_parse(int key, char *argument, struct argp_state *state) {
  (void)argument;
  launch_t *launch = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = launch;
    return 0;
  case ARGP_KEY_ARG:
    launch_take_program(launch, state);
    return 0;
  case ARGP_KEY_NO_ARGS:
    argp_error(state, "no program");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_child exec_children[] = {{&launch_argp, 0, NULL, 0},
                                                  {0}};
const struct argp exec_argp = {
    .parser = exec_parse,
    .children = exec_children,
    .args_doc = "-- PROGRAM [ARGUMENT...]",
    .doc =
        "Becomes one rank of an unmodified cuDNN program, where srun, mpirun "
        "or torchrun starts the ranks.\v"
        "Rank and size come from SUNDOG_RANK and SUNDOG_SIZE, torchrun, Open "
        "MPI, PMI or Slurm. {rank}, {size} and {local_rank} in the program's "
        "words are replaced.\n\n"
        "  mpirun -n 4 sundog exec --split H --view shard -- ./solver "
        "in-{rank}.npy"};

int command_exec(int argc, char **argv) {
  launch_t launch = {.device = LAUNCH_AUTO};
  int rank, size, local_rank;
  const char *origin;
  argp_err_exit_status = COMMAND_FAILED;
  argp_parse(&exec_argp, argc, argv, ARGP_IN_ORDER, NULL, &launch);
  if (launch_prepare(&launch) != SDG_OK ||
      sdg_rank_detect(&rank, &size, &local_rank, &origin) != SDG_OK)
    return COMMAND_FAILED;
  if (!launch.asked && size > 1) {
    (void)sdg_fail(SDG_E_NOTHING_SPLIT, "%d ranks without --split or --rules",
                   size);
    return COMMAND_FAILED;
  }
  if (launch_preload(&launch, NULL) != SDG_OK ||
      launch_bind(&launch, local_rank, size) != SDG_OK)
    return COMMAND_FAILED;
  char **words = launch_arguments(launch.program, rank, size, local_rank);
  if (!words) {
    (void)sdg_fail(SDG_E_NO_MEMORY, "for the program's words");
    return COMMAND_FAILED;
  }
  execvp(words[0], words);
  int error = errno;
  (void)sdg_fail(SDG_E_START, "%s: %s", words[0], strerror(error));
  return error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE;
}
