/* SPDX-License-Identifier: Apache-2.0 */
/* `sundog run --label`: the rank before each line that a rank writes. */
#ifndef SDG_TOOLS_LAUNCH_LABEL_H
#define SDG_TOOLS_LAUNCH_LABEL_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/status.h"

/* A process beside the run that reads what the ranks write to their standard
 * output and error, and writes it to this command's as "3: line\n": each line
 * whole, at once, with the rank before it. A last line without an end gets one.
 * Ranks write to pipes then, not to a terminal. */
typedef struct label {
  int size;
  int (*end)[2]; /* of each rank: where output and error go; NULL: no labels */
  int done;      /* hung up once all is written */
  pid_t pid;     /* of this process's child */
} label_t;

/* Starts it. It ends by itself, when all ends are closed everywhere. `messages`
 * is a descriptor that it closes; -1: none. SDG_E_START, SDG_E_NO_MEMORY. */
sdg_status_t label_start(int size, int messages, label_t *out) SDG_MUST_CHECK;

/* This process writes nothing there. */
void label_leave(label_t *label);

/* In the process that becomes the rank: its output and error go there. False
 * with errno set. */
bool label_take(const label_t *label, int rank);

/* When all that could write have ended: waits until all is written, but no
 * longer than some seconds for a reader who does not read. */
void label_wait(const label_t *label);

#endif
