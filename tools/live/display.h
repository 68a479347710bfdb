/* SPDX-License-Identifier: Apache-2.0 */
/* `sundog run --progress`: a line on the terminal about the run. */
#ifndef SDG_TOOLS_LIVE_DISPLAY_H
#define SDG_TOOLS_LIVE_DISPLAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/status.h"

/* A process beside the run that draws the line on standard error. It is drawn
 * each second, only while the run is in the terminal's foreground and the
 * cursor is at the start of a line.
 *
 * What this process and its children write to the terminal goes through a
 * pseudo-terminal to that process, which erases the line before it passes text
 * on. So nothing mixes with the line, and the ranks' output still is a
 * terminal. */
typedef struct display {
  pid_t pid;    /* a child of this process; 0: no line */
  int done;     /* closed by the process when all text is written */
  int saved[2]; /* the terminal that standard output and error were; -1: not
                   changed */
} display_t;

/* Returns whether standard error is a terminal that can show the line: TERM is
 * set and not "dumb", and CI is not set. */
bool display_possible(void);

/* Starts the process for `size` ranks, and connects this process's standard
 * output and error, as far as they are this terminal, to it. Sets SUNDOG_LIVE
 * and SUNDOG_WAITS for the ranks. `folder` has the notes of ranks that have
 * ended. Without a free pseudo-terminal a message says so, and nothing is
 * started. SDG_E_START, SDG_E_NO_MEMORY. */
sdg_status_t display_start(int size, const char *folder,
                           display_t *out) SDG_MUST_CHECK;

/* Erases the line, and connects standard output and error as before. Call it
 * when all children that write have ended; it waits some seconds at most, in
 * case nobody reads the terminal. Does nothing if nothing was started. */
void display_end(display_t *display);

#endif
