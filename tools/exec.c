// SPDX-License-Identifier: Apache-2.0
// `sundog exec`: one rank inside a launcher of its own.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/address.h"
#include "src/control.h"
#include "src/options.h"
#include "src/rendezvous.h"
#include "src/secret.h"
#include "tools/command.h"
#include "tools/launch.h"

typedef struct single {
  launch_t launch; // first: the child parser's input
  bool alone;      // --alone
} single_t;

enum { KEY_ALONE = 0x200 };

static error_t exec_parse(int key, char *argument, struct argp_state *state) {
  (void)argument;
  single_t *single = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &single->launch;
    return 0;
  case KEY_ALONE:
    single->alone = true;
    return 0;
  case ARGP_KEY_ARG:
    launch_take_program(&single->launch, state);
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
static const struct argp_option exec_options[] = {
    {"alone", KEY_ALONE, NULL, 0,
     "Be rank 0 of 1, whatever a launcher says; without it one has to say rank "
     "and size",
     0},
    {0},
};
const struct argp exec_argp = {
    .options = exec_options,
    .parser = exec_parse,
    .children = exec_children,
    .args_doc = "-- PROGRAM [ARGUMENT...]",
    .doc =
        "Becomes one rank of an unmodified cuDNN program, where srun, mpirun "
        "or torchrun starts the ranks.\v"
        "Rank and size come from SUNDOG_RANK and SUNDOG_SIZE, torchrun, Open "
        "MPI, PMI, PALS, Flux or Slurm; where none says them, nothing is "
        "started, unless --alone is given. {rank}, {size} and {local_rank} in "
        "the program's "
        "words are replaced. Ranks on several machines need a place to meet, "
        "on the machine of rank 0, and a secret:\n\n"
        "  export SUNDOG_RENDEZVOUS=tcp://node1:29400\n"
        "  export SUNDOG_SECRET=$(openssl rand -hex 32)\n"
        "  srun -N 2 -n 4 sundog exec --split H --view shard -- ./solver "
        "in-{rank}.npy\n\n"
        "On one machine:\n\n"
        "  mpirun -n 4 sundog exec --split H --view shard -- ./solver "
        "in-{rank}.npy"};

// Where the ranks are to meet; what is wrong with that is found before one
// starts.
static sdg_status_t meeting_set(int size) {
  const sdg_options_t *options = sdg_options_get();
  sdg_meeting_point_t point;
  sdg_secret_t secret;
  if (size < 2)
    return sdg_control_alone(options->rendezvous);
  SDG_TRY(sdg_rendezvous_check(options->rendezvous, size));
  if (!*options->rendezvous) {
    // Named after the launcher, which is this process's parent, but need not be
    // the program's: a script may start it.
    char place[PATH_MAX];
    SDG_TRY(sdg_rendezvous_default(place, sizeof place));
    return setenv("SUNDOG_RENDEZVOUS", place, 1) == 0
               ? SDG_OK
               : sdg_fail(SDG_E_NO_MEMORY, "for SUNDOG_RENDEZVOUS");
  }
  if (!sdg_address_is_tcp(options->rendezvous))
    return SDG_OK;
  SDG_TRY(sdg_address_find(options->rendezvous, &point));
  return sdg_secret_find(options->secret, options->secret_file, &secret);
}

static sdg_status_t rank_find(bool alone, int *out_rank, int *out_size,
                              int *out_local_rank) {
  const char *origin;
  if (!alone)
    return sdg_rank_require(out_rank, out_size, out_local_rank, &origin);
  *out_rank = *out_local_rank = 0;
  *out_size = 1;
  return SDG_OK;
}

// Which launch the rank is of; below, the rank's numbers are sundog's own.
static sdg_status_t launch_set(int size) {
  char name[256];
  if (size == 1)
    sdg_launch_alone(name, sizeof name);
  else
    sdg_launch_name(name, SDG_LAUNCH_BYTES);
  return setenv("SUNDOG_LAUNCH", name, 1) == 0
             ? SDG_OK
             : sdg_fail(SDG_E_NO_MEMORY, "for SUNDOG_LAUNCH");
}

// The launcher's numbers as sundog's own: what the program starts is known to
// be within a rank.
static sdg_status_t rank_set(int rank, int size, int local_rank) {
  const struct {
    const char *name;
    int value;
  } all[] = {{"SUNDOG_RANK", rank},
             {"SUNDOG_SIZE", size},
             {"SUNDOG_LOCAL_RANK", local_rank}};
  for (int i = 0; i < 3; i++) {
    char text[16];
    snprintf(text, sizeof text, "%d", all[i].value);
    if (setenv(all[i].name, text, 1) != 0)
      return sdg_fail(SDG_E_NO_MEMORY, "for %s", all[i].name);
  }
  return SDG_OK;
}

int command_exec(int argc, char **argv) {
  single_t single = {.launch = {.device = LAUNCH_AUTO}};
  launch_t *launch = &single.launch;
  int rank, size, local_rank;
  argp_parse(&exec_argp, argc, argv, ARGP_IN_ORDER, NULL, &single);
  if (launch_prepare(launch) != SDG_OK ||
      rank_find(single.alone, &rank, &size, &local_rank) != SDG_OK)
    return COMMAND_FAILED;
  if (!launch->asked && size > 1) {
    (void)sdg_fail(SDG_E_NOTHING_SPLIT, "%d ranks without --split or --rules",
                   size);
    return COMMAND_FAILED;
  }
  if ((single.alone && unsetenv("SUNDOG_RENDEZVOUS") != 0) ||
      (!single.alone && meeting_set(size) != SDG_OK) ||
      launch_preload(launch, NULL) != SDG_OK ||
      launch_bind(launch, local_rank, size) != SDG_OK ||
      launch_set(size) != SDG_OK || rank_set(rank, size, local_rank) != SDG_OK)
    return COMMAND_FAILED;
  char **words = launch_arguments(launch->program, rank, size, local_rank);
  if (!words) {
    (void)sdg_fail(SDG_E_NO_MEMORY, "for the program's words");
    return COMMAND_FAILED;
  }
  execvp(words[0], words);
  int error = errno;
  (void)sdg_fail(SDG_E_START, "%s: %s", words[0], strerror(error));
  return error == ENOENT ? COMMAND_NOT_FOUND : COMMAND_NOT_EXECUTABLE;
}
