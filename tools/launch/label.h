/* SPDX-License-Identifier: Apache-2.0 */
/* `sundog run --label`: puts the rank before each line that a rank writes. */
#ifndef SDG_TOOLS_LAUNCH_LABEL_H
#define SDG_TOOLS_LAUNCH_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "src/base/status.h"

/* A process beside the run that reads the ranks' standard output and error
 * through pipes, and writes each complete line to this command's as "3:
 * line\n". Adds a missing end to the last line. The ranks' output is then not a
 * terminal. */
typedef struct label {
  int size;
  int (*end)[2]; /* per rank: the pipes for output and error; NULL: no labels */
  int done;      /* closed by the process when all lines are written */
  pid_t pid;     /* of the process, a child of this one */
} label_t;

/* Starts the process. It ends when all ends of the pipes are closed everywhere.
 * It closes its copy of the descriptor `messages` (-1: none). SDG_E_START,
 * SDG_E_NO_MEMORY. */
sdg_status_t label_start(int size, int messages, label_t *out) SDG_MUST_CHECK;

/* Writes all of a text. Returns false if nobody reads. */
bool label_write(int to, const char *text, size_t bytes);

/* Closes this process's ends of the pipes. */
void label_leave(label_t *label);

/* Call it in the process that becomes the rank: connects its output and error
 * to the pipes. Returns false with errno set on failure. */
bool label_take(const label_t *label, int rank);

/* Waits until all lines are written. Call it when all writers have ended. Waits
 * at most a few seconds, in case nobody reads. */
void label_wait(const label_t *label);

#endif
