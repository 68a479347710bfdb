/* SPDX-License-Identifier: Apache-2.0 */
/* Sets up the standard streams and the working folders of a run's ranks. */
#ifndef SDG_TOOLS_LAUNCH_STREAMS_H
#define SDG_TOOLS_LAUNCH_STREAMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/status.h"
#include "tools/launch/label.h"

/* Shard view: rank 0 has standard input; all ranks write to standard output.
 * Whole view: each rank is the whole program, so every rank reads a copy of the
 * input, and only rank 0's output is shown. With labels, every rank's output is
 * shown. */
typedef struct streams {
  bool whole;
  const char *output; /* folder for the output of ranks 1 ...; NULL: none */
  const char *folder; /* each rank's working folder, with {rank}; NULL: none */
  int (*pipe)[2];     /* standard input of each rank; NULL: no copies */
  int messages; /* receives the library's messages of all ranks; -1: standard
                   error */
  const label_t *label; /* NULL: none */
  bool regular;         /* standard input is a file that each rank can open */
  off_t at;             /* the position in this file */
} streams_t;

/* Call it before the ranks are started. SDG_E_FOLDER, SDG_E_START. */
sdg_status_t streams_open(streams_t *streams, int size) SDG_MUST_CHECK;

/* Call it in the process that becomes the rank: sets its folder, input and
 * output. SUNDOG_MESSAGES tells the library the descriptor of `messages`. If
 * the rank's output is redirected, SUNDOG_MESSAGES_ELSE is the descriptor of
 * this command's standard error. Returns false with errno set on failure. */
bool streams_take(const streams_t *streams, int rank, int size);

/* Call it after the last rank was started. Starts a child in the process group
 * `group` that copies standard input to all ranks, until its end, or until no
 * rank reads. */
sdg_status_t streams_feed(streams_t *streams, int size,
                          pid_t group) SDG_MUST_CHECK;

#endif
