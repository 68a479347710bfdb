/* SPDX-License-Identifier: Apache-2.0 */
/* The options that `run` and `exec` have in common, and the environment of a
 * rank's program. */
#ifndef SDG_TOOLS_LAUNCH_LAUNCH_H
#define SDG_TOOLS_LAUNCH_LAUNCH_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/status.h"
#include "tools/launch/streams.h"
#include "tools/program/install.h"

typedef enum launch_device {
  LAUNCH_AUTO,
  LAUNCH_HOST,
  LAUNCH_CUDA,
} launch_device_t;

typedef struct launch {
  launch_device_t device; /* LAUNCH_AUTO until launch_prepare() */
  bool sees_all;          /* --bind none: the program selects its GPU itself */
  bool asked;             /* a split was asked for */
  char **program;         /* with its arguments, NULL-terminated */
  install_t install;
  streams_t streams;    /* `run` only */
  int64_t *wrote_bytes; /* receives what each rank has written to files, pipes
                           and sockets, with processes that it waited for; 0 if
                           the system does not tell. NULL: not wanted */
  int functions;        /* of the program's own that the rules declare */
  char **function_name;
  bool watched; /* they are watched, and none is declared: `inspect` */
} launch_t;

/* The value of SUNDOG_LAUNCH in ranks of `sundog run`. */
#define LAUNCH_RUN "sundog run"

/* Options that both commands take; a child parser whose input is launch_t.
 * They set the SUNDOG_* variables of this process, which ranks inherit. */
extern const struct argp launch_argp;

/* Parses "auto", "host" or "cuda". Returns false for any other word. */
bool launch_device_parse(const char *word, launch_device_t *out_device);

/* Takes the rest of the command line as the program and its arguments. Call it
 * for ARGP_KEY_ARG, with a parser that runs with ARGP_IN_ORDER. */
void launch_take_program(launch_t *launch, struct argp_state *state);
/* The same for a command that needs a program: the last resort of its parser,
 * which also reports a missing program. */
error_t launch_program_parse(launch_t *launch, int key,
                             struct argp_state *state);

/* Checks the options, chooses the device, and finds sundog's files. */
sdg_status_t launch_prepare(launch_t *launch) SDG_MUST_CHECK;

/* If a split was asked for, checks the rules for a job of `size` ranks and
 * stores their view and the names of functions in `launch`. */
sdg_status_t launch_rules(launch_t *launch, int size) SDG_MUST_CHECK;

/* Returns the number of GPUs for ranks of this machine: those in
 * CUDA_VISIBLE_DEVICES if it is set, else all; -1 if it is unknown. */
int launch_gpus(void);

/* Sets LD_PRELOAD and LD_LIBRARY_PATH of this process. The loader splits them
 * at spaces and colons, so a path with such a character is replaced by a link
 * in `folder`. Preloads the program's functions, too, if the rules declare any
 * (functions.h). Also sets what NCCL must know from its start, unless the user
 * has set it. */
sdg_status_t launch_preload(const launch_t *launch,
                            const char *folder) SDG_MUST_CHECK;

/* Selects the rank's GPU in CUDA_VISIBLE_DEVICES of this process, by the local
 * rank; if the variable is a list, the rank gets an item of it. A list of one
 * GPU is the launcher's choice and stays. Nothing changes if size is 1 or the
 * program is to see all GPUs. */
sdg_status_t launch_bind(const launch_t *launch, int local_rank,
                         int size) SDG_MUST_CHECK;

/* Returns the program's words with {rank}, {size} and {local_rank} replaced;
 * NULL if memory runs out. The caller owns them and is about to exec. */
char **launch_arguments(char *const *program, int rank, int size,
                        int local_rank);

#endif
