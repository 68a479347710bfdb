/* SPDX-License-Identifier: Apache-2.0 */
/* What `run` and `exec` have in common: their options, and the environment in
 * which a rank's program starts. */
#ifndef SDG_TOOLS_LAUNCH_LAUNCH_H
#define SDG_TOOLS_LAUNCH_LAUNCH_H

#include <argp.h>
#include <stdbool.h>

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
  bool asked;             /* a split was asked for */
  char **program;         /* with its arguments, NULL-terminated */
  install_t install;
  streams_t streams; /* `run` only */
} launch_t;

/* SUNDOG_LAUNCH of the ranks of `sundog run`. */
#define LAUNCH_RUN "sundog run"

/* Options that both commands take; a child parser whose input is launch_t.
 * They set the SUNDOG_* variables of this process, which ranks inherit. */
extern const struct argp launch_argp;

/* "auto", "host", "cuda"; false for any other word. */
bool launch_device_parse(const char *word, launch_device_t *out_device);

/* Takes the rest of the command line as the program, at the first word that is
 * no option. For ARGP_KEY_ARG of a parser run with ARGP_IN_ORDER. */
void launch_take_program(launch_t *launch, struct argp_state *state);

/* Checks the options, chooses the device, finds sundog's files. */
sdg_status_t launch_prepare(launch_t *launch) SDG_MUST_CHECK;

/* Checks the rules of a job of `size` ranks, if a split was asked for, and
 * takes its view from them. */
sdg_status_t launch_rules(launch_t *launch, int size) SDG_MUST_CHECK;

/* GPUs that ranks of this machine can have: those of CUDA_VISIBLE_DEVICES,
 * else all; -1 if that cannot be told. */
int launch_gpus(void);

/* Sets LD_PRELOAD and LD_LIBRARY_PATH of this process. The loader splits them
 * at spaces and colons, so sundog's files are named through links in `folder`
 * where their own names have such. */
sdg_status_t launch_preload(const launch_t *launch,
                            const char *folder) SDG_MUST_CHECK;

/* Gives the rank its GPU in CUDA_VISIBLE_DEVICES of this process: the one of
 * its local rank, of those listed there if it is a list. A single one there is
 * the launcher's choice and stays; so does everything where size is 1. */
sdg_status_t launch_bind(const launch_t *launch, int local_rank,
                         int size) SDG_MUST_CHECK;

/* The program's words with {rank}, {size} and {local_rank} replaced; NULL
 * without memory. Owned by the caller, who is about to exec. */
char **launch_arguments(char *const *program, int rank, int size,
                        int local_rank);

#endif
