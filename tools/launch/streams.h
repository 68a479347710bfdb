/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input and output of the ranks of a run, and their folders. */
#ifndef SDG_TOOLS_LAUNCH_STREAMS_H
#define SDG_TOOLS_LAUNCH_STREAMS_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/status.h"
#include "tools/launch/label.h"

/* Shard view: rank 0 has standard input, all ranks write to standard output.
 * Whole view: every rank reads the same input, as each is the whole program;
 * rank 0's output is the program's. With labels every rank's is written. */
typedef struct streams {
  bool whole;
  const char *output; /* folder for the output of ranks 1 ...; NULL: none */
  const char *folder; /* each rank's working folder, with {rank}; NULL: none */
  int (*pipe)[2];     /* standard input of each rank; NULL: no copies */
  int messages;       /* of the library, from all ranks; -1: standard error */
  const label_t *label; /* NULL: none */
  bool regular;         /* standard input is a file that each rank can open */
  off_t at;             /* the position in it */
} streams_t;

/* Before the ranks are started. SDG_E_FOLDER, SDG_E_START. */
sdg_status_t streams_open(streams_t *streams, int size) SDG_MUST_CHECK;

/* In the process that becomes the rank: its folder, input and output.
 * SUNDOG_MESSAGES tells the library where `messages` is, and where the output
 * goes elsewhere SUNDOG_MESSAGES_ELSE where this command's standard error is.
 * False with errno set. */
bool streams_take(const streams_t *streams, int rank, int size);

/* After the last rank was started: a child in the process group `group` copies
 * standard input to all of them, until there is no more of it or no rank
 * reads. */
sdg_status_t streams_feed(streams_t *streams, int size,
                          pid_t group) SDG_MUST_CHECK;

#endif
